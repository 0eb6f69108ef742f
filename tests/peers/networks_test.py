#!/usr/bin/env python3
"""Random networks of tests/lua/random_networks_test.lua in PyTorch: outputs, losses and gradients agree.

usage: networks_test.py LUNARIA [SEED [COUNT]]
Needs the Python environment .peers (LUNARIA_PEERS names another) with torch and safetensors; skips (77) without it. The
networks are computed in double precision there, and in single precision to know how much of a difference is rounding.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
SKIP = 77
# Of single precision through some ten layers, beside the largest element; and beside what PyTorch itself is off in single
# precision: gradients that are 0 but for rounding have no size of their own.
TOLERANCE, BESIDE = 1e-4, 32


def build(torch, layers):
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return x + self.inner(x)

    class First(nn.Module):
        """A recurrent layer, of whose results the first goes on; or attention of a value to itself."""

        def __init__(self, inner, times):
            super().__init__()
            self.inner, self.times = inner, times

        def forward(self, x):
            return self.inner(*[x] * self.times)[0]

    class Mean(nn.Module):
        def __init__(self, axes):
            super().__init__()
            self.axes = axes

        def forward(self, x):
            return x.mean(self.axes)

    class FixedNorm(nn.Module):
        """Batch normalisation by the stored statistics also where the network trains."""

        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            n = self.inner
            return torch.nn.functional.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias, False, 0.1, n.eps)

    def batch_norm(layer):
        inner = (nn.BatchNorm2d if layer["axes"] == 2 else nn.BatchNorm1d)(layer["size"])
        return inner if layer["training"] else FixedNorm(inner)

    def recurrent(kind):
        return lambda l: First(kind(l["inputs"], l["hidden"], l["layers"], batch_first=True, bidirectional=l["both"]), 1)

    makers = {
        "conv": lambda l: nn.Conv2d(l["inputs"], l["outputs"], l["kernel"], l["stride"], l["padding"], l["dilation"], l["groups"], l["bias"]),
        "batch_norm": batch_norm,
        "group_norm": lambda l: nn.GroupNorm(l["groups"], l["size"]),
        "layer_norm": lambda l: nn.LayerNorm(l["size"]),
        "max_pool": lambda l: nn.MaxPool2d(l["kernel"], l["stride"]),
        "avg_pool": lambda l: nn.AvgPool2d(l["kernel"], l["stride"]),
        "residual": lambda l: Residual(build(torch, l["layers"])),
        "dropout": lambda l: nn.Identity(),
        "lstm": recurrent(nn.LSTM),
        "gru": recurrent(nn.GRU),
        "attention": lambda l: First(nn.MultiheadAttention(l["width"], l["heads"], batch_first=True), 3),
        "dense": lambda l: nn.Linear(l["inputs"], l["outputs"], l["bias"]),
        "softmax": lambda l: nn.Softmax(l["axis"]),
        "embedding": lambda l: nn.Embedding(l["rows"], l["width"]),
        "flatten": lambda l: nn.Flatten(),
        "mean_pixels": lambda l: Mean((2, 3)),
        "mean_steps": lambda l: Mean(1),
        "relu": lambda l: nn.ReLU(), "tanh": lambda l: nn.Tanh(), "sigmoid": lambda l: nn.Sigmoid(), "gelu": lambda l: nn.GELU(),
        "gelu_tanh": lambda l: nn.GELU(approximate="tanh"), "elu": lambda l: nn.ELU(), "silu": lambda l: nn.SiLU(),
        "leaky_relu": lambda l: nn.LeakyReLU(0.1), "log_sigmoid": lambda l: nn.LogSigmoid(), "hardswish": lambda l: nn.Hardswish(),
        "mish": lambda l: nn.Mish(),
    }
    return nn.Sequential(*[makers[layer["op"]](layer) for layer in layers])


def parameters(torch, module):
    """Parameters and running values in the order in which our cells have them."""
    if isinstance(module, torch.nn.MultiheadAttention):
        yield from (module.in_proj_weight, module.in_proj_bias, module.out_proj.weight, module.out_proj.bias)
        return
    for child in module.children():
        yield from parameters(torch, child)
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):  # pylint: disable=protected-access
        yield from (module.running_mean, module.running_var, module.weight, module.bias)
    else:
        yield from module.parameters(recurse=False)


def peer(torch, spec, ours, values, dtype):
    """What ours has of outputs and gradients, computed by PyTorch in dtype."""
    net = build(torch, spec["layers"]).to(dtype).train()
    theirs = list(parameters(torch, net))
    if [tuple(v.shape) for v in values] != [tuple(p.shape) for p in theirs]:
        raise ValueError("other shapes of parameters")
    with torch.no_grad():
        for p, v in zip(theirs, values):
            p.copy_(v)
    x, y = ours["x"], ours["y"]
    x = x.long() if spec["kind"] == "tokens" else x.to(dtype).requires_grad_()
    out = net(x)
    f = torch.nn.functional
    loss = f.cross_entropy(out, y.long()) if spec["loss"] == "cross_entropy" else (
        f.mse_loss(out, y.to(dtype)) if spec["loss"] == "mse" else f.smooth_l1_loss(out, y.to(dtype)))
    loss.backward()
    weights = [p for p in theirs if p.requires_grad]
    results = {}
    for name in ours:
        if name in ("x", "y") or name[0] == "p":
            continue
        what = name[4:]
        if what.startswith("gradient of parameter"):
            wanted = weights[int(what.split()[3]) - 1].grad
        else:
            wanted = {"loss": loss, "out": out, "gradient of x": getattr(x, "grad", None)}[what]
        results[name] = (torch.zeros_like(ours[name]) if wanted is None else wanted.detach()).double()
    return results


def compare(folder):
    import torch
    from safetensors.torch import load_file
    failed = passed = 0
    for file in sorted(Path(folder).glob("*.json"), key=lambda f: int(f.stem)):
        spec = json.loads(file.read_text())
        ours = load_file(file.with_suffix(".safetensors"))
        values = [ours[name] for name in sorted(ours) if name[0] == "p" and name[1:].isdigit()]
        wrong = []
        try:
            exact = peer(torch, spec, ours, values, torch.float64)
            single = peer(torch, spec, ours, values, torch.float32)
        except ValueError as e:
            exact, single, wrong = {}, {}, [str(e)]
        for name in exact:
            wanted = exact[name]
            scale = wanted.abs().max().item()
            off = (ours[name].double() - wanted).abs().max().item()
            theirs = (single[name].double() - wanted).abs().max().item()
            if not off <= max(TOLERANCE * scale, BESIDE * theirs, 1e-7):
                wrong.append(f"{name[4:]} is off by {off:.2g} of {scale:.2g}, PyTorch's by {theirs:.2g}")
        if wrong:
            failed += 1
            print(f"FAIL network {file.stem}: {'; '.join(wrong[:4])}\n  {json.dumps(spec)}")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main(program, seed="1", count="20"):
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import torch, safetensors"], capture_output=True, check=False).returncode:
        print("skipped: no Python environment with torch and safetensors")
        return SKIP
    with tempfile.TemporaryDirectory() as folder:
        # What the forms make of them is that test's own affair; a network that fails there is not written.
        subprocess.run([program, "tests/lua/random_networks_test.lua", seed, count, "--write", folder], capture_output=True, check=False)
        return subprocess.run([PYTHON, __file__, "--compare", folder], check=False).returncode


if sys.argv[1] == "--compare":
    sys.exit(compare(sys.argv[2]))
sys.exit(main(*sys.argv[1:]))
