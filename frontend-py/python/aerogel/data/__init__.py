"""Where data lies and what it is made of: fields and their layouts, arrays, matrices, structs."""
