//! One instruction.

use super::names::Name;
use super::operands::address;
use super::words::Parts;
use super::{Parser, Pending, Res};
use crate::code::{Binary, Compare, Join, Kind, Op, Shuffle, Slot, Ternary, Ty, Unary, Vote};
use crate::error::ParseError;
use crate::lex::Token;

impl<'s> Parser<'s> {
    pub(super) fn instruction(&mut self) -> Res<()> {
        let line = self.line();
        let mut guard = None;
        if self.take('@') {
            let not = self.take('!');
            guard = Some((self.destination()?, not));
        }
        let word = self.word()?;
        let (first, mut parts) = Parts::new(word);
        let op = self.operation(first, &mut parts, line)?;
        let unknown = |part: &str| ParseError {
            line,
            message: format!("`{word}` is not known, for its `{part}`"),
        };
        if let Some(part) = parts.left() {
            return Err(unknown(part));
        }
        self.expect(';')?;
        self.push(op, guard, line);
        Ok(())
    }

    fn operation(&mut self, first: &str, parts: &mut Parts<'s>, line: u32) -> Res<Op> {
        if let Some(op) = simple(first) {
            parts.drop_beginning(&["L1", "L2", "L3"]);
            return self.simple(op, parts);
        }
        match first {
            "mov" => self.mov(parts),
            "ld" | "ldu" => self.load(parts),
            "st" => self.store(parts),
            "atom" | "red" => self.atomic(first, parts),
            "cvt" => self.convert(parts),
            "cvta" => self.generic(parts),
            "isspacep" => {
                let space = parts.space();
                let to = self.destination_and()?;
                let x = self.operand(address())?;
                Ok(Op::IsSpace { space, to, x })
            }
            "setp" | "set" => self.compare(first, parts),
            "selp" => {
                let ty = self.ty_of(parts)?;
                let to = self.destination_and()?;
                let (x, y) = (self.operand_and(ty)?, self.operand_and(ty)?);
                let by = self.operand(Ty::PREDICATE)?;
                Ok(Op::Select { ty, to, x, y, by })
            }
            "bfi" => {
                let ty = self.ty_of(parts)?;
                let to = self.destination_and()?;
                let (x, y) = (self.operand_and(ty)?, self.operand_and(ty)?);
                let (at, length) = (self.operand_and(word32())?, self.operand(word32())?);
                Ok(Op::FieldInsert {
                    ty,
                    to,
                    x,
                    y,
                    at,
                    length,
                })
            }
            "bra" => {
                parts.take("uni");
                let label = self.word()?;
                self.branch(vec![label], line);
                Ok(Op::Branch { to: 0 })
            }
            "brx" => {
                parts.drop_all(&["idx", "uni"]);
                let index = self.operand_and(word32())?;
                let name = self.word()?;
                let mut tables = self.tables.iter();
                let found = tables.find(|(table, _)| *table == name);
                let Some(labels) = found.map(|(_, labels)| labels.clone()) else {
                    return Err(self.fail(format!("there is no table `{name}`")));
                };
                self.branch(labels, line);
                Ok(Op::BranchTo {
                    index,
                    table: Vec::new(),
                })
            }
            "call" => self.call(parts),
            "ret" => {
                parts.take("uni");
                Ok(Op::Return)
            }
            "exit" => Ok(Op::Exit),
            "trap" | "brkpt" => Ok(Op::Trap),
            "bar" | "barrier" => self.barrier(parts),
            "membar" | "fence" => {
                parts.drop_beginning(&[
                    "sc", "acq_rel", "acquire", "release", "cta", "gpu", "sys", "gl", "proxy",
                    "alias", "cluster",
                ]);
                Ok(Op::Fence)
            }
            "shfl" => self.shuffle(parts),
            "vote" => self.vote(parts),
            "match" => self.matching(parts),
            "redux" => self.reduce(parts),
            "activemask" => {
                self.ty_of(parts)?;
                let to = self.destination()?;
                Ok(Op::ActiveLanes { to })
            }
            "nanosleep" | "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                *parts = Parts::new("").1;
                while !matches!(self.peek(), Some(Token::Mark(';')) | None) {
                    self.at += 1;
                }
                Ok(Op::Nothing)
            }
            _ => Err(ParseError {
                line,
                message: format!("`{first}` is not known"),
            }),
        }
    }

    fn branch(&mut self, labels: Vec<&'s str>, line: u32) {
        let inst = self.func.code.len();
        self.branches.push(Pending { inst, labels, line });
    }

    fn ty_of(&mut self, parts: &mut Parts<'s>) -> Res<Ty> {
        parts.ty().ok_or_else(|| self.fail("a type is missing"))
    }

    /// Instructions of a result and one, two or three operands of its type.
    fn simple(&mut self, op: Simple, parts: &mut Parts<'s>) -> Res<Op> {
        let mut op = op;
        if let Simple::Two(Binary::Mul) | Simple::Three(Ternary::MulAdd) = op {
            let how = parts.take_of(&[("lo", 0), ("hi", 1), ("wide", 2)]);
            op = match (op, how) {
                (Simple::Two(_), Some(1)) => Simple::Two(Binary::MulHigh),
                (Simple::Two(_), Some(2)) => Simple::Two(Binary::MulWide),
                (Simple::Three(_), Some(1)) => Simple::Three(Ternary::MulHighAdd),
                (Simple::Three(_), Some(2)) => Simple::Three(Ternary::MulWideAdd),
                _ => op,
            };
        }
        if let Simple::Two(op @ (Binary::Min | Binary::Max)) = &mut op
            && parts.take("NaN")
        {
            *op = if *op == Binary::Min {
                Binary::MinNan
            } else {
                Binary::MaxNan
            };
        }
        if let Simple::One(Unary::FindHighest(shift)) = &mut op {
            *shift = parts.take("shiftamt");
        }
        if let Simple::Three(Ternary::FunnelLeft(_)) = op {
            let left = parts.take("l") || !parts.take("r");
            let clamp = parts.take("clamp") || !parts.take("wrap");
            op = Simple::Three(match left {
                true => Ternary::FunnelLeft(clamp),
                false => Ternary::FunnelRight(clamp),
            });
        }
        if let Simple::One(test @ Unary::IsFinite) = &mut op {
            let all = [
                ("finite", Unary::IsFinite),
                ("infinite", Unary::IsInfinite),
                ("number", Unary::IsNumber),
                ("notanumber", Unary::IsNan),
                ("normal", Unary::IsNormal),
                ("subnormal", Unary::IsSubnormal),
            ];
            *test = parts
                .take_of(&all)
                .ok_or_else(|| self.fail("what is tested?"))?;
        }
        if let Simple::Three(Ternary::MulAdd) = op
            && parts.has_float()
        {
            op = Simple::Three(Ternary::Fused);
        }
        let mode = parts.mode();
        let ty = self.ty_of(parts)?;
        let to = self.destination_and()?;
        Ok(match op {
            Simple::One(op) => {
                let x = self.operand(ty)?;
                Op::Unary {
                    op,
                    ty,
                    mode,
                    to,
                    x,
                }
            }
            Simple::Two(op) => {
                let x = self.operand_and(ty)?;
                let y = self.operand(match op {
                    Binary::ShiftLeft | Binary::ShiftRight => word32(),
                    _ => ty,
                })?;
                Op::Binary {
                    op,
                    ty,
                    mode,
                    to,
                    x,
                    y,
                }
            }
            Simple::Three(op) => {
                let (x, y) = (self.operand_and(ty)?, self.operand_and(ty)?);
                let z = self.operand(ty)?;
                let op = match op {
                    Ternary::Lookup(_) => {
                        self.expect(',')?;
                        Ternary::Lookup(self.integer()? as u8)
                    }
                    op => op,
                };
                Op::Ternary {
                    op,
                    ty,
                    mode,
                    to,
                    x,
                    y,
                    z,
                }
            }
        })
    }

    fn mov(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let ty = self.ty_of(parts)?;
        let bits = ty.bits;
        if self.peek() == Some(Token::Mark('{')) {
            let to = self.destinations()?;
            self.expect(',')?;
            let x = self.operand(ty)?;
            return Ok(Op::Unpack { bits, to, x });
        }
        let to = self.destination_and()?;
        if self.peek() == Some(Token::Mark('{')) {
            let parts = self.operands(ty)?;
            return Ok(Op::Pack { bits, to, parts });
        }
        let x = self.operand(ty)?;
        let mode = parts.mode();
        Ok(Op::Unary {
            op: Unary::Move,
            ty,
            mode,
            to,
            x,
        })
    }

    fn load(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let ordered = parts.is_ordered();
        let space = parts.space();
        let constant = parts.take("nc");
        self.drop_hints(parts);
        let ty = self.ty_of(parts)?;
        let to = match self.peek() {
            Some(Token::Mark('{')) => self.destinations()?,
            _ => vec![Some(self.destination()?)],
        };
        self.expect(',')?;
        let at = self.address()?;
        Ok(Op::Load {
            space,
            ordered,
            constant,
            ty,
            to,
            at,
        })
    }

    fn drop_hints(&mut self, parts: &mut Parts<'s>) {
        parts.drop_all(&["v2", "v4", "v8", "ca", "cg", "cs", "lu", "cv", "wb", "wt"]);
        parts.drop_beginning(&["L1::", "L2::", "level::"]);
    }

    fn store(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let ordered = parts.is_ordered();
        let space = parts.space();
        self.drop_hints(parts);
        let ty = self.ty_of(parts)?;
        let at = self.address()?;
        self.expect(',')?;
        let values = match self.peek() {
            Some(Token::Mark('{')) => self.operands(ty)?,
            _ => vec![self.operand(ty)?],
        };
        Ok(Op::Store {
            space,
            ordered,
            ty,
            at,
            values,
        })
    }

    fn atomic(&mut self, first: &str, parts: &mut Parts<'s>) -> Res<Op> {
        parts.is_ordered();
        let space = parts.space();
        parts.drop_all(&["noftz"]);
        let op = parts.atomic();
        let op = op.ok_or_else(|| self.fail("what is done there?"))?;
        let ty = self.ty_of(parts)?;
        let to = match first {
            "atom" => {
                let to = match self.peek() {
                    Some(Token::Word("_")) => {
                        self.at += 1;
                        None
                    }
                    _ => Some(self.destination()?),
                };
                self.expect(',')?;
                to
            }
            _ => None,
        };
        let at = self.address()?;
        self.expect(',')?;
        let x = self.operand(ty)?;
        let y = match self.take(',') {
            true => Some(self.operand(ty)?),
            false => None,
        };
        Ok(Op::Atomic {
            space,
            op,
            ty,
            to,
            at,
            x,
            y,
        })
    }

    fn convert(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let mode = parts.mode();
        parts.drop_all(&["relu", "satfinite"]);
        let to_ty = self.ty_of(parts)?;
        let from = self.ty_of(parts)?;
        let to = self.destination_and()?;
        if matches!(to_ty.kind, Kind::FloatPair | Kind::BFloatPair) {
            let (high, low) = (self.operand_and(from)?, self.operand(from)?);
            return Ok(Op::ConvertPair {
                to_ty,
                mode,
                to,
                high,
                low,
            });
        }
        let x = self.operand(from)?;
        Ok(Op::Convert {
            to_ty,
            from,
            mode,
            to,
            x,
        })
    }

    fn generic(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let from_generic = parts.take("to");
        let space = parts.space();
        self.ty_of(parts)?;
        let to = self.destination_and()?;
        let x = self.operand(address())?;
        Ok(Op::Generic {
            space,
            from_generic,
            to,
            x,
        })
    }

    fn compare(&mut self, first: &str, parts: &mut Parts<'s>) -> Res<Op> {
        let op = parts.compare();
        let op: Compare = op.ok_or_else(|| self.fail("how is it compared?"))?;
        let join = parts.take_of(&[("and", Join::And), ("or", Join::Or), ("xor", Join::Xor)]);
        let flush = parts.take("ftz");
        let as_number = match first {
            "set" => Some(self.ty_of(parts)?),
            _ => None,
        };
        let ty = self.ty_of(parts)?;
        let to = self.destination()?;
        let not = match self.take('|') {
            true => Some(self.destination()?),
            false => None,
        };
        self.expect(',')?;
        let (x, y) = (self.operand_and(ty)?, self.operand(ty)?);
        let joined = match join {
            Some(join) => {
                self.expect(',')?;
                let negated = self.take('!');
                Some((join, self.operand(Ty::PREDICATE)?, negated))
            }
            None => None,
        };
        Ok(Op::Compare {
            op,
            ty,
            flush,
            to,
            not,
            x,
            y,
            joined,
            as_number,
        })
    }

    fn call(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("uni");
        let results = match self.peek() {
            Some(Token::Mark('(')) => {
                let slots = self.slots()?;
                self.expect(',')?;
                slots
            }
            _ => Vec::new(),
        };
        let name = self.word()?;
        let args = match self.take(',') {
            true => self.slots()?,
            false => Vec::new(),
        };
        if self.peek() == Some(Token::Mark(',')) {
            return Err(self.fail("calls of what a register names are not known"));
        }
        if name == "vprintf" {
            let [format, args] = args[..] else {
                return Err(self.fail("`vprintf` takes a format and what it prints"));
            };
            let result = results.first().copied();
            return Ok(Op::Print {
                format,
                args,
                result,
            });
        }
        match self.names.get(name) {
            Some(Name::Function(func)) => Ok(Op::Call {
                func,
                results,
                args,
            }),
            _ => Err(self.fail(format!("there is no function `{name}`"))),
        }
    }

    fn slots(&mut self) -> Res<Vec<Slot>> {
        self.expect('(')?;
        let mut all = Vec::new();
        while !self.take(')') {
            let name = self.word()?;
            match self.names.get(name) {
                Some(Name::Param(slot)) => all.push(slot),
                _ => return Err(self.fail(format!("`{name}` is no parameter"))),
            }
            self.take(',');
        }
        Ok(all)
    }

    fn barrier(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("aligned");
        parts.take("cta");
        if parts.take("warp") {
            parts.take("sync");
            let lanes = self.operand(word32())?;
            return Ok(Op::WarpBarrier { lanes });
        }
        if parts.take("red") {
            return self.reducing_barrier(parts);
        }
        if !parts.take("sync") {
            return Err(self.fail("of barriers only `sync` and `red` are known"));
        }
        let number = self.operand(word32())?;
        let threads = match self.take(',') {
            true => Some(self.operand(word32())?),
            false => None,
        };
        Ok(Op::Barrier { number, threads })
    }

    fn reducing_barrier(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        let op = parts.take_of(&[
            ("and", Some(Join::And)),
            ("or", Some(Join::Or)),
            ("popc", None),
        ]);
        let op = op.ok_or_else(|| self.fail("what do the threads find out?"))?;
        self.ty_of(parts)?;
        let to = self.destination_and()?;
        let number = self.operand_and(word32())?;
        let not = self.take('!');
        let x = self.operand(Ty::PREDICATE)?;
        Ok(Op::BarrierReduce {
            number,
            op,
            to,
            x,
            not,
        })
    }

    fn shuffle(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("sync");
        let all = [
            ("up", Shuffle::Up),
            ("down", Shuffle::Down),
            ("bfly", Shuffle::Butterfly),
            ("idx", Shuffle::Index),
        ];
        let op = parts.take_of(&all);
        let op = op.ok_or_else(|| self.fail("which lane is read?"))?;
        let ty = self.ty_of(parts)?;
        let to = self.destination()?;
        let found = match self.take('|') {
            true => Some(self.destination()?),
            false => None,
        };
        self.expect(',')?;
        let x = self.operand_and(ty)?;
        let (by, clamp) = (self.operand_and(word32())?, self.operand_and(word32())?);
        let lanes = self.operand(word32())?;
        Ok(Op::Shuffle {
            op,
            to,
            found,
            x,
            by,
            clamp,
            lanes,
        })
    }

    fn vote(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("sync");
        let all = [
            ("all", Vote::All),
            ("any", Vote::Any),
            ("uni", Vote::Uniform),
            ("ballot", Vote::Ballot),
        ];
        let op = parts.take_of(&all);
        let op = op.ok_or_else(|| self.fail("what do the lanes find out?"))?;
        self.ty_of(parts)?;
        let to = self.destination_and()?;
        let not = self.take('!');
        let x = self.operand_and(Ty::PREDICATE)?;
        let lanes = self.operand(word32())?;
        Ok(Op::Vote {
            op,
            to,
            x,
            not,
            lanes,
        })
    }

    fn matching(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("sync");
        let all = parts.take("all") || !parts.take("any");
        let ty = self.ty_of(parts)?;
        let to = self.destination()?;
        let same = match self.take('|') {
            true => Some(self.destination()?),
            false => None,
        };
        self.expect(',')?;
        let x = self.operand_and(ty)?;
        let lanes = self.operand(word32())?;
        Ok(Op::Match {
            all,
            to,
            same,
            x,
            ty,
            lanes,
        })
    }

    fn reduce(&mut self, parts: &mut Parts<'s>) -> Res<Op> {
        parts.take("sync");
        let op = parts.atomic();
        let op = op.ok_or_else(|| self.fail("what do the lanes compute?"))?;
        let ty = self.ty_of(parts)?;
        let to = self.destination_and()?;
        let x = self.operand_and(ty)?;
        let lanes = self.operand(word32())?;
        Ok(Op::Reduce {
            op,
            ty,
            to,
            x,
            lanes,
        })
    }
}

