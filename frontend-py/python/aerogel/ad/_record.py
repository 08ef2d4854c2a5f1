"""Launches and writes, noted so that one can go back."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from aerogel import _native
from aerogel._config import ad_memory
from aerogel.ad import _recorder
from aerogel.ad._entries import _NUMBERS, Emptied, Entries, Entry, Launch, Replaced, Write, tensors_of
from aerogel.ad._gradients import fields_with_gradients, has_gradient, is_tensor
from aerogel.ad._retained import Retained
from aerogel.ad._tensors import Stored, has_history, launch, read
from aerogel.ad._undo import Undo
from aerogel.data.field import NumericField
from aerogel.data.ndarray import Ndarray
from aerogel.errors import AerogelMemoryError, AerogelRuntimeError


class Record(_recorder.Recorder):
    """A tape without its loss."""

    #: What is launched in place of a kernel, if not the kernel itself, and in the backward pass.
    primal: str | None = None
    derivative = "grad"

    def __init__(self, validation: bool = False, keeps_written: bool = False) -> None:
        self.validation = validation
        #: How often gradients met each kink, where that is counted.
        self.kinks: Counter[str] | None = Counter() if validation else None
        # Whether values that Python writes are saved too, so that all steps can be replayed.
        self.keeps_written = keeps_written
        self.retained = Retained()
        self.clear()

    def clear(self) -> None:
        """Forgets all."""
        self.entries = Entries()
        self.recording = _native.NativeRecording(self.validation)
        #: The first kernel that failed, halfway.
        self.failed = ""
        self._sums: dict[int, tuple[Any, int]] = {}
        # Tensors that launches have taken, each with its version, and the name of a kernel whose gradient needs it.
        self._tensors: dict[Any, tuple[Any, int, str]] = {}
        # The keys of those, by where their storage begins.
        self._of_storage: dict[int, list[Any]] = {}
        # The arrays that launches have taken.
        self._arrays: dict[int, Any] = {}
        # Puts back what gradients that are written by hand change.
        self._undo = Undo(self.recording, self._arrays)
        # The activity that launches of functions with a custom gradient have queried.
        self._asked_within: list[Any] = []
        self._most_bytes = ad_memory()

    #: The gradients of tensors, during the backward pass.
    gradients: Any = None

    #: Gives the seed of the next launch.
    seed: Callable[[], int] = staticmethod(_native.next_seed)

    def launch(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Launches a kernel and keeps what it takes to go back."""
        # This is what a tape costs: hence no context manager.
        for arg in args if not kwargs else (*args, *kwargs.values()):
            if type(arg) not in _NUMBERS and has_history(arg):
                return launch(self, kernel, args, kwargs)
        set_recorder = _native.set_recorder
        set_recorder(None)
        try:
            if self.keeps_written:
                self.finish()
            if self.validation:
                self.expect_same_arrays()
            tensors = tensors_of(args, kwargs)
            if tensors:
                self._expect_same(self._sharing(tensors))
            drawn = self.seed()
            counts_as = "constant" if self.constant else "function" if self.replaced_within else self.derivative
            if self.around is not None:
                self.around.before_launch(kernel, args, kwargs)
            kept, asked = self.recording.before_launch(kernel, args, kwargs, counts_as)
            is_active = counts_as == self.derivative
            try:
                result = kernel._launch(args, kwargs, self.primal if is_active else None, drawn)
            except BaseException:
                self.failed = self.failed or kernel.__name__
                raise
            entry = Launch(kernel, args, kwargs, drawn, kept, self.derivative if is_active else None)
            if asked is not None:
                self._note_asked(entry, asked)
            if self.retained.targets:
                entry.written = self.recording.writes(kernel, args, kwargs, self.retained.targets)
            if self.validation:
                self._note_arrays(kernel, args, kwargs)
            entry.kinks = self.kinks
            if tensors:
                self._note_tensors(tensors, entry)
            self.entries.all.append(entry)
            if args or kwargs:
                self._arrays.update((id(arg), arg) for arg in entry.objects() if isinstance(arg, Ndarray))
            if kept or asked is not None:
                self._count(entry)
            return result
        finally:
            set_recorder(self)

    def _note_asked(self, entry: Launch, asked: Any) -> None:
        """Notes which active cells a launch has queried."""
        self.recording.after_launch(asked)
        if entry.derivative is None:
            self._asked_within.append(asked)
        else:
            entry.asked = (self.recording, asked)

    def write(self, target: Any, key: Any, component: int | None = None) -> None:
        """Keeps what Python is about to overwrite."""
        with _recorder.unrecorded():
            if self.around is not None:
                self.around.write(target, key, component)
            kept = self.recording.before_write(target, key)
            source = None if self.constant or self.replaced_within else self.source
            if source is not None and (has_gradient(source) or has_history(source)) and not has_gradient(target):
                called = "from_torch" if is_tensor(source) else "from_numpy" if has_history(source) else "copy_from"
                self.recording.note_end(target, f"`{called}`")
            entry: Write
            if has_history(source):
                entry = Stored(self, target, kept, source)
            else:
                entry = Write(target, (key, component), kept, source)
            entry.written = self.retained.box_of(target, key)
            self.add(entry)

    def deactivate(self, node: Any) -> None:
        """Raises an error if gradients need the cells; nothing depends on their old values afterwards."""
        self.recording.before_deactivate(node)
        with _recorder.unrecorded():
            if self.around is not None:
                self.around.deactivate(node)
            self.add(Emptied(node, _native.fields_in_cells(node, fields_with_gradients())))

    def read(self, source: Any) -> Any:
        """A tensor of a field or an array."""
        return read(self, source)

    def insert(self, function: Any, args: tuple[Any, ...] = ()) -> None:
        """Adds a call of something that has a ``grad``, which is called in the backward pass."""
        self.replaced(function.grad, args, {})

    def replaced(self, gradient: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Adds a function whose gradient another one computes."""
        asked, self._asked_within = self._asked_within, []
        self.add(Replaced(gradient, args, kwargs, self._undo, (self.recording, asked)))

    def add(self, entry: Entry) -> None:
        """Adds what has happened, or is about to."""
        self.finish()
        self.entries.all.append(entry)
        self._count(entry)

    def _count(self, entry: Entry) -> None:
        self.entries.nbytes += entry.nbytes
        if self.entries.nbytes > self._most_bytes:
            raise AerogelMemoryError(
                f"the tape would save more than {self._most_bytes} bytes of overwritten values that gradients need: "
                "ti.init(ad_memory=...) allows more, ti.ad.checkpoint saves less"
            )

    def finish(self) -> None:
        """Keeps what the last write of Python's has written."""
        last = self.entries.all[-1] if self.entries.all else None
        if self.keeps_written and isinstance(last, Write):
            last.keep_written()

    def _note_arrays(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        for arg in [*args, *(kwargs or {}).values()]:
            # A `ti.ndarray` whose array interface is read exposes its memory.
            is_array = isinstance(arg, Ndarray) or hasattr(arg, "__array_interface__")
            if is_array and not isinstance(arg, NumericField):
                self._sums[id(arg)] = (arg, _checksum(arg))

    def _note_tensors(self, tensors: list[Any], entry: Launch) -> None:
        # What the launch itself has written is known. Views share the version of their base.
        for key, (tensor, _, name) in self._sharing(tensors):
            self._tensors[key] = (tensor, version_of(tensor), name)
        for tensor in tensors:
            key = _key(tensor)
            if key not in self._tensors and entry.derivative is not None:
                self._tensors[key] = (tensor, version_of(tensor), entry.kernel.__name__)
                self._of_storage.setdefault(_storage(tensor), []).append(key)

    def _sharing(self, tensors: list[Any]) -> list[tuple[Any, tuple[Any, int, str]]]:
        """The known tensors whose storage is that of one of some tensors."""
        found = {key: None for tensor in tensors for key in self._of_storage.get(_storage(tensor), ())}
        return [(key, self._tensors[key]) for key in found]

    def expect_same_tensors(self) -> None:
        """Checks that only kernels of the tape have modified the tensors that gradients need."""
        self._expect_same(self._tensors.items())

    def _expect_same(self, all_known: Iterable[tuple[Any, tuple[Any, int, str]]]) -> None:
        for key, (tensor, version, name) in all_known:
            # `tensor.data = other` gives it other memory, and leaves the version as it is.
            if version_of(tensor) != version or _key(tensor) != key:
                raise AerogelRuntimeError(
                    f"a tensor that was passed to kernel `{name}` has been modified since, in a way that cannot be "
                    "undone: modify a copy of it"
                )

    def expect_whole(self) -> None:
        """Checks that no recorded kernel has failed."""
        if self.failed:
            raise AerogelRuntimeError(
                f"kernel `{self.failed}` failed under the tape, and its writes are not known: there are no gradients"
            )
        self.expect_same_arrays()
        self.expect_same_tensors()

    def expect_same_arrays(self) -> None:
        """Checks that NumPy arrays still have the values of the last launch, as far as that is checked."""
        for array, checksum in self._sums.values():
            if _checksum(array) != checksum:
                raise AerogelRuntimeError(
                    "an array that was passed to kernels of the tape has been modified outside of kernels: modify "
                    "a copy of it"
                )


def _key(tensor: Any) -> Any:
    """What stands for a tensor, whichever object of Python's it is."""
    return (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)


def _storage(tensor: Any) -> int:
    """Where the storage of a tensor begins, which it shares with its views."""
    return tensor.untyped_storage().data_ptr()


def version_of(tensor: Any) -> int:
    """How often a tensor has been changed, as PyTorch counts; tensors of ``torch.inference_mode`` are not counted."""
    return 0 if tensor.is_inference() else tensor._version


def _checksum(array: Any) -> int:
    import numpy as np

    numbers = array.to_numpy() if isinstance(array, Ndarray) else np.asarray(array)
    return zlib.adler32(np.ascontiguousarray(numbers).view(np.uint8).reshape(-1).data)


__all__ = ["Record"]
