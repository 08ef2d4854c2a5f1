//! Programs on the machine: what they compute, and what it does not let pass.

use aerogel_ptx::{Counts, Fault, FaultKind, Launched, Machine, Options};

/// A kernel `k(x)` whose body begins with `%rd1 = x`, `%r1 = %tid.x` and `%rd2 = x + 4 * thread of the launch`.
fn kernel(declared: &str, body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n{declared}
        .visible .entry k(.param .u64 x) {{
            .reg .pred %p<16>;
            .reg .b16 %h<16>;
            .reg .b32 %r<64>;
            .reg .b64 %rd<32>;
            ld.param.b64 %rd1, [x];
            mov.u32 %r1, %tid.x;
            mov.u32 %r2, %ntid.x;
            mov.u32 %r3, %ctaid.x;
            mad.lo.s32 %r4, %r3, %r2, %r1;
            mul.wide.u32 %rd3, %r4, 4;
            add.s64 %rd2, %rd1, %rd3;
            {body}
            ret;
        }}"
    )
}

struct Run {
    outcome: Result<Launched, Fault>,
    words: Vec<u32>,
}

fn run_with(options: Options, text: &str, blocks: u32, threads: u32, words: &[u32]) -> Run {
    let mut machine = Machine::new(options);
    let module = machine.load(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let x = machine.allocate(bytes.len() as u64).expect("memory");
    machine.write(x, &bytes).expect("inside");
    let params = [x.to_le_bytes().to_vec()];
    let outcome = machine.launch(&module, "k", [blocks, 1, 1], [threads, 1, 1], 0, &params);
    let mut after = vec![0; bytes.len()];
    machine.read(x, &mut after).expect("inside");
    let words = after
        .chunks_exact(4)
        .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    Run { outcome, words }
}

fn strict() -> Options {
    Options {
        races: true,
        memory: 1 << 20,
        instructions: 1 << 20,
        ..Options::default()
    }
}

fn run(declared: &str, body: &str, blocks: u32, threads: u32, words: &[u32]) -> Vec<u32> {
    let run = run_with(strict(), &kernel(declared, body), blocks, threads, words);
    run.outcome.unwrap_or_else(|e| panic!("{e}"));
    run.words
}

fn fault(declared: &str, body: &str, blocks: u32, threads: u32, words: &[u32]) -> Fault {
    let run = run_with(strict(), &kernel(declared, body), blocks, threads, words);
    run.outcome.expect_err("it must not pass")
}

#[test]
fn lanes_go_different_ways_and_meet() {
    // The number of steps of Collatz's sequence.
    let body = "
        ld.global.b32 %r10, [%rd2];
        mov.b32 %r11, 0;
    $head:
        setp.le.u32 %p1, %r10, 1;
        @%p1 bra $done;
        and.b32 %r12, %r10, 1;
        setp.eq.b32 %p2, %r12, 0;
        @%p2 bra $even;
        mad.lo.s32 %r10, %r10, 3, 1;
        bra.uni $next;
    $even:
        shr.u32 %r10, %r10, 1;
    $next:
        add.s32 %r11, %r11, 1;
        bra.uni $head;
    $done:
        activemask.b32 %r13;
        st.global.b32 [%rd2], %r11;";
    let n: Vec<u32> = (1..=100).collect();
    let steps = |mut n: u32| {
        let mut k = 0;
        while n > 1 {
            n = if n.is_multiple_of(2) {
                n / 2
            } else {
                3 * n + 1
            };
            k += 1;
        }
        k
    };
    let want: Vec<u32> = n.iter().map(|&n| steps(n)).collect();
    assert_eq!(run("", body, 2, 50, &n), want);
}

#[test]
fn blocks_reduce_in_shared_memory() {
    let body = "
        mul.wide.u32 %rd4, %r1, 4;
        mov.b64 %rd5, buffer;
        add.s64 %rd6, %rd5, %rd4;
        ld.global.b32 %r10, [%rd2];
        st.shared.b32 [%rd6], %r10;
        mov.b32 %r11, 64;
    $head:
        bar.sync 0;
        shr.u32 %r11, %r11, 1;
        setp.eq.b32 %p1, %r11, 0;
        @%p1 bra $done;
        setp.ge.u32 %p2, %r1, %r11;
        @%p2 bra $head;
        mul.wide.u32 %rd7, %r11, 4;
        add.s64 %rd8, %rd6, %rd7;
        ld.shared.b32 %r12, [%rd8];
        ld.shared.b32 %r13, [%rd6];
        add.s32 %r14, %r12, %r13;
        st.shared.b32 [%rd6], %r14;
        bra.uni $head;
    $done:
        setp.ne.b32 %p3, %r1, 0;
        @%p3 bra $end;
        ld.shared.b32 %r15, [buffer];
        mul.wide.u32 %rd9, %r3, 4;
        add.s64 %rd10, %rd1, %rd9;
        st.global.b32 [%rd10+1024], %r15;
    $end:";
    let mut words: Vec<u32> = (0..256).collect();
    words.extend([0; 4]);
    let found = run(".shared .align 4 .b8 buffer[256];", body, 4, 64, &words);
    let want: Vec<u32> = (0..4).map(|b| (64 * b..64 * b + 64).sum()).collect();
    assert_eq!(found[256..], want);
}

#[test]
fn warps_reduce_by_shuffles() {
    let mut body = "ld.global.b32 %r10, [%rd2];\n".to_owned();
    for by in [16, 8, 4, 2, 1] {
        body += &format!(
            "shfl.sync.bfly.b32 %r11|%p1, %r10, {by}, 31, -1;\nadd.s32 %r10, %r10, %r11;\n"
        );
    }
    body += "
        setp.lt.u32 %p2, %r1, 7;
        vote.sync.ballot.b32 %r12, %p2, -1;
        popc.b32 %r13, %r12;
        redux.sync.max.u32 %r14, %r1, -1;
        shfl.sync.up.b32 %r15|%p3, %r1, 1, 0, -1;
        shfl.sync.down.b32 %r16, %r1, 3, 31, -1;
        add.s32 %r10, %r10, %r13;
        add.s32 %r10, %r10, %r14;
        mad.lo.s32 %r17, %r15, 1000, %r16;
        selp.b32 %r10, %r10, %r17, %p2;
        st.global.b32 [%rd2], %r10;";
    let words: Vec<u32> = (0..32).map(|k| k * k).collect();
    let found = run("", &body, 1, 32, &words);
    let sum: u32 = words.iter().sum();
    for (k, found) in found.into_iter().enumerate() {
        let (k, up) = (k as u32, (k as u32).saturating_sub(1));
        let down = if k + 3 < 32 { k + 3 } else { k };
        assert_eq!(
            found,
            if k < 7 {
                sum + 7 + 31
            } else {
                up * 1000 + down
            }
        );
    }
}

#[test]
fn small_numbers_keep_their_sign_in_wider_registers() {
    // `n / -4` of a byte, as LLVM writes it: the sign lies above the byte.
    let body = "
        add.s32 %r10, %r1, -4;
        cvt.s8.s32 %h1, %r10;
        shr.u16 %h2, %h1, 13;
        and.b16 %h3, %h2, 3;
        cvt.u16.u32 %h4, %r10;
        add.s16 %h5, %h4, %h3;
        cvt.s16.s8 %h6, %h5;
        shr.s16 %h7, %h6, 2;
        neg.s16 %h8, %h7;
        cvt.s32.s16 %r11, %h8;
        st.global.b32 [%rd2], %r11;";
    let found = run("", body, 1, 12, &[0; 12]);
    let want: Vec<u32> = (-4..8).map(|n: i32| (n / -4) as u32).collect();
    assert_eq!(found, want);
}

#[test]
fn atomic_operations() {
    let body = "
        atom.add.u32 %r10, [%rd1], 1;
        red.max.u32 [%rd1+4], %r4;
        atom.global.cas.b32 %r11, [%rd1+8], 7, %r4;
        cvt.rn.f32.u32 %r12, %r1;
        red.add.f32 [%rd1+12], %r12;
        atom.inc.u32 %r13, [%rd1+16], 9;
        atom.exch.b64 %rd4, [%rd1+24], %rd3;";
    let found = run("", body, 8, 64, &[0, 0, 8, 0, 0, 0, 0, 0]);
    assert_eq!(found[..3], [512, 511, 8]);
    assert_eq!(f32::from_bits(found[3]), 8.0 * 63.0 * 32.0);
    assert_eq!(found[4], 512 % 10);
}

#[test]
fn functions_with_local_memory_call_themselves() {
    let declared = "
        .func (.param .b32 out) fib(.param .b32 n) {
            .local .align 8 .b8 depot[8];
            .reg .b64 %sp;
            .reg .pred %p<2>;
            .reg .b32 %r<8>;
            mov.b64 %sp, depot;
            cvta.local.u64 %sp, %sp;
            ld.param.b32 %r1, [n];
            st.b32 [%sp], %r1;
            setp.lt.u32 %p1, %r1, 2;
            @%p1 bra $small;
            add.s32 %r2, %r1, -1;
            {
                .param .b32 param0;
                .param .b32 retval0;
                st.param.b32 [param0], %r2;
                call.uni (retval0), fib, (param0);
                ld.param.b32 %r3, [retval0];
            }
            ld.b32 %r4, [%sp];
            add.s32 %r5, %r4, -2;
            {
                .param .b32 param0;
                .param .b32 retval0;
                st.param.b32 [param0], %r5;
                call.uni (retval0), fib, (param0);
                ld.param.b32 %r6, [retval0];
            }
            add.s32 %r7, %r3, %r6;
            st.param.b32 [out], %r7;
            ret;
        $small:
            st.param.b32 [out], %r1;
            ret;
        }";
    let body = "
        ld.global.b32 %r10, [%rd2];
        {
            .param .b32 param0;
            .param .b32 retval0;
            st.param.b32 [param0], %r10;
            call.uni (retval0), fib, (param0);
            ld.param.b32 %r11, [retval0];
        }
        st.global.b32 [%rd2], %r11;";
    let found = run(declared, body, 1, 12, &(0..12).collect::<Vec<u32>>());
    assert_eq!(found, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]);
}

