"""Rows of other spellings of functions, and of those of networks."""

from __future__ import annotations

from typing import Any


def rows(row: Any) -> None:
    """Adds them by `row(name, arguments, function, in_jax)`."""
    spellings(row)
    networks(row)
    losses(row)


def spellings(row: Any) -> None:
    def xp(name: str, arguments: str, function: Any = None, in_jax: bool = True) -> None:
        row(f"xp {name}", arguments, function or (lambda w, *x: getattr(w.xp, name)(*x)), in_jax)

    for (
        name
    ) in "absolute arctan arcsinh deg2rad rad2deg conjugate transpose atleast_1d atleast_2d cumsum cumprod".split():
        xp(name, "r34" if not name.startswith("cum") else "r5")
    xp("fix", "r34", None, False)
    for name in "arcsin arccos arctanh".split():
        xp(name, "u34")
    xp("arccosh", "g34")
    for name in "arctan2 mod power polysub dot".split():
        xp(name, "p4 p4")
    for name in "amax amin".split():
        xp(name, "r34", lambda w, x, name=name: getattr(w.xp, name)(x, axis=1))
    for name in "argmin nanargmin".split():
        xp(name, "r34", lambda w, x, name=name: w.take_along_axis(
            x, w.expand_dims(getattr(w.xp, name)(x, axis=1), axis=1), axis=1))  # fmt: skip
    for name in "argpartition argsort".split():
        xp(
            name,
            "r5",
            lambda w, x, name=name: x[(w.xp.argpartition(x, 2) if name == "argpartition" else w.xp.argsort(x))[2]],
        )
    xp("append", "r3 r4", lambda w, x, y: w.xp.append(x, y) ** 2)
    xp("concatenate", "r3 r4", lambda w, x, y: w.xp.concatenate([x, y]) ** 2)
    for name in "dsplit hsplit vsplit".split():
        xp(name, "r444", lambda w, x, name=name: [a**2 for a in getattr(w.xp, name)(x, 2)])
    xp("full_like", "r r3", lambda w, a, x: w.xp.full_like(x, a) * x)
    xp("nanpercentile", "r35", lambda w, x: w.xp.nanpercentile(x, 40.0, axis=0))
    xp("rollaxis", "r234", lambda w, x: w.xp.rollaxis(x, 2) ** 2)
    xp("top_k", "r5", lambda w, x: w.xp.top_k(x, 3)[0], False)
    xp("unique_values", "r5", lambda w, x: w.xp.unique_values(x)[1:3] ** 2, False)
    row("special psi", "p34", lambda w, x: w.special.psi(x), False)
    row("linalg norm", "r34", lambda w, x: w.linalg.norm(x) + w.linalg.norm(x, axis=1) + w.linalg.norm(x, "nuc"))
    for name in "fft2 ifft2".split():
        row(name, "r34 r34", lambda w, a, b, name=name: getattr(w.fft, name)(w.complex(a, b)))
    row("irfft2", "r33 r33", lambda w, a, b: w.fft.irfft2(w.complex(a, b)))
    row("ifftshift", "r5", lambda w, x: w.fft.ifftshift(x) ** 2)


def networks(row: Any) -> None:
    def nn(name: str, arguments: str, function: Any = None) -> None:
        named = name.split(",")[0]
        function = function or (lambda f, *x: getattr(f, named)(*x))
        row(f"nn {name}", arguments, lambda w, *x: function(w.nn, *x), False)

    for name in "identity log_sigmoid hard_swish swish".split():
        nn(name, "r34", lambda f, x, name=name: getattr(f, name)(x * 4))
    nn("linear", "r34 r24 r2")
    nn("bilinear", "r23 r24 r534 r5")
    nn("conv1d", "r127 r323 r3", lambda f, *x: f.conv1d(*x, stride=2, padding=1))
    nn("conv2d", "r1255 r4133 r4", lambda f, *x: f.conv2d(*x, padding=2, dilation=2, groups=2))
    nn("conv3d", "r11333 r21222", lambda f, *x: f.conv3d(*x, padding=1))
    nn("conv_transpose1d", "r124 r233 r3", lambda f, *x: f.conv_transpose1d(*x, stride=2, padding=1, output_padding=1))
    nn("conv_transpose2d", "r1233 r2222", lambda f, *x: f.conv_transpose2d(*x, stride=2, groups=2))
    for kind in "avg max".split():
        nn(f"{kind}_pool1d", "r127", lambda f, x, kind=kind: getattr(f, f"{kind}_pool1d")(x, 3, 2, 1))
        nn(f"{kind}_pool2d", "r1255", lambda f, x, kind=kind: getattr(f, f"{kind}_pool2d")(x, 2, 1, 1, ceil_mode=True))
        nn(f"adaptive_{kind}_pool1d", "r127", lambda f, x, kind=kind: getattr(f, f"adaptive_{kind}_pool1d")(x, 3))
        nn(f"adaptive_{kind}_pool2d", "r1256", lambda f, x, kind=kind: getattr(f, f"adaptive_{kind}_pool2d")(x, (2, 3)))
    nn("batch_norm", "r43 r3 p3 r3 r3")
    nn("batch_statistics", "r43", lambda f, x: list(f.batch_statistics(x)))
    nn("layer_norm", "r34 r4 r4", lambda f, x, w, b: f.layer_norm(x, (4,), w, b))
    nn("group_norm", "r243 r4 r4", lambda f, x, w, b: f.group_norm(x, 2, w, b))
    nn("instance_norm", "r234 r3 r3", lambda f, x, w, b: f.instance_norm(x, weight=w, bias=b))
    nn("rms_norm", "r34 r4", lambda f, x, w: f.rms_norm(x, (4,), w))
    nn("cosine_similarity", "r34 r34")
    nn("rotary", "r234")
    nn("scaled_dot_product_attention", "r234 r254 r253")
    nn(
        "scaled_dot_product_attention, causal",
        "r234 r234 r234",
        lambda f, *x: f.scaled_dot_product_attention(*x, is_causal=True),
    )
    row("nn embedding", "r43", lambda w, x: w.nn.embedding(w.asarray([[1, 1], [3, 0]]), x) ** 2, False)


def losses(row: Any) -> None:
    for name in "mse_loss l1_loss huber_loss smooth_l1_loss hinge_loss".split():
        for reduction in "mean sum none".split():
            row(f"nn {name}, {reduction}", "r34 r34", lambda w, x, y, name=name, r=reduction: getattr(w.nn, name)(
                x, y, reduction=r), False)  # fmt: skip
    row("nn binary_cross_entropy", "p34 p34", lambda w, x, y: w.nn.binary_cross_entropy(x / 3, y / 3), False)
    row(
        "nn binary_cross_entropy_with_logits",
        "r34 p34 p4",
        lambda w, x, y, p: w.nn.binary_cross_entropy_with_logits(x, y / 3, pos_weight=p),
        False,
    )
    row("nn kl_div", "r34 p34", lambda w, x, y: w.nn.kl_div(x, y), False)
    row("nn nll_loss", "r34 p4", lambda w, x, p: w.nn.nll_loss(x, w.asarray([1, 3, 0]), p), False)
    row(
        "nn cross_entropy",
        "r34",
        lambda w, x: w.nn.cross_entropy(x, w.asarray([1, -100, 0]), label_smoothing=0.1),
        False,
    )
    row("nn cross_entropy, parts", "r34 p34", lambda w, x, y: w.nn.cross_entropy(x, y), False)
