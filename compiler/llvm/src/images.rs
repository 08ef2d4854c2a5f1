//! The targets of a task's sums: images, which are ranges of bytes that contain such targets, and their description
//! for the launcher (`sums.rs`).

use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::Class;
use aerogel_ir::analysis::sums::sums;
use aerogel_ir::{Arg, AtomicOp, Env, Function, Inst, Module, NodeRef, Op, ParamType};
use aerogel_runtime::abi::MAX_IMAGES;
use aerogel_runtime::{Image, ImageMemory, Run, Sum, SumsCode};
use aerogel_snode::{NodeKind, Tree};

use crate::slots::first_slot;
use crate::task_state::{Version, constant_bounds};

const CACHE_LINE: u64 = 64;

/// If copies pay for so many threads there is no function that does without; more threads than pay do not take part.
const MANY_THREADS: usize = 64;

/// The images that a task adds to.
#[derive(Default)]
pub(crate) struct Images {
    code: SumsCode,
    /// The number of the image that a class of memory lies in.
    pub(crate) of: LookupMap<Class, usize>,
}

impl Images {
    /// What a task adds to; nothing if it needs no second function.
    pub(crate) fn of(module: &Module, kernel: &Function, task: Inst) -> Self {
        let found = sums(kernel, &module.env, task);
        let mut made = Self::default();
        made.code.per_iteration = found.per_iteration;
        made.in_trees(&module.env, &found.classes);
        for (class, op) in found.classes {
            if let Class::Array(array) = class {
                made.of.insert(class, made.code.images.len());
                made.code.images.push(whole(module, kernel, array, op));
            }
        }
        if made.is_empty() || made.code.images.len() > MAX_IMAGES {
            return Self::default();
        }
        let is_ordered = matches!(kernel[task], Op::Task { attrs, .. } if attrs.ordered);
        made.code.always = is_ordered || made.always_pays(kernel, task);
        made
    }

    fn always_pays(&self, kernel: &Function, task: Inst) -> bool {
        let images = self.code.images.iter();
        let bytes = images.map(|image| match image.memory {
            ImageMemory::Tree { .. } => Some(image.bytes),
            ImageMemory::Array { .. } => None,
        });
        let bytes: Option<u64> = bytes.sum();
        bytes
            .zip(constant_bounds(kernel, task))
            .is_some_and(|(bytes, bounds)| {
                let lengths = bounds.iter().map(|[lo, hi]| hi.saturating_sub(*lo).max(0));
                let n_iterations = lengths.fold(1, i64::saturating_mul);
                self.code.threads_that_pay(n_iterations, bytes) >= MANY_THREADS
            })
    }

    /// Adds the images of places in trees.
    fn in_trees(&mut self, env: &Env, classes: &[(Class, AtomicOp)]) {
        let made = self;
        let places = classes.iter().filter_map(|&(class, op)| match class {
            Class::Place(place) => Some((place, run(&env.trees[place.tree], place, op))),
            _ => None,
        });
        let mut runs: Vec<(NodeRef, Run)> = places.collect();
        runs.sort_by_key(|(place, run)| (place.tree.as_u32(), run.offset));
        for (place, mut run) in runs {
            let tree = place.tree.as_u32() as usize;
            let last = made.code.images.last_mut();
            // Places of one cell, and those that lie one behind the other.
            let open = last.and_then(|image| match image.memory {
                ImageMemory::Tree { number, offset }
                    if number == tree && run.offset <= offset + image.bytes =>
                {
                    Some((image, offset))
                }
                _ => None,
            });
            match open {
                Some((image, offset)) => {
                    run.offset -= offset;
                    image.bytes = image.bytes.max(run.end());
                    image.runs.push(run);
                }
                None => {
                    // Copies begin a cache line, as trees do: alignments are the same.
                    let offset = run.offset / CACHE_LINE * CACHE_LINE;
                    run.offset -= offset;
                    made.code.images.push(Image {
                        memory: ImageMemory::Tree {
                            number: tree,
                            offset,
                        },
                        bytes: run.end(),
                        runs: vec![run],
                    });
                }
            }
            made.of
                .insert(Class::Place(place), made.code.images.len() - 1);
        }
        for image in &mut made.code.images {
            image.runs = joined(std::mem::take(&mut image.runs));
        }
    }

    /// What the launcher is told, if there is anything.
    pub(crate) fn code(&self, symbol: String) -> Option<SumsCode> {
        (!self.is_empty()).then(|| SumsCode {
            symbol,
            ..self.code.clone()
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.code.images.is_empty()
    }

    /// The functions of the task that adds to them; the first one tells of the task.
    pub(crate) fn versions(&self) -> &'static [Version] {
        match (self.is_empty(), self.code.always) {
            (true, _) => &[Version::Shared],
            (_, false) => &[Version::Shared, Version::Own],
            (_, true) => &[Version::Own],
        }
    }
}

/// An array as an image.
fn whole(module: &Module, kernel: &Function, array: Arg, op: AtomicOp) -> Image {
    let number = array.as_u32() as usize;
    let ParamType::Array { elem, ndim, .. } = kernel.params[number].ty else {
        unreachable!("{array} is an array")
    };
    let before = kernel.params[..number].iter();
    let arrays = before.filter(|param| matches!(param.ty, ParamType::Array { .. }));
    let run = Run {
        ty: elem.elem().expect("arrays hold numbers"),
        sum: sum(op),
        offset: 0,
        numbers: u64::from(elem.n_elems()),
        loops: Vec::new(),
    };
    Image {
        memory: ImageMemory::Array {
            number: arrays.count(),
            slot: first_slot(&module.env, kernel, array) + 1,
            ndim: ndim as usize,
        },
        bytes: run.row_bytes(),
        runs: vec![run],
    }
}

fn sum(op: AtomicOp) -> Sum {
    match op {
        AtomicOp::Add | AtomicOp::Sub => Sum::Add,
        AtomicOp::Min => Sum::Min,
        AtomicOp::Max => Sum::Max,
        AtomicOp::And => Sum::And,
        AtomicOp::Or => Sum::Or,
        AtomicOp::Xor => Sum::Xor,
        AtomicOp::Mul | AtomicOp::Exchange => unreachable!("`{op}` is no sum"),
    }
}

/// Where the elements of a place lie in a tree.
fn run(tree: &Tree, place: NodeRef, op: AtomicOp) -> Run {
    let NodeKind::Place(ty) = tree[place.node].kind else {
        unreachable!("sums are of places")
    };
    let chain = tree.chain(place.node).into_iter().map(|node| &tree[node]);
    let mut run = Run {
        ty,
        sum: sum(op),
        offset: 0,
        numbers: 1,
        loops: Vec::new(),
    };
    for node in chain {
        run.offset += node.offset_in_cell;
        if node.n_cells > 1 {
            run.loops.push([node.cell_size, node.n_cells]);
        }
    }
    run
}

/// Runs that lie side by side in each cell as one.
fn joined(runs: Vec<Run>) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for run in runs {
        let beside = all.last_mut().filter(|before| {
            (before.ty, before.sum) == (run.ty, run.sum)
                && before.loops == run.loops
                && before.offset + before.row_bytes() == run.offset
        });
        match beside {
            Some(before) => before.numbers += run.numbers,
            None => all.push(run),
        }
    }
    all.iter_mut().for_each(Run::simplify);
    all
}