#[test]
fn memory_of_a_thread_has_no_atomic_operations() {
    for atomic in [
        "atom.local.or.b32 %r11, [%rd4], 2;",
        "cvta.local.u64 %rd4, %rd4; atom.or.b32 %r11, [%rd4], 2;",
        "cvta.local.u64 %rd4, %rd4; red.add.u32 [%rd4], 2;",
    ] {
        let body = format!(
            ".local .align 4 .b8 word[4];
            mov.b64 %rd4, word;
            mov.b32 %r10, 5;
            st.local.b32 [%rd4], %r10;
            {atomic}"
        );
        assert_eq!(fault("", &body, 1, 1, &[0]).kind, FaultKind::Atomic);
    }
}

#[test]
fn what_nobody_has_written_may_be_loaded_but_decides_nothing() {
    let loaded = |then: &str| {
        format!(
            ".local .align 4 .b8 word[4];
            mov.b64 %rd4, word;
            ld.local.b32 %r10, [%rd4];
            {then}"
        )
    };
    let of = |then: &str| fault("", &loaded(then), 1, 1, &[0]).kind;
    let fine = |then: &str| run("", &loaded(then), 1, 1, &[0])[0];
    let never = FaultKind::NeverWritten;
    assert_eq!(of("st.global.b32 [%rd2], %r10;"), never);
    assert_eq!(
        of("add.s32 %r11, %r10, %r1; st.global.b32 [%rd2], %r11;"),
        never
    );
    assert_eq!(
        of("setp.eq.b32 %p1, %r10, 0; @%p1 bra $end; st.global.b32 [%rd2], 1; $end:"),
        never
    );
    assert_eq!(
        of("cvt.u64.u32 %rd5, %r10; add.s64 %rd5, %rd5, %rd1; st.global.b32 [%rd5], 1;"),
        never
    );
    assert_eq!(of("atom.global.add.u32 %r11, [%rd2], %r10;"), never);
    // What was stored of it holds nothing either.
    let again = "st.local.b32 [%rd4], %r10; ld.local.b32 %r11, [%rd4]; st.global.b32 [%rd2], %r11;";
    assert_eq!(of(again), never);
    // It is overwritten, not chosen, or masked.
    assert_eq!(fine("mov.b32 %r10, 3; st.global.b32 [%rd2], %r10;"), 3);
    let chosen =
        "setp.eq.b32 %p1, %r1, %r1; selp.b32 %r11, 4, %r10, %p1; st.global.b32 [%rd2], %r11;";
    assert_eq!(fine(chosen), 4);
    let masked = "st.local.b8 [%rd4], %r1; ld.local.b32 %r10, [%rd4]; add.s32 %r11, %r1, 255;
        and.b32 %r10, %r10, %r11; or.b32 %r10, %r10, 6; st.global.b32 [%rd2], %r10;";
    assert_eq!(fine(masked), 6);
    let rest = "st.local.b8 [%rd4+1], %r1; ld.local.b32 %r10, [%rd4]; shr.u32 %r10, %r10, 8;
        and.b32 %r10, %r10, 255; st.global.b32 [%rd2], %r10;";
    assert_eq!(fine(rest), 0);
}

