//! Random numbers become arithmetic on a state that a local holds, so that what runs again draws the same ones.
//!
//! ```text
//! parallel [a], [b] (i: i32) {          parallel [a], [b] (i: i32) {
//!     v1: f64 = random                      v1: u64 = random_state 1
//! }                              ==>        store state, v1
//!                                           next = load state + constant, and so on
//!                                       }
//! ```
//! The arithmetic is that of `aerogel_ir::eval::random_step` and `random_value`.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    BinaryOp, Builder, Function, Inst, Op, Region, Rewrite, Type, Value, rewrite, walk,
};

use crate::PassCx;

const STATE: Type = Type::Scalar(ScalarType::U64);

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    if !func.is_kernel || !draws(func, func.body) {
        return false;
    }
    let body = func.body;
    let insts = std::mem::take(&mut func.regions[body].insts);
    let mut b = Builder::new(func, body);
    let serial = b.local(STATE);
    begin(&mut b, serial, 0);
    let mut n_parallel = 0;
    let mut states = vec![(body, serial)];
    for inst in insts {
        func.regions[body].insts.push(inst);
        if !matches!(func[inst], Op::Parallel { .. } | Op::ParallelCells { .. }) {
            continue;
        }
        let inner = func.owned(inst)[0];
        if draws(func, inner) {
            states.push((inner, in_loop(func, inner, 2 * n_parallel + 1)));
        }
        n_parallel += 1;
        begin(&mut Builder::new(func, body), serial, 2 * n_parallel);
    }
    // Outer loops come first in the list, and loops at the outermost scope do not nest.
    let inside = owners(func, &states);
    rewrite(func, |b, inst| {
        let Op::Random {} = b.func[inst] else {
            return Rewrite::Keep;
        };
        let state = inside.get(&inst).copied().unwrap_or(serial);
        let ty = b.func.ty(b.func.insts[inst].results[0]);
        let value = draw(b, state, ty.scalar().expect("a random value is a scalar"));
        Rewrite::Replace(vec![value])
    });
    true
}

fn draws(func: &Function, region: Region) -> bool {
    let mut found = false;
    walk(func, region, &mut |func, inst| {
        found |= matches!(func[inst], Op::Random {});
    });
    found
}

/// The state's local at the beginning of a loop's body.
fn in_loop(func: &mut Function, body: Region, stream: u32) -> Value {
    let insts = std::mem::take(&mut func.regions[body].insts);
    let mut b = Builder::new(func, body);
    let state = b.local(STATE);
    begin(&mut b, state, stream);
    func.regions[body].insts.extend(insts);
    state
}

fn begin(b: &mut Builder<'_>, state: Value, stream: u32) {
    let op = Op::RandomState {
        stream,
        iteration: Vec::new(),
    };
    let first = b.value(op, STATE);
    b.store(state, first);
}

/// The state that each instruction which draws in a loop draws from.
fn owners(
    func: &Function,
    states: &[(Region, Value)],
) -> aerogel_base::hash::LookupMap<Inst, Value> {
    let mut all = aerogel_base::hash::LookupMap::default();
    for &(region, state) in states {
        walk(func, region, &mut |func, inst| {
            if matches!(func[inst], Op::Random {}) {
                all.insert(inst, state);
            }
        });
    }
    all
}

fn draw(b: &mut Builder<'_>, state: Value, ty: ScalarType) -> Value {
    let number = |b: &mut Builder<'_>, v: u64| b.constant(Scalar::from_slot(ScalarType::U64, v));
    let before = b.load(state);
    let by = number(b, 0x9e37_79b9_7f4a_7c15);
    let next = b.binary(BinaryOp::Add, before, by);
    b.store(state, next);
    let fold = |b: &mut Builder<'_>, z: Value, shift: u64| {
        let shift = number(b, shift);
        let high = b.binary(BinaryOp::UShr, z, shift);
        b.binary(BinaryOp::Xor, z, high)
    };
    let mut z = next;
    for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
        let folded = fold(b, z, shift);
        let factor = number(b, factor);
        z = b.binary(BinaryOp::Mul, folded, factor);
    }
    let bits = fold(b, z, 31);
    let unit = |b: &mut Builder<'_>, shift: u64, wide: ScalarType, scale: f64| {
        let shift = number(b, shift);
        let high = b.binary(BinaryOp::UShr, bits, shift);
        let whole = b.cast(high, Type::Scalar(wide));
        let scale = b.constant(Scalar::float(wide, scale.recip()));
        let unit = b.binary(BinaryOp::Mul, whole, scale);
        b.cast(unit, Type::Scalar(ty))
    };
    match ty {
        ScalarType::F16 => unit(b, 53, ScalarType::F64, 2048.0),
        ScalarType::BF16 => unit(b, 56, ScalarType::F64, 256.0),
        ScalarType::F32 => unit(b, 40, ScalarType::F32, 16_777_216.0),
        ScalarType::F64 => unit(b, 11, ScalarType::F64, 9_007_199_254_740_992.0),
        ScalarType::U1 => {
            let shift = number(b, 63);
            let high = b.binary(BinaryOp::UShr, bits, shift);
            b.cast(high, Type::BOOL)
        }
        _ => b.cast(bits, Type::Scalar(ty)),
    }
}
