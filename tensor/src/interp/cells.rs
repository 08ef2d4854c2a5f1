//! Trees in the interpreter: the values of each place, and the active cells.

use std::collections::BTreeSet;

use aerogel_base::Scalar;
use aerogel_ir::TreeId;
use aerogel_snode::{NodeId, NodeKind};
use indexmap::IndexMap;

use crate::ir::{Array, Buffer, Program, Role, point};

/// A sparse node's cell: the index of the cell in its container at each level of its path.
type Cell = (TreeId, NodeId, Vec<u64>);

/// The fields of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields {
    arrays: IndexMap<Buffer, Array>,
    /// Cells of sparse nodes that are active.
    active: BTreeSet<Cell>,
}

impl Fields {
    /// Those of a program, with no active cells where cells may be inactive.
    pub fn of(program: &Program) -> Self {
        Self::zeros(program, program.fields())
    }

    /// A program's temporaries in trees.
    pub(crate) fn scratch(program: &Program) -> Self {
        let all = program.buffers.iter();
        let scratch = all.filter(|(_, def)| matches!(def.role, Role::Scratch(..)));
        Self::zeros(program, scratch.map(|(buffer, _)| buffer))
    }

    fn zeros(program: &Program, buffers: impl Iterator<Item = Buffer>) -> Self {
        let of = |buffer: Buffer| {
            let def = &program.buffers[buffer];
            let extents = def.shape.iter().map(|&d| program.const_dim(d));
            let shape: Vec<usize> = extents.map(|n| n.unwrap_or(0) as usize).collect();
            (buffer, Array::zeros(def.ty, &shape))
        };
        Self {
            arrays: buffers.map(of).collect(),
            active: BTreeSet::new(),
        }
    }

    /// Makes a temporary zero, and its cells inactive.
    pub(crate) fn clear(&mut self, program: &Program, buffer: Buffer) {
        let array = self.array(buffer);
        array.data.fill(Scalar::zero(array.ty));
        let own = program.place(buffer).map(|(tree, _)| tree);
        self.active.retain(|&(tree, ..)| Some(tree) != own);
    }

    /// The numbers of a field; zero where a cell is inactive.
    ///
    /// # Panics
    /// If the buffer is none of the fields.
    pub fn array(&mut self, field: Buffer) -> &mut Array {
        self.arrays.get_mut(&field).expect("a field of the program")
    }

    /// The cells of sparse nodes that an element lies in, the outermost first.
    fn cells(program: &Program, field: Buffer, at: &[i32]) -> Vec<Cell> {
        let (tree, place) = program.place(field).expect("it lies in a tree");
        let indices: Vec<i64> = at.iter().map(|&i| i64::from(i)).collect();
        let layout = &program.trees[tree];
        let (mut way, mut cells) = (Vec::new(), Vec::new());
        for level in layout.path(place).levels {
            way.push(level.linear(&indices));
            if layout[level.node].kind.is_sparse() {
                cells.push((tree, level.node, way.clone()));
            }
        }
        cells
    }

    /// Whether the cell of an element is active.
    pub fn is_active(&self, program: &Program, field: Buffer, at: &[i32]) -> bool {
        let cells = Self::cells(program, field, at);
        cells.iter().all(|cell| self.active.contains(cell))
    }

    /// Makes the cell of an element active.
    pub fn activate(&mut self, program: &Program, field: Buffer, at: &[i32]) {
        for (tree, node, mut way) in Self::cells(program, field, at) {
            if let NodeKind::Dynamic { .. } = program.trees[tree][node].kind {
                // A list is as long as its last cell wants.
                let last = way.pop().unwrap_or(0);
                let all = (0..last).map(|k| (tree, node, [&way[..], &[k]].concat()));
                self.active.extend(all);
                way.push(last);
            }
            self.active.insert((tree, node, way));
        }
    }

    /// An element has been stored to: its cell is active, and its number one that its type has.
    pub(crate) fn stored(&mut self, program: &Program, field: Buffer, linear: usize) {
        let array = self.array(field);
        let extents: Vec<u64> = array.shape.iter().map(|&n| n as u64).collect();
        if let Some((tree, place)) = program.place(field)
            && let NodeKind::Bits(quant) = program.trees[tree][place].kind
        {
            array.data[linear] = quant.decode(quant.encode(array.data[linear]));
        }
        self.activate(program, field, &point(linear as u64, &extents));
    }
}