#[test]
fn tables_of_branches_vectors_and_pairs() {
    let body = "
        rem.u32 %r10, %r1, 3;
    $table: .branchtargets $a, $b, $c;
        brx.idx %r10, $table;
    $a:
        mov.b32 %r11, 10;
        bra.uni $end;
    $b:
        mov.b32 %r11, 20;
        bra.uni $end;
    $c:
        mov.b32 %r11, 30;
    $end:
        mov.b64 %rd4, {%r11, %r1};
        mov.b64 {%r12, _}, %rd4;
        shr.u64 %rd5, %rd4, 32;
        cvt.u32.u64 %r13, %rd5;
        add.s32 %r14, %r12, %r13;
        and.b32 %r15, %r1, 1;
        setp.ne.b32 %p1, %r15, 0;
        @!%p1 st.global.v2.b32 [%rd2], {%r14, %r14};";
    assert_eq!(
        run("", body, 1, 8, &[0; 8]),
        [10, 10, 32, 32, 24, 24, 16, 16]
    );
}

#[test]
fn what_is_printed_and_constants() {
    let declared = "
        .const .align 4 .b8 table[8] = {1, 0, 0, 0, 5, 0, 0, 0};
        .global .align 1 .b8 text[14] = {116, 32, 37, 100, 32, 61, 32, 37, 46, 50, 102, 33, 10, 0};
        .func (.param .b32 out) vprintf(.param .b64 f, .param .b64 v);";
    let body = "
        .local .align 8 .b8 values[16];
        mov.b64 %rd4, values;
        cvta.local.u64 %rd5, %rd4;
        ld.const.b32 %r10, [table+4];
        st.local.b32 [%rd4], %r10;
        mov.b64 %rd6, 0d3FF4000000000000;
        st.local.b64 [%rd4+8], %rd6;
        mov.b64 %rd7, text;
        cvta.global.u64 %rd8, %rd7;
        {
            .param .b64 param0;
            .param .b64 param1;
            .param .b32 retval0;
            st.param.b64 [param0], %rd8;
            st.param.b64 [param1], %rd5;
            call.uni (retval0), vprintf, (param0, param1);
        }";
    let run = run_with(strict(), &kernel(declared, body), 2, 1, &[0; 2]);
    let launched = run.outcome.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(launched.printed, "t 5 = 1.25!\nt 5 = 1.25!\n");
}

