//! The methods of values of the IR.

use aerogel_ir::Type;

/// The methods of a number.
const SCALAR_METHODS: &[&str] = &[
    "cast", "norm", "sum", "max", "min", "any", "all", "norm_sqr", "fill",
];

/// Those of a vector or a matrix.
const TENSOR_METHODS: &[&str] = &[
    "cast",
    "norm",
    "norm_sqr",
    "norm_inv",
    "normalized",
    "sum",
    "max",
    "min",
    "any",
    "all",
    "fill",
    "dot",
    "cross",
    "outer_product",
    "transpose",
    "trace",
    "determinant",
    "inverse",
    "diag",
    "get_shape",
    "to_list",
    "to_numpy",
];

/// The methods of dictionaries.
pub(crate) const DICT_METHODS: [&str; 4] = ["keys", "values", "items", "get"];

/// Whether vectors and matrices have a method of this name.
pub(crate) fn is_tensor_method(name: &str) -> bool {
    TENSOR_METHODS.contains(&name)
}

/// The methods of values of a type.
pub(crate) fn methods_of(ty: Type) -> &'static [&'static str] {
    if ty.is_tensor() {
        TENSOR_METHODS
    } else {
        SCALAR_METHODS
    }
}
