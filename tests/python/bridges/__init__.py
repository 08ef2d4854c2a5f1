"""Arrays of every kind as arguments of kernels: what each library holds is known, and what kernels make of it is compared."""
