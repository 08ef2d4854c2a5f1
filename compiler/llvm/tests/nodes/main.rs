//! Instructions over sparse nodes, compiled and run.

mod device_text;
mod memory;

use aerogel_base::ScalarType;
use aerogel_ir::{Module, Stage, parse_module, verify};
use aerogel_llvm::{Compiled, Jit, OptLevel, Texts, compile, target};
use aerogel_runtime::cpu::{CpuDevice, Pool};
use aerogel_runtime::{Args, Device, KernelFailure, Launch, TreeMemory};
use aerogel_snode::{NodeId, control};
use std::sync::{Arc, Mutex};

use memory::{active, container, control as block, dynamic_values, element, word};

/// A tree, and kernels over it.
struct Program {
    tree: String,
    level: u8,
    memory: TreeMemory,
}

impl Program {
    fn new(tree: &str, level: u8) -> Self {
        let module = parse_module(&format!("tree0 {{ {tree} }}")).unwrap();
        let tree_of_module = module.env.trees.values().next().unwrap();
        Self {
            tree: tree.to_owned(),
            level,
            memory: TreeMemory::new(tree_of_module.clone(), 0).unwrap(),
        }
    }

    fn module(&self, kernel: &str) -> Module {
        let text = format!("tree0 {{ {} }} {kernel}", self.tree);
        let module = parse_module(&text).unwrap_or_else(|e| panic!("{e:?}"));
        verify(module.kernel().unwrap(), &module.env, Stage::Lowered)
            .unwrap_or_else(|e| panic!("{e}"));
        module
    }

    fn compile(&self, kernel: &str) -> Compiled {
        let module = self.module(kernel);
        compile(&module, &target::host(), OptLevel(self.level), Texts::Code)
    }

    fn try_run(&self, kernel: &str) -> Result<Vec<u64>, KernelFailure> {
        let compiled = self.compile(kernel);
        let device = CpuDevice::new(Arc::new(Pool::new(2)), Box::new(Jit));
        let loaded = device.load(&compiled.code).unwrap();
        let mut results = vec![0; compiled.code.n_results];
        let launched = loaded.launch(Launch {
            args: &Args::new(),
            roots: &[&self.memory],
            results: &mut results,
            sink: &Mutex::new(String::new()),
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        launched.map(|()| results)
    }

    /// Runs a kernel whose body are these tasks.
    fn run(&self, tasks: &str) -> Vec<u64> {
        self.try_run(&format!("kernel @k() {{ {tasks} yield [] }}"))
            .unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    /// What a serial task makes of `insts`, which name it `r`.
    fn ask(&self, ty: &str, insts: &str) -> u64 {
        let kernel = format!(
            "kernel @k() -> {ty} {{
                task serial {{ yield [] }} {{
                    root: cell<tree0.S0> = root tree0
                    {insts}
                    return [r]
                }}
                yield []
            }}"
        );
        let results = self.try_run(&kernel);
        results.unwrap_or_else(|failure| panic!("{failure:?}"))[0]
    }
}

/// A task over `[0, n)`, whose index is `i`.
fn each(n: u32, body: &str) -> String {
    format!(
        "task range {{ zero: i32 = const 0  n: i32 = const {n}  yield [zero, n] }} {{
            each (i: i32) {{
                root: cell<tree0.S0> = root tree0
                {body}
                yield []
            }}
            yield []
        }}"
    )
}

/// Tasks that collect what a node has released.
fn collect(node: &str) -> String {
    format!(
        "task range {{ zero: i64 = const 0  n: i64 = n_recycled {node}  yield [zero, n] }} {{
            each (at: i64) {{ wipe {node}, at  yield [] }}
            yield []
        }}
        task serial {{ yield [] }} {{ collect {node}  yield [] }}"
    )
}

const POINTER: &str = "pointer i:16 { dense i:16384 { place x: i32 } }";

