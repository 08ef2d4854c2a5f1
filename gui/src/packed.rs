//! Images as the shader reads them: four bytes for each pixel, in the order of the numbers.
//!
//! The picture that they are drawn into has no more than bytes either. A shader that takes the numbers as they lie reads
//! three words and more for each pixel, one lane after the other where Vulkan is software.

/// The kinds of numbers, by the number that Python gives them: f32, u8, u16, u32.
pub(crate) const SIZES: [usize; 4] = [4, 1, 2, 4];

/// The pixels of an image with 1 to 4 channels: grey, red and green, or colours. Opacity is left out.
pub(crate) fn packed(numbers: &[u8], channels: usize, kind: usize) -> Vec<u8> {
    match kind {
        0 => of_channels(numbers, channels, |raw| {
            // NaN becomes 0.
            (f32::from_le_bytes(raw) * 255.0 + 0.5).clamp(0.0, 255.0) as u8
        }),
        1 => of_channels(numbers, channels, |[byte]| byte),
        2 => of_channels(numbers, channels, |raw| {
            ((u32::from(u16::from_le_bytes(raw)) * 255 + 32767) / 65535) as u8
        }),
        _ => of_channels(numbers, channels, |raw| {
            ((u64::from(u32::from_le_bytes(raw)) * 255 + (1 << 31)) / u64::from(u32::MAX)) as u8
        }),
    }
}

fn of_channels<const SIZE: usize>(
    numbers: &[u8],
    channels: usize,
    byte: impl Fn([u8; SIZE]) -> u8,
) -> Vec<u8> {
    match channels {
        1 => pack::<1, SIZE>(numbers, byte),
        2 => pack::<2, SIZE>(numbers, byte),
        3 => pack::<3, SIZE>(numbers, byte),
        _ => pack::<4, SIZE>(numbers, byte),
    }
}

fn pack<const CHANNELS: usize, const SIZE: usize>(
    numbers: &[u8],
    byte: impl Fn([u8; SIZE]) -> u8,
) -> Vec<u8> {
    let texels = numbers.chunks_exact(CHANNELS * SIZE);
    let mut pixels = vec![0; 4 * texels.len()];
    for (pixel, texel) in pixels.chunks_exact_mut(4).zip(texels) {
        let channel = |k: usize| {
            let mut raw = [0; SIZE];
            raw.copy_from_slice(&texel[k * SIZE..][..SIZE]);
            byte(raw)
        };
        let color = match CHANNELS {
            1 => [channel(0); 3],
            2 => [channel(0), channel(1), 0],
            _ => [channel(0), channel(1), channel(2)],
        };
        pixel[..3].copy_from_slice(&color);
        pixel[3] = 255;
    }
    pixels
}
