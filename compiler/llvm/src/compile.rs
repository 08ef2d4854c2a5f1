//! A lowered kernel as machine code, one function per task. Tasks are independent, so large ones are modules of their
//! own, which several threads compile.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::analysis::access::{self, Change, Class};
use aerogel_ir::{BinaryOp, Function, Inst, Module, NodeOp, Op, ParamType, Value, walk};
use aerogel_runtime::{ArgSlot, Atomics, KernelCode, TaskCode};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module as LlvmModule;

use crate::call;
use crate::context::ModuleCx;
use crate::diagnostics::Diagnostics;
use crate::images::Images;
use crate::lines::Lines;
use crate::optimize::{self, OptLevel};
use crate::sites::Sites;
use crate::target::Target;
use crate::task::{self, FEW_LANES, Part};

/// Which texts of the code are made beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Texts {
    /// None.
    #[default]
    Nothing,
    /// LLVM IR and assembly.
    Code,
    /// The same, with the numbers of spans as the lines of debug locations.
    Located,
}

/// A compiled kernel with its texts.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// The code that the device loads.
    pub code: KernelCode,
    /// LLVM IR after optimisation, if requested.
    pub llvm_ir: Option<String>,
    /// Assembly, if requested.
    pub assembly: Option<String>,
}

/// From how many instructions on a task has a module, an object and perhaps a thread of its own. A
/// module costs LLVM a millisecond at least, so smaller ones come together.
const LARGE: usize = 300;

/// Compiles the kernel of a module at stage Lowered.
///
/// # Panics
/// If the module has no kernel, or is not at stage Lowered.
pub fn compile(module: &Module, target: &Target, level: OptLevel, texts: Texts) -> Compiled {
    let kernel = module.kernel().expect("the module has a kernel");
    let sites = Sites::of(module);
    let own_sums = level.0 > 0 && !target.grid;
    let images: Vec<Images> = tasks(kernel)
        .map(|task| match own_sums {
            true => Images::of(module, kernel, task),
            false => Images::default(),
        })
        .collect();
    let units = units(kernel, &images);
    let made = in_parallel(&units, |unit| {
        compile_unit(module, (&sites, &images), unit, target, level, texts)
    });
    let mut objects = Vec::new();
    let mut tasks = Vec::new();
    let with_text = texts != Texts::Nothing;
    let mut llvm_ir = with_text.then(String::new);
    let mut assembly = with_text.then(String::new);
    for (code, of_unit) in made {
        objects.push(code.object);
        tasks.extend(of_unit);
        for (all, one) in [(&mut llvm_ir, code.llvm_ir), (&mut assembly, code.assembly)] {
            if let (Some(all), Some(one)) = (all, one) {
                all.push_str(&one);
            }
        }
    }
    Compiled {
        code: KernelCode {
            objects,
            binaries: Vec::new(),
            tasks,
            temp_bytes: temp_bytes(module, kernel),
            args: arg_slots(module, kernel),
            apart: if module.env.arrays_apart {
                kernel.written_arrays()
            } else {
                Vec::new()
            },
            changes: changes(module),
            activates: activates(module),
            written: kernel.written_arrays(),
            grows: module
                .funcs
                .values()
                .flat_map(|func| func.insts.values())
                .any(|inst| matches!(inst.op, Op::Buffer {})),
            n_results: kernel
                .results
                .iter()
                .map(|&ty| module.env.scalars(ty).len())
                .sum(),
            root_bytes: module
                .env
                .trees
                .values()
                .map(|tree| tree.byte_size() as usize)
                .collect(),
            atomics: atomics(module),
            sites: sites.all,
            deterministic: module.env.deterministic,
        },
        llvm_ir,
        assembly,
    }
}

/// Functions of neighbouring tasks that are compiled together.
type Unit = Vec<Part>;

fn tasks(kernel: &Function) -> impl Iterator<Item = Inst> {
    let insts = kernel.regions[kernel.body].insts.iter().copied();
    insts.filter(|&inst| matches!(kernel[inst], Op::Task { .. }))
}

fn units(kernel: &Function, images: &[Images]) -> Vec<Unit> {
    let mut units: Vec<Unit> = vec![Vec::new()];
    let mut last_size = 0;
    for (number, task) in tasks(kernel).enumerate() {
        let mut size = 0;
        for region in kernel.owned(task) {
            walk(kernel, region, &mut |_, inst| {
                size += match kernel[inst] {
                    // Beside the tiles stand loops that copy.
                    Op::TileProduct { .. } => LARGE,
                    _ => 1,
                };
            });
        }
        for &version in images[number].versions() {
            if last_size > 0 && last_size + size > LARGE {
                units.push(Vec::new());
                last_size = 0;
            }
            last_size += size;
            let unit = units.last_mut().expect("there is one");
            unit.push(Part {
                number,
                task,
                version,
            });
        }
    }
    units
}