#[test]
fn memory_is_checked() {
    let load = |offset: &str| format!("ld.global.b32 %r10, [%rd1{offset}];");
    let of = |body: &str| fault("", body, 1, 1, &[0; 4]);
    let found = of(&load("+16"));
    assert_eq!(found.kind, FaultKind::OutOfBounds);
    assert_eq!(
        found.message.split(" are ").nth(1),
        Some("16 bytes behind the beginning of an allocation of 16")
    );
    assert_eq!(found.instruction, "ld.global.b32 %r10, [%rd1+16];");
    assert_eq!(of(&load("+2")).kind, FaultKind::Misaligned);
    assert_eq!(of("ld.global.b32 %r10, [8];").kind, FaultKind::OutOfBounds);
    assert_eq!(
        of("st.global.v4.b32 [%rd1+8], {%r1, %r1, %r1, %r1};").kind,
        FaultKind::Misaligned
    );
    let shared = ".shared .align 4 .b8 s[16];";
    let never = fault(shared, "ld.shared.b32 %r10, [s+4];", 1, 1, &[0]);
    assert_eq!(never.kind, FaultKind::NeverWritten);
    let behind = fault(shared, "st.shared.b32 [s+16], %r1;", 1, 1, &[0]);
    assert_eq!(behind.kind, FaultKind::OutOfBounds);
    let constant = fault(
        ".const .align 4 .b8 c[4] = {1, 2, 3, 4};",
        "mov.b64 %rd4, c; st.global.b32 [%rd4], %r1;",
        1,
        1,
        &[0],
    );
    assert_eq!(constant.kind, FaultKind::ReadOnly);
}

