//! Discs, lines and triangles.

use crate::picture::{Picture, rgb};

impl Picture {
    /// Draws a disc with smooth edges. As in Taichi a pixel is where its corner is (the lower left one), and covered by as
    /// much as it lies within the radius, at most by 1.
    pub fn disc(&mut self, x: f32, y: f32, radius: f32, color: u32) {
        if !(x.is_finite() && y.is_finite() && radius > 0.0) {
            return;
        }
        let (width, height) = (self.pixmap.width(), self.pixmap.height());
        let color = rgb(color);
        let data = self.pixmap.data_mut();
        // The lower left corner of the pixel in row `py` counted from the top is at `py + 1`.
        for py in pixels_between(y - radius - 1.0, y + radius - 1.0, height) {
            let dy = py as f32 + 1.0 - y;
            for px in pixels_between(x - radius, x + radius, width) {
                let dx = px as f32 - x;
                let squared = dx * dx + dy * dy;
                if squared < radius * radius {
                    let at = 4 * (py * width as i32 + px) as usize;
                    blend(data, at, color, radius - squared.sqrt());
                }
            }
        }
    }

    /// Draws a line with round ends: a pixel's centre is covered by as much as it lies within the radius.
    pub fn line(&mut self, a: [f32; 2], b: [f32; 2], radius: f32, color: u32) {
        if !(a.into_iter().chain(b).all(f32::is_finite) && radius > 0.0) {
            return;
        }
        let (width, height) = (self.pixmap.width(), self.pixmap.height());
        let color = rgb(color);
        let data = self.pixmap.data_mut();
        let along = [b[0] - a[0], b[1] - a[1]];
        let squared_length = along[0] * along[0] + along[1] * along[1];
        // Of a row only the pixels near the line are looked at: `reach` is how far from it they lie at most, sidewards.
        let slope = (along[1].abs() > 1e-3).then(|| along[0] / along[1]);
        for py in pixels_between(a[1].min(b[1]) - radius, a[1].max(b[1]) + radius, height) {
            let y = py as f32 + 0.5;
            let (mut low, mut high) = (a[0].min(b[0]) - radius, a[0].max(b[0]) + radius);
            if let Some(slope) = slope {
                let middle = a[0] + (y - a[1]) * slope;
                let reach = radius * slope.hypot(1.0) + 1.0;
                // Beyond the ends, where the line's own extension may be far away, the caps remain.
                if (a[1].min(b[1])..=a[1].max(b[1])).contains(&y) {
                    low = low.max(middle - reach);
                    high = high.min(middle + reach);
                }
            }
            for px in pixels_between(low, high, width) {
                let p = [px as f32 + 0.5 - a[0], y - a[1]];
                let t = if squared_length > 0.0 {
                    ((p[0] * along[0] + p[1] * along[1]) / squared_length).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let (dx, dy) = (p[0] - t * along[0], p[1] - t * along[1]);
                let squared = dx * dx + dy * dy;
                if squared < radius * radius {
                    let at = 4 * (py * width as i32 + px) as usize;
                    blend(data, at, color, radius - squared.sqrt());
                }
            }
        }
    }

    /// Fills the pixels whose centres lie in a triangle.
    pub fn triangle(&mut self, [a, b, c]: [[f32; 2]; 3], color: u32) {
        if !a.into_iter().chain(b).chain(c).all(f32::is_finite) {
            return;
        }
        let (width, height) = (self.pixmap.width(), self.pixmap.height());
        let [red, green, blue] = rgb(color);
        let data = self.pixmap.data_mut();
        let side = |p: [f32; 2], q: [f32; 2], x: f32, y: f32| {
            (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])
        };
        if side(a, b, c[0], c[1]) == 0.0 {
            return;
        }
        let bounds = |k: usize| (a[k].min(b[k]).min(c[k]), a[k].max(b[k]).max(c[k]));
        let ((left, right), (top, bottom)) = (bounds(0), bounds(1));
        for py in pixels_between(top, bottom, height) {
            for px in pixels_between(left, right, width) {
                let (x, y) = (px as f32 + 0.5, py as f32 + 0.5);
                let sides = [side(a, b, x, y), side(b, c, x, y), side(c, a, x, y)];
                if sides.iter().all(|s| *s >= 0.0) || sides.iter().all(|s| *s <= 0.0) {
                    let at = 4 * (py * width as i32 + px) as usize;
                    data[at..at + 3].copy_from_slice(&[red, green, blue]);
                }
            }
        }
    }
}