/// Makes something of each item, on as many threads as there are processors; in their order.
fn in_parallel<T: Sync, R: Send + Sync>(items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if let [item] = items {
        return vec![make(item)];
    }
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let made: Vec<OnceLock<R>> = items.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        while let Some(k) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&k| k < items.len())
        {
            let _ = made[k].set(make(&items[k]));
        }
    };
    thread::scope(|scope| {
        let others = 1..n_threads.min(items.len());
        let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
        work();
        for other in others {
            // With the message of what went wrong there.
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    let made = made.into_iter();
    made.map(|r| r.into_inner().expect("every item was taken"))
        .collect()
}

fn compile_unit(
    module: &Module,
    (sites, images): (&Sites, &[Images]),
    unit: &Unit,
    target: &Target,
    level: OptLevel,
    texts: Texts,
) -> (optimize::Code, Vec<TaskCode>) {
    let kernel = module.funcs.iter().find(|(_, func)| func.is_kernel);
    let (kernel, _) = kernel.expect("the caller has seen it");
    let n_tasks = unit.last().map_or(0, |part| part.number + 1);
    let ctx = Context::create();
    let loops = module.funcs.values().flat_map(|func| func.insts.values());
    let n_loops = loops
        .filter(|inst| matches!(inst.op, Op::For { .. }))
        .count();
    let mut functions = String::new();
    if !target.halves && uses_halves(module) {
        functions += include_str!("halves.ll");
    }
    if target.grid && uses_remainders(module) {
        functions += include_str!("remainders.ll");
    }
    // A loop stands in both functions of its task.
    let llvm = skeleton(&ctx, &functions, n_tasks, 2 * n_loops);
    if target.grid {
        // Without it numbers of 8 bytes begin at multiples of 4, and a GPU reads each in two pieces.
        let machine = target.machine(OptimizationLevel::Default);
        llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    }
    let diagnostics = Diagnostics::of(&ctx);
    let mut cx = ModuleCx {
        ctx: &ctx,
        llvm: &llvm,
        target,
        user: module,
        kernel,
        funcs: LookupMap::default(),
        tags: LookupMap::default(),
        sites,
        groups: llvm.get_global_metadata("aerogel.groups"),
        loops: llvm.get_global_metadata("aerogel.loops"),
        vectors: llvm.get_global_metadata("aerogel.vectors"),
        scalars: llvm.get_global_metadata("aerogel.scalars"),
        narrow: llvm.get_global_metadata("aerogel.narrow"),
        rolled: llvm.get_global_metadata("aerogel.rolled"),
        plain: llvm.get_global_metadata("aerogel.plain"),
        lanes: (level.0 >= 2).then_some(target.lanes).flatten(),
        images,
        lengths: call::lengths(module),
        accumulations: LookupMap::default(),
        lines: (texts == Texts::Located).then(|| Lines::of(&llvm)),
    };
    let tasks = unit.iter();
    let tasks = tasks
        .filter_map(|&part| task::lower(&mut cx, part))
        .collect();
    drop(cx);
    let code = optimize::compile(&ctx, &llvm, target, level, texts != Texts::Nothing);
    diagnostics.finish(&ctx);
    (code, tasks)
}

fn uses_halves(module: &Module) -> bool {
    let mut values = module.funcs.values().flat_map(|func| func.values.values());
    values.any(|value| module.env.scalars(value.ty).contains(&ScalarType::F16))
}

/// Whether a module takes remainders of floats, by which the device functions for `//` and `%` are computed, too.
fn uses_remainders(module: &Module) -> bool {
    use BinaryOp::{FloorDiv, Mod, Rem};
    let is_one = |func: &Function, op: &Op| matches!(op, Op::Binary { op: Rem | Mod | FloorDiv, lhs, .. } if func.elem(*lhs).is_float());
    let mut funcs = module.funcs.values();
    funcs.any(|func| func.insts.values().any(|inst| is_one(func, &inst.op)))
}

/// A module of the given functions, with an access group and loop metadata for each task (of which the second requests
/// vectors, the third none, and the fourth short ones), and one for each `for`.
/// LLVM's C interface cannot make distinct nodes, but its parser can.
fn skeleton<'ctx>(
    ctx: &'ctx Context,
    functions: &str,
    n_tasks: usize,
    n_loops: usize,
) -> LlvmModule<'ctx> {
    let mut text = functions.to_owned();
    let mut next = 0;
    let mut node = |text: &mut String, content: &dyn Fn(usize) -> String| {
        text.push_str(&format!("!{next} = {}\n", content(next)));
        next += 1;
        next - 1
    };
    let (mut groups, mut loops, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut scalars, mut narrow) = (Vec::new(), Vec::new());
    let (mut rolled, mut plain) = (Vec::new(), Vec::new());
    let short = node(&mut text, &|_| {
        format!("!{{!\"llvm.loop.vectorize.width\", i32 {FEW_LANES}}}")
    });
    let enable = node(&mut text, &|_| {
        "!{!\"llvm.loop.vectorize.enable\", i1 true}".to_owned()
    });
    let none = node(&mut text, &|_| {
        "!{!\"llvm.loop.vectorize.width\", i32 1}".to_owned()
    });
    let keep = node(&mut text, &|_| {
        "!{!\"llvm.loop.unroll.disable\"}".to_owned()
    });
    for _ in 0..n_tasks {
        let group = node(&mut text, &|_| "distinct !{}".to_owned());
        let parallel = node(&mut text, &|_| {
            format!("!{{!\"llvm.loop.parallel_accesses\", !{group}}}")
        });
        groups.push(group);
        loops.push(node(&mut text, &|n| {
            format!("distinct !{{!{n}, !{parallel}}}")
        }));
        vectors.push(node(&mut text, &|n| {
            format!("distinct !{{!{n}, !{parallel}, !{enable}}}")
        }));
        scalars.push(node(&mut text, &|n| {
            format!("distinct !{{!{n}, !{none}, !{keep}}}")
        }));
        narrow.push(node(&mut text, &|n| {
            format!("distinct !{{!{n}, !{parallel}, !{short}}}")
        }));
    }
    for _ in 0..n_loops {
        rolled.push(node(&mut text, &|n| format!("distinct !{{!{n}, !{keep}}}")));
        plain.push(node(&mut text, &|n| {
            format!("distinct !{{!{n}, !{none}, !{keep}}}")
        }));
    }
    let named = [
        ("groups", groups),
        ("loops", loops),
        ("vectors", vectors),
        ("scalars", scalars),
        ("narrow", narrow),
        ("rolled", rolled),
        ("plain", plain),
    ];
    for (name, nodes) in named {
        let refs: Vec<String> = nodes.iter().map(|n| format!("!{n}")).collect();
        text.push_str(&format!("!aerogel.{name} = !{{{}}}\n", refs.join(", ")));
    }
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    ctx.create_module_from_ir(buffer)
        .expect("the skeleton's text is valid")
}

