//! PNG files, and the pixels of GIF files.

use std::fs;
use std::io::BufReader;

use png::{BitDepth, ColorType, Decoder, Encoder, Reader, Transformations};
use weezl::BitOrder;

/// Bytes of shape (height, width, channels) as a PNG.
///
/// # Errors
/// There are not 1 to 4 channels, or not as many bytes as the shape says.
pub fn encode(
    data: &[u8],
    (height, width, channels): (usize, usize, usize),
) -> Result<Vec<u8>, String> {
    let failed = |e: png::EncodingError| e.to_string();
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        4 => ColorType::Rgba,
        _ => return Err("a PNG has 1 to 4 channels".to_owned()),
    });
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

/// Bytes as GIF files store the pixels of a frame: by LZW, with codes that begin at 9 bits.
///
/// # Errors
/// The encoder fails.
pub fn lzw(data: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = weezl::encode::Encoder::new(BitOrder::Lsb, 8);
    encoder.encode(data).map_err(|e| e.to_string())
}

/// A byte that is compressed by deflate is at most so many.
const MOST_OF_A_BYTE: u64 = 1032;

/// A PNG whose head was read.
pub struct File {
    reader: Reader<BufReader<fs::File>>,
}

impl File {
    /// # Errors
    /// The file cannot be read, is no PNG, or is too short for the pixels that it announces.
    pub fn open(path: &str) -> Result<Self, String> {
        let file = fs::File::open(path).map_err(|e| e.to_string())?;
        let size = file.metadata().map_err(|e| e.to_string())?.len();
        let mut decoder = Decoder::new(BufReader::new(file));
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let reader = decoder.read_info().map_err(|e| e.to_string())?;
        let info = reader.info();
        if info.raw_bytes() as u64 > size.saturating_mul(MOST_OF_A_BYTE) {
            let (width, height) = info.size();
            return Err(format!(
                "it announces {width} x {height} pixels, more than its {size} bytes can hold"
            ));
        }
        Ok(Self { reader })
    }

    /// The bytes of its pixels.
    pub fn n_bytes(&self) -> usize {
        self.reader.output_buffer_size()
    }

    /// Width, height, channels and pixels, row by row from the top.
    ///
    /// # Errors
    /// It is broken.
    pub fn read(mut self) -> Result<(u32, u32, u32, Vec<u8>), String> {
        let mut data = vec![0; self.n_bytes()];
        let info = self.reader.next_frame(&mut data);
        let info = info.map_err(|e| e.to_string())?;
        data.truncate(info.buffer_size());
        let channels = info.color_type.samples() as u32;
        Ok((info.width, info.height, channels, data))
    }
}
