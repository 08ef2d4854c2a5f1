//! The steps of functions that are traced: done again with what later ones teach.

use aerogel_base::{Scalar, ScalarType};
use aerogel_tensor::interp::run;
use aerogel_tensor::ir::Array;
use aerogel_tensor::ir::Place;
use aerogel_tensor::record::trace::{Naming, State, Trace, Value};
use aerogel_tensor::record::{Item, Key, Mode, RecordError, Recorded};
use aerogel_tensor::verify;

fn ints(shape: &[usize], data: &[i32]) -> Array {
    Array {
        ty: ScalarType::I32,
        shape: shape.to_vec(),
        data: data.iter().map(|&x| Scalar::i32(x)).collect(),
    }
}

/// A function that is traced, as Python does it.
#[derive(Default)]
struct Function(Trace);

impl Function {
    fn step<R>(
        &mut self,
        step: impl Fn(&mut State) -> Recorded<R> + Send + Sync + 'static,
    ) -> Recorded<R> {
        self.0.step(Place::NONE, step)
    }

    fn input(&mut self, rank: usize) -> Value {
        let made = self.step(move |s| {
            let input = s.r.program.input("x", ScalarType::I32, &vec![None; rank]);
            let value = s.value(input);
            s.made(value)
        });
        made.unwrap()
    }

    fn number(&mut self, n: i32) -> Value {
        let made = self.step(move |s| {
            let number = s.r.full(&[], Scalar::i32(n));
            let value = s.value(number);
            s.made(value)
        });
        made.unwrap()
    }

    fn binary(&mut self, op: &'static str, a: Value, b: Value) -> Recorded<Value> {
        self.step(move |s| {
            let all = s.buffers(&[a, b])?;
            let made = s.r.binary(op, all[0], all[1])?;
            let value = s.value(made);
            s.made(value)
        })
    }

    fn set(&mut self, target: Value, value: Value) {
        self.step(move |s| s.set(target, value)).unwrap();
    }

    fn begin_loop(&mut self, n: i32) -> Value {
        let [first, last] = [0, n].map(|n| self.number(n));
        let made = self.step(move |s| s.begin_loop(first, last, 1, Place::NONE));
        made.unwrap()
    }

    fn begin_branch(&mut self, condition: Value) {
        let begun = self.step(move |s| s.begin_branch(condition, Place::NONE));
        begun.unwrap();
    }

    fn leave_loop(&mut self) {
        self.step(|s| s.leave_loop(false)).unwrap();
    }

    fn end_block(&mut self) {
        self.step(State::end_block).unwrap();
    }

    fn results(mut self, results: &[Value], inputs: &[Array]) -> Vec<Array> {
        self.0.settle().unwrap();
        let state = &mut self.0.state;
        let mut out = Vec::new();
        for &result in results {
            let buffer = state.buffer(result).unwrap();
            out.push(state.own(buffer).unwrap());
        }
        state.r.program.results = out;
        verify(&state.r.program).unwrap();
        run(&state.r.program, &mut inputs.to_vec()).unwrap()
    }
}