#[test]
fn what_is_given_back_is_gone() {
    let mut machine = Machine::new(strict());
    let module = machine
        .load(&kernel("", "st.global.b32 [%rd2], %r1;"))
        .expect("it is PTX");
    let x = machine.allocate(64).expect("memory");
    machine.free(x).expect("it is allocated");
    let params = [x.to_le_bytes().to_vec()];
    let found = machine.launch(&module, "k", [1, 1, 1], [4, 1, 1], 0, &params);
    assert_eq!(found.expect_err("it is gone").kind, FaultKind::Freed);
    assert_eq!(machine.free(x).expect_err("twice").kind, FaultKind::Freed);
    assert_eq!(machine.allocate(2 << 20), None);
    assert_eq!(machine.used(), 0);
}

#[test]
fn races_are_found() {
    let race = fault("", "st.global.b32 [%rd1], %r4;", 2, 1, &[0]);
    assert_eq!(race.kind, FaultKind::Race);
    // The same number, atomic operations, and a barrier in between are none.
    run("", "st.global.b32 [%rd1], 5;", 2, 32, &[0]);
    run("", "atom.exch.b32 %r10, [%rd1], %r4;", 2, 32, &[0]);
    let shared = ".shared .align 4 .b8 s[256];";
    let exchange = |between: &str| {
        format!(
            "mov.b64 %rd4, s; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;
            st.shared.b32 [%rd6], %r1; {between}
            xor.b32 %r10, %r1, 63; mul.wide.u32 %rd7, %r10, 4; add.s64 %rd8, %rd4, %rd7;
            ld.shared.b32 %r11, [%rd8]; st.global.b32 [%rd2], %r11;"
        )
    };
    let found = run(shared, &exchange("bar.sync 0;"), 1, 64, &[0; 64]);
    assert_eq!(found[0], 63);
    let race = fault(shared, &exchange(""), 1, 64, &[0; 64]);
    // The second warp has written nothing yet.
    assert!(matches!(
        race.kind,
        FaultKind::Race | FaultKind::NeverWritten
    ));
}

