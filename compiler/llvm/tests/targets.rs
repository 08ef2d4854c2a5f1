//! Other targets than this machine's make code of the same kernels.

use std::path::{Path, PathBuf};
use std::process::Command;

use aerogel_base::ScalarType;
use aerogel_ir::{AtomicOp, BinaryOp, Stage, UnaryOp, parse_module, print_module, verify};
use aerogel_llvm::{OptLevel, Texts, compile, target};

/// A kernel with a parallel loop, atomics, maths functions and an assertion, at stage Lowered.
const KERNEL: &str = r#"
    fast_math
    tree0 { place s: f32, dense i:64 { place x: f32 } }
    field @s: f32 = tree0 [S1]
    field @x: f32 = tree0 [S3]
    kernel @k(n: i32, a: array<f32, 1>) {
        task range {
            v0: i32 = const 0
            v1: i32 = arg a0
            yield [v0, v1]
        } {
            v2: cell<tree0.S0> = root tree0
            v3: ref<f32> = child tree0.S1, v2
            v4: container<tree0.S2> = child tree0.S2, v2
            v5: i32 = const 64
            each (v6: i32) {
                v7: u1 = lt v6, v5
                assert v7, bounds, "index {} is out of bounds", [v6]
                v8: i64 = linearize tree0.S2, [v6]
                v9: cell<tree0.S2> = lookup tree0.S2, v4, v8
                v10: ref<f32> = child tree0.S3, v9
                v11: ref<f32> = array_at a1, [v6]
                v12: f32 = load v11
                v13: f32 = sin v12
                v14: f32 = exp v13
                v15: f32 = sqrt v14
                store v10, v15
                v16: f32 = atomic_add v3, v15
                v17: f32 = atomic_max v3, v15
                yield []
            }
            yield []
        }
        yield []
    }
"#;

#[test]
fn aarch64_objects() {
    let module = parse_module(KERNEL).unwrap_or_else(|e| panic!("{e}"));
    for level in [0, 3] {
        let code = compile(&module, &target::aarch64(), OptLevel(level), Texts::Code);
        let object = &code.code.objects[0];
        assert_eq!(&object[..4], b"\x7fELF");
        // `e_machine` of an ELF header: 183 is AArch64.
        assert_eq!(u16::from_le_bytes([object[18], object[19]]), 183);
        let assembly = code.assembly.expect("asked for");
        assert!(
            !assembly.contains("bl\tsinf"),
            "maths functions are our own"
        );
    }
}

#[test]
fn aarch64_loops_are_vectorised() {
    let plain: Vec<&str> = KERNEL
        .lines()
        .filter(|l| !l.contains("atomic_") && !l.contains("assert"))
        .collect();
    let module = parse_module(&plain.join("\n")).unwrap_or_else(|e| panic!("{e}"));
    let code = compile(&module, &target::aarch64(), OptLevel(3), Texts::Code);
    assert!(code.assembly.expect("asked for").contains(".4s"));
}

