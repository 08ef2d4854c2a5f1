"""A kernel as a module of PyTorch: forward and backward."""

import taichi as ti
import torch
from _client import run
from timod import TaichiKernelModule

ti.init(arch=ti.cpu)
n = 200_000


@ti.kernel
def wave(
    x: ti.types.ndarray(dtype=ti.f32, ndim=1),
    w: ti.types.ndarray(dtype=ti.f32, ndim=1),
    out: ti.types.ndarray(dtype=ti.f32, ndim=1),
):
    for i in x:
        out[i] = ti.sin(x[i]) * w[i] + x[i] ** 2


module = TaichiKernelModule(wave, {"out": ((n,), torch.float32, True)})
generator = torch.Generator().manual_seed(0)
x = torch.rand(n, generator=generator).requires_grad_()
w = torch.rand(n, generator=generator).requires_grad_()
state = {}


def step():
    x.grad = w.grad = None
    (out,) = module(x, w)
    (out**2).sum().backward()
    state.update(out=out.detach(), x=x.grad.clone(), w=w.grad.clone())


run(step, lambda: {name: value.numpy() for name, value in state.items()}, ti.sync)
