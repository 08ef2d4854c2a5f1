//! Kernels over sparse nodes, before and after their accesses are lowered.

use std::sync::{Arc, Mutex};

use aerogel_base::ScalarType;
use aerogel_interp::InterpKernel;
use aerogel_ir::{Module, NodeRef, Stage, parse_module, verify};
use aerogel_runtime::code::SiteKind;
use aerogel_runtime::device::LoadedKernel;
use aerogel_runtime::launch::{Args, KernelFailure, Launch};
use aerogel_runtime::tree::TreeMemory;
use aerogel_snode::{NodeKind, Tree, TreeBuilder};

/// A tree of three kinds of nodes, and its fields.
const TREE: &str = "
    tree0 {
        pointer i:4 j:4 { bitmasked i:2 { place x: i32 } },
        dense i:3 { dynamic k:10 chunk=2 { place y: f32 } }
    }
    field @x: i32 = tree0 [S3] offset [-2, 0]
    field @y: f32 = tree0 [S6]";

fn module(kernel: &str, stage: Stage) -> Module {
    let module = parse_module(&format!("{TREE}\n{kernel}")).unwrap_or_else(|e| panic!("{e:?}"));
    verify(module.kernel().unwrap(), &module.env, stage).unwrap_or_else(|e| panic!("{e}"));
    module
}

struct Program {
    memory: TreeMemory,
}

impl Program {
    fn new(n_elements: u32) -> Self {
        let module = module("kernel @none() { return [] }", Stage::Structured);
        let tree = module.env.trees.values().next().unwrap().clone();
        let memory = TreeMemory::with_room(tree, 0, n_elements).unwrap();
        Self { memory }
    }