/// Iteration `i` writes cell `i / 16` of block `i % 16`, so that all threads want every block.
const WRITE_POINTER: &str = "
    c: container<tree0.S1> = child tree0.S1, root
    m: i32 = const 15
    block: i32 = and i, m
    four: i32 = const 4
    in_block: i32 = shr i, four
    cell: cell<tree0.S1> = obtain tree0.S1, c, block
    d: container<tree0.S2> = child tree0.S2, cell
    e: cell<tree0.S2> = lookup tree0.S2, d, in_block
    p: ref<i32> = child tree0.S3, e
    one: i32 = const 1
    v: i32 = add i, one
    store p, v";

#[test]
fn pointers() {
    for level in [0, 3] {
        let program = Program::new(POINTER, level);
        let node = NodeId::from_u32(1);
        let (memory, arena) = (&program.memory, block(&program.memory, node, 0));
        program.run(&each(16 * 16384, WRITE_POINTER));
        let mut seen = [false; 101];
        for block in 0..16 {
            let number = word(memory, container(memory, node) + 4 * block);
            assert!(number > 0 && !std::mem::replace(&mut seen[number as usize], true));
            for k in [0, 1, 16383] {
                let cell = element(memory, node, 0, number) + 4 * k;
                assert_eq!(u64::from(word(memory, cell)), 16 * k + block + 1);
            }
        }
        assert_eq!(active(memory, arena), 16);
        assert_eq!(word(memory, arena + control::CHANGED), 1);
        let taken = word(memory, arena + control::TAKEN);

        // Reading finds what was written, and the ambient cell elsewhere.
        let read = |index: u32| {
            program.ask(
                "i32",
                &format!(
                    "c: container<tree0.S1> = child tree0.S1, root
                    block: i32 = const {}
                    cell: cell<tree0.S1> = find tree0.S1, c, block
                    d: container<tree0.S2> = child tree0.S2, cell
                    k: i32 = const {}
                    e: cell<tree0.S2> = lookup tree0.S2, d, k
                    p: ref<i32> = child tree0.S3, e
                    r: i32 = load p",
                    index % 16,
                    index / 16
                ),
            )
        };
        assert_eq!((read(0), read(12345)), (1, 12346));

        let release = "
            c: container<tree0.S1> = child tree0.S1, root
            m: i32 = const 7
            block: i32 = and i, m
            release tree0.S1, c, block";
        program.run(&each(100_000, release));
        assert_eq!(active(memory, arena), 8);
        assert_eq!((read(0), read(12345)), (0, 12346));
        let n = program.ask("i64", "r: i64 = n_recycled tree0.S1");
        assert_eq!(n, u64::from(taken) - 8);
        program.run(&collect("tree0.S1"));
        assert_eq!(active(memory, arena), 8);
        assert_eq!(word(memory, arena + control::N_FREE), taken - 8);
        assert_eq!(word(memory, arena + control::N_RECYCLED), 0);

        // What was collected is zero, and comes first.
        let bump = word(memory, arena + control::BUMP);
        let obtain = "
            c: container<tree0.S1> = child tree0.S1, root
            cell: cell<tree0.S1> = obtain tree0.S1, c, i";
        program.run(&each(8, obtain));
        assert_eq!((read(0), read(12345)), (0, 12346));
        assert_eq!(active(memory, arena), 16);
        for block in 0..8 {
            assert!(word(memory, container(memory, node) + 4 * block) < bump);
        }
        let active = program.ask("i64", COUNT_POINTERS);
        assert_eq!(active, 16);
    }
}

const COUNT_POINTERS: &str = "
    c: container<tree0.S1> = child tree0.S1, root
    lo: i64 = const 0
    hi: i64 = const 16
    one: i64 = const 1
    r: i64 = for lo, hi, one, [lo] (k: i64, sum: i64) {
        active: u1 = cell_is_active tree0.S1, c, k
        number: i64 = cast active
        next: i64 = add sum, number
        yield [next]
    }";

const DYNAMIC: &str = "dense i:4 { dynamic j:60000 chunk=16 { place x: i32 } }, place full: i32";

const CONTAINER: &str = "
    d: container<tree0.S1> = child tree0.S1, root
    m: i32 = const 3
    which: i32 = and i, m
    dense: cell<tree0.S1> = lookup tree0.S1, d, which
    c: container<tree0.S2> = child tree0.S2, dense";

