"""Tables of functions of tensors whose gradients are checked, and what checks them."""
