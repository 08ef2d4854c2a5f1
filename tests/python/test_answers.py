"""What kernels answer, against what Taichi answers to the same text."""

import json
from pathlib import Path

import numpy as np
import pytest

import answers as language

ANSWERS = json.loads((Path(__file__).parent.parent / "oracle" / "answers.json").read_text())


def flat(answer):
    if isinstance(answer, (list, tuple)):
        return [number for part in answer for number in flat(part)]
    return [answer]


@pytest.mark.parametrize("name", list(language.CASES))
def test_answers_equal_taichis(arch, name):
    language.fields()
    found, wanted = flat(language.CASES[name]()), flat(ANSWERS[name])
    words = [w for w in wanted if not isinstance(w, float)]
    assert [f for f in found if not isinstance(f, float)] == words
    numbers = [w for w in wanted if isinstance(w, float)]
    np.testing.assert_allclose([f for f in found if isinstance(f, float)], numbers, rtol=2e-4, atol=2e-4)


def test_math_has_all_of_taichis_names():
    names = """acos asin atan2 cconj cdiv ceil cexp cinv clamp clog clz cmul cos cpow cross csqrt degrees determinant
    distance dot e exp eye floor fract inf inverse isinf isnan ivec2 ivec3 ivec4 length log log2 mat2 mat3 mat4 max min
    mix mod nan normalize pi popcnt pow radians reflect refract rot_by_axis rot_yaw_pitch_roll rotation2d rotation3d
    round scale sign sin smoothstep sqrt step tan tanh translate uvec2 uvec3 uvec4 vdir vec2 vec3 vec4"""
    assert [name for name in names.split() if not hasattr(language.ti.math, name)] == []
