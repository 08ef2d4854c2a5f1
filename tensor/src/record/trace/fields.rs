//! Fields in a trace: scalar fields, and the components of vector and matrix fields.

use std::sync::Arc;

use aerogel_snode::{NodeId, Tree};

use crate::ir::{Accum, Buffer, Dim};

use super::super::{Mode, Recorded};
use super::{State, Value};

/// A scalar field, or one component of a vector or matrix field.
#[derive(Debug)]
pub struct FieldDef {
    /// Its name in messages.
    pub name: String,
    /// Its tree.
    pub tree: Arc<Tree>,
    /// Its node in the tree.
    pub place: NodeId,
    /// The offset of its indices along each axis; empty if they begin at 0.
    pub offset: Vec<i32>,
}

impl FieldDef {
    /// Whether both are the same field.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tree, &other.tree) && self.place == other.place
    }
}

impl State {
    /// The buffer of a field.
    ///
    /// # Errors
    /// If elements share bits, so that a store to one changes others.
    pub fn field(&mut self, def: &Arc<FieldDef>) -> Recorded {
        let known = self.fields.iter().find(|(_, own)| own.is_same(def));
        if let Some(&(buffer, _)) = known {
            return Ok(buffer);
        }
        let buffer = self.r.field(&def.name, &def.tree, def.place, &def.offset)?;
        self.fields.push((buffer, def.clone()));
        Ok(buffer)
    }

    /// The buffers of several fields.
    ///
    /// # Errors
    /// As `field`.
    pub fn fields(&mut self, defs: &[Arc<FieldDef>]) -> Recorded<Vec<Buffer>> {
        defs.iter().map(|def| self.field(def)).collect()
    }

    /// The field on whose active cells a value is defined, if there is one.
    pub(super) fn field_of(&self, x: Buffer) -> Option<Arc<FieldDef>> {
        let holder = self.r.program.holder(self.r.field_at(x)?);
        let mut fields = self.fields.iter();
        fields
            .find(|(field, _)| self.r.program.holder(*field) == holder)
            .map(|(_, def)| def.clone())
    }

    /// Joins the components of vectors or matrices, in row-major order, into the last axes of one tensor.
    ///
    /// # Errors
    /// If their shapes differ.
    pub fn joined(&mut self, parts: &[Buffer], last: &[u64]) -> Recorded {
        if last.is_empty() {
            return Ok(parts[0]);
        }
        let dims: Vec<Dim> = last.iter().map(|&n| self.r.program.size(n)).collect();
        if self.r.is_sparse(parts[0]) {
            return self.r.at_cells(parts, &dims);
        }
        let mut all = Vec::new();
        for &part in parts {
            all.push(self.r.dense(part)?);
        }
        for (axis, &n) in last.iter().rev().enumerate() {
            let mut stacked = Vec::new();
            for rows in all.chunks(n as usize) {
                let axis = -1 - axis as i64;
                let mut rows_ = Vec::new();
                for &row in rows {
                    rows_.push(self.r.unsqueeze(row, &[axis])?);
                }
                stacked.push(self.r.concat(&rows_, axis)?);
            }
            all = stacked;
        }
        Ok(all[0])
    }

    /// The elements of fields at computed indices; zero at inactive cells and out of bounds. Components are the `last` axes.
    ///
    /// # Errors
    /// If the number of indices is wrong, or their shapes do not broadcast.
    pub fn load_fields(
        &mut self,
        fields: &[Arc<FieldDef>],
        index: &[Value],
        last: &[u64],
    ) -> Recorded {
        let index = self.buffers(index)?;
        let mut parts = Vec::new();
        for field in self.fields(fields)? {
            parts.push(self.r.load_field(field, &index)?);
        }
        self.joined(&parts, last)
    }

    /// All elements of fields; zero at inactive cells.
    ///
    /// # Errors
    /// If their shapes differ.
    pub fn all_of_fields(&mut self, fields: &[Arc<FieldDef>], last: &[u64]) -> Recorded {
        let mut parts = Vec::new();
        for field in self.fields(fields)? {
            parts.push(self.snapshot(field)?);
        }
        self.joined(&parts, last)
    }

    /// Stores a value to each of several fields at computed indices, at the points of the current mask.
    ///
    /// # Errors
    /// If the number of indices, the shapes or the dtypes do not fit.
    pub fn store_fields(
        &mut self,
        fields: &[Arc<FieldDef>],
        index: &[Value],
        values: &[Value],
        accum: Option<Accum>,
    ) -> Recorded<()> {
        let (index, values) = (self.buffers(index)?, self.buffers(values)?);
        let fields = self.fields(fields)?;
        let mask = self.mask()?;
        if let ([field], [value]) = (&fields[..], &values[..]) {
            return self
                .r
                .store_at(*field, &index, *value, accum, Mode::Zero, mask);
        }
        self.r.store_fields(&fields, &index, &values, accum, mask)
    }

    /// The index of each active cell of a field along each of its axes.
    ///
    /// # Errors
    /// If it has no axes.
    pub fn cell_indices(&mut self, field: &Arc<FieldDef>) -> Recorded<Vec<Buffer>> {
        let field = self.field(field)?;
        self.r.cell_indices(field)
    }
}
