//! `ti.simt`: cooperation of a GPU's threads, and storage that the threads of a block share.

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::{BinaryOp, Op, ThreadOp, Type, Value};

use crate::host::{Known, TensorShape};
use crate::lower::calls::Args;
use crate::lower::values::{Origin, Place, Shared, Val, tensor_type};
use crate::lower::{Control, Lower, Res};

/// The bytes of shared memory that every GPU gives a block by default.
const MOST_BYTES: u64 = 48 << 10;

impl Lower<'_, '_> {
    /// Checks that the target is a GPU, and that the call is inside a loop that has threads.
    fn expect_threads(&mut self, name: &str) -> Res<()> {
        let mut control = self.state.control.iter();
        if !control.any(|control| matches!(control, Control::Parallel { breakable: false })) {
            let message = format!("`ti.{name}` is used outside of a loop that has threads");
            let note = "the outermost `for` loops of a kernel have them, unless they are serialized, and the `ti.func`s \
                        called there";
            return self.fail_noted(ErrorKind::Compilation, "E0238", message, note);
        }
        if self.config.gpu {
            return Ok(());
        }
        let message = format!("`ti.{name}` is not supported on the CPU");
        let note = "iterations on the CPU share only memory, through atomic functions; use `ti.init(arch=ti.gpu)` \
                    for it";
        self.fail_noted(ErrorKind::NotSupported, "E0238", message, note)
    }

    /// `ti.simt.block.SharedArray(shape, dtype)`.
    pub(crate) fn shared_array(&mut self, name: &str, args: &Args) -> Res<Val> {
        self.expect_threads(name)?;
        let shape = self.arg(name, args, 0, "shape")?.clone();
        let dtype = self.arg(name, args, 1, "dtype")?.clone();
        let (element, ty) = match &dtype {
            Val::Known(Known::TensorType { shape, elem }) => (*shape, *elem),
            other => (TensorShape::Scalar, self.dtype(other)?),
        };
        let extents = match &shape {
            Val::Known(known) => match known.items() {
                Some(items) => items.iter().map(Known::as_int).collect(),
                None => known.as_int().map(|n| vec![n]),
            },
            _ => None,
        };
        let extents: Option<Vec<u32>> = extents.and_then(|all: Vec<i128>| {
            let extent = |n| u32::try_from(n).ok().filter(|&n| n > 0);
            all.into_iter().map(extent).collect()
        });
        let Some(extents) = extents.filter(|all| !all.is_empty()) else {
            let message =
                format!("the shape of `ti.{name}` is of positive integers known while compiling");
            return self.fail(ErrorKind::Type, "E0210", message);
        };
        let per_element = element.len();
        let count = extents
            .iter()
            .fold(u64::from(per_element), |n, &e| n.saturating_mul(e.into()));
        let bytes = count.saturating_mul(ty.bytes().into());
        self.state.shared_bytes = self
            .state
            .shared_bytes
            .saturating_add(bytes.next_multiple_of(16));
        if self.state.shared_bytes > MOST_BYTES {
            let all = self.state.shared_bytes;
            let message = format!(
                "the threads of a block of kernel `{}` would share {all} bytes in this loop, and a GPU has {MOST_BYTES}",
                self.state.func.name
            );
            let note = "make the array smaller, or use a narrower dtype";
            return self.fail_noted(ErrorKind::Compilation, "E0238", message, note);
        }
        let of = Type::Vec(count as u32, ty)
            .to_ref()
            .expect("a vector has a storage");
        let storage = self.value(Op::Shared {}, of);
        Ok(Val::Shared(Rc::new(Shared {
            storage,
            shape: extents,
            element,
            ty,
        })))
    }

