//! Functions that return early get one exit, at their end: only such functions can be inlined.
//!
//! ```text
//! if c { return [v1] } { yield [] }        result = local
//! rest                                     if c { store result, v1  yield [] } {
//! yield [v2]                        ==>        rest
//!                                              store result, v2  yield []
//!                                          }
//!                                          v3 = load result
//!                                          yield [v3]
//! ```
//! What follows an `if` of which one arm returns belongs to the other arm. Where that is not so (a `return` in a loop, or
//! in some paths of both arms), a flag says whether the function has returned; a loop is left by `break`.
//! `promote_locals` turns the locals into results of the `if`s.

use aerogel_base::Scalar;
use aerogel_ir::{Builder, Function, Inst, Op, Region, Type, Value};

use crate::PassCx;

/// For functions that are called.
pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    !func.is_kernel && all(func, cx)
}

/// For kernels, too.
pub(crate) fn all(func: &mut Function, _: &PassCx<'_>) -> bool {
    let body = func.body;
    let is_early = |inst: &Inst| !func[*inst].is_terminator() && returns(func, *inst);
    if !func.regions[body].insts.iter().any(is_early) || !is_supported(func, body, false) {
        return false;
    }
    let insts = std::mem::take(&mut func.regions[body].insts);
    // The end is an exit like the others.
    let end = insts
        .last()
        .copied()
        .expect("a region ends in a terminator");
    if let Op::Yield { values } = func[end].clone() {
        func.insts[end].op = Op::Return { values };
    }
    let types = func.results.clone();
    let mut b = Builder::new(func, body);
    let returned = b.local(Type::BOOL);
    let results: Vec<Value> = types.iter().map(|&ty| b.local(ty)).collect();
    let pass = SingleExit { returned, results };
    pass.last(func, body, insts);
    let is_kernel = func.is_kernel;
    let mut b = Builder::new(func, body);
    let values = pass.results.iter().map(|&place| b.load(place)).collect();
    b.effect(match is_kernel {
        true => Op::Return { values },
        false => Op::Yield { values },
    });
    true
}

/// Whether the function may return in an instruction.
fn returns(func: &Function, inst: Inst) -> bool {
    let inside = |region: &Region| {
        let insts = &func.regions[*region].insts;
        insts.iter().any(|&inst| returns(func, inst))
    };
    matches!(func[inst], Op::Return { .. }) || func.owned(inst).iter().any(inside)
}

/// Whether everything around a `return` is an `if` without results or a loop that carries nothing, as long as locals are
/// in memory.
fn is_supported(func: &Function, region: Region, in_loop: bool) -> bool {
    func.regions[region].insts.iter().all(|&inst| {
        if !returns(func, inst) {
            return true;
        }
        let (is_plain, in_loop) = match &func[inst] {
            Op::Return { .. } => (true, in_loop),
            Op::If { .. } => (func.insts[inst].results.is_empty(), in_loop),
            Op::For { init, .. } | Op::While { init, .. } => (init.is_empty(), true),
            _ => (false, in_loop),
        };
        let inside = |&region: &Region| is_supported(func, region, in_loop);
        is_plain && func.owned(inst).iter().all(inside)
    })
}

/// Whether control may reach the end of a region.
fn completes(func: &Function, region: Region) -> bool {
    let (&end, insts) = func.regions[region]
        .insts
        .split_last()
        .expect("a region ends in a terminator");
    let never_ends = |&inst: &Inst| match func[inst] {
        Op::If {
            then, otherwise, ..
        } => !completes(func, then) && !completes(func, otherwise),
        _ => false,
    };
    matches!(func[end], Op::Yield { .. }) && !insts.iter().any(never_ends)
}

struct SingleExit {
    /// Whether the function has returned, where that does not follow from where control is.
    returned: Value,
    results: Vec<Value>,
}

