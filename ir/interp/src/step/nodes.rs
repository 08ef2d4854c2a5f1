//! Instructions over sparse nodes.

use aerogel_ir::Inst;

use super::{Flow, Machine};
use crate::value::Val;

impl Machine<'_> {
    pub(super) fn node_op(&mut self, inst: Inst) -> Result<Vec<Val>, Flow> {
        unimplemented!("{:?}", self.func()[inst])
    }
}
