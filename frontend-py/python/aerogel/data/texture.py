"""``ti.Texture``: images that kernels sample between their texels, with a format that converts values."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from aerogel._dtypes import DataType, dtype_of, f16, f32, i8, i16, i32, u8, u16, u32
from aerogel._outside import outside_kernels
from aerogel.errors import AerogelCompilationError, AerogelRuntimeError

if TYPE_CHECKING:
    from aerogel.data.ndarray import VectorNdarray


class Format(enum.Enum):
    """The format of a texel: its channels, and the bits and the meaning of each.

    No letter, or ``srgb``: unsigned integers that represent numbers from 0 to 1, of linear light or sRGB. ``u`` and
    ``i``: integers, unsigned and signed. ``f``: floats.
    """

    unknown = 0
    r8 = 1
    rg8 = 2
    rgba8 = 3
    rgba8srgb = 4
    bgra8 = 5
    bgra8srgb = 6
    r8u = 7
    rg8u = 8
    rgba8u = 9
    r8i = 10
    rg8i = 11
    rgba8i = 12
    r16 = 13
    rg16 = 14
    rgb16 = 15
    rgba16 = 16
    r16u = 17
    rg16u = 18
    rgb16u = 19
    rgba16u = 20
    r16i = 21
    rg16i = 22
    rgb16i = 23
    rgba16i = 24
    r16f = 25
    rg16f = 26
    rgb16f = 27
    rgba16f = 28
    r32u = 29
    rg32u = 30
    rgb32u = 31
    rgba32u = 32
    r32i = 33
    rg32i = 34
    rgb32i = 35
    rgba32i = 36
    r32f = 37
    rg32f = 38
    rgb32f = 39
    rgba32f = 40
    depth16 = 41
    depth24stencil8 = 42
    depth32f = 43

    @property
    def _is_color(self) -> bool:
        return self.name[0] in "rb"

    @property
    def _channels(self) -> int:
        return len(self.name.rstrip("0123456789uif").partition("8")[0])

    @property
    def _bits(self) -> int:
        return int("".join(c for c in self.name if c.isdigit()))

    @property
    def _kind(self) -> str:
        if self.name.endswith("srgb"):
            return "srgb"
        return {"u": "int", "i": "int", "f": "float"}.get(self.name[-1], "unorm")

    @property
    def _dtype(self) -> DataType:
        if self._kind == "float":
            return {16: f16, 32: f32}[self._bits]
        if self.name.endswith("i"):
            return {8: i8, 16: i16, 32: i32}[self._bits]
        return {8: u8, 16: u16, 32: u32}[self._bits]

    @property
    def _smallest(self) -> float:
        return -(2.0 ** (self._bits - 1)) if self.name.endswith("i") else 0.0

    @property
    def _largest(self) -> float:
        return self._smallest + 2.0**self._bits - 1

    @property
    def _can_be_stored_to(self) -> bool:
        return self._is_color and self._kind != "srgb" and self.name[0] != "b"


def _format(fmt: Any) -> Format:
    if not isinstance(fmt, Format):
        raise TypeError(f"the format of a texture is a ti.Format such as ti.Format.rgba8, not {fmt!r}")
    if not fmt._is_color:
        raise AerogelRuntimeError(f"a texture cannot have {fmt}: kernels read and write colours")
    return fmt


def _dimensions(n: Any) -> int:
    if not hasattr(n, "__index__") or n not in (1, 2, 3):
        raise ValueError(f"num_dimensions of a texture is 1, 2 or 3, not {n!r}")
    return int(n)


class TextureType:
    """The annotation of a kernel's parameter that takes a texture to read: by ``sample_lod`` and ``fetch``.

    Args:
        num_dimensions: How many axes it has: 1, 2 or 3.
    """

    _aerogel_annotation = "texture"
    fmt: Format | None = None

    def __init__(self, num_dimensions: int) -> None:
        self.num_dimensions = _dimensions(num_dimensions)

    @property
    def methods(self) -> dict[str, Any]:
        """What kernels call on it, as functions of the language."""
        from aerogel.data import _texels

        return _texels.METHODS

    def __repr__(self) -> str:
        return f"ti.types.texture(num_dimensions={self.num_dimensions})"


class RWTextureType(TextureType):
    """The annotation of a kernel's parameter that takes a texture to read and write: by ``load`` and ``store``.

    Args:
        num_dimensions: How many axes it has: 1, 2 or 3.
        lod: The level; a texture has level 0 only.
        fmt: The format, which is the texture's.

    Raises:
        AerogelCompilationError: There is no format, or it cannot be written to.
    """

    def __init__(self, num_dimensions: int, lod: int = 0, fmt: Format | None = None) -> None:
        super().__init__(num_dimensions)
        if fmt is None:
            raise AerogelCompilationError("fmt is required for rw_texture type")
        if not _format(fmt)._can_be_stored_to:
            raise AerogelCompilationError(f"rw_texture cannot have {fmt}, which can only be sampled")
        if lod != 0:
            raise AerogelCompilationError(f"a texture has level 0 only, not {lod!r}")
        self.fmt, self.lod = fmt, lod

    def __repr__(self) -> str:
        return f"ti.types.rw_texture(num_dimensions={self.num_dimensions}, fmt=ti.{self.fmt}, lod=0)"


def _of_parameters(function: Any) -> Any:
    """Marks what kernels call on their parameters only: of a texture from outside they cannot."""
    advice = "textures are passed as arguments: annotate a parameter `ti.types.texture(num_dimensions=2)`"
    function.__aerogel_outside_kernels__ = advice
    return function


class Texture:
    """An image of 1, 2 or 3 axes, of zeros at first.

    Args:
        fmt: The format of a texel.
        arr_shape: How many texels there are along x, y and z.

    Raises:
        AerogelRuntimeError: The format is not that of colours, or the shape has not 1 to 3 axes.
    """

    #: Kernels take it where a parameter is annotated so.
    _aerogel_texture = True

    @outside_kernels
    def __init__(self, fmt: Format, arr_shape: Any) -> None:
        from aerogel.data.ndarray import matrix_ndarray

        shape = (arr_shape,) if hasattr(arr_shape, "__index__") else tuple(arr_shape)
        if not 1 <= len(shape) <= 3 or any(not hasattr(n, "__index__") or n < 1 for n in shape):
            raise AerogelRuntimeError(f"the shape of a texture is 1, 2 or 3 positive integers, not {arr_shape!r}")
        self.fmt = _format(fmt)
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)
        self.num_dims = len(shape)
        self._texels: VectorNdarray = matrix_ndarray(fmt._channels, 1, 1, fmt._dtype, self.shape)

    def to_numpy(self) -> Any:
        """The texels as they are stored: texel (x, y) is at [x, y], its channels are red, green, blue, alpha."""
        return self._texels.to_numpy()

    def from_numpy(self, arr: Any) -> None:
        """Sets the texels from an array like the result of :func:`to_numpy`.

        Raises:
            ValueError: The shape is another.
            TypeError: Floats for a format of integers: 0.5 is none of them.
        """
        import numpy as np

        given = np.asarray(arr)
        if self.fmt._kind != "float" and given.dtype.kind not in "iub":
            raise TypeError(f"{self.fmt} consists of {self.fmt._dtype}; this array has {given.dtype}")
        self._texels.from_numpy(given)

    def from_ndarray(self, ndarray: Any) -> None:
        """Sets the texels from an array, whose elements are taken in the order of memory as rows of x, as Taichi does.

        So an array of shape (height, width) fills a texture of shape (width, height), and texel (x, y) is
        ``ndarray[y, x]``. Nothing is converted.

        Raises:
            ValueError: Its number of values differs from the texture's.
            TypeError: The numbers are not of the format's type.
        """
        self._fill(ndarray, "ti.ndarray")

    def from_field(self, field: Any) -> None:
        """Sets the texels from a field, whose elements are taken as :func:`from_ndarray` takes them."""
        self._fill(field, "field")

    def _fill(self, source: Any, what: str) -> None:
        if not hasattr(source, "to_numpy") or not hasattr(source, "dtype"):
            raise TypeError(f"a {what} is needed here, not {type(source).__name__}")
        if dtype_of(source.dtype) != self.fmt._dtype:
            raise TypeError(f"{self.fmt} consists of {self.fmt._dtype}; this {what} has {source.dtype}")
        values = source.to_numpy()
        shape = (*self.shape[::-1], self.fmt._channels)
        size = 1
        for n in shape:
            size *= n
        if values.size != size:
            raise ValueError(
                f"a texture of shape {self.shape} with {self.fmt} has {size} values; this {what} has {values.size}"
            )
        axes = (*range(self.num_dims)[::-1], self.num_dims)
        texels = values.reshape(shape).transpose(axes)
        self._texels.from_numpy(texels[..., [2, 1, 0, 3]] if self.fmt.name[0] == "b" else texels)

    @_of_parameters
    def sample_lod(self, at: Any, lod: float = 0.0) -> Any:
        """The colours at the coordinates of a tensor, as in kernels: linear between texels. Also in programs.

        Gradients go through the coordinates, not to the texels.

        Args:
            at: Coordinates from 0 to 1 of shape ``[.., num_dims]``, floats.
            lod: A texture has level 0 only, whatever this is.

        Returns:
            A tensor of shape ``[.., 4]``, ``f32``: red, green, blue and alpha.

        Raises:
            ValueError: The last axis has another size.
            TypeError: The coordinates are no floats.
        """
        from aerogel.data._texture_tensors import read

        return read(self, at, "sample_lod")

    @_of_parameters
    def fetch(self, at: Any, lod: int = 0) -> Any:
        """The texels with the indices of a tensor, as in kernels: zeros outside, and at other levels than 0.

        Args:
            at: Indices of shape ``[.., num_dims]``, integers.
            lod: The level.

        Returns:
            A tensor of shape ``[.., 4]``, ``f32``.

        Raises:
            ValueError: The last axis has another size.
            TypeError: The indices are no integers.
        """
        from aerogel.data._texture_tensors import read

        return read(self, at, "fetch", lod)

    def _check_image(self) -> None:
        if self.num_dims != 2 or self.fmt is not Format.rgba8:
            has = f"this one has {self.num_dims} and {self.fmt}"
            raise AerogelRuntimeError(f"images go to and from textures with 2 axes and ti.Format.rgba8; {has}")

    def from_image(self, image: Any) -> None:
        """Sets the texels from a picture of PIL's, of the same size. Texel (x, y) is the one x from the picture's right
        edge and y from the upper one, as in Taichi; alpha becomes 0.

        Raises:
            AerogelRuntimeError: The texture has not 2 axes and ``ti.Format.rgba8``.
            ValueError: The sizes differ.
        """
        import numpy as np

        self._check_image()
        if not hasattr(image, "convert"):
            raise TypeError(f"from_image takes a PIL.Image.Image, not {type(image).__name__}")
        if tuple(image.size) != self.shape:
            raise ValueError(f"the texture has the shape {self.shape}, the image the size {tuple(image.size)}")
        texels = np.zeros((*self.shape, 4), np.uint8)
        texels[..., :3] = np.asarray(image.convert("RGB"))[:, ::-1].transpose(1, 0, 2)
        self._texels.from_numpy(texels)

    def to_image(self) -> Any:
        """The picture of which :func:`from_image` makes these texels."""
        import numpy as np
        from PIL import Image

        self._check_image()
        rows = self._texels.to_numpy()[..., :3].transpose(1, 0, 2)[:, ::-1]
        return Image.fromarray(np.ascontiguousarray(rows))

    def _colors(self) -> Any:
        """The texels as an image that a window shows: numbers from 0 to 1, as kernels read them."""
        import numpy as np

        values = self._texels._view()
        if self.fmt._kind == "int":
            return values.astype(np.float32)
        if self.fmt._kind == "srgb":
            parts = values.astype(np.float32) / 255
            light = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            return np.concatenate([light[..., :3], parts[..., 3:]], -1).astype(np.float32)
        return values

    def __repr__(self) -> str:
        return f"<ti.Texture of {self.fmt}, shape {self.shape}>"


texture = TextureType
rw_texture = RWTextureType

__all__ = ["Format", "RWTextureType", "Texture", "TextureType", "rw_texture", "texture"]