#[test]
fn dynamic_nodes() {
    for level in [0, 3] {
        let program = Program::new(DYNAMIC, level);
        let node = NodeId::from_u32(2);
        let memory = &program.memory;
        let append = format!(
            "{CONTAINER}
            k: i64 = extend tree0.S2, c
            zero: i64 = const 0
            none: u1 = lt k, zero
            if none {{
                full: ref<i32> = child tree0.S4, root
                one: i32 = const 1
                before: i32 = atomic_add full, one
                yield []
            }} {{
                cell: cell<tree0.S2> = find tree0.S2, c, k
                p: ref<i32> = child tree0.S3, cell
                v: i32 = const 1
                w: i32 = add i, v
                store p, w
                yield []
            }}"
        );
        program.run(&each(4 * 50_000, &append));
        let length = |which: u64| {
            program.ask(
                "i64",
                &format!(
                    "i: i32 = const {which} {CONTAINER} r: i64 = container_length tree0.S2, c"
                ),
            )
        };
        for which in 0..4 {
            assert_eq!(length(which), 50_000);
            let mut values = dynamic_values(memory, node, which);
            values.sort_unstable();
            let expected = (0..50_000).map(|k| 4 * k + which as u32 + 1);
            assert!(values.into_iter().eq(expected), "{which}");
        }
        let full = || memory.read_scalar(ScalarType::I32, container(memory, NodeId::from_u32(4)));
        assert_eq!(full().unwrap().as_i128(), 0);
        // Only 10,000 more fit.
        program.run(&each(4 * 15_000, &append));
        assert_eq!(full().unwrap().as_i128(), 20_000);
        assert_eq!(length(3), 60_000);
        let last = "
            i: i32 = const 1
            k: i64 = const 60000
            r: u1 = cell_is_active tree0.S2, c, k";
        let last = last.replacen("k: i64", &format!("{CONTAINER} k: i64"), 1);
        assert_eq!(program.ask("u1", &last), 0);
        assert_eq!(program.ask("u1", &last.replace("60000", "59999")), 1);

        // 12 chunks of 16 * 2^k cells, for each of four containers.
        let chunks = memory.tree()[node].n_chunks();
        assert_eq!(chunks, 12);
        program.run(&each(3, &format!("{CONTAINER} release_all tree0.S2, c")));
        for k in 0..chunks {
            assert_eq!(active(memory, block(memory, node, k)), 1);
        }
        assert_eq!((length(0), length(3)), (0, 60_000));
        program.run(&collect("tree0.S2"));
        assert_eq!(program.ask("i64", "r: i64 = n_recycled tree0.S2"), 0);
        let values = dynamic_values(memory, node, 3);
        assert!(values.len() == 60_000 && values.iter().all(|&v| v > 0));

        // Activating one cell activates all before it; those that no chunk holds read as zero.
        let obtain = format!(
            "{CONTAINER}
            k: i64 = const 1000
            cell: cell<tree0.S2> = obtain tree0.S2, c, k
            p: ref<i32> = child tree0.S3, cell
            v: i32 = const 7
            store p, v"
        );
        program.run(&each(10_000, &obtain.replace("const 3", "const 0")));
        assert_eq!(length(0), 1001);
        let mut expected = vec![0; 1001];
        expected[1000] = 7;
        assert_eq!(dynamic_values(memory, node, 0), expected);
    }
}

const BITMASKED: &str = "bitmasked i:1000 { place x: u8, place y: u8, place z: u8 }, place n: i32";

