"""A kernel over fields as a layer of PyTorch: forward and backward."""

import taichi as ti
import torch
from _client import run
from stannum import Tube

ti.init(arch=ti.cpu)
n = 20_000


@ti.kernel
def wave(x: ti.template(), w: ti.template(), out: ti.template()):
    for i in x:
        out[i] = ti.sin(x[i]) * w[i] + x[i] ** 2


tube = (
    Tube()
    .register_input_tensor((n,), torch.float32, "x")
    .register_input_tensor((n,), torch.float32, "w")
    .register_output_tensor((n,), torch.float32, "out", True)
    .register_kernel(wave, ["x", "w", "out"])
    .finish()
)
generator = torch.Generator().manual_seed(0)
x = torch.rand(n, generator=generator).requires_grad_()
w = torch.rand(n, generator=generator).requires_grad_()
state = {}


def step():
    x.grad = w.grad = None
    out = tube(x, w)
    (out**2).sum().backward()
    state.update(out=out.detach(), x=x.grad.clone(), w=w.grad.clone())


run(step, lambda: {name: value.numpy() for name, value in state.items()}, ti.sync)
