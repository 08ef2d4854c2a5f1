"""Writes the source of one spelling.

    w.array("a", ("n", "n"), given=True), w.loop(...), w.kernel(...)  ->  declarations, kernels, run(), result()

A computation states what it does. The choice decides how arrays are stored, loops run and constants reach the kernel.
The names `ti`, `np` and `inputs` (the arrays of the computation, by name) are given to the program.
"""

from variants import Skip

LOOPS1 = ("range", "struct", "grouped", "ndrange", "chunks", "while")
LOOPS = ("ndrange", "struct", "nested", "grouped", "flat", "while", "swapped", "nested_swapped")
STORAGE = ("field", "blocks", "template", "ndarray", "numpy")
LAYOUTS = ("aos", "soa", "apart", "separate", "struct", "last_axis", "first_axis", "ndarray", "numpy")
HOME = ("module", "class")
BODY = ("inline", "func", "real_func")
CONSTANT = ("global", "argument", "template", "static", "field0")
BOUNDS = ("global", "argument", "shape")
ADDING = ("augmented", "own", "local", "atomic")
GUARD = ("range", "if", "continue", "select", "mask")
AXIS_NAMES = ("ti.i", "ti.ij", "ti.ijk")


def indent(lines, by=1):
    """The lines, further to the right."""
    return ["    " * by + line for line in lines]


def tuple_of(items):
    """Source of a tuple."""
    items = [str(item) for item in items]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


class Array:
    """Scalars over axes, or vectors of `width` components over axes, stored as the choice says."""

    def __init__(self, writer, name, shape, dtype, storage, width):
        self.writer, self.name, self.shape, self.dtype, self.storage, self.width = (
            writer,
            name,
            shape,
            dtype,
            storage,
            width,
        )

    @property
    def ref(self):
        """How a kernel names the array."""
        argument = self.storage in ("template", "ndarray", "numpy")
        return self.name if argument else self.writer.own(self.name)

    def __call__(self, *indices):
        """The element at indices: a scalar, or a vector."""
        index = ", ".join(indices)
        if self.width is None or self.storage in ("aos", "soa", "apart", "ndarray", "numpy"):
            return f"{self.ref}[{index}]"
        if self.storage == "struct":
            return f"{self.ref}[{index}].v"
        return f"ti.Vector([{', '.join(self.component(k, *indices) for k in range(self.width))}])"

    def component(self, k, *indices):
        """A component of the vector at indices; `k` is a number, or the name of an index."""
        index = ", ".join(indices)
        if self.storage == "separate":
            if not isinstance(k, int):
                raise Skip
            return f"{self.ref}{k}[{index}]"
        if self.storage == "last_axis":
            return f"{self.ref}[{index}, {k}]"
        if self.storage == "first_axis":
            return f"{self.ref}[{k}, {index}]"
        return f"{self(*indices)}[{k}]"

    def put(self, indices, value, operator="="):
        """Lines that set the vector at indices to `value`, the name of a vector, or add it."""
        if self.storage in ("separate", "last_axis", "first_axis"):
            return [f"{self.component(k, *indices)} {operator} {value}[{k}]" for k in range(self.width)]
        return [f"{self(*indices)} {operator} {value}"]

    @property
    def numpy(self):
        """An expression, outside of kernels, of the elements with vectors along the last axis."""
        name = self.writer.outside(self.name)
        match self.storage:
            case "numpy":
                return name
            case "struct":
                return f"{name}.v.to_numpy()"
            case "separate":
                return f"np.stack([{', '.join(f'{name}{k}.to_numpy()' for k in range(self.width))}], -1)"
            case "first_axis":
                return f"np.moveaxis({name}.to_numpy(), 0, -1)"
        return f"{name}.to_numpy()"

    @property
    def clear(self):
        """A statement, outside of kernels, that sets all elements to zero."""
        name = self.writer.outside(self.name)
        return f"{name}.fill(0)"