/// All that can be done with sparse nodes, and loops over the cells of one.
const SPARSE: &str = r#"
    tree0 {
        pointer i:4 j:8 { pointer i:4 j:4 { dense i:8 j:8 { place x: f32 } } },
        bitmasked i:100 { place m: f64 },
        dense i:10 { dynamic j:1000 chunk=8 { place d: i32 } },
        place sum: f32,
        hash i:65536 j:65536 { place h: i32 }
    }
    kernel @k() -> u1 {
        task range { lo: i32 = const 0  hi: i32 = const 100  yield [lo, hi, lo, hi] } {
            each (i: i32, j: i32) {
                root: cell<tree0.S0> = root tree0
                c1: container<tree0.S1> = child tree0.S1, root
                k1: i64 = linearize tree0.S1, [i, j]
                cell1: cell<tree0.S1> = obtain tree0.S1, c1, k1
                c2: container<tree0.S2> = child tree0.S2, cell1
                cell2: cell<tree0.S2> = obtain tree0.S2, c2, j
                active: u1 = cell_is_active tree0.S2, c2, i
                c5: container<tree0.S5> = child tree0.S5, root
                cell5: cell<tree0.S5> = obtain tree0.S5, c5, i
                set: u1 = cell_is_active tree0.S5, c5, j
                word: u32 = mask_word tree0.S5, c5, j
                if set { release tree0.S5, c5, i  yield [] } { release tree0.S2, c2, i  yield [] }
                c7: container<tree0.S7> = child tree0.S7, root
                cell7: cell<tree0.S7> = lookup tree0.S7, c7, i
                c8: container<tree0.S8> = child tree0.S8, cell7
                at: i64 = extend tree0.S8, c8
                cell8: cell<tree0.S8> = find tree0.S8, c8, at
                p: ref<i32> = child tree0.S9, cell8
                store p, i
                other: cell<tree0.S8> = obtain tree0.S8, c8, j
                n: i64 = container_length tree0.S8, c8
                if active { release_all tree0.S8, c8  yield [] } { yield [] }
                c11: container<tree0.S11> = child tree0.S11, root
                k11: i64 = linearize tree0.S11, [i, j]
                seen: cell<tree0.S11> = find tree0.S11, c11, k11
                cell11: cell<tree0.S11> = obtain tree0.S11, c11, k11
                h: ref<i32> = child tree0.S12, cell11
                store h, i
                there: u1 = cell_is_active tree0.S11, c11, k11
                next: i64 = next_active tree0.S11, c11, k11
                end: i64 = active_end tree0.S11, c11
                release tree0.S11, c11, next
                list_count tree0.S11, end, next
                part: i64 = cast i
                list_count tree0.S2, part, n
                first: i64 = list_offset tree0.S2, part
                list_put tree0.S2, first, cell2, [i, j]
                print "{}", [j]
                yield []
            }
            yield []
        }
        task range { lo: i64 = const 0  hi: i64 = list_len tree0.S2  yield [lo, hi] } {
            root: cell<tree0.S0> = root tree0
            total: ref<f32> = child tree0.S10, root
            part: ref<f32> = local
            each (at: i64) {
                cell: cell<tree0.S2>, i: i32, j: i32 = list_entry tree0.S2, at
                c3: container<tree0.S3> = child tree0.S3, cell
                lo: i32 = const 0
                hi: i32 = const 8
                one: i32 = const 1
                for lo, hi, one, [] (a: i32) {
                    for lo, hi, one, [] (b: i32) {
                        k: i64 = linearize tree0.S3, [a, b]
                        leaf: cell<tree0.S3> = lookup tree0.S3, c3, k
                        x: ref<f32> = child tree0.S4, leaf
                        value: f32 = load x
                        old: f32 = atomic_add part, value
                        yield []
                    }
                    yield []
                }
                yield []
            }
            value: f32 = load part
            before: f32 = atomic_add total, value
            yield []
        }
        task range { lo: i64 = const 0  hi: i64 = n_recycled tree0.S1  yield [lo, hi] } {
            each (at: i64) {
                cell: cell<tree0.S1> = recycled tree0.S1, at
                c2: container<tree0.S2> = child tree0.S2, cell
                release tree0.S2, c2, at
                wipe tree0.S1, at
                yield []
            }
            yield []
        }
        task range { lo: i64 = const 0  hi: i64 = n_recycled tree0.S8  yield [lo, hi] } {
            each (at: i64) { wipe tree0.S8, at  yield [] }
            yield []
        }
        task range { lo: i64 = const 0  hi: i64 = n_recycled tree0.S11  yield [lo, hi] } {
            each (at: i64) { wipe tree0.S11, at  yield [] }
            yield []
        }
        task serial { yield [] } {
            collect tree0.S1
            collect tree0.S11
            collect tree0.S8
            parts: i64 = const 64
            list_scan tree0.S2, parts
            stale: u1 = list_stale tree0.S2
            return [stale]
        }
        yield []
    }
"#;

