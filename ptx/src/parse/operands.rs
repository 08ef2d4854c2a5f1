//! What instructions take: registers, numbers, addresses.

use super::names::Name;
use super::{Parser, Res, words};
use crate::code::{Address, Kind, Operand, Reg, Ty};
use crate::lex::Token;

impl Parser<'_> {
    pub(super) fn destination(&mut self) -> Res<Reg> {
        let name = self.word()?;
        match self.names.get(name) {
            Some(Name::Register(reg)) => Ok(reg),
            _ => Err(self.fail(format!("`{name}` is no register"))),
        }
    }

    pub(super) fn destination_and(&mut self) -> Res<Reg> {
        let to = self.destination()?;
        self.expect(',')?;
        Ok(to)
    }

    /// `{%r1, _, %r2}`
    pub(super) fn destinations(&mut self) -> Res<Vec<Option<Reg>>> {
        self.expect('{')?;
        let mut all = Vec::new();
        while !self.take('}') {
            let is_sink = self.peek() == Some(Token::Word("_"));
            all.push(match is_sink {
                true => {
                    self.at += 1;
                    None
                }
                false => Some(self.destination()?),
            });
            self.take(',');
        }
        Ok(all)
    }

    pub(super) fn operands(&mut self, ty: Ty) -> Res<Vec<Operand>> {
        self.expect('{')?;
        let mut all = Vec::new();
        while !self.take('}') {
            all.push(self.operand(ty)?);
            self.take(',');
        }
        Ok(all)
    }

    pub(super) fn operand_and(&mut self, ty: Ty) -> Res<Operand> {
        let operand = self.operand(ty)?;
        self.expect(',')?;
        Ok(operand)
    }

    pub(super) fn operand(&mut self, ty: Ty) -> Res<Operand> {
        let Some(Token::Word(name)) = self.peek() else {
            return Ok(Operand::Number(self.number()? & ty.mask()));
        };
        self.at += 1;
        if let Some(special) = words::special(name) {
            return Ok(Operand::Special(special));
        }
        match self.names.get(name) {
            Some(Name::Register(reg)) => Ok(Operand::Reg(reg)),
            Some(Name::Variable(number)) => Ok(Operand::Variable(number)),
            Some(Name::Local(offset)) => Ok(Operand::Local(offset)),
            Some(Name::Param(slot)) => Ok(Operand::Number(slot.offset)),
            _ => Err(self.fail(format!("`{name}` is not declared"))),
        }
    }

    /// `[%rd1 + 8]`
    pub(super) fn address(&mut self) -> Res<Address> {
        self.expect('[')?;
        let base = self.operand(address())?;
        let mut offset = 0;
        if self.take('+') {
            offset = self.number()? as i64;
        }
        self.expect(']')?;
        Ok(Address { base, offset })
    }
}

/// The type of addresses.
pub(super) fn address() -> Ty {
    Ty {
        kind: Kind::Unsigned,
        bits: 64,
    }
}