#[test]
fn bitmasked_nodes() {
    for level in [0, 3] {
        let program = Program::new(BITMASKED, level);
        let memory = &program.memory;
        let begin = "
            c: container<tree0.S1> = child tree0.S1, root
            n: i32 = const 500
            half: i32 = rem i, n
            twice: i32 = add half, half";
        let write = format!(
            "{begin}
            cell: cell<tree0.S1> = obtain tree0.S1, c, twice
            p: ref<u8> = child tree0.S3, cell
            v: u8 = const 9
            store p, v"
        );
        program.run(&each(200_000, &write));
        let node = NodeId::from_u32(1);
        let at = container(memory, node);
        let bit = |k: u64| word(memory, at + 3000 + k / 32 * 4) >> (k % 32) & 1;
        let byte = |k: u64| {
            memory
                .read_scalar(ScalarType::U8, at + k)
                .unwrap()
                .as_i128()
        };
        for k in 0..1000 {
            assert_eq!(
                (bit(k), byte(3 * k + 1)),
                ((k as u32 + 1) % 2, 9 * ((k as i128 + 1) % 2))
            );
        }
        let count = "
            c: container<tree0.S1> = child tree0.S1, root
            active: u1 = cell_is_active tree0.S1, c, i
            one: i32 = cast active
            n: ref<i32> = child tree0.S5, root
            before: i32 = atomic_add n, one";
        program.run(&each(1000, count));
        let n = || memory.read_scalar(ScalarType::I32, container(memory, NodeId::from_u32(5)));
        assert_eq!(n().unwrap().as_i128(), 500);
        let mask_word = "c: container<tree0.S1> = child tree0.S1, root  w: i32 = const 31  r: u32 = mask_word tree0.S1, c, w";
        assert_eq!(program.ask("u32", mask_word), 0x55);

        let release = "
            c: container<tree0.S1> = child tree0.S1, root
            n: i32 = const 994
            k: i32 = rem i, n
            release tree0.S1, c, k";
        program.run(&each(100_000, release));
        assert_eq!(program.ask("u32", mask_word), 0x54);
        assert!((0..3 * 994).all(|k| byte(k) == 0));
        assert_eq!(byte(3 * 998 + 1), 9);
        assert_eq!(word(memory, block(memory, node, 0) + control::CHANGED), 1);
    }
}

const LISTED: &str = "pointer i:4 j:8 { dense i:4 { place x: i32 } }, place sum: i32";

#[test]
fn lists() {
    for level in [0, 3] {
        let program = Program::new(LISTED, level);
        let stale = || program.ask("u1", "r: u1 = list_stale tree0.S1");
        // The first list of an empty node is made too.
        assert_eq!((stale(), stale()), (1, 0));
        let obtain = "
            c: container<tree0.S1> = child tree0.S1, root
            one: i32 = const 1
            i2: i32 = add i, i
            odd: i32 = add i2, one
            cell: cell<tree0.S1> = obtain tree0.S1, c, odd";
        program.run(&each(16, obtain));
        assert_eq!((stale(), stale()), (1, 0));
        program.run(&each(16, obtain));
        assert_eq!(stale(), 0);

        // Four parts of 8 cells each.
        let part = "
            c: container<tree0.S1> = child tree0.S1, root
            eight: i32 = const 8
            lo: i32 = mul i, eight
            hi: i32 = add lo, eight
            step: i32 = const 1
            part: i64 = cast i
            zero: i64 = const 0
            unit: i64 = const 1";
        let count = format!(
            "{part}
            n: i64 = for lo, hi, step, [zero] (k: i32, n: i64) {{
                active: u1 = cell_is_active tree0.S1, c, k
                m: i64 = cast active
                next: i64 = add n, m
                yield [next]
            }}
            list_count tree0.S1, part, n"
        );
        let fill = format!(
            "{part}
            first: i64 = list_offset tree0.S1, part
            end: i64 = for lo, hi, step, [first] (k: i32, at: i64) {{
                active: u1 = cell_is_active tree0.S1, c, k
                if active {{
                    cell: cell<tree0.S1> = find tree0.S1, c, k
                    four: i32 = const 4
                    row: i32 = div k, eight
                    column: i32 = rem k, eight
                    first_row: i32 = mul row, four
                    list_put tree0.S1, at, cell, [first_row, column]
                    yield []
                }} {{ yield [] }}
                m: i64 = cast active
                next: i64 = add at, m
                yield [next]
            }}"
        );
        program.run(&format!(
            "{}
            task serial {{ yield [] }} {{
                n: i64 = const 4
                list_scan tree0.S1, n
                yield []
            }}
            {}",
            each(4, &count),
            each(4, &fill)
        ));
        assert_eq!(program.ask("i64", "r: i64 = list_len tree0.S1"), 16);
        for at in 0..16_u64 {
            let ask = |ty, result: &str| {
                program.ask(
                    ty,
                    &format!(
                        "at: i64 = const {at}
                        cell: cell<tree0.S1>, i: i32, j: i32 = list_entry tree0.S1, at
                        d: container<tree0.S2> = child tree0.S2, cell
                        zero: i32 = const 0
                        e: cell<tree0.S2> = lookup tree0.S2, d, zero
                        p: ref<i32> = child tree0.S3, e
                        one: i32 = const 1
                        before: i32 = atomic_add p, one
                        {result}"
                    ),
                )
            };
            let linear = 2 * at + 1;
            assert_eq!(ask("i32", "r: i32 = add zero, i"), linear / 8 * 4);
            assert_eq!(ask("i32", "r: i32 = add zero, j"), linear % 8);
            assert_eq!(ask("i32", "r: i32 = add zero, before"), 2);
        }
    }
}