    /// An element of a shared array.
    pub(crate) fn index_shared(&mut self, shared: &Shared, indices: &[Val]) -> Res<Val> {
        let indices = self.cell_indices(indices, shared.shape.len() as u32, "the shared array")?;
        let per_element = shared.element.len();
        let mut b = self.builder();
        let mut linear = b.i32(0);
        for (&index, &extent) in indices.iter().zip(&shared.shape) {
            // What is inside has numbers of `i32`.
            let index = b.cast(index, Type::I32);
            let extent = b.i32(extent as i32);
            let before = b.binary(BinaryOp::Mul, linear, extent);
            linear = b.binary(BinaryOp::Add, before, index);
        }
        let size = b.i32(per_element as i32);
        let first = b.binary(BinaryOp::Mul, linear, size);
        let refs = (0..per_element).map(|k| {
            let k = b.i32(k as i32);
            let at = b.binary(BinaryOp::Add, first, k);
            let op = Op::ElemRef {
                base: shared.storage,
                index: vec![at],
            };
            b.value(op, Type::RefScalar(shared.ty))
        });
        let refs: Vec<Value> = refs.collect();
        let origin = Origin::Field;
        Ok(Val::Place(match shared.element {
            TensorShape::Scalar => Place::Ref {
                place: refs[0],
                origin,
            },
            element => Place::Elements {
                refs: refs.into(),
                ty: tensor_type(element, shared.ty),
                origin,
            },
        }))
    }

    /// Collective operations of threads, with numbers of one type or of any.
    pub(crate) fn threads(
        &mut self,
        op: ThreadOp,
        of: Option<ScalarType>,
        name: &str,
        args: &Args,
    ) -> Res<Val> {
        use ThreadOp::*;
        self.expect_threads(name)?;
        let names = operands(op);
        let mut values = Vec::new();
        for (k, operand) in names.iter().enumerate() {
            let val = self.arg(name, args, k, operand)?.clone();
            values.push(match *operand {
                "mask" => self.convert(&val, Type::Scalar(ScalarType::U32))?,
                "predicate" => self.condition(&val)?,
                "offset" => self.convert(&val, Type::I32)?,
                _ => match of {
                    Some(ty) => self.convert(&val, Type::Scalar(ty))?,
                    None => self.number_of_lane(name, &val)?,
                },
            });
        }
        let mask = Type::Scalar(ScalarType::U32);
        let result = match op {
            BlockSync | BlockFence | GridFence | WarpSync => {
                self.effect(Op::Threads { op, args: values });
                return Ok(Val::none());
            }
            BlockAll | BlockAny | VoteAll | VoteAny | VoteUniform => Type::BOOL,
            BlockCount | ThreadInBlock | ThreadInGrid | BlockSize => Type::I32,
            ActiveMask | Ballot | MatchAny | MatchAll => mask,
            Shuffle | ShuffleUp | ShuffleDown | ShuffleXor => self.ty(values[1]),
        };
        Ok(Val::Value(
            self.value(Op::Threads { op, args: values }, result),
        ))
    }

    /// A number that goes from lane to lane.
    fn number_of_lane(&mut self, name: &str, val: &Val) -> Res<Value> {
        let ty = self.expect_numeric(val)?;
        if ty.scalar().is_none() {
            let message = format!("`ti.{name}` takes one number, not `{ty}`");
            let note = "call it for each component";
            return self.fail_noted(ErrorKind::Type, "E0201", message, note);
        }
        self.load(val)
    }
}

/// The names of the operands.
pub(crate) fn operands(op: ThreadOp) -> &'static [&'static str] {
    use ThreadOp::*;
    match op {
        BlockSync | BlockFence | GridFence | ThreadInBlock | ThreadInGrid | BlockSize
        | ActiveMask => &[],
        BlockAll | BlockAny | BlockCount => &["predicate"],
        WarpSync => &["mask"],
        Ballot | VoteAll | VoteAny | VoteUniform => &["mask", "predicate"],
        MatchAny | MatchAll => &["mask", "value"],
        Shuffle | ShuffleUp | ShuffleDown | ShuffleXor => &["mask", "val", "offset"],
    }
}
