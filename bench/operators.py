"""The peers of bench/operators.lua: for each workload an expression of PyTorch, numpy and jax, where they have the operator."""
import os

THREADS = int(os.environ["OMP_NUM_THREADS"])
os.environ["JAX_PLATFORMS"] = "cpu"
if THREADS == 1:
    # XLA counts the cores that it may run on.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
if isa := os.environ.get("XLA_ISA"):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_cpu_max_isa={isa}"

import harness
import jax
import jax.numpy as jnp
import numpy as np
import operators_numeric
import torch
from operator_rows import add_rows

RANDOM = np.random.default_rng(1)
SIZES = {"4K": 1 << 12, "128K": 1 << 17, "8M": 1 << 23}


def normal(*shape):
    return RANDOM.standard_normal(shape, np.float32)


def torch_calls(expression, **arrays):
    names = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
    return harness.calls(expression, torch=torch, pad=torch.nn.functional.pad, conv2d=torch.nn.functional.conv2d, **names)


def numpy_calls(expression, **arrays):
    return harness.calls(expression, np=np, **arrays)


def jax_calls(expression, **arrays):
    """The expression compiled, with the arrays as arguments."""
    names = [k for k, v in arrays.items() if isinstance(v, np.ndarray)]
    scope = {"jnp": jnp, "jax": jax, **{k: v for k, v in arrays.items() if k not in names}}
    function = jax.jit(eval(f"lambda {', '.join(names)}: {expression}", scope))
    return harness.calls(f"function({', '.join(names)}).block_until_ready()", function=function,
                         **{k: jnp.asarray(arrays[k]) for k in names})


CALLS = {"torch": torch_calls, "numpy": numpy_calls, "jax": jax_calls}
workloads = {}


def add(name, inputs, **expressions):
    workloads[name] = {peer: lambda p=peer, e=expression: CALLS[p](e, **inputs())
                       for peer, expression in expressions.items()}


def integers(n, dtype):
    return RANDOM.integers(-9, 9, (n, n)).astype(dtype)


def bfloat16(n):
    return torch.from_numpy(normal(n, n)).bfloat16()


for n in (64, 256, 1024):
    add(f"matmul_f32_{n}", lambda n=n: {"a": normal(n, n), "b": normal(n, n)}, torch="a @ b", numpy="a @ b")
    for dtype in ("int8", "int32"):
        add(f"matmul_{dtype}_{n}", lambda n=n, t=dtype: {"a": integers(n, t), "b": integers(n, t)}, torch="a @ b")
    add(f"matmul_bf16_{n}", lambda n=n: {"a": bfloat16(n), "b": bfloat16(n)}, torch="a @ b")

for label, n in SIZES.items():
    rows = 1 << (n.bit_length() - 1) // 2

    def vectors(n=n):
        return {"x": normal(n), "y": normal(n)}

    def matrices(n=n, rows=rows):
        return {"x": normal(rows, n // rows)}

    def scaled(n=n):
        return {"x": normal(n) * 9}

    def positions(n=n):
        return {**vectors(n), "i": RANDOM.integers(0, n, n)}

    def row_positions(n=n, rows=rows):
        return {"x": normal(rows, n // rows), "y": normal(rows, n // rows), "i": RANDOM.integers(0, rows, (rows, n // rows))}

    def positive(n=n):
        return {"x": RANDOM.random(n, np.float32) + np.float32(0.5), "y": normal(n)}

    def permuted(n=n, rows=rows):
        return {"x": normal(16, rows // 4, n // rows // 4)}

    for to in ("int32", "int8", "int64"):
        add(f"cast_{to}_{label}", scaled, torch=f"x.to(torch.{to})", numpy=f"x.astype(np.{to})",
            **({} if to == "int64" else {"jax": f"x.astype(jnp.{to})"}))
    add(f"take_{label}", positions, torch="torch.take(x, i)", numpy="np.take(x, i)", jax="jnp.take(x, i, mode='clip')")
    add(f"scatter_add_{label}", positions, torch="torch.scatter_add(x, 0, i, y)", jax="x.at[i].add(y)")
    add(f"scatter_add_rows_{label}", row_positions, torch="torch.scatter_add(x, 0, i, y)",
        jax="x.at[i, jnp.arange(x.shape[1])].add(y)")
    add(f"pad_{label}", matrices, torch="pad(x, (1, 1, 1, 1))", numpy="np.pad(x, 1)", jax="jnp.pad(x, 1)")
    add(f"roll_{label}", vectors, torch="torch.roll(x, 5)", numpy="np.roll(x, 5)", jax="jnp.roll(x, 5)")
    add(f"roll_columns_{label}", matrices, torch="torch.roll(x, 5, 1)", numpy="np.roll(x, 5, 1)", jax="jnp.roll(x, 5, 1)")
    for axis, what in enumerate(("rows", "columns")):
        add(f"flip_{what}_{label}", matrices, torch=f"torch.flip(x, ({axis},))", numpy=f"np.flip(x, {axis}).copy()",
            jax=f"jnp.flip(x, {axis})")
    add(f"tile_{label}", matrices, torch="x.tile(2, 2)", numpy="np.tile(x, (2, 2))", jax="jnp.tile(x, (2, 2))")
    add(f"copy_step2_{label}", matrices, torch="x[:, ::2].contiguous()", numpy="x[:, ::2].copy()", jax="x[:, ::2]")
    add(f"copy_columns_{label}", matrices, torch="x[:, 1:-1].contiguous()", numpy="x[:, 1:-1].copy()", jax="x[:, 1:-1]")
    add(f"copy_permuted_{label}", permuted, torch="x.permute(1, 0, 2).contiguous()",
        numpy="x.transpose(1, 0, 2).copy()", jax="x.transpose(1, 0, 2)")
    add(f"pow_{label}", positive, torch="torch.pow(x, y)", numpy="np.power(x, y)", jax="jnp.power(x, y)")
    add(f"pow_2.5_{label}", positive, torch="torch.pow(x, 2.5)", numpy="np.power(x, np.float32(2.5))",
        jax="jnp.power(x, 2.5)")
    add(f"pow_3_{label}", vectors, torch="torch.pow(x, 3)", numpy="np.power(x, np.float32(3))", jax="jnp.power(x, 3)")

for batch, channels, side in ((1, 16, 16), (4, 64, 28), (16, 128, 56)):
    add(f"depthwise_{batch}x{channels}x{side}",
        lambda b=batch, c=channels, s=side: {"x": normal(b, c, s, s), "w": normal(c, 1, 3, 3), "c": c},
        torch="conv2d(x, w, padding=1, groups=c)",
        jax="jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)), feature_group_count=c)")

for n in (16, 128, 512):
    add(f"svd_{n}", lambda n=n: {"x": normal(n, n)}, torch="torch.linalg.svd(x, full_matrices=False)",
        numpy="np.linalg.svd(x, full_matrices=False)")


def lstm(batch, hidden):
    cell = torch.nn.LSTM(hidden, hidden)
    x, h, c = torch.randn(1, batch, hidden), torch.randn(1, batch, hidden), torch.randn(1, batch, hidden)
    return harness.calls("cell(x, state)", cell=cell, x=x, state=(h, c))


for batch, hidden in ((1, 32), (16, 128), (64, 1024)):
    workloads[f"lstm_step_{batch}x{hidden}"] = {"torch": lambda b=batch, h=hidden: lstm(b, h)}

operators_numeric.add_rows(add, RANDOM, np)
add_rows(workloads)
harness.serve(workloads)