/// The body of the function with the symbol of the kernel's first task.
fn task_body(ir: &str) -> &str {
    let begin = ir.find("@k.0(").expect("the task is there");
    let end = ir[begin..].find("\n}").expect("functions end");
    &ir[begin..begin + end]
}

#[test]
fn counting_cells_is_a_vector_loop() {
    let program = Program::new("pointer i:4096 { dense i:4 { place x: i32 } }", 3);
    let insts = COUNT_POINTERS.replace("const 16", "const 4096");
    let kernel = format!(
        "kernel @k() -> i64 {{ task serial {{ yield [] }} {{
            root: cell<tree0.S0> = root tree0  {insts}  return [r] }} yield [] }}"
    );
    let compiled = program.compile(&kernel);
    let ir = compiled.llvm_ir.unwrap();
    let vectors = ["<4 x i32>", "<8 x i32>", "<16 x i32>"];
    assert!(
        vectors.iter().any(|v| ir.contains(&format!("load {v}"))),
        "{ir}"
    );
}

#[test]
fn device_functions_exist_once() {
    let program = Program::new(POINTER, 3);
    let twice = WRITE_POINTER.to_owned()
        + "
        other: i32 = xor block, one
        second: cell<tree0.S1> = obtain tree0.S1, c, other";
    let compiled = program.compile(&format!("kernel @k() {{ {} yield [] }}", each(100, &twice)));
    let ir = compiled.llvm_ir.unwrap();
    let made = |name: &str| {
        ir.lines()
            .filter(|l| l.starts_with("define") && l.contains(name))
            .count()
    };
    assert_eq!(made("@Device.obtain_pointer("), 1, "{ir}");
    assert_eq!(made("@Device.take_element("), 1, "{ir}");
    assert_eq!(
        task_body(&ir).matches("@Device.obtain_pointer(").count(),
        2,
        "{ir}"
    );
}

#[test]
fn slots_are_read_once() {
    let program = Program::new(
        "pointer i:16 { dense i:16384 { place x: i32, place y: i32 } }",
        3,
    );
    let body = "
        c: container<tree0.S1> = child tree0.S1, root
        k: i32 = const 3
        cell: cell<tree0.S1> = find tree0.S1, c, k
        d: container<tree0.S2> = child tree0.S2, cell
        e: cell<tree0.S2> = lookup tree0.S2, d, i
        p: ref<i32> = child tree0.S3, e
        store p, i
        again: cell<tree0.S1> = find tree0.S1, c, k
        d2: container<tree0.S2> = child tree0.S2, again
        e2: cell<tree0.S2> = lookup tree0.S2, d2, i
        q: ref<i32> = child tree0.S4, e2
        store q, i";
    let compiled = program.compile(&format!("kernel @k() {{ {} yield [] }}", each(16384, body)));
    let ir = compiled.llvm_ir.unwrap();
    let task = task_body(&ir);
    assert_eq!(task.matches("= load i32").count(), 1, "{task}");
}

