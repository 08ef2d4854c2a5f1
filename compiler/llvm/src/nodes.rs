//! Instructions over sparse nodes.

use aerogel_ir::Inst;

use crate::lower::FuncCx;

impl FuncCx<'_, '_, '_> {
    pub(crate) fn node_op(&mut self, inst: Inst) {
        unimplemented!("{:?}", self.func[inst])
    }
}
