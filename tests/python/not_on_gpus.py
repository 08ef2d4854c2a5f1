"""What cannot be tested on a GPU (``AEROGEL_TEST_ARCH=cuda``), and why: files, or functions in them."""

_WINDOWS = "it is about windows and pictures, which the host draws"
_PROCESSORS = "it is about processors"
_CODE = "it reads the code that processors get"
_ARCH = "it asks for an arch, which the environment decides here"
_MEMORY = "it says that settings of the device's memory change nothing, which they do there"
_RACE = "a parallel loop changes a variable of the kernel: threads of a GPU run into each other"
_ORDER = "it looks at the order of additions, which the threads of a GPU make in any"
_HOST_MEMORY = "it takes memory away from the host, on which the launch does not depend, or the machine does"
_FORK = "a device does not survive a fork, which test_gpu.py is about"
_LONG = "it computes too much for a machine in software"
_CELLS = "cells are so large that a device, which gives memory to all of a cell, has none for them"
_STEPS = "it counts the memory that is held, which grows in other steps on a device"
_INJECTED = "it makes the host refuse memory while a kernel runs, where a device does not ask"
_PROCESS = "it starts programs that choose their own arch"
_STACK = "a GPU's threads have no stack for calls so deep"

NOT_ON_GPUS = {
    "test_gui.py": _WINDOWS,
    "test_gui_window.py": _WINDOWS,
    "test_ui.py": _WINDOWS,
    "test_ui_scenes.py": _WINDOWS,
    "test_windows.py": _WINDOWS,
    "test_window_uses.py": _WINDOWS,
    "test_window_failures.py": _WINDOWS,
    "test_window_lives.py": _WINDOWS,
    "test_wayland.py": _WINDOWS,
    "test_display_gone.py": _WINDOWS,
    "test_view.py": _WINDOWS,
    "test_gallery.py": _WINDOWS,
    "test_pictures.py": _WINDOWS,
    "test_cpu.py": _PROCESSORS,
    "test_gallery_levels.py": _PROCESSORS,
    "test_little_memory.py": _HOST_MEMORY,
    "test_odd_programs.py": _PROCESS,
    "test_programs.py": _PROCESS,
    "test_gpu_programs.py": _PROCESS,
    "test_ad_functions.py::test_depth": _STACK,
    "test_loop_shapes.py::test_sums_in_any_order": _ORDER,
    "test_matrix_products.py::test_orders_of_loops": _ORDER,
    "test_algorithms.py::test_sort": _LONG,
    "test_algorithms.py::test_sort_of_so_many_that_they_go_into_buckets": _LONG,
    "test_command_line.py::test_an_example_runs": _LONG,
    "test_profiler.py::test_the_tasks_of_a_trace": _LONG,
    "test_arrays.py::test_more_elements_than_32_bits_count": _LONG,
    "test_errors.py::test_fork": _FORK,
    "test_errors.py::test_interrupt[calls-cpu]": _STACK,
    "test_errors.py::test_interrupt[calls-interp]": _STACK,
    "test_interrupted_compiling.py::test_while_it_is_lowered": _FORK,
    "test_tensor_edges.py::test_more_elements_than_indices_count": _LONG,
    "test_large_matrices.py::test_in_fields_arrays_structs_and_calls": _STACK,
    "test_real_functions.py::test_recursion": _STACK,
    "test_package.py::test_what_is_not_there_says_so_in_kernels": _ARCH,
    "test_user_programs.py::test_what_is_not_there_can_be_looked_up": _ARCH,
    "test_examples.py::test_a_photograph": _LONG,
    "test_examples.py::test_levelset": _LONG,
    "test_interrupted_compiling.py::test_while_it_is_compiled": _PROCESSORS,
    "test_kernel_objects.py::test_an_object_of_constants_can_become_another": _RACE,
    "test_user_programs.py::test_objects_are_assigned_and_chosen_as_structs_are": _RACE,
    "test_language.py::test_a_sum_of_many_ones": _LONG,
    "test_seed.py::test_a_sum_becomes_three_tasks": _CODE,
    "test_sparse_errors.py::test_no_memory_in_the_middle_of_a_kernel": _CELLS,
    "test_sparse_errors.py::test_what_was_made_before_memory_ran_out_can_be_given_back": _INJECTED,
    "test_sparse_errors.py::test_out_of_memory_in_the_middle_of_a_kernel": _HOST_MEMORY,
    "test_tensor_sparse.py::test_memory_that_does_not_suffice": _INJECTED,
    "test_tensor_sparse.py::test_fields_that_cannot_grow": _INJECTED,
    "test_sparse_hash.py::test_memory_comes_back": _LONG,
    "test_sparse_scenes.py::test_snow_over_a_sparse_grid_is_snow_over_a_dense_one": _LONG,
    "test_sparse_scenes.py::test_a_level_set_in_a_narrow_band": _LONG,
    "test_sparse_scenes.py::test_memory_follows_the_matter_and_not_the_domain": _STEPS,
    "test_sparse_soak.py::test_millions_of_cells_come_and_go": _LONG,
    "test_sparse_soak.py::test_large_cells_take_memory_where_they_are_touched": _CELLS,
    "test_pages.py::test_the_programs[docs/performance.md]": _CODE,
    "test_pages.py::test_the_programs[docs/linalg.md]": _LONG,
    "test_textures.py::test_rows_of_texels_become_vectors": _CODE,
    "test_gpu_simt.py::test_on_the_cpu_it_is_an_error": _ARCH,
    "test_package.py::test_environment": _ARCH,
    "test_package.py::test_arch": _ARCH,
    "test_package.py::test_logging": _ARCH,
    "test_package.py::test_values_that_a_setting_cannot_have": _ARCH,
    "test_package.py::test_the_runtime_that_programs_ask_for": _ARCH,
    "test_package.py::test_settings_that_change_nothing_are_told_of_once": _MEMORY,
    "test_package.py::test_init_refuses_what_it_cannot_mean": _ARCH,
}
