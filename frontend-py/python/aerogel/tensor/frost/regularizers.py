"""Kinds of regularization, for ``reg_type`` of `optimizers`: with ``reg``, what it adds to each gradient."""

#: Nothing.
none = 0
#: ``reg`` times the sign of the parameter.
l1 = 1
#: ``reg`` times the parameter.
l2 = 2