/// The pixels of `extent` that a shape from `low` to `high` can touch.
fn pixels_between(low: f32, high: f32, extent: u32) -> std::ops::Range<i32> {
    // A conversion saturates, so shapes of any size end at the picture's edges.
    (low.floor().max(0.0) as i32)..(high.ceil() as i32).saturating_add(1).min(extent as i32)
}

/// Mixes a colour into a pixel: the part `coverage` of it, from 0 to 1.
fn blend(data: &mut [u8], at: usize, color: [u8; 3], coverage: f32) {
    if coverage >= 1.0 {
        data[at..at + 3].copy_from_slice(&color);
    } else if coverage > 0.0 {
        for (have, want) in data[at..at + 3].iter_mut().zip(color) {
            let mixed = f32::from(*have) + (f32::from(want) - f32::from(*have)) * coverage;
            *have = (mixed + 0.5) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of the red parts of all pixels, as so many whole ones.
    fn covered(paint: impl FnOnce(&mut Picture)) -> f32 {
        let mut picture = Picture::new(64, 48).unwrap();
        picture.clear(0);
        paint(&mut picture);
        let reds = picture.rows().chunks(4).map(|p| f32::from(p[0]));
        reds.sum::<f32>() / 255.0
    }

    #[test]
    fn shapes_cover_what_they_should() {
        let red = 0x00ff_0000;
        let disc = covered(|p| p.disc(30.0, 20.0, 10.0, red));
        // The edge is soft towards the inside: half a pixel of radius less.
        assert!(
            (disc - 9.5 * 9.5 * std::f32::consts::PI).abs() < 4.0,
            "{disc}"
        );
        let triangle = covered(|p| p.triangle([[2.0, 2.0], [42.0, 2.0], [2.0, 32.0]], red));
        assert!((triangle - 600.0).abs() < 25.0, "{triangle}");
        let line = covered(|p| p.line([10.0, 24.0], [50.0, 24.0], 2.5, red));
        assert!((line - 40.0 * 4.0).abs() < 40.0, "{line}");
    }

    #[test]
    fn what_is_outside_or_no_number_covers_nothing() {
        let red = 0x00ff_0000;
        let nothing = covered(|p| {
            p.disc(f32::NAN, 3.0, 5.0, red);
            p.disc(500.0, 500.0, 5.0, red);
            p.disc(10.0, 10.0, -1.0, red);
            p.line([f32::INFINITY, 0.0], [3.0, 3.0], 1.0, red);
            p.triangle([[f32::NAN, 0.0], [9.0, 0.0], [0.0, 9.0]], red);
            p.triangle([[1.0, 1.0], [5.0, 5.0], [9.0, 9.0]], red);
        });
        assert!(nothing.abs() < f32::EPSILON);
        let all = covered(|p| p.disc(10.0, 10.0, 1e9, red));
        assert!((all - 64.0 * 48.0).abs() < 0.5);
    }

    #[test]
    fn letters_are_seven_dots_high() {
        let red = 0x00ff_0000;
        let one = covered(|p| p.text("|", 4.0, 4.0, 11.0, red));
        // Dots between pixels cover a little less.
        assert!((one - 7.0).abs() < 1.5, "{one}");
        let two = covered(|p| p.text("|\n|", 4.0, 4.0, 11.0, red));
        assert!((two - 2.0 * one).abs() < 0.5, "{two}");
    }
}