#[test]
fn constants_that_are_written_are_found() {
    let read = "ld.global.nc.b32 %r10, [%rd1];";
    let write = "st.global.b32 [%rd1], 5;";
    for both in [format!("{read} {write}"), format!("{write} {read}")] {
        let found = fault("", &both, 1, 1, &[0]);
        assert_eq!(found.kind, FaultKind::Race);
        assert!(found.message.contains("read as a constant"), "{found:?}");
    }
    // Other bytes of the same word, and other launches.
    run(
        "",
        &format!("{read} st.global.b32 [%rd1 + 4], 5;"),
        1,
        1,
        &[0; 2],
    );
    run("", read, 1, 32, &[0]);
}

#[test]
fn numbers_of_vectors_that_nobody_looks_at_may_change() {
    let read = "ld.global.nc.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];";
    let write = "st.global.b32 [%rd1 + 12], %r11;";
    let after = run("", &format!("{read} {write}"), 1, 1, &[1, 2, 3, 4]);
    assert_eq!(after, [1, 2, 3, 2]);
    let found = fault(
        "",
        &format!("{read} st.global.b32 [%rd1 + 12], %r13; st.global.b32 [%rd1 + 12], %r10;"),
        1,
        1,
        &[1, 2, 3, 4],
    );
    assert_eq!(found.kind, FaultKind::Race);
    // They have to be there.
    let beyond =
        "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1 + 16]; st.global.b32 [%rd1], %r10;";
    assert_eq!(
        fault("", beyond, 1, 1, &[0; 6]).kind,
        FaultKind::OutOfBounds
    );
}

#[test]
fn barriers_and_lanes_that_do_not_come() {
    // Threads that have ended are not waited for, but those that wait elsewhere are.
    let half = "setp.lt.u32 %p1, %r1, 16; @%p1 bra $end; bar.sync 0; $end:";
    run("", half, 1, 32, &[0; 32]);
    let half = "setp.lt.u32 %p1, %r1, 16; @%p1 bra $other; bar.sync 0; bra $end; $other: bar.sync 1; $end:";
    let found = fault("", half, 1, 32, &[0; 32]);
    assert_eq!(found.kind, FaultKind::Barrier);
    assert_eq!(
        found.message,
        "16 of 32 threads wait at barrier 1, which the others do not reach"
    );
    let gone =
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra $end; shfl.sync.idx.b32 %r10, %r1, 0, 31, -1; $end:";
    assert_eq!(fault("", gone, 1, 32, &[0; 32]).kind, FaultKind::Lanes);
    // They come later.
    let later = "
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra $there;
        add.s32 %r11, %r1, 100;
        bra.uni $together;
    $there:
        add.s32 %r11, %r1, 200;
    $together:
        shfl.sync.idx.b32 %r10, %r11, 3, 31, -1;
        st.global.b32 [%rd2], %r10;";
    assert_eq!(run("", later, 1, 32, &[0; 32]), [203; 32]);
}

#[test]
fn what_never_ends_does() {
    let found = fault("", "$head: bra.uni $head;", 1, 32, &[0]);
    assert_eq!(found.kind, FaultKind::Endless);
    assert_eq!(fault("", "trap;", 1, 1, &[0]).kind, FaultKind::Trap);
}

