//! The numbers of rows in order.
//!
//! A number becomes a whole one without a sign that is in the same order, and its place stands behind it: so equal numbers
//! stay in the order in which they come, whoever sorts.

use aerogel_base::ScalarType;
use aerogel_runtime::buffer::MemoryError;

use crate::operand::Operand;

/// Sorts along the last axis: the numbers, and from where each is. NaN is behind all.
pub(crate) fn rows(
    x: &Operand,
    descending: bool,
    values: &Operand,
    order: &Operand,
) -> Result<(), MemoryError> {
    let n = x.shape.last().copied().unwrap_or(1);
    let size = x.ty.bytes() as usize;
    let place_size = order.ty.bytes() as usize;
    let (mut row, mut sorted) = (vec![0; n * size], vec![0; n * size]);
    let mut places = vec![0; n * place_size];
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for at in 0..x
        .shape
        .iter()
        .product::<usize>()
        .checked_div(n)
        .unwrap_or(0)
    {
        x.buffer.read(at * n * size, &mut row)?;
        let numbers = row
            .chunks_exact(size)
            .map(|bytes| key(x.ty, bytes, descending));
        if size <= 4 {
            // The place stands in the same word, which sorts faster.
            small.clear();
            small.extend(numbers.zip(0..).map(|(key, k)| key << 32 | k));
            small.sort_unstable();
            write(&small, |&word| word as u32, &row, &mut sorted, &mut places);
        } else {
            large.clear();
            large.extend(numbers.zip(0..));
            large.sort_unstable();
            write(
                &large,
                |&(_, k): &(u64, u32)| k,
                &row,
                &mut sorted,
                &mut places,
            );
        }
        values.buffer.write(at * n * size, &sorted)?;
        order.buffer.write(at * n * place_size, &places)?;
    }
    Ok(())
}

/// The numbers and the places that words in order name.
fn write<W>(
    words: &[W],
    place: impl Fn(&W) -> u32,
    row: &[u8],
    sorted: &mut [u8],
    places: &mut [u8],
) {
    let n = words.len();
    let (size, place_size) = (sorted.len() / n, places.len() / n);
    let to = sorted
        .chunks_exact_mut(size)
        .zip(places.chunks_exact_mut(place_size));
    for (word, (value, to)) in words.iter().zip(to) {
        let place = place(word);
        value.copy_from_slice(&row[place as usize * size..][..size]);
        to.copy_from_slice(&u64::from(place).to_le_bytes()[..place_size]);
    }
}

/// A whole number in the order of the numbers of a type, with as many bits as they have.
fn key(ty: ScalarType, bytes: &[u8], descending: bool) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    let all = u64::MAX >> (64 - 8 * bytes.len());
    let sign = all ^ (all >> 1);
    let key = match infinity(ty) {
        Some(infinity) if bits & !sign > infinity => return all,
        // Both zeros are one.
        Some(_) if bits == sign => sign,
        Some(_) if bits & sign != 0 => all ^ bits,
        Some(_) => bits | sign,
        None if ty.is_signed() => bits ^ sign,
        None => bits,
    };
    if descending { all ^ key } else { key }
}

/// The bits of infinity; of floats with more, but for the sign, none is a number.
fn infinity(ty: ScalarType) -> Option<u64> {
    Some(match ty {
        ScalarType::F16 => 0x7c00,
        ScalarType::BF16 => 0x7f80,
        ScalarType::F32 => 0x7f80_0000,
        ScalarType::F64 => 0x7ff0_0000_0000_0000,
        _ => return None,
    })
}
