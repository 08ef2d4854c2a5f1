//! Smaller modules that fail in the same way.

use aerogel_base::Scalar;
use aerogel_ir::{FuncId, Function, Inst, Module, Op, Region, Stage, Type, verify};

/// Takes instructions away, or makes them constants, as long as `fails` holds and the rules of the
/// IR are kept.
pub fn reduce(mut module: Module, fails: impl Fn(&Module) -> bool) -> Module {
    loop {
        let mut changed = false;
        let ids: Vec<FuncId> = module.funcs.keys().collect();
        for id in ids {
            for (region, inst) in instructions(&module.funcs[id]).into_iter().rev() {
                for simplify in [remove, splice, zero] {
                    let mut smaller = module.clone();
                    let func = &mut smaller.funcs[id];
                    let legal = simplify(func, region, inst)
                        && verify(func, &smaller.env, Stage::Structured).is_ok();
                    if legal && fails(&smaller) {
                        module = smaller;
                        changed = true;
                        break;
                    }
                }
            }
        }
        if !changed {
            return module;
        }
    }
}

/// Instructions with their regions, but for those inside a `while`, which might run for ever without.
fn instructions(func: &Function) -> Vec<(Region, Inst)> {
    fn visit(func: &Function, region: Region, all: &mut Vec<(Region, Inst)>) {
        for &inst in &func.regions[region].insts {
            all.push((region, inst));
            if !matches!(func[inst], Op::While { .. }) {
                func[inst].regions(|r| visit(func, r, all));
            }
        }
    }
    let mut all = Vec::new();
    visit(func, func.body, &mut all);
    all
}

fn position(func: &Function, region: Region, inst: Inst) -> Option<usize> {
    func.regions[region].insts.iter().position(|&i| i == inst)
}

fn remove(func: &mut Function, region: Region, inst: Inst) -> bool {
    let Some(at) = position(func, region, inst) else {
        return false;
    };
    func.regions[region].insts.remove(at);
    true
}

/// Puts one of a branch's regions in its place.
fn splice(func: &mut Function, region: Region, inst: Inst) -> bool {
    let (Some(at), Op::If { then, .. }) = (position(func, region, inst), func[inst].clone()) else {
        return false;
    };
    let mut inner = func.regions[then].insts.clone();
    inner.pop();
    func.regions[region].insts.splice(at..=at, inner);
    true
}

/// Makes a scalar zero.
fn zero(func: &mut Function, region: Region, inst: Inst) -> bool {
    let results = &func.insts[inst].results;
    let [result] = results[..] else { return false };
    let Type::Scalar(ty) = func.ty(result) else {
        return false;
    };
    let is_const = matches!(func[inst], Op::Const { .. });
    if is_const || position(func, region, inst).is_none() {
        return false;
    }
    func.insts[inst].op = Op::Const {
        value: Scalar::zero(ty),
    };
    true
}