class Writer:
    """The parts of a program, gathered by a computation."""

    def __init__(self, choice, sizes):
        self.choice, self.sizes = choice, sizes
        self.declarations: list[str] = []
        self.functions: list[str] = []
        self.real_functions: list[str] = []
        self.kernels: list[str] = []
        self.parameters: list[tuple[str, str, str]] = []
        self.runs: list[str] = []
        self.answer = ""
        self.shapes: dict[str, str] = {}

    def __getitem__(self, axis):
        return self.choice[axis]

    def get(self, axis, default):
        """The choice of an axis that the computation may not have."""
        return self.choice.get(axis, default)

    @property
    def in_class(self):
        """Whether kernels are methods."""
        return self.get("home", "module") == "class"

    def own(self, name):
        """A name of the program, inside of kernels."""
        return f"self.{name}" if self.in_class else name

    def outside(self, name):
        """A name of the program, outside of kernels."""
        return f"program.{name}" if self.in_class else name

    @property
    def dtype(self):
        """The type of elements."""
        return f"ti.{self.get('dtype', 'f32')}"

    def declare(self, name, value):
        """A name of the program."""
        self.declarations.append(f"{self.own(name)} = {value}")

    def array(self, name, shape, dtype=None, given=False, storage=None):
        """Scalars over the axes of `shape`, the names of sizes; with `given` they begin as the input of the name."""
        dtype = dtype or self.dtype
        storage = storage or self.get("storage", "field")
        whole, np_dtype = tuple_of(shape), "np" + self.np(dtype)[2:]
        match storage:
            case "field" | "template":
                self.declare(name, f"ti.field({dtype}, shape={whole})")
            case "blocks":
                block = 64 if len(shape) == 1 else 8
                if any(self.sizes[size] % block for size in shape):
                    raise Skip
                axes = AXIS_NAMES[len(shape) - 1]
                self.declare(name, f"ti.field({dtype})")
                outer = tuple_of(f"{size} // {block}" for size in shape)
                place = f"ti.root.dense({axes}, {outer}).dense({axes}, {block})"
                self.declarations.append(f"{place}.place({self.own(name)})")
            case "ndarray":
                self.declare(name, f"ti.ndarray({dtype}, shape={whole})")
            case "numpy":
                self.declare(name, f"inputs['{name}'].copy()" if given else f"np.zeros({whole}, {np_dtype})")
        if given and storage != "numpy":
            self.declarations.append(f"{self.own(name)}.from_numpy(inputs['{name}'])")
        if storage == "template":
            self.parameters.append((name, "ti.template()", self.outside(name)))
        elif storage in ("ndarray", "numpy"):
            self.parameters.append((name, f"ti.types.ndarray(dtype={dtype}, ndim={len(shape)})", self.outside(name)))
        made = Array(self, name, shape, dtype, storage, None)
        for axis, size in enumerate(shape):
            self.shapes.setdefault(size, f"{made.ref}.shape[{axis}]")
        return made

    def vectors(self, name, shape, width, given=False, layout=None):
        """Vectors over the axes of `shape`."""
        dtype, whole = self.dtype, tuple_of(shape)
        layout = layout or self.get("layout", "aos")
        own, data = self.own(name), f"inputs['{name}']"
        lines = self.declarations
        fill = f"{own}.from_numpy({data})"
        match layout:
            case "aos" | "soa":
                self.declare(
                    name, f"ti.Vector.field({width}, {dtype}, shape={whole}, layout=ti.Layout.{layout.upper()})"
                )
            case "apart":
                self.declare(name, f"ti.Vector.field({width}, {dtype})")
                axes = AXIS_NAMES[len(shape) - 1]
                lines += [
                    f"for k in range({width}):",
                    f"    ti.root.dense({axes}, {whole}).place({own}.get_scalar_field(k))",
                ]
            case "separate":
                for k in range(width):
                    self.declare(f"{name}{k}", f"ti.field({dtype}, shape={whole})")
                    if given:
                        lines.append(f"{own}{k}.from_numpy(np.ascontiguousarray({data}[..., {k}]))")
                fill = None
            case "struct":
                vector = f"ti.types.vector({width}, {dtype})"
                self.declare(name, f"ti.Struct.field({{'v': {vector}, 'rest': {dtype}}}, shape={whole})")
                fill = f"{own}.v.from_numpy({data})"
            case "last_axis":
                self.declare(name, f"ti.field({dtype}, shape={tuple_of([*shape, width])})")
            case "first_axis":
                self.declare(name, f"ti.field({dtype}, shape={tuple_of([width, *shape])})")
                fill = f"{own}.from_numpy(np.ascontiguousarray(np.moveaxis({data}, -1, 0)))"
            case "ndarray":
                self.declare(name, f"ti.Vector.ndarray({width}, {dtype}, shape={whole})")
            case "numpy":
                zeros = f"np.zeros({tuple_of([*shape, width])}, {self.np(dtype)})"
                self.declare(name, f"{data}.copy()" if given else zeros)
                fill = None
        if given and fill:
            lines.append(fill)
        if layout in ("ndarray", "numpy"):
            vector = f"ti.types.vector({width}, {dtype})"
            self.parameters.append((name, f"ti.types.ndarray(dtype={vector}, ndim={len(shape)})", self.outside(name)))
        made = Array(self, name, shape, dtype, layout, width)
        if layout in ("aos", "soa", "apart", "ndarray", "numpy"):
            for axis, size in enumerate(shape):
                self.shapes.setdefault(size, f"{made.ref}.shape[{axis}]")
        return made

    @staticmethod
    def np(dtype):
        """NumPy's name of a type."""
        return {"ti.f32": "np.float32", "ti.f64": "np.float64", "ti.i32": "np.int32", "ti.u32": "np.uint32"}[dtype]

    def size(self, name):
        """The size `name`, as loops say it: a constant, an argument or the shape of an array."""
        match self.get("bounds", "global"):
            case "argument":
                if not any(parameter == name for parameter, _, _ in self.parameters):
                    self.parameters.append((name, "ti.i32", name))
                return name
            case "shape":
                if name not in self.shapes:
                    raise Skip
                return self.shapes[name]
        return name

    def constant(self, name, value, dtype=None):
        """A number, as the choice has it reach the kernel."""
        dtype = dtype or self.dtype
        kind = self.get("constant", "global")
        if kind == "field0":
            self.declare(name, f"ti.field({dtype}, shape=())")
            self.declarations.append(f"{self.own(name)}[None] = {value}")
            return f"{self.own(name)}[None]"
        self.declare(name, value)
        if kind in ("argument", "template"):
            self.parameters.append((name, dtype if kind == "argument" else "ti.template()", self.outside(name)))
            return name
        return f"ti.static({self.own(name)})" if kind == "static" else self.own(name)

    def loop(self, names, sizes, body, over=None, margin=0, kind=None, inside=None):
        """A loop over indices from `margin` to sizes less `margin`. `inside` is a condition the body is guarded by."""
        kind = kind or self["loops"]
        guard = self.get("guard", "range")
        sizes = [self.size(size) if isinstance(size, str) else str(size) for size in sizes]
        if margin and guard != "range":
            tests = [f"{name} >= {margin} and {name} < {size} - {margin}" for name, size in zip(names, sizes)]
            inside, margin = " and ".join(tests), 0
        if margin and kind in ("struct", "grouped"):
            raise Skip
        if inside and guard == "if":
            body = [f"if {inside}:", *indent(body)]
        elif inside and guard == "continue":
            body = [f"if not ({inside}):", "    continue", *body]
        elif inside and guard == "range" and not margin:
            body = [f"if {inside}:", *indent(body)]
        spans = [f"({margin}, {size} - {margin})" if margin else size for size in sizes]
        ranges = [span.strip("()") if margin else span for span in spans]
        lengths = [f"({size} - {2 * margin})" if margin else size for size in sizes]
        order = list(range(len(names)))
        match kind:
            case "range" | "ndrange" | "swapped":
                if kind == "swapped":
                    order.reverse()
                head = ", ".join(names[k] for k in order)
                if kind == "range":
                    return [f"for {head} in range({ranges[0]}):", *indent(body)]
                return [f"for {head} in ti.ndrange({', '.join(spans[k] for k in order)}):", *indent(body)]
            case "nested" | "nested_swapped":
                if kind == "nested_swapped":
                    order.reverse()
                for k in reversed(order):
                    body = [f"for {names[k]} in range({ranges[k]}):", *indent(body)]
                return body
            case "struct":
                if over is None:
                    raise Skip
                return [f"for {', '.join(names)} in {over.ref}:", *indent(body)]
            case "grouped":
                if over is None:
                    raise Skip
                unpack = [f"{name} = cell[{k}]" for k, name in enumerate(names)]
                return [f"for cell in ti.grouped({over.ref}):", *indent([*unpack, *body])]
            case "flat":
                lines, rest = [], "flat"
                for k in range(len(names) - 1, 0, -1):
                    lines.append(f"{names[k]} = {rest} % {lengths[k]}" + (f" + {margin}" if margin else ""))
                    rest = f"{rest} // {lengths[k]}"
                lines.append(f"{names[0]} = {rest}" + (f" + {margin}" if margin else ""))
                return [f"for flat in range({' * '.join(lengths)}):", *indent([*lines, *body])]
            case "while":
                if len(names) == 1:
                    lines = [f"{names[0]} = 256 * chunk - 1", f"while {names[0]} < 256 * chunk + 255:"]
                    lines += indent([f"{names[0]} += 1", *body])
                    return [f"for chunk in range({sizes[0]} // 256):", *indent(lines)]
                lines = [f"{names[-1]} = {margin - 1}", f"while {names[-1]} < {sizes[-1]} - {margin + 1}:"]
                body = [*lines, *indent([f"{names[-1]} += 1", *body])]
                for k in range(len(names) - 2, -1, -1):
                    body = [f"for {names[k]} in range({ranges[k]}):", *indent(body)]
                return body
            case "chunks":
                line = f"{names[0]} = 256 * chunk + within"
                inner = ["for within in range(256):", *indent([line, *body])]
                return [f"for chunk in range({sizes[0]} // 256):", *indent(inner)]
        raise Skip

    def function(self, name, parameters, lines, result, arrays=(), returns=None):
        """Lines that compute `result`, by themselves or in a function of `parameters`, pairs of name and type."""
        kind = self.get("body", "inline")
        if kind == "inline":
            return lines
        passed = [array.name for array in arrays if array.storage in ("template", "ndarray", "numpy")]
        call = ", ".join([*passed, *(parameter for parameter, _ in parameters)])
        if kind == "real_func":
            if passed or (arrays and self.in_class):
                raise Skip
            heads = ", ".join(f"{parameter}: {dtype}" for parameter, dtype in parameters)
            self.real_functions += ["@ti.real_func", f"def {name}({heads}) -> {returns or self.dtype}:"]
            self.real_functions += [*indent([*lines, f"return {result}"]), ""]
            return [f"{result} = {name}({call})"]
        heads = [*(["self"] if self.in_class else []), *(f"{one}: ti.template()" for one in passed)]
        heads += [parameter for parameter, _ in parameters]
        self.functions += ["@ti.func", f"def {name}({', '.join(heads)}):", *indent([*lines, f"return {result}"]), ""]
        return [f"{result} = {self.own(name)}({call})"]

    def add(self, target, value, parallel=False):
        """Lines that add to an element; `parallel` where other iterations add to the same."""
        match self.get("adding", "augmented"):
            case "own" if not parallel:
                return [f"{target} = {target} + {value}"]
            case "augmented":
                return [f"{target} += {value}"]
            case "atomic":
                return [f"ti.atomic_add({target}, {value})"]
        raise Skip

    def accumulate(self, target, around, value, start="0.0", into="="):
        """Lines of a sum: `around` wraps the line that adds in its loops."""
        if self.get("adding", "local") == "local":
            return [f"total = {start}", *around(f"total += {value}"), f"{target} {into} total"]
        first = [f"{target} = {start}"] if into == "=" else []
        return [*first, *around(self.add(target, value)[0])]

    def kernel(self, lines, name="compute", returns=None, run=True, extra=()):
        """A kernel, which `run` calls. It takes all parameters that have been made so far."""
        parameters = [*self.parameters, *extra]
        heads = [*(["self"] if self.in_class else []), *(f"{one}: {kind}" for one, kind, _ in parameters)]
        result = f" -> {returns}" if returns else ""
        self.kernels += ["@ti.kernel", f"def {name}({', '.join(heads)}){result}:", *indent(lines), ""]
        call = f"{self.outside(name)}({', '.join(value for _, _, value in parameters)})"
        if returns:
            call = f"answer[0] = {call}"
        if run:
            self.runs.append(call)
        return call

    def result(self, expression):
        """What is compared with the reference: an expression, outside of kernels."""
        self.answer = expression

    def source(self):
        """The program."""
        lines = [f"{name} = {value}" for name, value in self.sizes.items()]
        if any("answer" in run for run in self.runs):
            lines.append("answer = [None]")
        functions = [*self.functions, *self.kernels]
        if self.in_class:
            init = ["def __init__(self):", *indent(self.declarations or ["pass"]), ""]
            functions = ["@ti.data_oriented", "class Program:", *indent([*init, *functions])]
            lines += ["", *self.real_functions, *functions, "program = Program()"]
        else:
            lines += [*self.declarations, "", *self.real_functions, *functions]
        lines += ["", "def run():", *indent(self.runs), "", "def result():", f"    return {self.answer}"]
        return "\n".join(line if line.strip() else "" for line in lines) + "\n"
