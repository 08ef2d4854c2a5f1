"""Smooths a photograph without blurring its edges: the bilateral filter.

    python examples/photo.py IN.jpg OUT.png

Reading the photograph needs Pillow. The method: Tomasi and Manduchi, Bilateral Filtering for Gray and Color Images,
ICCV 1998.
"""

import sys

import numpy as np

import aerogel as ti
from aerogel.math import vec3

ti.init(arch=ti.cpu)


@ti.kernel
def bilateral(
    source: ti.types.ndarray(dtype=vec3, ndim=2),
    out: ti.types.ndarray(dtype=vec3, ndim=2),
    radius: ti.i32,
    reach: float,
    contrast: float,
):
    for i, j in source:
        center = source[i, j]
        total, weights = vec3(0.0), 0.0
        for k in range(ti.max(i - radius, 0), ti.min(i + radius + 1, source.shape[0])):
            for l in range(ti.max(j - radius, 0), ti.min(j + radius + 1, source.shape[1])):
                color = source[k, l]
                away = (color - center).norm_sqr() / (2 * contrast**2)
                distance = ((k - i) ** 2 + (l - j) ** 2) / (2 * reach**2)
                w = ti.exp(-away - distance)
                total += w * color
                weights += w
        out[i, j] = total / weights


def smooth(image, radius=6, reach=4.0, contrast=0.12):
    """The filtered image, for one of shape (height, width, 3) with values from 0 to 1."""
    image = np.ascontiguousarray(image, np.float32)
    out = np.empty_like(image)
    bilateral(image, out, radius, reach, contrast)
    return out


def main():
    from PIL import Image

    if len(sys.argv) != 3:
        sys.exit(__doc__)
    image = np.asarray(Image.open(sys.argv[1]).convert("RGB"), np.float32) / 255
    out = smooth(image)
    Image.fromarray((out * 255 + 0.5).astype(np.uint8)).save(sys.argv[2])
    print(f"{sys.argv[1]}: {image.shape[1]} by {image.shape[0]} pixels, smoothed into {sys.argv[2]}")


if __name__ == "__main__":
    main()