#[test]
fn a_value_that_no_block_changes_is_no_memory() {
    let mut f = Function::default();
    let x = f.input(1);
    let y = f.binary("add", x, x).unwrap();
    f.set(y, x);
    f.0.settle().unwrap();
    insta::assert_snapshot!(f.0.state.r.program, @r#"
    in b0 "x": i32[?]
    tmp b1 "t1": i32[b0:0]
    for [b0:0] {
      %0 = b0[i0]
      b1[i0] = add(%0, %0)
    }
    "#);
    assert_eq!(
        f.results(&[y], &[ints(&[2], &[1, 2])]),
        [ints(&[2], &[1, 2])]
    );
}

#[test]
fn a_number_that_a_loop_sets_at_points_is_one_for_each() {
    let mut f = Function::default();
    let (x, n, one) = (f.input(1), f.number(0), f.number(1));
    let k = f.begin_loop(4);
    let condition = f.binary("gt", x, k).unwrap();
    f.begin_branch(condition);
    let more = f.binary("add", n, one).unwrap();
    f.set(n, more);
    f.end_block();
    f.end_block();
    f.0.settle().unwrap();
    insta::assert_snapshot!(f.0.state.r.program, @r#"
    var x0: i32
    in b0 "x": i32[?]
    tmp b1 "t1": i32[]
    tmp b2 "t2": i32[b0:0]
    tmp b3 "t3": i32[]
    tmp b4 "t4": i32[]
    tmp b5 "t5": i32[]
    tmp b6 "t6": i32[]
    tmp b7 "t7": u1[b0:0]
    tmp b8 "t8": i32[b0:0]
    for [] {
      b1[] = i32(0)
    }
    for [b0:0] {
      b2[i0] = b1[]
    }
    for [] {
      b3[] = i32(1)
    }
    for [] {
      b4[] = i32(0)
    }
    for [] {
      b5[] = i32(4)
    }
    loop x0 in b4[], b5[], 1 {
      for [] {
        b6[] = x0
      }
      for [b0:0] {
        b7[i0] = gt(b0[i0], b6[])
      }
      for [b0:0] {
        b8[i0] = add(b2[i0], b3[])
      }
      for [b0:0] {
        b2[i0] = select(b7[i0], b8[i0], b2[i0])
      }
    }
    "#);
    let x = ints(&[3], &[0, 2, 9]);
    assert_eq!(f.results(&[n], &[x]), [ints(&[3], &[0, 2, 4])]);
}

#[test]
fn points_leave_a_loop_one_by_one() {
    let mut f = Function::default();
    let (x, n, one) = (f.input(1), f.number(0), f.number(1));
    let k = f.begin_loop(10);
    // What comes before the step that teaches of the mask obeys it, too.
    let more = f.binary("add", n, one).unwrap();
    f.set(n, more);
    let condition = f.binary("le", x, k).unwrap();
    f.begin_branch(condition);
    f.leave_loop();
    f.end_block();
    f.end_block();
    let x = ints(&[3], &[0, 2, 99]);
    assert_eq!(f.results(&[n], &[x]), [ints(&[3], &[1, 3, 10])]);
}

#[test]
fn a_branch_of_the_host_becomes_one_of_points_where_its_condition_grows() {
    let mut f = Function::default();
    let (x, a, b, one) = (f.input(1), f.number(0), f.number(0), f.number(1));
    f.begin_loop(3);
    // One number the first time, and one for each point from then on.
    let condition = f.binary("gt", a, one).unwrap();
    f.begin_branch(condition);
    let more = f.binary("add", b, one).unwrap();
    f.set(b, more);
    f.end_block();
    let sum = f.binary("add", a, x).unwrap();
    f.set(a, sum);
    f.end_block();
    let x = ints(&[3], &[0, 1, 2]);
    assert_eq!(
        f.results(&[a, b], &[x]),
        [ints(&[3], &[0, 3, 6]), ints(&[3], &[0, 1, 2])]
    );
}

#[test]
fn what_is_made_of_larger_values_is_larger() {
    let mut f = Function::default();
    let (x, y, a, one) = (f.input(1), f.input(2), f.number(1), f.number(1));
    f.begin_loop(2);
    let b = f.binary("add", a, one).unwrap();
    f.begin_loop(2);
    let sum = f.binary("add", b, x).unwrap();
    f.set(b, sum);
    let product = f.binary("mul", b, y).unwrap();
    f.set(a, product);
    f.end_block();
    f.end_block();
    let inputs = [ints(&[2], &[1, 2]), ints(&[2, 2], &[1, 2, 3, 4])];
    // b: 2 + 2x; a: y b; then b: a + 1 + 2x.
    let x = [1, 2, 1, 2];
    let y = [1, 2, 3, 4];
    let expected: Vec<i32> = (0..4)
        .map(|k| {
            let a = y[k] * (2 + 2 * x[k]);
            y[k] * (a + 1 + 2 * x[k])
        })
        .collect();
    assert_eq!(f.results(&[a], &inputs), [ints(&[2, 2], &expected)]);
}

#[test]
fn stores_make_memory_before_the_block() {
    let mut f = Function::default();
    let (x, n) = (f.input(1), f.number(7));
    let target = f.binary("mul", x, n).unwrap();
    let before = f.binary("add", target, n).unwrap();
    let k = f.begin_loop(2);
    let named = Naming::Indices { from_end: true };
    let key = Key {
        items: vec![Item::Places(k, false)],
        together: true,
    };
    f.step(move |s| s.store(target, &key, n, None, Mode::Zero, named))
        .unwrap();
    f.end_block();
    let x = ints(&[3], &[1, 2, 3]);
    assert_eq!(
        f.results(&[target, before], &[x]),
        [ints(&[3], &[7, 7, 21]), ints(&[3], &[14, 21, 28])]
    );
}

#[test]
fn what_a_block_makes_stays_in_it() {
    let mut f = Function::default();
    let (x, one) = (f.input(1), f.number(1));
    f.begin_loop(2);
    let y = f.binary("add", x, one).unwrap();
    f.begin_loop(2);
    f.binary("add", y, one).unwrap();
    f.end_block();
    f.end_block();
    let leaked = f.binary("add", x, y);
    assert!(matches!(leaked, Err(RecordError::Ended(_))));
}

#[test]
fn memory_that_is_given_out_stays() {
    let mut f = Function::default();
    let (x, one) = (f.input(1), f.number(1));
    let condition = f.binary("gt", one, one).unwrap();
    f.begin_branch(condition);
    let y = f.binary("add", x, one).unwrap();
    let out = f.step(move |s| s.block_output(y, None)).unwrap();
    f.set(out, y);
    f.end_block();
    let x = ints(&[2], &[1, 2]);
    assert_eq!(f.results(&[out], &[x]), [ints(&[2], &[0, 0])]);
}

#[test]
fn a_shape_that_was_seen_does_not_change() {
    let mut f = Function::default();
    let (x, n) = (f.input(1), f.number(0));
    f.step(move |s| s.expect_shape(n, &[])).unwrap();
    f.begin_loop(2);
    let sum = f.binary("add", n, x).unwrap();
    f.set(n, sum);
    f.end_block();
    let refused = f.0.settle().unwrap_err();
    let text = refused.error.to_string();
    assert!(text.contains("reads the shape of a tensor"), "{text}");
}

#[test]
fn a_step_that_is_refused_leaves_nothing() {
    let mut f = Function::default();
    let (x, y, n) = (f.input(1), f.input(2), f.number(0));
    let wrong = f.step(move |s| {
        let x = s.buffer(x)?;
        s.r.matmul(x, x)?;
        s.r.permute(x, &[3])
    });
    assert!(wrong.is_err());
    f.begin_loop(2);
    let sum = f.binary("add", n, y).unwrap();
    f.set(n, sum);
    f.end_block();
    let inputs = [ints(&[1], &[5]), ints(&[1, 2], &[1, 2])];
    assert_eq!(f.results(&[n], &inputs), [ints(&[1, 2], &[2, 4])]);
}