/// A kernel with every operation that takes numbers of a type.
fn arithmetic(ty: ScalarType) -> String {
    let unary = UnaryOp::ALL.iter().map(|op| format!("{op} x"));
    let binary = BinaryOp::ALL.iter().map(|op| format!("{op} x, y"));
    let atomic = AtomicOp::ALL.iter().map(|op| format!("{op} p, x"));
    let fits = |inst: &String| {
        let module = parse_module(&over_array(ty, std::slice::from_ref(inst))).unwrap();
        verify(module.kernel().unwrap(), &module.env, Stage::Lowered).is_ok()
    };
    let swap = "atomic_cas p, x, y".to_owned();
    let update = format!("update p (was: {ty}) {{ sum: {ty} = add was, x  yield [sum] }}");
    let changes = atomic.chain([swap, update]);
    let insts: Vec<String> = unary.chain(binary).chain(changes).filter(fits).collect();
    assert!(insts.len() > 20);
    over_array(ty, &insts)
}

/// A kernel that sums what instructions make of the elements of an array.
fn over_array(ty: ScalarType, insts: &[String]) -> String {
    let insts: String = (0..)
        .zip(insts)
        .map(|(k, inst)| format!("r{k}: {ty} = {inst}  s{k}: {ty} = atomic_add p, r{k}\n"))
        .collect();
    format!(
        "kernel @arithmetic(a: array<{ty}, 1>) {{
            task range {{ lo: i32 = const 0  hi: i32 = array_shape a0, 0  yield [lo, hi] }} {{
                each (i: i32) {{
                    p: ref<{ty}> = array_at a0, [i]
                    x: {ty} = load p
                    y: {ty} = random
                    {insts}
                    yield []
                }}
                yield []
            }}
            yield []
        }}"
    )
}

/// NVIDIA's assembler, which comes with the Python packages for development.
fn ptxas() -> PathBuf {
    let python = std::env::var_os("PYO3_PYTHON").map(PathBuf::from);
    let venv = match &python {
        Some(python) => python.parent().and_then(Path::parent),
        None => None,
    };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv");
    let lib = venv.unwrap_or(&repository).join("lib");
    let versions = std::fs::read_dir(&lib).into_iter().flatten().flatten();
    versions
        .map(|dir| dir.path().join("site-packages/nvidia/cuda_nvcc/bin/ptxas"))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("no ptxas in {}; `make setup` installs it", lib.display()))
}

/// What code is made for (`card` in `gpu/src/nvidia.rs`).
const CARDS: [u32; 7] = [70, 75, 80, 86, 89, 90, 100];