fn arg_slots(module: &Module, kernel: &Function) -> Vec<ArgSlot> {
    let mut slots = Vec::new();
    for param in &kernel.params {
        match param.ty {
            ParamType::Value(ty) => {
                slots.extend(module.env.scalars(ty).iter().map(|_| ArgSlot::Value));
            }
            ParamType::Array { ndim, .. } => {
                slots.push(ArgSlot::Pointer);
                slots.extend((0..ndim).map(|_| ArgSlot::Extent));
            }
        }
    }
    slots
}

/// The targets of the module's atomic operations.
fn atomics(module: &Module) -> Atomics {
    let mut found = Atomics {
        trees: vec![false; module.env.trees.values().count()],
        arrays: false,
    };
    for func in module.funcs.values() {
        for inst in func.insts.values() {
            let places = match &inst.op {
                Op::Atomic { place, .. } | Op::Cas { place, .. } | Op::Update { place, .. } => {
                    std::slice::from_ref(place)
                }
                Op::AtomicAdds { places, .. } => places,
                _ => continue,
            };
            match func.def_op(base_of(func, places[0])) {
                Some(Op::Node(NodeOp::Child { node, .. })) => {
                    found.trees[node.tree.as_u32() as usize] = true;
                }
                Some(Op::ArrayAt { .. }) => found.arrays = true,
                _ => {}
            }
        }
    }
    found
}

/// Which trees may change. What a loop over a sparse tree makes lists of changes by that.
fn changes(module: &Module) -> Vec<bool> {
    let trees = module.env.trees.values();
    let mut found: Vec<bool> = trees.map(|tree| tree.is_sparse()).collect();
    for func in module.funcs.values() {
        for inst in func.insts.values() {
            let places = match access::change(&inst.op) {
                Change::Storages(places) => places,
                Change::Nothing | Change::Below(_) => continue,
                // What is called is looked at itself.
                Change::Anything if matches!(inst.op, Op::Call { .. }) => continue,
                Change::Anything => return vec![true; found.len()],
            };
            for &place in places {
                if !access::has_classes(func, place) {
                    return vec![true; found.len()];
                }
                for class in access::classes(func, &module.env, place) {
                    if let Class::Place(node) = class {
                        found[node.tree.as_u32() as usize] = true;
                    }
                }
            }
        }
    }
    found
}

/// In which trees cells may become active.
fn activates(module: &Module) -> Vec<bool> {
    let mut found = vec![false; module.env.trees.values().count()];
    for inst in module.funcs.values().flat_map(|func| func.insts.values()) {
        if let Op::Node(NodeOp::Obtain { node, .. } | NodeOp::Extend { node, .. }) = &inst.op {
            found[node.tree.as_u32() as usize] = true;
        }
    }
    found
}

/// The storage that an element belongs to.
fn base_of(func: &Function, place: Value) -> Value {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. }) => base_of(func, base),
        _ => place,
    }
}

fn temp_bytes(module: &Module, kernel: &Function) -> usize {
    let mut end = 0;
    for inst in kernel.insts.values() {
        if let Op::TempAt { offset } = inst.op {
            let ty = inst.results.first().and_then(|&r| kernel.ty(r).pointee());
            let scalars = ty.map_or_else(Vec::new, |ty| module.env.scalars(ty));
            let bytes: u32 = scalars.iter().map(|s| s.bytes()).sum();
            end = end.max((offset + bytes) as usize);
        }
    }
    end
}
