//! The parts of an instruction's name: `ld.relaxed.sys.global.v2.b32`.

use crate::code::{Atomic, Compare, Kind, Lanes, Mode, Ordered, Rounding, Space, Special, Ty};

/// The type of a name without its point.
pub(super) fn ty(name: &str) -> Option<Ty> {
    let (kind, bits) = match name {
        "pred" => return Some(Ty::PREDICATE),
        "f16x2" => (Kind::FloatPair, 32),
        "bf16x2" => (Kind::BFloatPair, 32),
        "bf16" => (Kind::BFloat, 16),
        _ => {
            let kind = match name.chars().next()? {
                'b' => Kind::Bits,
                'u' => Kind::Unsigned,
                's' => Kind::Signed,
                'f' => Kind::Float,
                _ => return None,
            };
            let bits: u32 = name[1..].parse().ok()?;
            let fits = match kind {
                Kind::Float => matches!(bits, 16 | 32 | 64),
                _ => matches!(bits, 8 | 16 | 32 | 64),
            };
            (kind, fits.then_some(bits)?)
        }
    };
    Some(Ty { kind, bits })
}

pub(super) fn special(name: &str) -> Option<Special> {
    let axis = |s: &str| ["x", "y", "z"].iter().position(|a| *a == s);
    let (stem, end) = name.split_once('.').unwrap_or((name, ""));
    let of_axis = |special: fn(usize) -> Special| axis(end).map(special);
    match stem {
        "%tid" => of_axis(Special::Thread),
        "%ntid" => of_axis(Special::Threads),
        "%ctaid" => of_axis(Special::Block),
        "%nctaid" => of_axis(Special::Blocks),
        _ if !end.is_empty() => None,
        "%laneid" => Some(Special::Lane),
        "%warpid" => Some(Special::Warp),
        "%nwarpid" => Some(Special::Warps),
        "%lanemask_eq" => Some(Special::LaneMask(Lanes::Equal)),
        "%lanemask_lt" => Some(Special::LaneMask(Lanes::Less)),
        "%lanemask_le" => Some(Special::LaneMask(Lanes::LessEqual)),
        "%lanemask_gt" => Some(Special::LaneMask(Lanes::Greater)),
        "%lanemask_ge" => Some(Special::LaneMask(Lanes::GreaterEqual)),
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Some(Special::Clock),
        "%dynamic_smem_size" => Some(Special::DynamicShared),
        "%gridid" => Some(Special::Grid),
        _ => None,
    }
}

/// The parts behind the first one, which are taken one after the other: what is left over is not known.
pub(super) struct Parts<'s> {
    left: Vec<&'s str>,
}

impl<'s> Parts<'s> {
    pub(super) fn new(name: &'s str) -> (&'s str, Self) {
        let mut all = name.split('.');
        let first = all.next().unwrap_or_default();
        let left = all.filter(|part| !part.is_empty()).collect();
        (first, Self { left })
    }

    /// Takes a part, if it is there.
    pub(super) fn take(&mut self, part: &str) -> bool {
        let at = self.left.iter().position(|p| *p == part);
        if let Some(at) = at {
            self.left.remove(at);
        }
        at.is_some()
    }

    /// Takes the first of some parts that is there.
    pub(super) fn take_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let found = table.iter().find(|(part, _)| self.left.contains(part))?;
        self.take(found.0);
        Some(found.1)
    }

    /// Takes all of these that are there.
    pub(super) fn drop_all(&mut self, parts: &[&str]) {
        self.left.retain(|part| !parts.contains(part));
    }

    /// Takes parts that begin so.
    pub(super) fn drop_beginning(&mut self, beginnings: &[&str]) {
        self.left
            .retain(|part| !beginnings.iter().any(|b| part.starts_with(b)));
    }

    /// Takes the first part that is a type.
    pub(super) fn ty(&mut self) -> Option<Ty> {
        let at = self.left.iter().position(|part| ty(part).is_some())?;
        ty(self.left.remove(at))
    }

    /// Whether a type among them is one of floats.
    pub(super) fn has_float(&self) -> bool {
        let mut types = self.left.iter().filter_map(|part| ty(part));
        types.any(Ty::is_float)
    }

    pub(super) fn mode(&mut self) -> Mode {
        let to_float = self.take_of(&[
            ("rn", Rounding::Nearest),
            ("rna", Rounding::Nearest),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ]);
        let to_integer = self.take_of(&[
            ("rni", Rounding::Nearest),
            ("rzi", Rounding::Zero),
            ("rmi", Rounding::Down),
            ("rpi", Rounding::Up),
        ]);
        self.drop_all(&["approx", "full", "noftz"]);
        Mode {
            rounding: to_integer.or(to_float).unwrap_or(Rounding::Nearest),
            to_integer: to_integer.is_some(),
            flush: self.take("ftz"),
            saturate: self.take("sat"),
        }
    }

    pub(super) fn space(&mut self) -> Space {
        self.drop_beginning(&["shared::", "param::"]);
        self.take_of(&[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
        ])
        .unwrap_or(Space::Generic)
    }

    /// Whether an access is atomic.
    pub(super) fn is_ordered(&mut self) -> bool {
        let ordered = [
            "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "sc",
        ];
        let found = ordered.iter().any(|part| self.left.contains(part));
        self.drop_all(&ordered);
        self.drop_all(&["weak", "cta", "cluster", "gpu", "sys"]);
        found
    }

    pub(super) fn compare(&mut self) -> Option<Compare> {
        use Compare::*;
        self.take_of(&[
            ("eq", Equal),
            ("ne", NotEqual),
            ("lt", Less),
            ("le", LessEqual),
            ("gt", Greater),
            ("ge", GreaterEqual),
            ("lo", Less),
            ("ls", LessEqual),
            ("hi", Greater),
            ("hs", GreaterEqual),
            ("equ", Unordered(Ordered::Equal)),
            ("neu", Unordered(Ordered::NotEqual)),
            ("ltu", Unordered(Ordered::Less)),
            ("leu", Unordered(Ordered::LessEqual)),
            ("gtu", Unordered(Ordered::Greater)),
            ("geu", Unordered(Ordered::GreaterEqual)),
            ("num", Number),
            ("nan", Nan),
        ])
    }

    pub(super) fn atomic(&mut self) -> Option<Atomic> {
        use Atomic::*;
        self.take_of(&[
            ("add", Add),
            ("min", Min),
            ("max", Max),
            ("and", And),
            ("or", Or),
            ("xor", Xor),
            ("exch", Exchange),
            ("cas", Swap),
            ("inc", Increment),
            ("dec", Decrement),
        ])
    }

    /// The remaining words.
    pub(super) fn left(&self) -> Option<&'s str> {
        self.left.first().copied()
    }
}