/// Lets the assembler take a kernel's code.
fn assemble(name: &str, text: &str) {
    let module = parse_module(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let kernel = module.kernel().unwrap();
    verify(kernel, &module.env, Stage::Lowered).unwrap_or_else(|e| panic!("{name}: {e}"));
    let all = CARDS.map(|sm| (sm, 3)).into_iter();
    for (sm, level) in all.chain([(90, 0)]) {
        let code = compile(&module, &target::nvptx(sm), OptLevel(level), Texts::Code).code;
        let objects = code.objects.into_iter();
        let texts: Vec<String> = objects
            .map(|ptx| String::from_utf8(ptx).expect("PTX is text"))
            .collect();
        for task in &code.tasks {
            let entry = format!(".entry {}(", task.symbol);
            let found = texts.iter().any(|ptx| ptx.contains(&entry));
            assert!(found, "{name}: no {entry}\n{texts:?}");
        }
        for ptx in texts {
            let file = format!("aerogel-{}-{name}-{sm}-{level}.ptx", std::process::id());
            let file = std::env::temp_dir().join(file);
            std::fs::write(&file, &ptx).unwrap();
            let made = Command::new(ptxas())
                .arg(format!("-arch=sm_{sm}"))
                .args(["-o", "/dev/null"])
                .arg(&file)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&made.stderr);
            assert!(made.status.success(), "{name}: {said}\n{ptx}");
            std::fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn ptx_of_kernels() {
    assemble("kernel", KERNEL);
}

#[test]
fn ptx_of_threads() {
    assemble("threads", TILE);
}

#[test]
fn ptx_of_sparse_nodes() {
    assemble("sparse", SPARSE);
}

#[test]
fn ptx_of_arithmetic() {
    use ScalarType::*;
    for ty in [F16, BF16, F32, F64, I16, I32, I64, U8, U16, U32, U64] {
        assemble(&format!("arithmetic_{ty}"), &arithmetic(ty));
    }
}

/// A kernel that reads one tree, writes another, and has a sparse one.
const THREE_TREES: &str = "
    tree0 { dense i:64 { place x: f32 } }
    tree1 { dense i:64 { place y: f32 } }
    tree2 { pointer i:64 { place z: f32 } }
    kernel @k() {
        task range { lo: i32 = const 0  hi: i32 = const 64  yield [lo, hi] } {
            from: cell<tree0.S0> = root tree0
            x: container<tree0.S1> = child tree0.S1, from
            to: cell<tree1.S0> = root tree1
            y: container<tree1.S1> = child tree1.S1, to
            each (i: i32) {
                at: i64 = linearize tree0.S1, [i]
                a: cell<tree0.S1> = lookup tree0.S1, x, at
                b: cell<tree1.S1> = lookup tree1.S1, y, at
                p: ref<f32> = child tree0.S2, a
                q: ref<f32> = child tree1.S2, b
                n: f32 = load p
                store q, n
                yield []
            }
            yield []
        }
        yield []
    }";

#[test]
fn which_trees_a_kernel_changes() {
    let module = parse_module(THREE_TREES).unwrap_or_else(|e| panic!("{e}"));
    verify(module.kernel().unwrap(), &module.env, Stage::Lowered).unwrap();
    let code = compile(&module, &target::nvptx(80), OptLevel(3), Texts::Nothing).code;
    // Of a sparse tree lists may be made.
    assert_eq!(code.changes, [false, true, true]);
}

/// A kernel whose threads turn a tile around, and add up over a warp.
const TILE: &str = "
    kernel @k(a: array<f32, 1>, n: i32) {
        task range block=64 { lo: i32 = const 0  hi: i32 = arg a1  yield [lo, hi] } {
            each (i: i32) {
                tile: ref<vec<64, f32>> = shared
                thread: i32 = thread_in_block []
                last: i32 = const 63
                other: i32 = sub last, thread
                from: ref<f32> = array_at a0, [i]
                n: f32 = load from
                own: ref<f32> = elem_ref tile, [thread]
                store own, n
                block_sync []
                theirs: ref<f32> = elem_ref tile, [other]
                m: f32 = load theirs
                all: u32 = active_mask []
                one: i32 = const 1
                next: f32 = shuffle_down [all, m, one]
                same: u1 = eq m, next
                together: u1 = vote_all [all, same]
                whole: f32 = select together, m, next
                store from, whole
                yield []
            }
            yield []
        }
        yield []
    }";

#[test]
fn what_threads_share_lies_in_shared_memory() {
    let module = parse_module(TILE).unwrap_or_else(|e| panic!("{e}"));
    verify(module.kernel().unwrap(), &module.env, Stage::Lowered).unwrap();
    let text = print_module(&module);
    let again = parse_module(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
    assert_eq!(print_module(&again), text);
    for sm in CARDS {
        let compiled = compile(&module, &target::nvptx(sm), OptLevel(3), Texts::Nothing);
        let task = &compiled.code.tasks[0];
        assert_eq!((task.block, task.in_blocks), (Some(64), true));
        let ptx = String::from_utf8(compiled.code.objects[0].clone()).unwrap();
        for wanted in [
            ".shared .align 16 .b8",
            "st.shared",
            "ld.shared",
            "shfl.sync.down.b32",
            "vote.sync.all.pred",
        ] {
            assert!(ptx.contains(wanted), "no `{wanted}` for sm_{sm} in {ptx}");
        }
        let barriers = ptx.matches("bar.sync").count() + ptx.matches("barrier.sync").count();
        assert_eq!(barriers, 1, "{ptx}");
        // Threads whose launch has failed meanwhile leave together, or stay: nobody reads what others have not written.
        assert_eq!(ptx.matches("red.and.pred").count(), 1, "{ptx}");
    }
}
