//! The picture that is painted into.

use std::fmt;

use tiny_skia::{BYTES_PER_PIXEL, Color, IntSize, Paint, Pixmap};

/// Why there is no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It would have no pixels.
    Empty,
    /// Memory does not hold it: width and height.
    TooLarge(u32, u32),
    /// An image is not of the picture's size, or has not 1 to 4 channels.
    OtherSize,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a picture has at least one pixel"),
            Self::TooLarge(width, height) => {
                write!(f, "no memory for a picture of {width} by {height}")
            }
            Self::OtherSize => f.write_str("the image has another size than the picture"),
        }
    }
}

/// A picture under construction, the origin at the upper left. Colours are 0xRRGGBB.
#[derive(Clone)]
pub struct Picture {
    pub(crate) pixmap: Pixmap,
}

pub(crate) fn rgb(color: u32) -> [u8; 3] {
    let [_, r, g, b] = color.to_be_bytes();
    [r, g, b]
}

pub(crate) fn paint(color: u32) -> Paint<'static> {
    let [r, g, b] = rgb(color);
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint.anti_alias = true;
    paint
}

impl Picture {
    /// A black picture that nothing covers.
    ///
    /// # Errors
    /// It would have no pixels, or memory does not hold them.
    pub fn new(width: u32, height: u32) -> Result<Self, Refusal> {
        let size = IntSize::from_wh(width, height).ok_or(Refusal::Empty)?;
        let too_large = Refusal::TooLarge(width, height);
        let pixels = (width as usize).checked_mul(height as usize);
        let bytes = pixels.and_then(|n| n.checked_mul(BYTES_PER_PIXEL));
        let bytes = bytes.ok_or(too_large)?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|_| too_large)?;
        data.resize(bytes, 0);
        let pixmap = Pixmap::from_vec(data, size).ok_or(too_large)?;
        Ok(Self { pixmap })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.pixmap.width(), self.pixmap.height())
    }

    /// RGBA bytes, row by row from the top.
    pub fn rows(&self) -> &[u8] {
        self.pixmap.data()
    }

    /// The same, to be written; the last byte of each pixel is 255.
    pub fn rows_mut(&mut self) -> &mut [u8] {
        self.pixmap.data_mut()
    }

    /// Covers everything by a colour.
    pub fn clear(&mut self, color: u32) {
        let [r, g, b] = rgb(color);
        self.pixmap.fill(Color::from_rgba8(r, g, b, 255));
    }

    /// Covers everything by an image: bytes of shape (width, height, channels), the second axis upwards.
    ///
    /// # Errors
    /// It has another size than the picture.
    pub fn image(
        &mut self,
        source: &[u8],
        (w, h, channels): (usize, usize, usize),
    ) -> Result<(), Refusal> {
        let (width, height) = (self.pixmap.width() as usize, self.pixmap.height() as usize);
        let is_of_this_size = (w, h) == (width, height)
            && (1..=4).contains(&channels)
            && source.len() == w * h * channels;
        if !is_of_this_size {
            return Err(Refusal::OtherSize);
        }
        let data = self.pixmap.data_mut();
        for x in 0..width {
            for y in 0..height {
                let from = &source[(x * height + height - 1 - y) * channels..][..channels];
                let to = &mut data[4 * (y * width + x)..][..4];
                match *from {
                    [v] => to.copy_from_slice(&[v, v, v, 255]),
                    [r, g] => to.copy_from_slice(&[r, g, 0, 255]),
                    _ => to.copy_from_slice(&[from[0], from[1], from[2], 255]),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_lie_with_their_second_axis_upwards() {
        let mut picture = Picture::new(2, 2).unwrap();
        // (x, y) has 10 x + y.
        picture.image(&[0, 1, 10, 11], (2, 2, 1)).unwrap();
        let grey: Vec<u8> = picture.rows().chunks(4).map(|p| p[0]).collect();
        assert_eq!(grey, [1, 11, 0, 10]);
        assert_eq!(picture.image(&[0; 4], (4, 1, 1)), Err(Refusal::OtherSize));
    }

    #[test]
    fn pictures_have_pixels_and_fit_into_memory() {
        assert_eq!(Picture::new(0, 3).err(), Some(Refusal::Empty));
        let large = u32::MAX;
        assert_eq!(
            Picture::new(large, large).err(),
            Some(Refusal::TooLarge(large, large))
        );
    }
}
