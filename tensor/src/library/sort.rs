//! The numbers of rows in order.
//!
//! A number becomes an unsigned integer with the same order, followed by its position: so any sorting algorithm is stable.
//! If the positions are not needed, the integers are sorted alone.

use aerogel_base::ScalarType;
use aerogel_runtime::buffer::MemoryError;

use crate::ir::Operand;

/// Sorts along the last axis: the numbers, and their positions if these are needed; only the first elements, as many as
/// `values` has. NaN comes last.
pub(crate) fn rows(
    x: &Operand,
    descending: bool,
    values: &Operand,
    order: Option<&Operand>,
) -> Result<(), MemoryError> {
    let keys = Keys::of(x.ty, descending);
    match (order, x.ty.bytes()) {
        (Some(order), 1) => with_places::<1>(keys, x, values, order),
        (Some(order), 2) => with_places::<2>(keys, x, values, order),
        (Some(order), 4) => with_places::<4>(keys, x, values, order),
        (Some(order), _) => with_places::<8>(keys, x, values, order),
        (None, 1) => alone(keys, x, values, |bytes: &[u8; 1]| bytes[0]),
        (None, 2) => alone(keys, x, values, |&bytes| u16::from_le_bytes(bytes)),
        (None, 4) => alone(keys, x, values, |&bytes| u32::from_le_bytes(bytes)),
        (None, _) => alone(keys, x, values, |&bytes| u64::from_le_bytes(bytes)),
    }
}

/// The number of rows, their size, and how many elements of each are needed.
fn lengths(x: &Operand, values: &Operand) -> [usize; 3] {
    let length = |of: &Operand| of.shape.last().copied().unwrap_or(1);
    let n_rows = x.shape.iter().product::<usize>().checked_div(length(x));
    [length(x), length(values), n_rows.unwrap_or(0)]
}

/// Sorts numbers with so many bytes alone.
fn alone<const SIZE: usize, W: Ord + Copy>(
    keys: Keys,
    x: &Operand,
    values: &Operand,
    word: impl Fn(&[u8; SIZE]) -> W,
) -> Result<(), MemoryError>
where
    u64: From<W>,
{
    let [n, n_first, n_rows] = lengths(x, values);
    let mut row = vec![0; n * SIZE];
    let (mut first, mut zeros) = (Vec::new(), Vec::new());
    let zero = word(&low_bytes(keys.of_number(0)));
    for at in 0..n_rows {
        x.buffer.read(at * n * SIZE, &mut row)?;
        let (numbers, _) = row.as_chunks_mut::<SIZE>();
        let words = numbers
            .iter()
            .map(|bytes| word(&low_bytes(keys.of_bytes(bytes))));
        first_in_order(words, n_first, &mut first);
        // Zeros of both signs are equal, and stay in the order in which they come.
        let from = first.partition_point(|&key| key < zero);
        let n_zeros = first[from..].partition_point(|&key| key == zero);
        zeros.clear();
        if n_zeros > 0 {
            let all = numbers.iter();
            let all = all.filter(|bytes| word(&low_bytes(keys.of_bytes(bytes))) == zero);
            zeros.extend(all.copied().take(n_zeros));
        }
        for (to, &key) in numbers.iter_mut().zip(&first) {
            *to = low_bytes(keys.to_number(u64::from(key)));
        }
        numbers[from..from + n_zeros].copy_from_slice(&zeros);
        values
            .buffer
            .write(at * n_first * SIZE, &row[..n_first * SIZE])?;
    }
    Ok(())
}

fn low_bytes<const SIZE: usize>(word: u64) -> [u8; SIZE] {
    std::array::from_fn(|k| (word >> (8 * k)) as u8)
}

/// Sorts numbers with so many bytes, and the places from which they come.
fn with_places<const SIZE: usize>(
    keys: Keys,
    x: &Operand,
    values: &Operand,
    order: &Operand,
) -> Result<(), MemoryError> {
    let [n, n_first, n_rows] = lengths(x, values);
    let place_size = order.ty.bytes() as usize;
    let mut row = vec![0; n * SIZE];
    let (mut sorted, mut places) = (vec![0; n_first * SIZE], vec![0; n_first * place_size]);
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for at in 0..n_rows {
        x.buffer.read(at * n * SIZE, &mut row)?;
        let (numbers, _) = row.as_chunks::<SIZE>();
        let numbers = numbers.iter().map(|bytes| keys.of_bytes(bytes)).zip(0..);
        if SIZE <= 4 {
            // The place stands in the same word, which sorts faster.
            let words = numbers.map(|(key, place)| key << 32 | u64::from(place));
            first_in_order(words, n_first, &mut small);
            let all = small.iter().map(|&word| word as u32);
            write::<SIZE>(all, &row, &mut sorted, place_size, &mut places);
        } else {
            first_in_order(numbers, n_first, &mut large);
            let all = large.iter().map(|&(_, place): &(u64, u32)| place);
            write::<SIZE>(all, &row, &mut sorted, place_size, &mut places);
        }
        values.buffer.write(at * n_first * SIZE, &sorted)?;
        order.buffer.write(at * n_first * place_size, &places)?;
    }
    Ok(())
}

