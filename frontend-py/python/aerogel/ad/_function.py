"""A kernel as a function: what ``torch_function`` and ``jax_function`` have in common.

The kernel's last parameters are the arrays of its results. It is launched now, and its gradient some time later: what
the gradient needs of fields and arrays that may change until then is saved with the launch, as bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from aerogel import _native
from aerogel.ad import _recorder
from aerogel.ad._put_back import put_back
from aerogel.errors import AerogelRuntimeError
from aerogel.kernel import BoundKernel, Kernel

#: The bytes of a launch's seed, and of a number that stands for the cells that were active.
_SEED = 8
_DIGEST = 8
#: For a launch that draws no random numbers.
FIRST_SEED = bytes(_SEED)


class KernelFunction:
    """A kernel whose last ``n_outputs`` parameters are results; of none if it changes its arguments."""

    def __init__(self, kernel: Any, n_outputs: int = 0, maker: str = "") -> None:
        if not isinstance(kernel, (Kernel, BoundKernel)):
            raise AerogelRuntimeError(f"{maker} takes a kernel, not {type(kernel).__name__}")
        self.kernel: Any = kernel
        self.bound: tuple[Any, ...] = ()
        if isinstance(kernel, BoundKernel):
            self.kernel, self.bound = kernel.__func__, (kernel.__self__,)
        self.name: str = self.kernel.__name__
        parameters = self.kernel._parameters()[len(self.bound) :]
        self.inputs, self.outputs = parameters[: len(parameters) - n_outputs], parameters[len(parameters) - n_outputs :]
        if not maker:
            return
        if n_outputs < 1 or len(parameters) <= n_outputs:
            raise AerogelRuntimeError(
                f"{maker} takes a kernel whose last parameters are its results, at least one; `{self.name}` has "
                f"{len(parameters)} parameters, and `n_outputs` is {n_outputs}"
            )
        for name, kind in self.outputs:
            if kind != "array":
                raise AerogelRuntimeError(
                    f"the parameter `{name}` of kernel `{self.name}` takes results, and must be an array: annotate it "
                    "`ti.types.ndarray()`, or pass another `n_outputs`"
                )

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the parameters, without those for results."""
        names = [name for name, _ in self.inputs]
        given = dict(zip(names, args))
        wrong = [f"`{name}`" for name in kwargs if name not in names or name in given]
        missing = [f"`{name}`" for name in names if name not in given and name not in kwargs]
        if len(args) > len(names) or wrong or missing:
            what = f"{', '.join(wrong)} cannot be passed" if wrong else f"got {len(args)}"
            what = f"{', '.join(missing)} is missing" if missing else what
            raise TypeError(f"kernel `{self.name}` as a function takes {', '.join(names)}: {what}")
        return [given[name] if name in given else kwargs[name] for name in names]

    def each(self, given: Any, default: Any, what: str) -> list[Any]:
        """What was given for all results, or for each, as a list."""
        n = len(self.outputs)
        if given is None:
            return [default] * n
        if n == 1:
            return [given]
        if not isinstance(given, (list, tuple)) or len(given) != n:
            raise TypeError(f"`{what}` must be a list, one for each of the {n} results of kernel `{self.name}`")
        return list(given)

    def shapes(self, shape: Any, given: list[Any], default: Any) -> list[tuple[int, ...]]:
        """The shapes of the results: ``shape``, or what it returns if it is a function."""
        found = self.each(shape(*given) if callable(shape) else shape, default, "shape")
        return [(one,) if hasattr(one, "__index__") else tuple(one) for one in found]

    def written(self, args: Sequence[Any]) -> set[str]:
        """The names of the inputs that the kernel writes."""
        names = {name for name, _ in self.inputs}
        return names & set(self.kernel._written((*self.bound, *args)))

    def forward(self, args: Sequence[Any], described: Sequence[Any] | None, apart: list[str], is_whole: bool) -> bytes:
        """Launches the kernel.

        Args:
            args: All arguments.
            described: The same with gradients, of which nothing but the types is looked at; None if there will be none.
            apart: The array parameters whose arguments will be the same.
            is_whole: Whether whole fields are saved, so that how many bytes there are depends on no number.

        Returns:
            What ``backward`` needs.
        """
        with _recorder.unrecorded():
            seed = _native.next_seed()
            if described is None:
                self.kernel._launch((*self.bound, *args), None, None, seed)
                return b""
            return self._launched(args, described, (apart, is_whole, seed))[0]

    def _launched(self, args: Sequence[Any], described: Sequence[Any], how: tuple[list[str], bool, int]) -> Any:
        apart, is_whole, seed = how
        saved = self._saved(described, apart, is_whole)
        first = saved.before_launch()
        result = self.kernel._launch((*self.bound, *args), None, None, seed)
        return seed.to_bytes(_SEED, "little") + first + saved.after_launch(), result

    def run(self, args: Sequence[Any], apart: list[str]) -> tuple[bytes, Any]:
        """Launches the kernel with arrays that have gradients: what ``pull_back`` needs, and what it returns."""
        with _recorder.unrecorded():
            return self._launched(args, args, (apart, False, _native.next_seed()))

    def saved_for(self, args: Sequence[Any], apart: list[str], seed: bytes = FIRST_SEED) -> bytes:
        """What ``pull_back`` needs of a launch of which only the arguments are known, as they were before it.

        The kernel is launched once more, with the seed that ``seed`` begins with, if its gradient needs values that it
        computes.
        """
        with _recorder.unrecorded():
            saved = self._saved(args, apart, False)
            first = saved.before_launch()
            if saved.nbytes > len(first) + _DIGEST:
                return self._launched(args, args, (apart, False, _seed_of(seed)))[0]
            return seed[:_SEED] + first + saved.after_launch()

    def forward_with_tangents(self, args: Sequence[Any], apart: list[str], seed: bytes) -> bytes:
        """Launches the kernel with the tangents of its arrays: what ``pull_back`` of ``grad_dual`` needs."""
        with _recorder.unrecorded():
            saved = self._saved(args, apart, False, "grad_dual")
            first = saved.before_launch()
            self.kernel._launch((*self.bound, *args), None, "dual", _seed_of(seed))
            return seed[:_SEED] + first + saved.after_launch()

    def is_pure(self, args: Sequence[Any]) -> bool:
        """Whether a launch reads and writes its arguments only: no fields, and no arrays by other names."""
        return self.kernel._is_pure((*self.bound, *args))

    def pull_back(
        self, args: Sequence[Any], saved: tuple[bytes, list[str]], seeds: Sequence[float], derivative: str = "grad"
    ) -> list[Any]:
        """Launches the gradient: that of each array grows.

        Args:
            args: All arguments, arrays with gradients.
            saved: What ``run`` or ``saved_for`` has returned, and the array parameters that were apart.
            seeds: The gradient by each number that the kernel returns.
            derivative: ``"grad_dual"`` computes the tangents of the gradient as well; ``saved`` is then what
                ``forward_with_tangents`` has returned.

        Returns:
            For each parameter that consists of floats the gradients by them.
        """
        blob, apart = saved
        given = (*self.bound, *args)
        with self._as_it_was(blob, self._saved(args, apart, False, derivative)) as seed:
            return self.kernel._pull_back(given, None, list(seeds), seed, True, derivative)[len(self.bound) :]

    def backward(
        self, args: Sequence[Any], saved: tuple[bytes, Sequence[Any], list[str], bool], of_numbers: bool
    ) -> list[Any]:
        """Launches the gradient.

        Args:
            args: All arguments, arrays with gradients.
            saved: What ``forward`` has returned, and what it has been given but for the first. Arrays that were not
                ``apart`` are the same as in ``args``, or private ones in their place.
            of_numbers: Whether gradients by numbers are wanted.

        Returns:
            For each input that consists of floats the gradients by them, if that is wanted, or nothing.
        """
        blob, described, apart, is_whole = saved
        with self._as_it_was(blob, self._saved(described, apart, is_whole)) as seed:
            given = (*self.bound, *args)
            if of_numbers:
                return self.kernel._pull_back(given, None, [], seed, True)[len(self.bound) :]
            self.kernel._launch(given, None, "grad", seed, True)
            return []

    @contextlib.contextmanager
    def _as_it_was(self, blob: bytes, saved: Any) -> Iterator[int]:
        """A block in which memory is as it was at the launch; gives the launch's seed."""
        present = _native.NativePresent()
        with _recorder.unrecorded():
            try:
                for snapshot in saved.snapshots(blob[_SEED:]):
                    snapshot.back(present)
                    if not snapshot.is_there():
                        raise AerogelRuntimeError(
                            f"cells have become inactive since kernel `{self.name}` read them, which its gradient "
                            "needs: deactivate cells after the gradients are computed"
                        )
                put_back()
                yield _seed_of(blob)
            finally:
                present.restore()
                put_back()

    def n_saved(self, described: Sequence[Any], apart: list[str]) -> int:
        """How many bytes ``forward`` returns if whole fields are saved."""
        return _SEED + self._saved(described, apart, True).nbytes

    def _saved(self, described: Sequence[Any], apart: list[str], is_whole: bool, derivative: str = "grad") -> Any:
        return _native.NativeSaved(self.kernel, (*self.bound, *described), apart, is_whole, derivative)

    def no_second(self) -> AerogelRuntimeError:
        """The exception for second derivatives."""
        return AerogelRuntimeError(
            f"kernel `{self.name}` as a function has first derivatives only: compute second ones by ti.ad.hvp, or "
            "write the gradient as a kernel of its own"
        )


def _seed_of(blob: bytes) -> int:
    return int.from_bytes(blob[:_SEED], "little")


__all__ = ["FIRST_SEED", "KernelFunction"]
