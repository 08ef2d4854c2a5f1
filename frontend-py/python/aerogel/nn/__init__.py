"""Neural networks over tensors."""
