//! Elements of meshes: indices with the mesh and the kind of element that they belong to.
//!
//! ```text
//! for v in m.verts:         for v in range(n)
//!     v.x                   x[v]
//!     for f in v.faces:     for k in range(offsets[v], offsets[v + 1]): f = targets[k]
//!         f.verts[1].id     targets[3 * f + 1]
//! ```
//! Attributes are fields, and so are relations (`aerogel/mesh.py`): nothing below the frontend knows of them.

use std::rc::Rc;

use aerogel_base::ErrorKind;
use aerogel_ir::{AssertKind, BinaryOp, Op, Type, Value};

use crate::ast::CompareOp;
use crate::host::{ElementsRef, FieldRef, Known, Offsets, RelationRef};
use crate::lower::values::Val;
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    /// `v.x`, `v.id`, `v.faces`.
    pub(crate) fn element_attribute(
        &mut self,
        of: &Rc<ElementsRef>,
        at: &Val,
        attr: &str,
    ) -> Res<Val> {
        if attr == "id" {
            return Ok(Val::Value(self.load(at)?));
        }
        let elements = Known::Elements(of.clone());
        let found = self.host.attr(&elements, attr);
        match self.hosted(found)? {
            Some(known @ (Known::Field(_) | Known::StructField(_))) => {
                self.index(Val::Known(known), vec![at.clone()], false)
            }
            Some(Known::Relation(relation)) => Ok(Val::Neighbours(relation, self.load(at)?)),
            _ => self.no_attribute(&Val::Known(elements), attr, None),
        }
    }

    /// `v = e.verts[0]` where `v` is a variable already.
    pub(crate) fn store_element(&mut self, of: &Rc<ElementsRef>, at: &Val, val: &Val) -> Res<()> {
        if let Val::Element(from, other) = val
            && from == of
        {
            return self.store_val(at, other);
        }
        let what = self.describe(val);
        let message = format!("a variable for one of the `{}` cannot hold {what}", of.name);
        self.fail(ErrorKind::Type, "E0203", message)
    }

    /// What the name of a loop over elements stands for, at the loop's index.
    pub(crate) fn loop_element(
        &mut self,
        of: &Rc<ElementsRef>,
        targets: Option<&Rc<FieldRef>>,
        at: &Val,
    ) -> Res<Val> {
        let number = match targets {
            Some(targets) => self.stored(targets, at.clone())?,
            None => self.load(at)?,
        };
        if targets.is_none() {
            self.state.mesh_loop = Some((of.clone(), number));
        }
        Ok(Val::Element(of.clone(), Val::Value(number).into()))
    }

    fn stored(&mut self, field: &Rc<FieldRef>, at: Val) -> Res<Value> {
        let place = self.index(Val::Known(Known::Field(field.clone())), vec![at], false)?;
        self.load(&place)
    }

    /// From where to where the neighbours of an element stand in the relation's field.
    pub(crate) fn neighbours(&mut self, relation: &RelationRef, at: Value) -> Res<(Value, Value)> {
        let mut b = self.builder();
        match &relation.offsets {
            Offsets::Every(n) => {
                let n = b.i32(*n);
                let lo = b.binary(BinaryOp::Mul, at, n);
                Ok((lo, b.binary(BinaryOp::Add, lo, n)))
            }
            Offsets::Field(offsets) => {
                let one = b.i32(1);
                let next = b.binary(BinaryOp::Add, at, one);
                let lo = self.stored(offsets, Val::Value(at))?;
                Ok((lo, self.stored(offsets, Val::Value(next))?))
            }
        }
    }

    /// `v.faces.size`
    pub(crate) fn n_neighbours(&mut self, relation: &RelationRef, at: Value) -> Res<Val> {
        if let Offsets::Every(n) = relation.offsets {
            return Ok(Val::int(i128::from(n)));
        }
        let (lo, hi) = self.neighbours(relation, at)?;
        Ok(Val::Value(self.builder().binary(BinaryOp::Sub, hi, lo)))
    }

    /// `v.faces[k]`
    pub(crate) fn neighbour(
        &mut self,
        relation: &RelationRef,
        at: Value,
        indices: &[Val],
    ) -> Res<Val> {
        let what = Known::describe(&Known::Elements(relation.to.clone()));
        if let (Offsets::Every(n), [Val::Known(k)]) = (&relation.offsets, indices)
            && let Some(k) = k.as_int()
            && !(0..i128::from(*n)).contains(&k)
        {
            let message = format!(
                "index {k} is out of range for the {n} `{}` of an element",
                relation.to.name
            );
            return self.fail(ErrorKind::Index, "E0403", message);
        }
        let k = self.cell_indices(indices, 1, &format!("a relation to {what}"))?[0];
        let k = self.builder().cast(k, Type::I32);
        if self.config.debug {
            let n = self.n_neighbours(relation, at)?;
            let zero = self.compare(CompareOp::Ge, &Val::Value(k), &Val::int(0))?;
            let below = self.compare(CompareOp::Lt, &Val::Value(k), &n)?;
            let (zero, below) = (self.condition(&zero)?, self.condition(&below)?);
            let cond = self.builder().binary(BinaryOp::And, zero, below);
            let n = self.load(&n)?;
            self.effect(Op::Assert {
                cond,
                kind: AssertKind::Assertion,
                template: format!(
                    "index {{}} into the `{}` of an element that has {{}}",
                    relation.to.name
                ),
                args: vec![k, n],
            });
        }
        let (lo, _) = self.neighbours(relation, at)?;
        let slot = self.builder().binary(BinaryOp::Add, lo, k);
        let number = self.stored(&relation.targets, Val::Value(slot))?;
        Ok(Val::Element(relation.to.clone(), Val::Value(number).into()))
    }

    /// `ti.mesh_patch_idx()`: which part of the mesh the loop has come to.
    pub(crate) fn mesh_patch(&mut self) -> Res<Val> {
        let Some((of, at)) = self.state.mesh_loop.clone() else {
            let message = "`ti.mesh_patch_idx()` stands outside a loop over elements of a mesh";
            return self.fail(ErrorKind::Compilation, "E0222", message);
        };
        let found = self.host.attr(&Known::Elements(of), "_patches");
        match self.hosted(found)? {
            Some(Known::Field(patches)) => Ok(Val::Value(self.stored(&patches, Val::Value(at))?)),
            _ => Ok(Val::int(0)),
        }
    }
}
