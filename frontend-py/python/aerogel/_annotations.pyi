"""What type checkers and editors see where the package has values: kernels are annotated with them.

``ti.f32`` is a value with a type of its own, but a parameter annotated with it takes a number.
"""

from typing import Any, Literal, TypeAlias, TypedDict

from aerogel.data.matrix import Matrix

bf16: TypeAlias = float
f16: TypeAlias = float
f32: TypeAlias = float
f64: TypeAlias = float
bfloat16: TypeAlias = float
float16: TypeAlias = float
float32: TypeAlias = float
float64: TypeAlias = float
i8: TypeAlias = int
i16: TypeAlias = int
i32: TypeAlias = int
i64: TypeAlias = int
u1: TypeAlias = int
u8: TypeAlias = int
u16: TypeAlias = int
u32: TypeAlias = int
u64: TypeAlias = int
int8: TypeAlias = int
int16: TypeAlias = int
int32: TypeAlias = int
int64: TypeAlias = int
uint1: TypeAlias = int
uint8: TypeAlias = int
uint16: TypeAlias = int
uint32: TypeAlias = int
uint64: TypeAlias = int

vec2: TypeAlias = Matrix
vec3: TypeAlias = Matrix
vec4: TypeAlias = Matrix
ivec2: TypeAlias = Matrix
ivec3: TypeAlias = Matrix
ivec4: TypeAlias = Matrix
uvec2: TypeAlias = Matrix
uvec3: TypeAlias = Matrix
uvec4: TypeAlias = Matrix
mat2: TypeAlias = Matrix
mat3: TypeAlias = Matrix
mat4: TypeAlias = Matrix

class Settings(TypedDict, total=False):
    """The settings that ``ti.init`` takes by name."""

    ad_stack_size: int
    advanced_optimization: bool
    allow_nv_shader_extension: bool
    async_flush_every: Any
    async_listgen_fast_filtering: Any
    async_max_fuse_per_task: Any
    async_mode: Any
    async_opt_activation_demotion: Any
    async_opt_dse: Any
    async_opt_fusion: Any
    async_opt_fusion_max_iter: Any
    async_opt_intermediate_file: Any
    async_opt_listgen: Any
    auto_mesh_local_default_occupacy: int
    cache_loop_invariant_global_vars: bool
    cc_compile_cmd: Any
    cc_link_cmd: Any
    cfg_optimization: bool
    check_out_of_bound: bool | None
    constant_folding: bool
    cpu_block_dim_adaptive: bool
    cpu: str
    cpu_max_num_threads: int
    cuda_stack_limit: int
    debug: bool
    debug_races: bool
    deterministic: bool
    default_ad_stack_size: int
    default_cpu_block_dim: int
    default_gpu_block_dim: int
    demote_dense_struct_fors: bool
    demote_no_access_mesh_fors: bool
    detect_read_only: bool
    device_memory_GB: float
    device_memory_fraction: float
    ad_stack_experimental_enabled: Any
    dynamic_index: Any
    excepthook: Any
    experimental_auto_mesh_local: bool
    experimental_real_function: Any
    external_optimization_level: int
    extra_flags: str
    fast_math: bool | Literal["full"]
    flatten_if: bool
    force_scalarize_matrix: bool
    gdb_trigger: bool
    gpu_max_reg: int
    half2_vectorization: bool
    kernel_profiler: bool
    lazy_compilation: Any
    log_level: str | None
    lower_access: bool
    make_block_local: bool
    make_cpu_multithreading_loop: bool
    make_mesh_block_local: bool
    make_thread_local: bool
    tensor_products: str
    backend: str
    eager: bool
    max_block_dim: int
    max_vector_width: int
    mesh_localize_all_attr_mappings: bool
    mesh_localize_from_end_mapping: bool
    mesh_localize_to_end_mapping: bool
    move_loop_invariant_outside_if: bool
    ndarray_use_cached_allocator: Any
    ndarray_use_cached_allocator_threshold: Any
    ndarray_use_torch: Any
    num_compile_threads: int
    ad_memory: int | float | str | None
    device: str
    offline_cache: bool
    offline_cache_cleaning_factor: float
    offline_cache_cleaning_policy: str
    offline_cache_file_path: str
    offline_cache_max_size_of_files: int
    opt_level: int
    optimize_mesh_reordered_mapping: bool
    packed: Any
    print_accessor_ir: bool
    print_benchmark_stat: Any
    print_evaluator_ir: Any
    print_full_traceback: bool
    print_ir: bool
    print_ir_dbg_info: bool
    print_kernel_amdgcn: bool
    print_kernel_asm: bool
    print_kernel_llvm_ir: bool
    print_kernel_llvm_ir_optimized: bool
    print_preprocessed_ir: bool
    print_struct_llvm_ir: bool
    quant_opt_atomic_demotion: bool
    quant_opt_store_fusion: bool
    random_seed: int
    real_matrix: Any
    real_matrix_scalarize: bool
    saturating_grid_dim: int
    serial_schedule: bool
    short_circuit_operators: bool
    simd_width: int
    simplify_after_lower_access: bool
    simplify_before_lower_access: bool
    timeline: bool
    unrolling_limit: int
    use_gles: Any
    use_llvm: bool
    use_mesh: Any
    use_unified_memory: Any
    validate_autodiff: bool
    verbose: bool
    verbose_kernel_launches: bool
    vk_api_version: str