impl SingleExit {
    /// Writes the last instructions of the function to the end of a region.
    fn last(&self, func: &mut Function, region: Region, insts: Vec<Inst>) {
        let mut rest = insts.into_iter();
        while let Some(inst) = rest.next() {
            if !returns(func, inst) {
                func.regions[region].insts.push(inst);
                continue;
            }
            match func[inst].clone() {
                Op::Return { values } => self.store(func, region, values),
                Op::If {
                    then, otherwise, ..
                } if !completes(func, then) || !completes(func, otherwise) => {
                    let mut rest: Vec<Inst> = rest.collect();
                    for arm in [then, otherwise] {
                        let goes_on = completes(func, arm);
                        let mut insts = std::mem::take(&mut func.regions[arm].insts);
                        if goes_on {
                            insts.pop();
                            insts.append(&mut rest);
                        }
                        self.last(func, arm, insts);
                    }
                    func.regions[region].insts.push(inst);
                }
                _ => {
                    self.inside(func, region, inst, false);
                    let following = func.new_region(&[]);
                    self.last(func, following, rest.collect());
                    let mut b = Builder::new(func, region);
                    let cond = b.load(self.returned);
                    let then = b.region(&[], |_, _| ());
                    b.effect(Op::If {
                        cond,
                        then,
                        otherwise: following,
                    });
                }
            }
            break;
        }
        if region != func.body {
            Builder::new(func, region).terminate();
        }
    }

    /// Emits an instruction in which the function may return, or after which it may continue, to the end of a region.
    fn inside(&self, func: &mut Function, region: Region, inst: Inst, in_loop: bool) {
        match func[inst].clone() {
            Op::Return { values } => {
                self.store(func, region, values);
                let mut b = Builder::new(func, region);
                let yes = b.constant(Scalar::bool(true));
                b.store(self.returned, yes);
                b.effect(match in_loop {
                    true => Op::Break { values: Vec::new() },
                    false => Op::Yield { values: Vec::new() },
                });
            }
            Op::If {
                then, otherwise, ..
            } => {
                for arm in [then, otherwise] {
                    self.body(func, arm, in_loop);
                }
                func.regions[region].insts.push(inst);
            }
            Op::For { body, .. } | Op::While { body, .. } => {
                self.body(func, body, true);
                func.regions[region].insts.push(inst);
            }
            _ => unreachable!("checked by `is_supported`"),
        }
    }

    /// Rewrites a region inside an instruction after which the function may continue.
    fn body(&self, func: &mut Function, region: Region, in_loop: bool) {
        let mut rest = std::mem::take(&mut func.regions[region].insts).into_iter();
        while let Some(inst) = rest.next() {
            if !returns(func, inst) {
                func.regions[region].insts.push(inst);
                continue;
            }
            let is_if = matches!(func[inst], Op::If { .. });
            let is_end = func[inst].is_terminator();
            self.inside(func, region, inst, in_loop);
            if is_end {
                break;
            }
            if in_loop && is_if {
                // A `return` in it has left the loop.
                continue;
            }
            let mut b = Builder::new(func, region);
            let cond = b.load(self.returned);
            let then = b.region(&[], |b, _| {
                b.effect(match in_loop {
                    true => Op::Break { values: Vec::new() },
                    false => Op::Yield { values: Vec::new() },
                });
            });
            let otherwise = b.region(&[], |_, _| ());
            b.effect(Op::If {
                cond,
                then,
                otherwise,
            });
            if !in_loop {
                b.terminate();
                func.regions[otherwise].insts = rest.collect();
                self.body(func, otherwise, false);
                break;
            }
        }
    }

