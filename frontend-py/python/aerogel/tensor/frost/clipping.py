"""Kinds of clipping, for ``set_clipping_type`` of `optimizers`: with ``clip``, how gradients are made smaller."""

#: Each element is clamped to -clip and clip.
clamp = clip = 0
#: The gradient by each parameter is scaled to a norm of at most clip.
norm = 1
#: Not at all.
none = 2
