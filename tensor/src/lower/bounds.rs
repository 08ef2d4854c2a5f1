//! What a kernel says of an index outside of its axis, and what it is told from.

/// An index outside of its axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The name of the buffer.
    pub buffer: String,
    /// Whether something was to be stored there.
    pub stored: bool,
    /// Along which axis.
    pub axis: usize,
    /// The index.
    pub index: i64,
    /// How many elements there are.
    pub extent: u64,
}

/// What a kernel says, with `{}` for the index and for the extent.
pub(crate) fn template(buffer: &str, axis: usize, stored: bool) -> String {
    let buffer = buffer.replace(['{', '}'], "");
    let access = if stored { STORED } else { READ };
    format!("index {{}} is outside axis {axis} with {{}} elements of `{buffer}`, {access}")
}

const STORED: &str = "which is stored to";
const READ: &str = "which is read";

impl OutOfBounds {
    /// What a kernel has said.
    pub fn from_text(text: &str) -> Option<Self> {
        let (text, stored) = match text.strip_suffix(STORED) {
            Some(text) => (text, true),
            None => (text.strip_suffix(READ)?, false),
        };
        let (index, text) = text
            .strip_prefix("index ")?
            .split_once(" is outside axis ")?;
        let (axis, text) = text.split_once(" with ")?;
        let (extent, text) = text.split_once(" elements of `")?;
        Some(Self {
            buffer: text.strip_suffix("`, ")?.to_owned(),
            stored,
            axis: axis.parse().ok()?,
            index: index.parse().ok()?,
            extent: extent.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for stored in [false, true] {
            let said = template("input {0}", 1, stored);
            let text = said.replacen("{}", "-7", 1).replacen("{}", "3", 1);
            let found = OutOfBounds::from_text(&text).unwrap();
            let OutOfBounds {
                buffer,
                stored: own,
                axis,
                index,
                extent,
            } = found;
            assert_eq!(
                (&*buffer, own, axis, index, extent),
                ("input 0", stored, 1, -7, 3)
            );
        }
        assert_eq!(OutOfBounds::from_text("arrays share memory"), None);
    }
}
