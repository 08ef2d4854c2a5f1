//! The table of instructions: one row each.
//!
//! A row generates the enum variant, the visits of operands and regions, printing, parsing, the
//! effect and the stages in which the instruction is legal. What a field of a row contributes to
//! each of these is its type's [`OpField`] implementation; the macro knows nothing else.

use aerogel_base::{AssertKind, NoteKind, Scalar};

use crate::lex::ParseError;
use crate::op_field::{FieldParser, FieldPrinter, OpField};
use crate::op_kinds::{
    AtomicOp, BinaryOp, CompareOp, LoopAttrs, NodeRef, TaskKind, ThreadOp, UnaryOp,
};
use crate::stage::{Effect, Stage};
use crate::types::{Arg, FieldId, FuncId, Region, TreeId, Type, Value};

/// A row of the table, as the documentation shows it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The variant of [`Op`].
    pub name: &'static str,
    /// The mnemonic; none for a family, whose sub-operations are mnemonics.
    pub mnemonic: Option<&'static str>,
    /// The names of its fields.
    pub operands: &'static [&'static str],
    /// The operation.
    pub doc: &'static str,
    /// Its effect.
    pub effect: Effect,
    /// Whether it is done to each element of tensors by itself.
    pub is_elementwise: bool,
    /// The first and the last stage in which it may stand.
    pub stages: (Stage, Stage),
}