/// The first `n` of all words, in order. Words after the first `n` of the earlier ones are dropped.
fn first_in_order<W: Ord + Copy>(words: impl Iterator<Item = W>, n: usize, first: &mut Vec<W>) {
    first.clear();
    if n == 0 {
        return;
    }
    let room = (2 * n).max(1024);
    let mut bound: Option<W> = None;
    for word in words {
        if bound.is_some_and(|bound| word >= bound) {
            continue;
        }
        first.push(word);
        if first.len() == room {
            let (_, last, _) = first.select_nth_unstable(n - 1);
            bound = Some(*last);
            first.truncate(n);
        }
    }
    if first.len() > n {
        first.select_nth_unstable(n - 1);
        first.truncate(n);
    }
    first.sort_unstable();
}

/// The numbers at places of a row, and the places.
fn write<const SIZE: usize>(
    all: impl Iterator<Item = u32>,
    row: &[u8],
    sorted: &mut [u8],
    place_size: usize,
    places: &mut [u8],
) {
    let to = sorted
        .chunks_exact_mut(SIZE)
        .zip(places.chunks_exact_mut(place_size));
    for (place, (value, to)) in all.zip(to) {
        value.copy_from_slice(&row[place as usize * SIZE..][..SIZE]);
        to.copy_from_slice(&u64::from(place).to_le_bytes()[..place_size]);
    }
}

/// How the numbers of a type become whole ones in their order, with as many bits as they have.
#[derive(Clone, Copy)]
struct Keys {
    /// The sign's bit, if the type has one.
    sign: u64,
    /// All bits.
    all: u64,
    /// The bits of infinity, of floats: with more, but for the sign, none is a number.
    infinity: Option<u64>,
    descending: bool,
}

impl Keys {
    fn of(ty: ScalarType, descending: bool) -> Self {
        let all = u64::MAX >> (64 - 8 * ty.bytes());
        let infinity = match ty {
            ScalarType::F16 => Some(0x7c00),
            ScalarType::BF16 => Some(0x7f80),
            ScalarType::F32 => Some(0x7f80_0000),
            ScalarType::F64 => Some(0x7ff0_0000_0000_0000),
            _ => None,
        };
        let has_sign = infinity.is_some() || ty.is_signed();
        Self {
            sign: if has_sign { all ^ (all >> 1) } else { 0 },
            all,
            infinity,
            descending,
        }
    }

    /// A number from its bytes; both zeros are one.
    fn of_bytes<const SIZE: usize>(self, bytes: &[u8; SIZE]) -> u64 {
        let mut word = [0; 8];
        word[..SIZE].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(word);
        let is_minus_zero = self.infinity.is_some() && bits == self.sign;
        self.of_number(if is_minus_zero { 0 } else { bits })
    }

    /// A number from its bits. Zero is behind minus zero.
    fn of_number(self, bits: u64) -> u64 {
        let Self { sign, all, .. } = self;
        let key = match self.infinity {
            Some(infinity) if bits & !sign > infinity => return all,
            Some(_) if bits & sign != 0 => all ^ bits,
            Some(_) => bits | sign,
            None => bits ^ sign,
        };
        if self.descending { all ^ key } else { key }
    }

    /// The bits of a number again; of one that is not a number, the usual ones.
    fn to_number(self, key: u64) -> u64 {
        let Self { sign, all, .. } = self;
        if let Some(infinity) = self.infinity
            && key == all
        {
            // Half of what is below it: the first bit of the fraction.
            return infinity | (infinity & infinity.wrapping_neg()) >> 1;
        }
        let key = if self.descending { all ^ key } else { key };
        match self.infinity {
            Some(_) if key & sign == 0 => all ^ key,
            _ => key ^ sign,
        }
    }
}
