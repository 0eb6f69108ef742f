"""How calls of operators are written down: Lua text, and what independent programs give for it."""
import json

import numpy as np
import torch

rows = []


def lua(x):
    """A value as Lua text; arrays as tensors of float64, int64, bool or complex numbers."""
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj().numpy()
    if isinstance(x, np.ndarray):
        if np.iscomplexobj(x):
            pairs = np.stack([x.real, x.imag], -1)
            return f"o.view_as_complex(T({lists(pairs)}, ms.{'float32' if x.dtype == np.complex64 else 'float64'}))"
        dtype = {"f": "float64", "i": "int64", "b": "bool"}[x.dtype.kind]
        text = f"T({lists(x)}, ms.{dtype})"
        return text + f":reshape {{ {', '.join(map(str, x.shape))} }}" if x.size == 0 else text
    if x is None:
        return "nil"
    if isinstance(x, bool):
        return str(x).lower()
    if isinstance(x, str):
        return json.dumps(x)
    if isinstance(x, (list, tuple)):
        return "{" + ", ".join(lua(v) for v in x) + "}"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k} = {lua(v)}" for k, v in x.items()) + "}"
    if isinstance(x, float) and x != x:
        return "0 / 0"
    if isinstance(x, float) and x in (float("inf"), -float("inf")):
        return "1 / 0" if x > 0 else "-1 / 0"
    return repr(x)


def lists(x):
    if x.ndim == 0:
        v = x.item()
        if isinstance(v, bool):
            return str(v).lower()
        return lua(v)
    return "{" + ", ".join(lists(v) for v in x) + "}"


def case(op, args, expected, tolerance=1e-12, result=None):
    """result: which of several results the expected numbers are, from 1 on."""
    if isinstance(expected, torch.Tensor):
        expected = expected.detach().resolve_conj().numpy()
    expected = np.asarray(expected)
    if np.iscomplexobj(expected):
        expected = np.stack([expected.real, expected.imag], -1)
    text = f"o.{op}({', '.join(lua(a) for a in args)})"
    if result:
        text = f"(select({result}, {text}))"
    rows.append({"op": op, "call": text, "expected": expected.tolist(), "tolerance": tolerance})


random = np.random.default_rng(7)


def normal(*shape):
    return np.round(random.normal(size=shape), 3)


def uniform(low, high, *shape):
    return np.round(random.uniform(low, high, size=shape), 3)


def integers(low, high, *shape):
    return random.integers(low, high, size=shape)


def write():
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")
