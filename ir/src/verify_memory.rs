//! The types of instructions on memory: places, rooms, atomic changes.

use aerogel_base::ScalarType;

use crate::op_kinds::{AtomicOp, BinaryOp};
use crate::stage::Effect;
use crate::types::{Arg, FieldId, Region, Type, Value};
use crate::verify_types::{Check, ensure};

impl Check<'_> {
    pub(crate) fn reserve(&self, buffer: Value, count: Value) -> Result<(), String> {
        let Type::Buffer(elem) = self.ty(buffer) else {
            return Err(format!("{} is no buffer", self.ty(buffer)));
        };
        self.integer(count)?;
        ensure(self.results == [Type::Room(elem), Type::BOOL], || {
            format!("the results are room<{elem}> and u1")
        })
    }

    pub(crate) fn room_at(&self, room: Value, index: Value) -> Result<(), String> {
        let Type::Room(elem) = self.ty(room) else {
            return Err(format!("{} is no room", self.ty(room)));
        };
        self.indices(std::slice::from_ref(&index))?;
        self.result(Type::RefScalar(elem))
    }

    pub(crate) fn tile_product(
        &self,
        room: Value,
        at: &[Value],
        count: Value,
    ) -> Result<(), String> {
        let Type::Room(elem) = self.ty(room) else {
            return Err(format!("{} is no room", self.ty(room)));
        };
        ensure(elem.is_float(), || format!("no sums of {elem} are made"))?;
        ensure(at.len() == 3, || "it has two factors and a sum".into())?;
        self.indices(at)?;
        self.integer(count)?;
        self.no_result()
    }

    pub(crate) fn field_at(&self, field: FieldId, indices: &[Value]) -> Result<(), String> {
        self.indices(indices)?;
        let data = &self.env.fields[field];
        let n = self.env.shape(field).len();
        ensure(indices.len() == n, || {
            format!("@{} takes {n} indices, not {}", data.name, indices.len())
        })?;
        self.result(data.elem.to_ref().expect("an element has a storage"))
    }

    pub(crate) fn array_at(&self, array: Arg, indices: &[Value]) -> Result<(), String> {
        self.indices(indices)?;
        let (elem, ndim) = self.array(array)?;
        ensure(indices.len() == ndim as usize, || {
            format!("{array} takes {ndim} indices, not {}", indices.len())
        })?;
        self.result(elem.to_ref().expect("an element has a storage"))
    }

    pub(crate) fn store(&self, place: Value, value: Value) -> Result<(), String> {
        self.written(place)?;
        let (place, value) = (self.place(place)?, self.ty(value));
        ensure(place == value, || {
            format!("a {value} is stored to a ref<{place}>")
        })?;
        self.no_result()
    }

    pub(crate) fn atomic(&self, op: AtomicOp, place: Value, value: Value) -> Result<(), String> {
        self.written(place)?;
        let (place, value) = (self.place(place)?, self.ty(value));
        ensure(place == value, || {
            format!("a {value} changes a ref<{place}>")
        })?;
        let elem = place.elem().ok_or("atomics change numbers and tensors")?;
        let bits = matches!(
            op.binary(),
            Some(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
        );
        ensure(!bits || elem.is_int(), || {
            format!("`{op}` does not take {elem}")
        })?;
        self.result(place)
    }

    pub(crate) fn atomic_adds(&self, places: &[Value], values: &[Value]) -> Result<(), String> {
        ensure(places.len() == values.len() && places.len() > 1, || {
            "one value for each of several places".into()
        })?;
        for (&place, &value) in places.iter().zip(values) {
            let (place, ty) = (self.place(place)?, self.ty(value));
            let float = ty.scalar().is_some_and(ScalarType::is_float);
            ensure(place == ty && float, || {
                format!("a {ty} is added to a ref<{place}>")
            })?;
        }
        self.no_result()
    }

    pub(crate) fn cas(&self, place: Value, expected: Value, value: Value) -> Result<(), String> {
        self.written(place)?;
        let place = self.place(place)?;
        let ty = self.same(expected, value)?;
        ensure(place == ty && ty.scalar().is_some(), || {
            format!("a {ty} changes a ref<{place}>")
        })?;
        self.result(place)
    }

    pub(crate) fn update(&self, place: Value, body: Region) -> Result<(), String> {
        let ty = self.place(place)?;
        let params = &self.func.regions[body].params;
        let takes: Vec<Type> = params.iter().map(|&p| self.ty(p)).collect();
        ensure(takes == [ty] && ty.scalar().is_some(), || {
            format!("a ref<{place}> is updated from {takes:?}", place = ty)
        })?;
        let insts = self.func.regions[body].insts.iter();
        ensure(
            insts
                .rev()
                .skip(1)
                .all(|&i| self.func[i].effect() == Effect::Pure),
            || "an update is made of pure instructions".into(),
        )?;
        self.result(ty)
    }

    pub(crate) fn grow(&self, tree: Value, control: Value, element: Value) -> Result<(), String> {
        [tree, control, element]
            .into_iter()
            .try_for_each(|number| self.is_u32(number))?;
        self.result(Type::BOOL)
    }

    pub(crate) fn clear(&self, tree: Value, address: Value, bytes: Value) -> Result<(), String> {
        self.is_u32(tree)?;
        self.is_i64(address)?;
        self.is_i64(bytes)?;
        self.no_result()
    }
}