    fn store(&self, func: &mut Function, region: Region, values: Vec<Value>) {
        let mut b = Builder::new(func, region);
        for (&place, value) in self.results.iter().zip(values) {
            b.store(place, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_pass, check_passes};

    #[test]
    fn what_follows_belongs_to_the_other_arm() {
        check_passes!(&["single_exit", "promote_locals"], "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: u1 = lt v0, v1
                if v2 {
                    v3: i32 = const 5
                    v4: u1 = lt v3, v0
                    if v4 {
                        return [v3]
                    } {
                        return [v1]
                    }
                    v5: i32 = undef
                    return [v5]
                } {
                    yield []
                }
                v6: i32 = add v0, v0
                yield [v6]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: u1 = const 0
            v2: i32 = const 0
            v3: i32 = const 0
            v4: u1 = lt v0, v3
            v5: i32 = if v4 {
                v6: i32 = const 5
                v7: u1 = lt v6, v0
                v8: i32 = if v7 {
                    yield [v6]
                } {
                    yield [v3]
                }
                yield [v8]
            } {
                v9: i32 = add v0, v0
                yield [v9]
            }
            yield [v5]
        }
        ");
    }

    #[test]
    fn a_flag_where_both_arms_may_go_on() {
        check_pass!("single_exit", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 7
                v3: u1 = lt v0, v1
                if v3 {
                    v4: u1 = lt v0, v2
                    if v4 {
                        return [v2]
                    } {
                        yield []
                    }
                    v5: u1 = eq v0, v2
                    if v5 {
                        return [v0]
                    } {
                        yield []
                    }
                    yield []
                } {
                    yield []
                }
                v6: i32 = add v0, v0
                yield [v6]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: ref<u1> = local
            v2: ref<i32> = local
            v3: i32 = const 0
            v4: i32 = const 7
            v5: u1 = lt v0, v3
            if v5 {
                v6: u1 = lt v0, v4
                if v6 {
                    store v2, v4
                    v7: u1 = const 1
                    store v1, v7
                    yield []
                } {
                    yield []
                }
                v8: u1 = load v1
                if v8 {
                    yield []
                } {
                    v9: u1 = eq v0, v4
                    if v9 {
                        store v2, v0
                        v10: u1 = const 1
                        store v1, v10
                        yield []
                    } {
                        yield []
                    }
                    v11: u1 = load v1
                    if v11 {
                        yield []
                    } {
                        yield []
                    }
                    yield []
                }
                yield []
            } {
                yield []
            }
            v12: u1 = load v1
            if v12 {
                yield []
            } {
                v13: i32 = add v0, v0
                store v2, v13
                yield []
            }
            v14: i32 = load v2
            yield [v14]
        }
        ");
    }

    #[test]
    fn loops_are_left() {
        check_pass!("single_exit", "
            func @f(v0: i32) -> i32 {
                v1: i32 = const 0
                v2: i32 = const 1
                v3: i32 = const 20
                for v1, v0, v2, [] (v4: i32) {
                    for v1, v4, v2, [] (v5: i32) {
                        v6: i32 = mul v4, v5
                        v7: u1 = gt v6, v3
                        if v7 {
                            return [v6]
                        } {
                            yield []
                        }
                        yield []
                    }
                    v8: u1 = eq v4, v3
                    if v8 {
                        return [v3]
                    } {
                        yield []
                    }
                    yield []
                }
                yield [v0]
            }", @"
        func @f(v0: i32) -> i32 {
            v1: ref<u1> = local
            v2: ref<i32> = local
            v3: i32 = const 0
            v4: i32 = const 1
            v5: i32 = const 20
            for v3, v0, v4, [] (v6: i32) {
                for v3, v6, v4, [] (v7: i32) {
                    v8: i32 = mul v6, v7
                    v9: u1 = gt v8, v5
                    if v9 {
                        store v2, v8
                        v10: u1 = const 1
                        store v1, v10
                        break []
                    } {
                        yield []
                    }
                    yield []
                }
                v11: u1 = load v1
                if v11 {
                    break []
                } {
                    yield []
                }
                v12: u1 = eq v6, v5
                if v12 {
                    store v2, v5
                    v13: u1 = const 1
                    store v1, v13
                    break []
                } {
                    yield []
                }
                yield []
            }
            v14: u1 = load v1
            if v14 {
                yield []
            } {
                store v2, v0
                yield []
            }
            v15: i32 = load v2
            yield [v15]
        }
        ");
    }
}