fn word32() -> Ty {
    Ty {
        kind: Kind::Bits,
        bits: 32,
    }
}

/// Instructions whose operands have the type of the result.
#[derive(Clone, Copy)]
enum Simple {
    One(Unary),
    Two(Binary),
    Three(Ternary),
}

fn simple(name: &str) -> Option<Simple> {
    use Simple::{One, Three, Two};
    Some(match name {
        "not" => One(Unary::Not),
        "neg" => One(Unary::Negate),
        "abs" => One(Unary::Absolute),
        "clz" => One(Unary::CountZeros),
        "popc" => One(Unary::CountOnes),
        "bfind" => One(Unary::FindHighest(false)),
        "brev" => One(Unary::Reverse),
        "sqrt" => One(Unary::Sqrt),
        "rcp" => One(Unary::Reciprocal),
        "rsqrt" => One(Unary::ReciprocalSqrt),
        "sin" => One(Unary::Sin),
        "cos" => One(Unary::Cos),
        "ex2" => One(Unary::Exp2),
        "lg2" => One(Unary::Log2),
        "tanh" => One(Unary::Tanh),
        "testp" => One(Unary::IsFinite),
        "add" => Two(Binary::Add),
        "sub" => Two(Binary::Sub),
        "mul" => Two(Binary::Mul),
        "div" => Two(Binary::Div),
        "rem" => Two(Binary::Rem),
        "min" => Two(Binary::Min),
        "max" => Two(Binary::Max),
        "and" => Two(Binary::And),
        "or" => Two(Binary::Or),
        "xor" => Two(Binary::Xor),
        "shl" => Two(Binary::ShiftLeft),
        "shr" => Two(Binary::ShiftRight),
        "copysign" => Two(Binary::CopySign),
        "bmsk" => Two(Binary::FieldMask),
        "mad" => Three(Ternary::MulAdd),
        "fma" => Three(Ternary::Fused),
        "bfe" => Three(Ternary::FieldExtract),
        "lop3" => Three(Ternary::Lookup(0)),
        "shf" => Three(Ternary::FunnelLeft(false)),
        "prmt" => Three(Ternary::Permute),
        "sad" => Three(Ternary::AbsoluteDifference),
        _ => return None,
    })
}
