"""The peers' side of bench/operator_rows.lua: the rows of bench/operators.txt."""
from pathlib import Path

import harness
import jax
import jax.numpy as jnp
import numpy as np
import torch

functional = torch.nn.functional
DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i8": torch.int8,
          "i32": torch.int32, "i64": torch.int64, "bool": torch.bool, "c64": torch.complex64}
SIDES = {"4": 2, "1K": 32, "64K": 256, "4M": 2048}


def random(dtype, *shape):
    if dtype == "bool":
        return torch.randint(0, 2, shape).bool()
    if dtype[0] == "i":
        return torch.randint(-9, 9, shape).to(DTYPES[dtype])
    return torch.randn(shape).to(DTYPES[dtype]) if dtype != "c64" else torch.randn(shape, dtype=torch.complex64)


def elements(dtype, layout, side):
    """Dense tensors, and for each the view that the row is about."""
    base = {"x": random(dtype, side, side), "y": random(dtype, side, side), "m": random("bool", side, side)}
    view = "{}"
    if layout == "transposed":
        view = "{}.T"
    elif layout == "step2":
        base.update(x=random(dtype, side, 2 * side), y=random(dtype, side, 2 * side))
    elif layout == "row":
        base["y"] = random(dtype, 1, side)
    elif layout == "column":
        base["y"] = random(dtype, side, 1)
    elif layout == "middle":
        base.update(x=random(dtype, side // 8, 8, side // 8, 8), y=random(dtype, 1, 8, 1, 8))
    views = {name: view for name in base}
    if layout == "step2":
        views.update(x="{}[:, ::2]", y="{}[:, ::2]")
    if dtype != "bool":
        base["w"], views["w"] = torch.full((1,), 0.25).to(DTYPES[dtype]), "{}"
    return base, views, {}


def reduced(dtype, axis, side):
    size = side * side
    if axis == "middle":
        return {"x": random(dtype, side // 8, 16, side // 2)}, {"x": "{}"}, {"a": 1}
    rows, n = (8, size // 8) if axis.startswith("long") else (size // 8, 8)
    if axis.endswith("_t"):
        return {"x": random(dtype, n, rows)}, {"x": "{}.T"}, {"a": 1}
    return {"x": random(dtype, rows, n)}, {"x": "{}"}, {"a": 1}


def copied(dtype, text, _):
    shape = [int(n) for n in text.split(",")]
    base = {"x": random(dtype, *shape), "y": random(dtype, *shape), "i": torch.randint(0, shape[0], (shape[0],))}
    return base, {name: "{}" for name in base}, {}


MAKERS = {"element": elements, "reduce": reduced, "copy": copied}
SCOPE = {"torch": torch, "np": np, "jnp": jnp, "jax": jax, "gelu": functional.gelu, "prelu": functional.prelu,
         "leaky_relu": functional.leaky_relu, "pad": functional.pad, "cosine_similarity": functional.cosine_similarity}


def torch_calls(expression, base, views, numbers):
    made = {name: eval(views[name].format("t"), {"t": t}) for name, t in base.items()}
    return harness.calls(expression, **SCOPE, **made, **numbers)


def numpy_calls(expression, base, views, numbers):
    return torch_calls(expression, {name: t.numpy() for name, t in base.items()}, views, numbers)


def jax_calls(expression, base, views, numbers):
    """The views are part of the compiled function: its operands have no strides."""
    arrays = {name: jnp.asarray(t.numpy()) if t.dtype != torch.bfloat16 else jnp.asarray(t.float().numpy()).astype(jnp.bfloat16)
              for name, t in base.items()}
    made = ", ".join(f"{name}={views[name].format(name)}" for name in arrays)
    function = jax.jit(eval(f"lambda {', '.join(arrays)}: (lambda {', '.join(arrays)}: {expression})({made})",
                            {**SCOPE, **numbers}))
    return harness.calls(f"function({', '.join(arrays)}).block_until_ready()", function=function, **arrays)


PEERS = {"torch": torch_calls, "numpy": numpy_calls, "jax": jax_calls}


def add_rows(workloads):
    jax.config.update("jax_enable_x64", True)
    table = Path(__file__).with_name("operators.txt").read_text().splitlines()
    for line in table:
        fields = [field.strip() for field in line.split(" | ")]
        if fields[0] not in MAKERS:
            continue
        kind, name, _, *expressions, dtypes, layouts, sizes = [*fields, ""][:9]
        copy = kind == "copy"
        for dtype in dtypes.split():
            for layout in [layouts.rstrip(" |")] if copy else layouts.split():
                for size in [""] if copy else sizes.split():
                    label = f"{name}_{dtype}" if copy else f"{name}_{dtype}_{layout}_{size}"
                    workloads[label] = {
                        peer: lambda c=calls, e=expression, k=kind, d=dtype, la=layout, s=size:
                            c(e, *MAKERS[k](d, la, SIDES.get(s)))
                        for (peer, calls), expression in zip(PEERS.items(), expressions)
                        if expression != "-" and not (peer == "numpy" and dtype == "bf16")}