#[test]
fn launches_that_cannot_be() {
    let mut machine = Machine::new(strict());
    let text = kernel(".shared .align 4 .b8 s[1024];", "mov.b64 %rd3, s;");
    let module = machine.load(&text).expect("it is PTX");
    let mut message = |name: &str, blocks, threads, shared, params: &[Vec<u8>]| {
        let found = machine.launch(
            &module,
            name,
            [blocks, 1, 1],
            [threads, 1, 1],
            shared,
            params,
        );
        let found = found.expect_err("it cannot be");
        assert_eq!(found.kind, FaultKind::Launch);
        found.message
    };
    let params = [vec![0; 8]];
    assert_eq!(
        message("none", 1, 1, 0, &params),
        "there is no kernel `none`"
    );
    assert_eq!(
        message("k", 1, 1025, 0, &params),
        "a block of 1025 threads, where 1 to 1024 are possible"
    );
    assert_eq!(message("k", 0, 1, 0, &params), "a grid without blocks");
    assert_eq!(
        message("k", 1, 1, 48 << 10, &params),
        "50176 bytes of shared memory for a block, where there are 49152"
    );
    assert_eq!(message("k", 1, 1, 0, &[]), "0 parameters where there are 1");
    assert_eq!(
        message("k", 1, 1, 0, &[vec![0; 4]]),
        "a parameter of 8 bytes is given 4"
    );
}

#[test]
fn texts_that_are_no_ptx() {
    let mut machine = Machine::new(strict());
    let mut message = |body: &str| {
        let found = machine.load(&kernel("", body));
        found.err().expect("it is no PTX").message
    };
    assert_eq!(
        message("frobnicate.b32 %r1, %r2;"),
        "`frobnicate` is not known"
    );
    assert_eq!(
        message("add.strange.s32 %r1, %r2, %r3;"),
        "`add.strange.s32` is not known, for its `strange`"
    );
    assert_eq!(message("add.s32 %r1, %r2, %x9;"), "`%x9` is not declared");
    assert_eq!(message("add.s32 %r1, %r2, %r64;"), "`%r64` is not declared");
    assert_eq!(message("bra $nowhere;"), "there is no label `$nowhere`");
    assert_eq!(message("call.uni f, ();"), "there is no function `f`");
    assert_eq!(
        message("ld.global.b32 %r1, [%rd1"),
        "`ret` is not expected here"
    );
}

#[test]
fn counts() {
    let body = "ld.global.b32 %r10, [%rd2]; st.global.b32 [%rd2], %r10;";
    let run = run_with(strict(), &kernel("", body), 1, 64, &[1; 64]);
    let counts = run.outcome.expect("it runs").counts;
    let want = Counts {
        atomics: 0,
        instructions: 20,
        lanes: 640,
        divergent: 0,
        read: 256,
        written: 256,
        sectors: 16,
        conflicts: 0,
    };
    assert_eq!(counts, want);
}

#[test]
fn lanes_that_name_each_other_wait_for_each_other_alone() {
    // Four lanes each, the first of which comes later in the lower half of the warp: the upper half does not wait.
    let body = "
        and.b32 %r10, %r1, 28;
        mov.b32 %r11, 15;
        shl.b32 %r12, %r11, %r10;
        and.b32 %r13, %r1, 3;
        add.s32 %r16, %r10, 100;
        setp.ge.u32 %p2, %r1, 16;
        selp.b32 %r14, %r16, 0, %p2;
        setp.ne.s32 %p1, %r13, 0;
        or.pred %p1, %p1, %p2;
        @%p1 bra $meet;
        bra.uni $late;
    $meet:
        shfl.sync.idx.b32 %r15, %r14, %r10, 31, %r12;
        st.global.b32 [%rd2], %r15;
        bra.uni $end;
    $late:
        add.s32 %r14, %r10, 100;
        bra.uni $meet;
    $end:";
    let found = run("", body, 1, 32, &[0; 32]);
    let expected: Vec<u32> = (0..32).map(|lane| lane / 4 * 4 + 100).collect();
    assert_eq!(found, expected);
    let selfless = "mov.b32 %r10, 1; vote.sync.ballot.b32 %r11, 1, %r10;";
    assert_eq!(fault("", selfless, 1, 2, &[0; 2]).kind, FaultKind::Lanes);
}
