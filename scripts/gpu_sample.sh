#!/bin/sh
# Files of tests in which each kind of code for a GPU is, in one line: what CI runs on the machine that stands in for one.
set -eu
cd "$(dirname "$0")/../tests/python"
for topic in ad_tape ad_edges ad_functions arithmetic arrays atomics bf16 builtins decisions fields functions generated_programs language linalg matrix \
    mesh quant random_returns real_functions seed structs sums tensor_fields tensor_kernels tensor_programs tensor_sparse \
    tensor_vectors textures; do
    printf 'tests/python/test_%s.py ' "$topic"
done
printf 'tests/python/%s ' test_gpu*.py test_sparse_*.py