macro_rules! insts {
    (
        $(#[$meta:meta])*
        enum $Table:ident {
            $($(#[doc = $doc:literal])* $name:ident $(($text:literal))? { $($field:ident: $ty:ty),* }
                = $effect:ident $(, $elementwise:ident)? $(in $from:ident..=$to:ident)?;)*
        }
        families { $($(#[doc = $family_doc:literal])* $Family:ident($Ops:ident);)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "fields are named by the rows")]
        pub enum $Table {
            $($(#[doc = $doc])* $name { $($field: $ty),* },)*
            $($(#[doc = $family_doc])* $Family($Ops),)*
        }

        impl $Table {
            /// Calls `f` for every operand, in order; owned regions are not entered.
            pub fn operands(&self, mut f: impl FnMut(Value)) {
                self.visit_operands(&mut f);
            }

            fn visit_operands(&self, f: &mut dyn FnMut(Value)) {
                match self {
                    $($Table::$name { $($field),* } => { $(OpField::operands($field, f);)* })*
                    $($Table::$Family(op) => op.visit_operands(f),)*
                }
            }

            /// Replaces every operand; owned regions are not entered.
            pub fn map_operands(&mut self, mut f: impl FnMut(Value) -> Value) {
                self.change_operands(&mut f);
            }

            fn change_operands(&mut self, f: &mut dyn FnMut(Value) -> Value) {
                match self {
                    $($Table::$name { $($field),* } => { $(OpField::map_operands($field, f);)* })*
                    $($Table::$Family(op) => op.change_operands(f),)*
                }
            }

            /// Calls `f` for every region that the instruction owns, in order.
            pub fn regions(&self, mut f: impl FnMut(Region)) {
                self.visit_regions(&mut f);
            }

            fn visit_regions(&self, f: &mut dyn FnMut(Region)) {
                match self {
                    $($Table::$name { $($field),* } => { $(OpField::regions($field, f);)* })*
                    $($Table::$Family(op) => op.visit_regions(f),)*
                }
            }

            /// Replaces every region that the instruction owns.
            pub fn map_regions(&mut self, mut f: impl FnMut(Region) -> Region) {
                self.change_regions(&mut f);
            }

            fn change_regions(&mut self, f: &mut dyn FnMut(Region) -> Region) {
                match self {
                    $($Table::$name { $($field),* } => { $(OpField::map_regions($field, f);)* })*
                    $($Table::$Family(op) => op.change_regions(f),)*
                }
            }

            /// Its effects besides its results.
            pub fn effect(&self) -> Effect {
                match self {
                    $($Table::$name { .. } => Effect::$effect,)*
                    $($Table::$Family(op) => op.effect(),)*
                }
            }

            /// Whether it makes each element of its result of the operands' elements at the same
            /// place; an operand that is a scalar is the same for all.
            pub fn is_elementwise(&self) -> bool {
                match self {
                    $($Table::$name { .. } => insts!(@elementwise $($elementwise)?),)*
                    $($Table::$Family(op) => op.is_elementwise(),)*
                }
            }

            /// The first and the last stage in which it may stand.
            pub fn stages(&self) -> (Stage, Stage) {
                match self {
                    $($Table::$name { .. } => insts!(@stages $($from $to)?),)*
                    $($Table::$Family(op) => op.stages(),)*
                }
            }

            /// Which row it is.
            pub fn row(&self) -> &'static Row {
                match self {
                    $($Table::$name { .. } => {
                        const ROW: &Row = &insts!(@row $Table, $($doc)*, $name, ($($text)?), ($($field)*), $effect, ($($elementwise)?), ($($from $to)?));
                        ROW
                    })*
                    $($Table::$Family(op) => op.row(),)*
                }
            }

            pub(crate) fn print_fields(&self, p: &mut dyn FieldPrinter) {
                match self {
                    $($Table::$name { $($field),* } => {
                        #[allow(unused_mut, reason = "rows without fields")]
                        let mut first = true;
                        $(OpField::print($field, p, first);
                        first = first && <$ty as OpField>::IS_MNEMONIC;)*
                        let _ = first;
                    })*
                    $($Table::$Family(op) => op.print_fields(p),)*
                }
            }

            /// Reads the fields of the row that `name` names; nothing if there is none.
            pub(crate) fn parse_named(name: &str, p: &mut dyn FieldParser<'_>, results: &[Type]) -> Result<Option<Self>, ParseError> {
                $({
                    let fixed: Option<&str> = insts!(@text $($text)?);
                    if fixed.map_or_else(|| false $(|| <$ty as OpField>::accepts(name))*, |t| t == name) {
                        #[allow(unused_mut, reason = "rows without fields")]
                        let mut first = true;
                        $(let $field = <$ty as OpField>::parse(p, first, results)?;
                        first = first && <$ty as OpField>::IS_MNEMONIC;)*
                        let _ = first;
                        return Ok(Some($Table::$name { $($field),* }));
                    }
                })*
                $(if let Some(op) = $Ops::parse_named(name, p, results)? {
                    return Ok(Some($Table::$Family(op)));
                })*
                let _ = (p, results);
                Ok(None)
            }

            /// Every row of this table, for the generated documentation.
            pub const ROWS: &'static [Row] = &[$(
                insts!(@row $Table, $($doc)*, $name, ($($text)?), ($($field)*), $effect, ($($elementwise)?), ($($from $to)?)),
            )*];
        }

        $(impl From<$Ops> for $Table {
            fn from(op: $Ops) -> Self {
                $Table::$Family(op)
            }
        })*
    };
    (@row $Table:ident, $($doc:literal)*, $name:ident, ($($text:literal)?), ($($field:ident)*), $effect:ident, ($($elementwise:ident)?), ($($from:ident $to:ident)?)) => {
        Row {
            name: stringify!($name),
            mnemonic: insts!(@text $($text)?),
            operands: &[$(stringify!($field)),*],
            doc: concat!($($doc),*),
            effect: Effect::$effect,
            is_elementwise: insts!(@elementwise $($elementwise)?),
            stages: insts!(@stages $($from $to)?),
        }
    };
    (@stages) => { (Stage::Structured, Stage::Lowered) };
    (@stages $from:ident $to:ident) => { (Stage::$from, Stage::$to) };
    (@text) => { None };
    (@text $text:literal) => { Some($text) };
    (@elementwise) => { false };
    (@elementwise elementwise) => { true };
}

insts! {
    /// An instruction: what it does and to which operands. Results and spans lie beside it in
    /// the function's tables.
    enum Op {
        /// A constant of the result's type.
        Const ("const") { value: Scalar } = Pure;
        /// Any value of the result's type.
        Undef ("undef") {} = Pure;
        /// A scalar or tensor argument of the kernel.
        Arg ("arg") { arg: Arg } = Pure;
        /// The size of an array argument along an axis, as `i32`.
        ArrayShape ("array_shape") { array: Arg, axis: u32 } = Pure;

        /// Arithmetic on one operand, elementwise.
        Unary { op: UnaryOp, x: Value } = Pure, elementwise;
        /// Arithmetic on two operands of the result's type, elementwise.
        Binary { op: BinaryOp, lhs: Value, rhs: Value } = Pure, elementwise;
        /// Comparison, elementwise.
        Compare { op: CompareOp, lhs: Value, rhs: Value } = Pure, elementwise;
        /// One of two values; the condition is `u1`, or a tensor of it for an elementwise choice.
        Select ("select") { cond: Value, on_true: Value, on_false: Value } = Pure, elementwise;
        /// `a * b + c`, rounded once.
        Fma ("fma") { a: Value, b: Value, c: Value } = Pure, elementwise;
        /// `a * b + c` as a step of a sum whose products may be fused (`analysis::accumulations`): the interpreter rounds
        /// twice.
        MulAdd ("muladd") { a: Value, b: Value, c: Value } = Pure, elementwise;
        /// Conversion to the result's type, elementwise.
        Cast ("cast") { x: Value } = Pure, elementwise;
        /// The value itself, which counts as a constant in derivatives. It exists until differentiation only.
        StopGradient ("stop_gradient") { x: Value } = Pure, elementwise in Structured..=Structured;
        /// The same bits as the result's type, elementwise; both have the same width.
        Bitcast ("bitcast") { x: Value } = Pure, elementwise;

        /// A tensor of scalars, row by row.
        TensorMake ("tensor") { elems: Vec<Value> } = Pure in Structured..=Offloaded;
        /// One element; as many indices as the tensor has axes.
        TensorGet ("tensor_get") { tensor: Value, index: Vec<Value> } = Pure in Structured..=Offloaded;
        /// The tensor with one element replaced.
        TensorSet ("tensor_set") { tensor: Value, index: Vec<Value>, value: Value } = Pure in Structured..=Offloaded;
        /// Matrix times matrix or vector.
        MatMul ("matmul") { lhs: Value, rhs: Value } = Pure in Structured..=Offloaded;
        /// A struct of members.
        StructMake ("struct") { members: Vec<Value> } = Pure in Structured..=Offloaded;
        /// One member of a struct.
        StructGet ("struct_get") { value: Value, member: u32 } = Pure in Structured..=Offloaded;
        /// The struct with one member replaced.
        StructSet ("struct_set") { base: Value, member: u32, value: Value } = Pure in Structured..=Offloaded;

        /// Fresh zeroed storage that lives as long as its region runs.
        Local ("local") {} = Allocates;
        /// One element's storage of a tensor's storage; as many indices as the tensor has axes.
        ElemRef ("elem_ref") { base: Value, index: Vec<Value> } = Pure;
        /// One member's storage of a struct's storage.
        MemberRef ("member_ref") { base: Value, member: u32 } = Pure in Structured..=Offloaded;
        /// An element of a field, at indices that include the field's offset.
        FieldAt ("field_at") { field: FieldId, indices: Vec<Value> } = Pure in Structured..=Offloaded;
        /// An element of an array argument.
        ArrayAt ("array_at") { array: Arg, indices: Vec<Value> } = Pure;
        /// A value that crosses tasks, at a byte offset of the global temporaries.
        TempAt ("temp_at") { offset: u32 } = Pure in Offloaded..=Lowered;

        /// Storage that the iterations of a block share, each of which runs in a thread of its own; its initial
        /// content is undefined. On GPUs only.
        Shared ("shared") {} = Allocates;
        /// Cooperation of the threads of a block: barriers, votes, shuffles and queries. On GPUs only.
        Threads { op: ThreadOp, args: Vec<Value> } = Writes;

        /// Storage that grows: it has no scalars at first, more after each `reserve`, and is freed when the function
        /// ends.
        Buffer ("buffer") {} = Allocates;
        /// Reserves space for `count` scalars in a buffer and preserves its contents; earlier rooms of the buffer
        /// become invalid. The results are the new room, and whether there was memory for it.
        Reserve ("reserve") { buffer: Value, count: Value } = Writes;
        /// The storage of one scalar of a room.
        RoomAt ("room_at") { room: Value, index: Value } = Pure;
        /// Adds the product of two matrices to a tile of sums, all in one room. `at` has the positions of the left
        /// factor, the right one and the sums; rows of the left factor and of the sums are `left_row` and `sums_row`
        /// scalars apart, those of the right one `columns`. Each sum takes its `count` products in order, and may
        /// fuse them if `fused`: the interpreter rounds twice.
        TileProduct ("tile_product") { room: Value, at: Vec<Value>, count: Value, rows: u32, columns: u32, left_row: u32, sums_row: u32, fused: bool } = Writes;

        /// Reads a storage.
        Load ("load") { place: Value } = Reads;
        /// Announces that a storage, or others in its cache line, will be read soon.
        Prefetch ("prefetch") { place: Value } = Writes;
        /// Writes a storage.
        Store ("store") { place: Value, value: Value } = Writes;
        /// Reads, changes and writes a storage in one step; the result is the old value.
        Atomic { op: AtomicOp, place: Value, value: Value } = Writes;
        /// Adds to contiguous storages, 8 or 16 bytes together and aligned to that. Each sum is atomic; all together
        /// may be.
        AtomicAdds ("atomic_adds") { places: Vec<Value>, values: Vec<Value> } = Writes in Lowered..=Lowered;
        /// Stores `value` if the storage holds `expected`; the result is the old value. The cell is active
        /// afterwards in either case.
        Cas ("atomic_cas") { place: Value, expected: Value, value: Value } = Writes;

        /// Replaces the value of a storage by the result of `body` for it, atomically; the result is the old value.
        /// The body is pure, since it may run several times.
        Update ("update") { place: Value, body: Region } = Control in Lowered..=Lowered;

        /// One of two regions; both yield the results' values.
        If ("if") { cond: Value, then: Region, otherwise: Region } = Control;
        /// Counts from `lo` towards `hi` (exclusive) by `step` (of any sign but zero). The body's
        /// parameters are the counter and the carried values, of which it yields the next ones.
        For ("for") { lo: Value, hi: Value, step: Value, init: Vec<Value>, body: Region } = Control;
        /// Runs `cond` on the carried values; while it yields true, `body` computes the next ones.
        While ("while") { init: Vec<Value>, cond: Region, body: Region } = Control;
        /// Ends a region with its values.
        Yield ("yield") { values: Vec<Value> } = Terminator;
        /// Leaves the innermost loop; the carried values become its results.
        Break ("break") { values: Vec<Value> } = Terminator;
        /// Continues with the innermost loop's next iteration.
        Continue ("continue") { values: Vec<Value> } = Terminator;
        /// Leaves the function; in a kernel, later tasks only collect cells.
        Return ("return") { values: Vec<Value> } = Terminator;

        /// A nest of loops over `[lo, hi)` for each axis, the last one innermost, whose iterations run
        /// in parallel. Only at a kernel's outermost scope.
        Parallel ("parallel") { lo: Vec<Value>, hi: Vec<Value>, attrs: LoopAttrs, body: Region } = Control in Structured..=Scheduled;
        /// A parallel loop over the cells of a node that are active when it begins (cells that the body appends to
        /// the visited list may be visited or not); parameters are the indices, one for each axis, without any
        /// field's offset.
        ParallelCells ("parallel_cells") { node: NodeRef, attrs: LoopAttrs, body: Region } = Control in Structured..=Scheduled;

        /// A task. `bounds` yields `lo` and `hi` of each axis (nothing for a serial one) and sees only
        /// its own instructions; so does `body`, which in a range task holds one `each`.
        Task ("task") { kind: TaskKind, attrs: LoopAttrs, bounds: Region, body: Region } = Control in Offloaded..=Lowered;
        /// Runs its body for each index of the part of the index space that this call of the task processes. Code
        /// before and after it runs once for each such part.
        Each ("each") { body: Region } = Control in Offloaded..=Lowered;

        /// Waits, after the `each` of a task, until all earlier parts of the task have ended.
        AwaitTurn ("await_turn") {} = Writes in Lowered..=Lowered;

        /// The storage of a scalar at an address, in the functions of `runtime/device`.
        PlaceAt ("place_at") { address: Value } = Pure in Lowered..=Lowered;
        /// Requests memory from the host for an element of the arena with this control block; the result is whether
        /// it was granted.
        Grow ("grow") { tree: Value, control: Value, element: Value } = Writes in Lowered..=Lowered;
        /// Zeroes bytes of a tree from an address on; whole pages are returned to the system.
        Clear ("clear") { tree: Value, address: Value, bytes: Value } = Writes in Lowered..=Lowered;

        /// Prints a template in which each `{}` (with a Python format specification or not) stands
        /// for the next argument.
        Print ("print") { template: String, args: Vec<Value> } = Writes;
        /// As `print`, but only the first time in each launch.
        Warn ("warn") { template: String, args: Vec<Value> } = Writes;
        /// Records an access to memory, or the start of a loop, for `debug_races`. The template is the name of the
        /// scalar, whose indices are the last arguments (`NoteKind::n_fixed`).
        Note ("note") { kind: NoteKind, template: String, args: Vec<Value> } = Writes;
        /// Records an error and leaves the task if the condition is false.
        Assert ("assert") { cond: Value, kind: AssertKind, template: String, args: Vec<Value> } = Writes;
        /// A random value: integers over the whole range, floats in [0, 1).
        Random ("random") {} = Writes;
        /// The initial random state, a `u64`, of an iteration. `stream` is the number of its loop: twice the number
        /// of parallel loops before it, plus one for a parallel loop. The iteration is that of the enclosing parallel
        /// loop, unless its number is given. Only during differentiation.
        RandomState ("random_state") { stream: u32, iteration: Vec<Value> } = Writes;
        /// Calls a function of the module.
        Call ("call") { func: FuncId, args: Vec<Value> } = Writes;
    }
    families {
        /// An instruction over the cells of a node, named by indices.
        Cell(CellOp);
        /// A step through a tree, or a read of the runtime's data about a node.
        Node(NodeOp);
    }
}

insts! {
    /// Operations on the cells of a node at indices.
    enum CellOp {
        /// Activates the cell of a node at indices, and the cells that contain it; of a dynamic node, all cells of
        /// its container up to that one.
        Activate ("activate") { node: NodeRef, indices: Vec<Value> } = Writes in Structured..=Offloaded;
        /// Deactivates the cell of a node at indices and everything below it, which becomes zero. A dynamic node
        /// loses all cells of a container; the indices are those of the cell that contains it.
        Deactivate ("deactivate") { node: NodeRef, indices: Vec<Value> } = Writes in Structured..=Offloaded;
        /// Whether the cell of a node at indices, and the cells that contain it, are active.
        IsActive ("is_active") { node: NodeRef, indices: Vec<Value> } = Reads in Structured..=Offloaded;
        /// Activates one more cell of a dynamic node's container; the indices are those of the cell that contains it.
        /// The result is the new cell's index as `i32`.
        Append ("append") { node: NodeRef, indices: Vec<Value> } = Writes in Structured..=Offloaded;
        /// How many cells of a dynamic node's container are active, as `i32`.
        Length ("length") { node: NodeRef, indices: Vec<Value> } = Reads in Structured..=Offloaded;
        /// The cell of a node at indices inside its shape; the ambient one, which is zero, if it is
        /// inactive.
        FindCell ("find_cell") { node: NodeRef, indices: Vec<Value> } = Reads in Scheduled..=Offloaded;
        /// Declares that `cell` is active and is the cell of a node at indices, or the word that contains it.
        CellAt ("cell_at") { node: NodeRef, indices: Vec<Value>, cell: Value } = Writes in Scheduled..=Offloaded;
    }
    families {}
}

insts! {
    /// Steps through a tree, one container and one cell at a time, and lists of active cells: what the
    /// instructions over fields and indices are made of.
    enum NodeOp {
        /// The ambient cell of a pointer or hash node, which stands for all that are inactive.
        Ambient ("ambient") { node: NodeRef } = Pure in Scheduled..=Lowered;

        /// The root's cell of a tree.
        Root ("root") { tree: TreeId } = Pure in Scheduled..=Lowered;
        /// The number of a cell in its container, as `i64`, from the coordinates along the node's axes.
        Linearize ("linearize") { node: NodeRef, coords: Vec<Value> } = Pure in Scheduled..=Lowered;
        /// A cell of a dense or bitmasked container; an inactive one is zero.
        Lookup ("lookup") { node: NodeRef, container: Value, index: Value } = Pure in Scheduled..=Lowered;
        /// A child's container in a cell; for a place, the storage of its scalar.
        Child ("child") { node: NodeRef, cell: Value } = Pure in Scheduled..=Lowered;
        /// A cell of a pointer, hash or dynamic container: the ambient one, which is zero, if it is inactive.
        Find ("find") { node: NodeRef, container: Value, index: Value } = Reads in Scheduled..=Lowered;
        /// A cell of a sparse container, which is activated if necessary.
        Obtain ("obtain") { node: NodeRef, container: Value, index: Value } = Writes in Scheduled..=Lowered;
        /// Whether a cell of a sparse container is active.
        CellIsActive ("cell_is_active") { node: NodeRef, container: Value, index: Value } = Reads in Scheduled..=Lowered;
        /// A word of a bitmasked container's mask: bit `k` of word `w` is cell `32 w + k`.
        MaskWord ("mask_word") { node: NodeRef, container: Value, word: Value } = Reads in Scheduled..=Lowered;
        /// The first active cell of a hash container at or after an index, as `i64`; the largest `i64` if there is
        /// none.
        NextActive ("next_active") { node: NodeRef, container: Value, index: Value } = Reads in Scheduled..=Lowered;
        /// An upper bound of the numbers of active cells of a hash container, as `i64`.
        ActiveEnd ("active_end") { node: NodeRef, container: Value } = Reads in Scheduled..=Lowered;
        /// Deactivates a cell of a pointer, hash or bitmasked container. A bitmasked cell becomes zero, and must
        /// contain no active sparse cells; others wait for collection.
        Release ("release") { node: NodeRef, container: Value, index: Value } = Writes in Scheduled..=Lowered;
        /// Empties a dynamic container; its chunks wait for collection.
        ReleaseAll ("release_all") { node: NodeRef, container: Value } = Writes in Scheduled..=Lowered;
        /// Activates one more cell of a dynamic container: the result is its number, or -1 if the container is full.
        Extend ("extend") { node: NodeRef, container: Value } = Writes in Scheduled..=Lowered;
        /// How many cells of a dynamic container are active, as `i64`.
        ContainerLength ("container_length") { node: NodeRef, container: Value } = Reads in Scheduled..=Lowered;

        /// Whether the list of a node's active cells is out of date; if so, the caller rebuilds it.
        ListStale ("list_stale") { node: NodeRef } = Writes in Scheduled..=Lowered;
        /// Stores the number of entries of a part of a new list.
        ListCount ("list_count") { node: NodeRef, part: Value, count: Value } = Writes in Scheduled..=Lowered;
        /// Turns the counts of `n_parts` parts into the number of each part's first entry; that of the part after the
        /// last is the length.
        ListScan ("list_scan") { node: NodeRef, n_parts: Value } = Writes in Scheduled..=Lowered;
        /// The number of a part's first entry, as `i64`.
        ListOffset ("list_offset") { node: NodeRef, part: Value } = Reads in Scheduled..=Lowered;
        /// Writes an entry: a cell, and its index along each axis of the node.
        ListPut ("list_put") { node: NodeRef, at: Value, cell: Value, indices: Vec<Value> } = Writes in Scheduled..=Lowered;
        /// Entries of the list, as `i64`.
        ListLen ("list_len") { node: NodeRef } = Reads in Scheduled..=Lowered;
        /// An entry: the cell, and its index along each axis, as `i32`.
        ListEntry ("list_entry") { node: NodeRef, at: Value } = Reads in Scheduled..=Lowered;

        /// How many of a node's arena elements wait for collection, as `i64`.
        NRecycled ("n_recycled") { node: NodeRef } = Reads in Scheduled..=Lowered;
        /// The cell of a pointer or hash node at a position in the queue for collection.
        Recycled ("recycled") { node: NodeRef, at: Value } = Reads in Scheduled..=Lowered;
        /// Zeroes the arena element at a position in the queue for collection.
        Wipe ("wipe") { node: NodeRef, at: Value } = Writes in Scheduled..=Lowered;
        /// Frees the elements that wait for collection. Nothing else may run meanwhile.
        Collect ("collect") { node: NodeRef } = Writes in Scheduled..=Lowered;
    }
    families {}
}

impl Op {
    /// The fixed mnemonic of the row; none for a family, whose mnemonic is its sub-operation.
    pub(crate) fn mnemonic(&self) -> Option<&'static str> {
        self.row().mnemonic
    }

    /// Whether it ends a region.
    pub fn is_terminator(&self) -> bool {
        self.effect() == Effect::Terminator
    }

    /// The constant, if this is one.
    pub fn as_const(&self) -> Option<Scalar> {
        if let Op::Const { value } = self {
            Some(*value)
        } else {
            None
        }
    }

    /// Whether it may leave its region early, or end the task, besides what its regions do.
    pub fn may_exit(&self) -> bool {
        matches!(
            self,
            Op::Break { .. } | Op::Continue { .. } | Op::Return { .. } | Op::Assert { .. }
        )
    }
}
