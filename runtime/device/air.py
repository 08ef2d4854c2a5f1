"""A small language whose operators append instructions of IR text, in which derive.py writes functions."""

import mpmath as mp


class Type:
    def __init__(self, name, mant, bias, log_degree):
        self.name, self.mant, self.bias = name, mant, bias
        self.int = "i" + name[1:]
        self.bits = int(name[1:])
        self.magic = mp.mpf(3) * mp.mpf(2) ** (mant - 1)
        self.magic_bits = ((bias + mant) << mant) + (1 << (mant - 1))
        self.min_normal = mp.mpf(2) ** (1 - bias)
        self.log_degree = log_degree

    def round(self, value):
        """The nearest number of the type."""
        value = mp.mpf(value)
        if value == 0 or mp.isinf(value) or mp.isnan(value):
            return value
        exponent = mp.floor(mp.log(abs(value), 2))
        step = mp.mpf(2) ** (max(exponent, 1 - self.bias) - self.mant)
        return mp.nint(value / step) * step

    def parts(self, value, n):
        """`value` as a sum of `n` numbers of the type."""
        out = []
        for _ in range(n):
            out.append(self.round(value))
            value -= out[-1]
        return out


F32 = Type("f32", 23, 127, 8)
F64 = Type("f64", 52, 1023, 12)


class Value:
    def __init__(self, f, name, ty):
        self.f, self.name, self.ty = f, name, ty

    def _binary(self, op, other, flip=False):
        other = self.f.value(other, self.ty)
        a, b = (other, self) if flip else (self, other)
        return self.f.emit(self.ty, f"{op} {a.name}, {b.name}")

    def __add__(self, o):
        return self._binary("add", o)

    def __sub__(self, o):
        return self._binary("sub", o)

    def __mul__(self, o):
        return self._binary("mul", o)

    def __truediv__(self, o):
        return self._binary("div", o)

    def __radd__(self, o):
        return self._binary("add", o, True)

    def __rsub__(self, o):
        return self._binary("sub", o, True)

    def __rmul__(self, o):
        return self._binary("mul", o, True)

    def __rtruediv__(self, o):
        return self._binary("div", o, True)

    def __and__(self, o):
        return self._binary("and", o)

    def __or__(self, o):
        return self._binary("or", o)

    def __xor__(self, o):
        return self._binary("xor", o)

    def __lshift__(self, o):
        return self._binary("shl", o)

    def __rshift__(self, o):
        return self._binary("shr", o)

    def _compare(self, op, o):
        o = self.f.value(o, self.ty)
        return self.f.emit("u1", f"{op} {self.name}, {o.name}")

    def __lt__(self, o):
        return self._compare("lt", o)

    def __gt__(self, o):
        return self._compare("gt", o)

    def __ge__(self, o):
        return self._compare("ge", o)

    def eq(self, o):
        return self._compare("eq", o)

    def ne(self, o):
        return self._compare("ne", o)

    def __neg__(self):
        return self.f.emit(self.ty, f"neg {self.name}")

    def __abs__(self):
        return self.f.emit(self.ty, f"abs {self.name}")

    def unary(self, op):
        return self.f.emit(self.ty, f"{op} {self.name}")

    def bitcast(self, ty):
        return self.f.emit(ty, f"bitcast {self.name}")

    def cast(self, ty):
        return self.f.emit(ty, f"cast {self.name}")


class Func:
    """One function of IR text in the making."""

    def __init__(self, name, params, ty):
        self.head = f"func @{name}(" + ", ".join(f"{p}: {t}" for p, t in params) + f") -> {ty}"
        self.lines, self.consts, self.n = [], {}, 0

    def emit(self, ty, text):
        name = f"v{self.n}"
        self.n += 1
        self.lines.append(f"    {name}: {ty} = {text}")
        return Value(self, name, ty)

    def value(self, v, ty):
        if isinstance(v, Value):
            return v
        if ty[0] == "f":
            t = F32 if ty == "f32" else F64
            v = t.round(v)
            digits = 9 if ty == "f32" else 17
            text = "inf" if v == mp.inf else "-inf" if v == -mp.inf else f"{float(v):.{digits}g}"
            if mp.isnan(v):
                text = "bits:7fc00000" if ty == "f32" else "bits:7ff8000000000000"
        else:
            text = str(int(v))
        key = (ty, text)
        if key not in self.consts:
            self.consts[key] = self.emit(ty, f"const {text}")
        return self.consts[key]

    def fma(self, a, b, c):
        ty = next(v.ty for v in (a, b, c) if isinstance(v, Value))
        a, b, c = (self.value(v, ty) for v in (a, b, c))
        return self.emit(ty, f"fma {a.name}, {b.name}, {c.name}")

    def select(self, cond, a, b, ty=None):
        ty = ty or next(v.ty for v in (a, b) if isinstance(v, Value))
        a, b = self.value(a, ty), self.value(b, ty)
        return self.emit(ty, f"select {cond.name}, {a.name}, {b.name}")

    def poly(self, x, coefficients):
        """Horner's scheme, lowest coefficient first."""
        result = self.value(coefficients[-1], x.ty)
        for c in reversed(coefficients[:-1]):
            result = self.fma(result, x, c)
        return result

    def call(self, name, arg, types):
        """The results of a call of another function of the file."""
        values = []
        for ty in types:
            values.append(Value(self, f"v{self.n}", ty))
            self.n += 1
        results = ", ".join(f"{v.name}: {v.ty}" for v in values)
        self.lines.append(f"    {results} = call @{name}, [{arg.name}]")
        return values

    def text(self, *results):
        names = ", ".join(r.name for r in results)
        return "\n".join([self.head + " {", *self.lines, f"    return [{names}]", "}\n"])