    /// What a kernel prints, or the failure's message.
    fn run_at(&self, stage: Stage, body: &str) -> Result<String, String> {
        let text = format!("kernel @k() {{ {body} }}");
        let kernel = InterpKernel::new(module(&text, stage)).unwrap();
        let printed = Mutex::new(String::new());
        let outcome = kernel.launch(Launch {
            args: &Args::new(),
            roots: &[&self.memory],
            results: &mut [],
            sink: &printed,
            seed: 0,
            most_reserved: u64::MAX,
            trace: None,
            later: None,
        });
        match outcome {
            Ok(()) => Ok(printed.into_inner().unwrap()),
            Err(KernelFailure::Check { site, args }) => {
                let site = &kernel.sites()[site];
                assert!(matches!(site.kind, SiteKind::NoCell { tree: 0, .. }));
                Err(site.render(&args))
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn run(&self, body: &str) -> String {
        let whole = format!("{CONSTS} {body} return []");
        self.run_at(Stage::Structured, &whole).unwrap()
    }

    /// Active cells of the pointer, the bitmasked and the dynamic node.
    fn cells(&self) -> Vec<u64> {
        self.memory.stats().iter().map(|s| s.cells).collect()
    }
}

const CONSTS: &str = "
    m2: i32 = const -2  zero: i32 = const 0  one: i32 = const 1  two: i32 = const 2
    three: i32 = const 3  five: i32 = const 5  hundred: i32 = const 100";

#[test]
fn loads_find_and_stores_obtain() {
    let program = Program::new(1000);
    let load = "
        p: ref<i32> = field_at @x, [five, three]
        v: i32 = load p
        print \"{}\", [v]";
    assert_eq!(program.run(load), "0");
    assert_eq!(program.cells(), [0, 0, 0], "reading activates nothing");
    let outside = "
        p: ref<i32> = field_at @x, [hundred, three]
        store p, five
        v: i32 = load p
        print \"{}\", [v]";
    assert_eq!(program.run(outside), "0");
    assert_eq!(program.cells(), [0, 0, 0]);
    // Naming an element early does not fix where it lies.
    let store = "
        p: ref<i32> = field_at @x, [five, three]
        store p, five
        old: i32 = atomic_add p, two
        swapped: i32 = atomic_cas p, hundred, one
        v: i32 = load p
        print \"{} {} {}\", [old, swapped, v]";
    assert_eq!(program.run(store), "5 7 7");
    assert_eq!(program.cells(), [1, 1, 0]);
    assert_eq!(program.run(load), "7");
}

#[test]
fn activation_by_indices() {
    let program = Program::new(1000);
    let ask = "
        a: u1 = is_active tree0.S1, [three, three]
        b: u1 = is_active tree0.S2, [five, three]
        c: u1 = is_active tree0.S2, [hundred, three]
        d: u1 = is_active tree0.S4, [two]
        n: i32 = length tree0.S5, [two]
        print \"{} {} {} {} {}\", [a, b, c, d, n]";
    // The dense node's cells are as active as what they lie in: the root.
    assert_eq!(program.run(ask), "0 0 0 1 0");
    program.run("activate tree0.S2, [five, three]  activate tree0.S5, [two, five]");
    assert_eq!(program.cells(), [1, 1, 6]);
    let all = "
        i2: i32 = const 2
        a: u1 = is_active tree0.S1, [i2, three]
        b: u1 = is_active tree0.S2, [five, three]
        c: u1 = is_active tree0.S5, [two, five]
        d: u1 = is_active tree0.S5, [one, zero]
        n: i32 = length tree0.S5, [two]
        print \"{} {} {} {} {}\", [a, b, c, d, n]";
    assert_eq!(program.run(all), "1 1 1 0 6");
    // Outside there is nothing to make.
    program.run("activate tree0.S2, [hundred, three]  deactivate tree0.S1, [hundred, three]");
}

#[test]
fn deactivation_forgets_what_lies_below() {
    let program = Program::new(1000);
    let write = "
        p: ref<i32> = field_at @x, [five, three]
        store p, five
        q: ref<f32> = field_at @y, [one, three]
        f: f32 = const 1.5
        store q, f";
    program.run(write);
    assert_eq!(program.cells(), [1, 1, 4]);
    // The field's index 5 is the layout's 7: block 3, cell 1.
    program.run("deactivate tree0.S1, [three, three]  deactivate tree0.S5, [one]");
    assert_eq!(program.cells(), [0, 0, 0]);
    let read = "
        p: ref<i32> = field_at @x, [five, three]
        v: i32 = load p
        q: ref<f32> = field_at @y, [one, three]
        w: f32 = load q
        print \"{} {}\", [v, w]";
    assert_eq!(
        program.run(&format!("activate tree0.S5, [one, three] {read}")),
        "0 0.000000"
    );
    // Only one of two masked cells.
    program.run(write);
    program.run("four: i32 = const 4  p: ref<i32> = field_at @x, [four, three]  store p, two");
    program.run("six: i32 = const 6  deactivate tree0.S2, [six, three]");
    assert_eq!(program.cells(), [1, 1, 4]);
    assert_eq!(program.run(read), "5 1.500000");
}

#[test]
fn appending_until_full() {
    let program = Program::new(1000);
    let append = "
        lo: i32 = const 0
        hi: i32 = const 12
        for lo, hi, one, [] (k: i32) {
            at: i32 = append tree0.S5, [one]
            print \"{} \", [at]
            yield []
        }
        n: i32 = length tree0.S5, [one]
        print \"{}\", [n]";
    assert_eq!(program.run(append), "0 1 2 3 4 5 6 7 8 9 -1 -1 10");
}

#[test]
fn loops_visit_what_is_active_when_they_begin() {
    let program = Program::new(1000);
    let write = |i: i32, j: i32| {
        program.run(&format!(
            "i: i32 = const {i}  j: i32 = const {j}
            p: ref<i32> = field_at @x, [i, j]
            store p, five"
        ))
    };
    for (i, j) in [(5, 3), (-2, 3), (-1, 0), (0, 1), (4, 3)] {
        write(i, j);
    }
    let body = "
        parallel_cells tree0.S2 (i: i32, j: i32) {
            print \"{},{} \", [i, j]
            at: i32 = sub i, two
            p: ref<i32> = field_at @x, [at, zero]
            store p, one
            yield []
        }";
    // Blocks row by row, and the cells of each. Those made in the loop are visited next time.
    assert_eq!(program.run(body), "1,0 0,3 2,1 6,3 7,3 ");
    assert_eq!(program.run(body), "0,0 1,0 0,3 2,0 2,1 6,0 7,0 6,3 7,3 ");
    // All may be given back while they are visited.
    let body = "
        parallel_cells tree0.S2 (i: i32, j: i32) {
            a: i32 = shr i, one
            deactivate tree0.S1, [a, j]
            yield []
        }";
    program.run(body);
    assert_eq!(program.cells(), [0, 0, 0]);
    assert_eq!(
        program.run("parallel_cells tree0.S2 (i: i32, j: i32) { print \"x\", []  yield [] }"),
        ""
    );
}

#[test]
fn a_failure_names_the_node_and_leaves_the_tree_intact() {
    let program = Program::new(2);
    let fill = "
        parallel [zero], [three] (i: i32) {
            twice: i32 = mul i, two
            p: ref<i32> = field_at @x, [twice, zero]
            store p, five
            yield []
        }";
    let whole = format!("{CONSTS} {fill} return []");
    let failure = program.run_at(Stage::Structured, &whole).unwrap_err();
    assert_eq!(failure, "out of memory for the pointer node S1 of `x`");
    assert_eq!(program.cells(), [2, 2, 0]);
    program.run("deactivate tree0.S1, [one, zero]");
    program.run("p: ref<i32> = field_at @x, [five, one]  store p, five");
    assert_eq!(program.cells(), [2, 2, 0]);
}

#[test]
fn messages_leave_fields_without_a_name_out() {
    let mut env = module("kernel @none() { return [] }", Stage::Structured).env;
    let (tree, layout) = env.trees.iter().next().unwrap();
    let node = layout
        .places()
        .next()
        .map(|(place, _)| layout.chain(place)[1])
        .unwrap();
    let mut builder = TreeBuilder::default();
    let pointer = builder
        .node(Tree::ROOT, NodeKind::Pointer, &[(0, 4)])
        .unwrap();
    builder.place(pointer, ScalarType::I32, "").unwrap();
    env.trees[tree] = Arc::new(builder.finish().unwrap());
    let message = env.out_of_memory(NodeRef { tree, node });
    assert_eq!(message, "out of memory for the pointer node S1");
}

#[test]
fn containers_step_by_step() {
    let program = Program::new(1000);
    let lowered = |insts: &str| {
        let text = format!(
            "task serial {{ yield [] }} {{ {CONSTS}
                root: cell<tree0.S0> = root tree0
                c: container<tree0.S1> = child tree0.S1, root
                k: i64 = linearize tree0.S1, [three, one]
                g: container<tree0.S4> = child tree0.S4, root
                h: cell<tree0.S4> = lookup tree0.S4, g, two
                d: container<tree0.S5> = child tree0.S5, h
                {insts} yield [] }} yield []"
        );
        program.run_at(Stage::Lowered, &text).unwrap()
    };
    let found = "
        cell: cell<tree0.S1> = find tree0.S1, c, k
        m: container<tree0.S2> = child tree0.S2, cell
        e: cell<tree0.S2> = lookup tree0.S2, m, one
        p: ref<i32> = child tree0.S3, e
        v: i32 = load p
        active: u1 = cell_is_active tree0.S1, c, k
        inner: u1 = cell_is_active tree0.S2, m, one
        mask: u32 = mask_word tree0.S2, m, zero
        print \"{} {} {} {}\", [v, active, inner, mask]";
    assert_eq!(lowered(found), "0 0 0 0");
    lowered(
        "cell: cell<tree0.S1> = obtain tree0.S1, c, k
        m: container<tree0.S2> = child tree0.S2, cell
        e: cell<tree0.S2> = obtain tree0.S2, m, one
        p: ref<i32> = child tree0.S3, e
        store p, five",
    );
    assert_eq!(lowered(found), "5 1 1 2");
    let grow = "
        a: i64 = extend tree0.S5, d
        last: cell<tree0.S5> = obtain tree0.S5, d, five
        q: ref<f32> = child tree0.S6, last
        f: f32 = const 2.5
        store q, f
        again: cell<tree0.S5> = find tree0.S5, d, five
        r: ref<f32> = child tree0.S6, again
        v: f32 = load r
        n: i64 = container_length tree0.S5, d
        print \"{} {} {}\", [a, v, n]";
    assert_eq!(lowered(grow), "0 2.500000 6");
    assert_eq!(program.cells(), [1, 1, 6]);
    // A list of the pointer node's only cell, and what it says.
    let list = "
        stale: u1 = list_stale tree0.S1
        again: u1 = list_stale tree0.S1
        part: i64 = const 0
        n: i64 = const 1
        list_count tree0.S1, part, n
        list_scan tree0.S1, n
        at: i64 = list_offset tree0.S1, part
        cell: cell<tree0.S1> = find tree0.S1, c, k
        list_put tree0.S1, at, cell, [three, one]
        same: cell<tree0.S1>, i: i32, j: i32 = list_entry tree0.S1, at
        length: i64 = list_len tree0.S1
        m: container<tree0.S2> = child tree0.S2, same
        e: cell<tree0.S2> = lookup tree0.S2, m, one
        p: ref<i32> = child tree0.S3, e
        v: i32 = load p
        print \"{} {} {} {} {} {}\", [stale, again, length, i, j, v]";
    assert_eq!(lowered(list), "1 0 1 3 1 5");
    // Nothing is collected but by the kernel itself.
    let release = "
        cell: cell<tree0.S1> = find tree0.S1, c, k
        m: container<tree0.S2> = child tree0.S2, cell
        release tree0.S2, m, one
        release tree0.S1, c, k
        release_all tree0.S5, d
        n: i64 = n_recycled tree0.S1
        o: i64 = n_recycled tree0.S5
        print \"{} {}\", [n, o]";
    assert_eq!(lowered(release), "1 2");
    let collect = "
        first: i64 = const 0
        cell: cell<tree0.S1> = recycled tree0.S1, first
        m: container<tree0.S2> = child tree0.S2, cell
        inner: u1 = cell_is_active tree0.S2, m, one
        wipe tree0.S1, first
        collect tree0.S1
        second: i64 = const 1
        wipe tree0.S5, first
        wipe tree0.S5, second
        collect tree0.S5
        n: i64 = n_recycled tree0.S1
        o: i64 = n_recycled tree0.S5
        print \"{} {} {}\", [inner, n, o]";
    assert_eq!(lowered(collect), "0 0 0");
    assert_eq!(program.cells(), [0, 0, 0]);
}