/// A loop over the leaves of a list, around one over the cells of a leaf: flat, or one for each axis.
fn over_leaves(flat: bool, before: &str, inner: &str, after: &str) -> String {
    let cells = if flat {
        format!(
            "all: i64 = const 512
            for first, all, unit, [] (in_leaf: i64) {{ {inner} yield [] }}"
        )
    } else {
        format!(
            "for lo, hi, step, [] (a: i32) {{
                for lo, hi, step, [] (b: i32) {{
                    for lo, hi, step, [] (d: i32) {{
                        in_leaf: i64 = linearize tree0.S2, [a, b, d]
                        {inner}
                        yield []
                    }}
                    yield []
                }}
                yield []
            }}"
        )
    };
    format!(
        "kernel @k() {{
            task range {{ lo: i64 = const 0  hi: i64 = list_len tree0.S1  yield [lo, hi] }} {{
                root: cell<tree0.S0> = root tree0
                {before}
                each (at: i64) {{
                    cell: cell<tree0.S1>, i: i32, j: i32, k: i32 = list_entry tree0.S1, at
                    c: container<tree0.S2> = child tree0.S2, cell
                    c4: container<tree0.S4> = child tree0.S4, cell
                    lo: i32 = const 0
                    hi: i32 = const 8
                    step: i32 = const 1
                    first: i64 = const 0
                    unit: i64 = const 1
                    {cells}
                    yield []
                }}
                {after}
                yield []
            }}
            yield []
        }}"
    )
}

/// Checks the LLVM IR of a loop over leaves: `op` works on vectors, no cell is read by itself, and a
/// request to stop is looked for once for each leaf.
fn leaves_are_vectors(kernel: &str, op: &str) {
    const LEAF: &str = "dense i:8 j:8 k:8";
    let tree = format!(
        "pointer i:8 j:8 k:8 {{ {LEAF} {{ place x: f32 }}, {LEAF} {{ place y: f32 }} }}, place sum: f32"
    );
    let ir = Program::new(&tree, 3).compile(kernel).llvm_ir.unwrap();
    assert!(is_vector(&ir, op), "{ir}");
    assert!(!ir.contains("load float"), "{ir}");
    assert_eq!(ir.matches("load atomic i32").count(), 1, "{ir}");
}

#[test]
fn sums_over_leaves_are_vectors() {
    for flat in [false, true] {
        let kernel = over_leaves(
            flat,
            "sum: ref<f32> = local",
            "e: cell<tree0.S2> = lookup tree0.S2, c, in_leaf
            x: ref<f32> = child tree0.S3, e
            v: f32 = load x
            old: f32 = atomic_add sum, v",
            "total: ref<f32> = child tree0.S6, root
            part: f32 = load sum
            before: f32 = atomic_add total, part",
        );
        leaves_are_vectors(&kernel, "fadd");
    }
}

#[test]
fn maps_over_leaves_are_vectors() {
    for flat in [false, true] {
        let kernel = over_leaves(
            flat,
            "",
            "e: cell<tree0.S2> = lookup tree0.S2, c, in_leaf
            x: ref<f32> = child tree0.S3, e
            v: f32 = load x
            w: f32 = mul v, v
            f: cell<tree0.S4> = lookup tree0.S4, c4, in_leaf
            y: ref<f32> = child tree0.S5, f
            store y, w",
            "",
        );
        leaves_are_vectors(&kernel, "fmul");
    }
}

#[test]
fn neighbours_in_leaves_are_vectors() {
    let kernel = over_leaves(
        false,
        "",
        "one: i32 = const 1
        left: i32 = sub d, one
        up: i32 = sub b, one
        k1: i64 = linearize tree0.S2, [a, b, left]
        k2: i64 = linearize tree0.S2, [a, up, d]
        e1: cell<tree0.S2> = lookup tree0.S2, c, k1
        e2: cell<tree0.S2> = lookup tree0.S2, c, k2
        x1: ref<f32> = child tree0.S3, e1
        x2: ref<f32> = child tree0.S3, e2
        v1: f32 = load x1
        v2: f32 = load x2
        w: f32 = add v1, v2
        f: cell<tree0.S4> = lookup tree0.S4, c4, in_leaf
        y: ref<f32> = child tree0.S5, f
        store y, w",
        "",
    );
    leaves_are_vectors(&kernel, "fadd");
}

/// Whether an operation works on vectors.
fn is_vector(ir: &str, op: &str) -> bool {
    ir.lines()
        .any(|l| l.contains(op) && l.contains(" x float>"))
}
