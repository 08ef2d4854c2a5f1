//! The names of operators in Python's module `operator`.

use crate::ast::{BinaryOp, UnaryOp};

pub(crate) fn unary_name(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Invert => "invert",
        UnaryOp::Not => "not_",
        UnaryOp::Plus => "pos",
        UnaryOp::Minus => "neg",
    }
}

pub(crate) fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::MatMul => "matmul",
        BinaryOp::Div => "truediv",
        BinaryOp::FloorDiv => "floordiv",
        BinaryOp::Mod => "mod",
        BinaryOp::Pow => "pow",
        BinaryOp::Shl => "lshift",
        BinaryOp::Shr => "rshift",
        BinaryOp::BitAnd => "and_",
        BinaryOp::BitOr => "or_",
        BinaryOp::BitXor => "xor",
    }
}
