"""Writes angles.txt: angles of all magnitudes and their functions (`python3 angles.py > angles.txt`, needs mpmath).

A line is a type, the bits of an angle, and the bits of its sine, cosine and tangent as f64, correctly rounded. Random
angles are followed by those closest to multiples of pi/2 (denominators of continued fractions) and their neighbours.
"""

import random
import struct

import mpmath as mp

mp.mp.prec = 2400
TYPES = {"f32": (24, 104, "<f", "<I"), "f64": (53, 971, "<d", "<Q")}


def bits(value, float_format, int_format):
    """The bits of the nearest number of a type."""
    return struct.unpack(int_format, struct.pack(float_format, value))[0]


def nearest(digits, exponent):
    """The number of so many binary digits, times `2^exponent`, that comes close to a multiple of pi/2."""
    x = mp.ldexp(2 / mp.pi, exponent)
    previous, denominator = 0, 1
    while True:
        x = 1 / (x - mp.floor(x))
        following = int(mp.floor(x)) * denominator + previous
        if following >= 1 << digits:
            break
        previous, denominator = denominator, following
    return ((1 << digits) - 1) // denominator * denominator


def line(ty, mantissa, exponent):
    """Prints the line of an angle."""
    _, _, float_format, int_format = TYPES[ty]
    angle = mp.ldexp(mp.mpf(mantissa), exponent)
    values = [bits(float(f(angle)), "<d", "<Q") for f in (mp.sin, mp.cos, mp.tan)]
    print(ty, f"{bits(float(angle), float_format, int_format):x}", *(f"{v:x}" for v in values))


def main():
    """Prints the file."""
    random.seed(1)
    for ty, (digits, largest, _, _) in TYPES.items():
        for exponent in range(-digits, largest + 1, 1 if ty == "f32" else 4):
            line(ty, random.randrange(1 << (digits - 1), 1 << digits), exponent)
            hard = nearest(digits, exponent)
            for mantissa in (hard - 1, hard, hard + 1):
                if mantissa < 1 << digits:
                    line(ty, mantissa, exponent)
        line(ty, (1 << digits) - 1, largest)
    # The hardest known.
    line("f32", 16367173, 72)
    line("f64", 6381956970095103, 797)
    line("f64", 5319372648326541, 0)
    line("f64", 6411027962775774, -53)


main()
