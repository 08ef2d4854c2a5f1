"""The exceptions that Aerogel raises, with Taichi's hierarchy and Taichi's names as aliases.

A mistake in a kernel is an ``AerogelCompilationError`` or one of its subclasses; a failure while a
kernel runs, or a call that cannot be made, is an ``AerogelRuntimeError`` or one of its subclasses.
"""


class AerogelCompilationError(Exception):
    """A kernel cannot be compiled: the mistake is in its source."""


class AerogelSyntaxError(AerogelCompilationError, SyntaxError):
    """A kernel uses a form of Python that the kernel language does not have."""

    # `SyntaxError.__str__` would append its own idea of a location.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class AerogelNameError(AerogelCompilationError, NameError):
    """A kernel uses a name that is not defined."""


class AerogelIndexError(AerogelCompilationError, IndexError):
    """A constant index is outside of its matrix, or an index from Python is outside of its field."""


class AerogelTypeError(AerogelCompilationError, TypeError):
    """An operation is applied to values of types that it does not have."""


class AerogelShapeError(AerogelCompilationError, ValueError):
    """Vectors or matrices of Python have shapes that do not fit the operation."""


class AerogelRuntimeError(RuntimeError):
    """Something failed while a kernel ran, or cannot be done in the present state."""


class AerogelAssertionError(AerogelRuntimeError, AssertionError):
    """An assertion in a kernel failed, or an index went out of range in debug mode."""


class AerogelArithmeticError(AerogelAssertionError, ArithmeticError):
    """An operation on integers has no answer; found in debug mode."""


class AerogelExtentError(AerogelRuntimeError, ValueError):
    """A layout has an invalid shape or invalid axes."""


class AerogelMemoryError(AerogelRuntimeError, MemoryError):
    """There is no memory for a cell of a sparse node. The values of fields are intact."""


class AerogelRaceError(AerogelRuntimeError):
    """Two iterations of a parallel loop write one cell, or one writes and one reads it, without atomic operations.

    Found with ``ti.init(debug_races=True)``.
    """


class AerogelRecursionError(AerogelRuntimeError, RecursionError):
    """Real functions have called themselves, or one another, deeper than the stack holds."""


class AerogelZeroDivisionError(AerogelArithmeticError, ZeroDivisionError):
    """An integer is divided by zero; found in debug mode."""


class AerogelRuntimeTypeError(AerogelRuntimeError, TypeError):
    """An argument of a kernel call has the wrong type."""

    @staticmethod
    def get(position: int, needed: str, provided: str) -> "AerogelRuntimeTypeError":
        """Makes the error for the argument at ``position`` (from 0)."""
        return AerogelRuntimeTypeError(
            f"argument {position} (type={provided}) cannot be converted into required type {needed}"
        )


class AerogelDataTypeError(TypeError, ValueError):
    """A value is not a scalar type."""


class AerogelNotSupportedError(AerogelRuntimeError, NotImplementedError):
    """Part of Taichi's interface that Aerogel does not have yet."""


class AerogelMissingNameError(AerogelNotSupportedError, AttributeError):
    """A name of Taichi's that Aerogel does not have yet; ``hasattr`` finds it absent."""


TaichiCompilationError = AerogelCompilationError
TaichiSyntaxError = AerogelSyntaxError
TaichiNameError = AerogelNameError
TaichiIndexError = AerogelIndexError
TaichiTypeError = AerogelTypeError
TaichiRuntimeError = AerogelRuntimeError
TaichiAssertionError = AerogelAssertionError
TaichiRuntimeTypeError = AerogelRuntimeTypeError

__all__ = [
    "AerogelArithmeticError",
    "AerogelAssertionError",
    "AerogelCompilationError",
    "AerogelDataTypeError",
    "AerogelExtentError",
    "AerogelIndexError",
    "AerogelMemoryError",
    "AerogelMissingNameError",
    "AerogelNameError",
    "AerogelNotSupportedError",
    "AerogelRaceError",
    "AerogelRecursionError",
    "AerogelRuntimeError",
    "AerogelRuntimeTypeError",
    "AerogelShapeError",
    "AerogelSyntaxError",
    "AerogelTypeError",
    "AerogelZeroDivisionError",
    "TaichiAssertionError",
    "TaichiCompilationError",
    "TaichiIndexError",
    "TaichiNameError",
    "TaichiRuntimeError",
    "TaichiRuntimeTypeError",
    "TaichiSyntaxError",
    "TaichiTypeError",
]
