"""Generated decisions: a float expression, its operands' sources, and a floor, a comparison or a root that depends on its last bit.

A pattern is one text. It is rendered as the source of a kernel and evaluated by NumPy operation by operation, each rounded
to the type that the kernel language gives it; the decisions of both must be equal.

    formats      float types, rounding, hard values
    expressions  the text of a pattern as kernel source, and its value
    patterns     the table of patterns
    inputs       operands near the points where decisions change
    programs     kernels made of patterns, run and compared
    tensors      the same patterns on `ti.tensor`
    quotients    correctly rounded quotients
"""
