//! `name := value`: a name that an expression makes. As in Python it belongs to the statement's block, wherever in the
//! statement it stands.
//!
//! ```text
//! while (z := s - 1) > 3:         z is storage before the loop; its condition stores to it
//!     s = z
//! ```

use crate::lower::values::Val;
use crate::lower::values::structs::struct_type;
use crate::lower::{Lower, Res};
use crate::scope::BindingKind;

impl Lower<'_, '_> {
    /// Makes `name` stand for `val` from here on; the result is what the expression is.
    pub(crate) fn name_inside(&mut self, name: &str, val: Val) -> Res<Val> {
        let (region, at, depth) = self.state.statement;
        let is_new = self.scopes().get(name).is_none();
        let is_inside = self.state.region != region || self.scopes().depth() != depth;
        if !is_new || !is_inside {
            self.assign_name(name, &val)?;
        } else {
            let is_number = self.numeric_type(&val).is_some();
            let has_storage = is_number || val.items().is_some() || struct_type(&val).is_some();
            let variable = match &val {
                Val::Known(_) | Val::Array(_) | Val::Texture(_) | Val::Shared(_)
                    if !has_storage =>
                {
                    val.clone()
                }
                _ => {
                    // What is not evaluated leaves zero in it.
                    let place = self.storage_like((region, at), &val)?;
                    self.store_val(&place, &val)?;
                    place
                }
            };
            let kind = BindingKind::Variable;
            self.scopes().bind_at(depth, name, kind, variable);
        }
        let named = self.name(name)?;
        // What is known stays known, unless the name has another type.
        let is_known = matches!(&val, Val::Known(known) if known.is_number());
        if is_known && self.numeric_type(&named) == self.numeric_type(&val) {
            return Ok(val);
        }
        self.settle(named)
    }
}
