//! Which fields and trees of the process the module uses, and what it calls them.

use std::rc::Rc;

use aerogel_ir::{FieldData, FieldId, TreeId};

use crate::host::{FieldRef, TreeKey};
use crate::lower::{Lower, Naming, Res, tensor_type};

impl Naming {
    /// A name that no other field has.
    fn unique(&mut self, wanted: &str) -> String {
        let plain = plain_name(wanted);
        let mut name = plain.clone();
        // If many fields share a name, the search continues where it ended.
        let mut n = self.taken.get(&plain).copied().unwrap_or(1);
        while self.taken.get(&name).is_some() {
            n += 1;
            name = format!("{plain}_{n}");
        }
        self.taken.insert(name.clone(), 1);
        self.taken.insert(plain, n);
        name
    }
}

/// A name as the text of IR takes it.
fn plain_name(wanted: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain: String = wanted
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
        plain
    } else {
        format!("f{plain}")
    }
}

impl Lower<'_, '_> {
    /// The module's name for a field.
    pub(crate) fn field(&mut self, field: &Rc<FieldRef>) -> Res<FieldId> {
        let key = (field.tree, field.places.clone());
        if let Some(&id) = self.naming.fields.get(&key) {
            return Ok(id);
        }
        let tree = self.tree(field.tree)?;
        let name = self.naming.unique(&field.name);
        let id = self.module.env.fields.push(FieldData {
            name,
            elem: tensor_type(field.shape, field.elem),
            tree,
            places: field.places.clone(),
            offset: field.offset.clone(),
            grad: None,
            dual: None,
        });
        self.naming.fields.insert(key, id);
        self.link_derivative(field, id)?;
        Ok(id)
    }

    /// The module's name for a tree.
    pub(crate) fn tree(&mut self, key: TreeKey) -> Res<TreeId> {
        if let Some(at) = self.naming.trees.iter().position(|&other| other == key) {
            return Ok(TreeId::from_u32(at as u32));
        }
        let tree = self.host.tree(key);
        let tree = self.hosted(tree)?;
        self.naming.trees.push(key);
        Ok(self.module.env.trees.push(tree))
    }
}
