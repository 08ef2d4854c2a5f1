//! The sizes of tiles and the limits of fusion: defaults, and what a tuner may try instead.

use std::fmt;
use std::str::FromStr;

/// Choices that change the time of a program and not its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caps {
    /// The most that the expressions of a kernel cost after a value has been inlined: LLVM's time grows faster than that of
    /// small ones.
    pub inline_cost: u64,
    /// The most statements that share a kernel.
    pub fused_statements: u64,
    /// The rows of a tile of a matrix product: so many sums, a factor and a product fit into the registers of most machines, and
    /// twelve independent sums hide the latency of an addition.
    pub tile_rows: u64,
    /// The tiles below each other that reuse cached values.
    pub tile_block: u64,
}

/// The name of a choice, its default, and what may be better elsewhere.
type Row = (&'static str, u64, &'static [u64]);

/// All choices, in the order of `Caps::values`.
const TABLE: [Row; 4] = [
    ("inline_cost", 300, &[40, 1200]),
    ("fused_statements", 64, &[1, 8]),
    ("tile_rows", 12, &[6, 8]),
    ("tile_block", 8, &[4, 16]),
];

impl Caps {
    fn of([inline_cost, fused_statements, tile_rows, tile_block]: [u64; 4]) -> Self {
        Self {
            inline_cost,
            fused_statements,
            tile_rows,
            tile_block,
        }
    }

    fn values(self) -> [u64; 4] {
        [
            self.inline_cost,
            self.fused_statements,
            self.tile_rows,
            self.tile_block,
        ]
    }

    /// The same with other values of one choice, one after the other.
    pub fn others(self, choice: usize) -> impl Iterator<Item = Self> {
        TABLE[choice].2.iter().map(move |&value| {
            let mut values = self.values();
            values[choice] = value;
            Self::of(values)
        })
    }

    /// How many choices there are.
    pub const N: usize = TABLE.len();
}

impl Default for Caps {
    fn default() -> Self {
        Self::of(TABLE.map(|(_, value, _)| value))
    }
}

impl fmt::Display for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = TABLE.iter().zip(self.values());
        let texts: Vec<String> = named.map(|((name, ..), n)| format!("{name}={n}")).collect();
        f.write_str(&texts.join(" "))
    }
}

impl FromStr for Caps {
    type Err = ();

    /// Reads what `Display` writes, if all values are those of the table.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.split(' ');
        let mut values = [0; 4];
        for ((name, default, others), value) in TABLE.iter().zip(&mut values) {
            let word = words
                .next()
                .and_then(|word| word.strip_prefix(name))
                .ok_or(())?;
            *value = word.strip_prefix('=').ok_or(())?.parse().map_err(|_| ())?;
            if value != default && !others.contains(value) {
                return Err(());
            }
        }
        match words.next() {
            None => Ok(Self::of(values)),
            Some(_) => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_again() {
        for choice in 0..Caps::N {
            for caps in Caps::default().others(choice) {
                assert_ne!(caps, Caps::default());
                assert_eq!(caps.to_string().parse(), Ok(caps));
            }
        }
        let text = Caps::default().to_string();
        for wrong in [
            "",
            &text[1..],
            &text[..text.len() - 1],
            &text.replace("300", "301"),
            &format!("{text} x=1"),
        ] {
            assert_eq!(wrong.parse::<Caps>(), Err(()), "{wrong}");
        }
    }
}
