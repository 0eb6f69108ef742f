"""Random programs on complex numbers with their losses and gradients by jax.

usage: complex_programs.py FILE [--count 300]

A program is a list of statements, each in Lua (for tests/lua/complex_programs_test.lua) and in Python; its inputs are two complex
matrices and a real vector. jax's gradient of a real loss L by x + iy is dL/dx - i dL/dy; the file holds dL/dx + i dL/dy, the
convention of PyTorch and Lunaria. Programs whose loss or gradient is not smooth near the inputs (a branch cut, a kink, a pole) are
left out."""
import argparse
import json
import random

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

# Of a matrix z (n, n): the operation in Lua and in Python, complex to complex.
UNARY = [
    ("ops.exp({0} * 0.3)", "jnp.exp({0} * 0.3)"), ("ops.log({0})", "jnp.log({0})"), ("ops.sqrt({0})", "jnp.sqrt({0})"),
    ("ops.sin({0} * 0.5)", "jnp.sin({0} * 0.5)"), ("ops.cos({0} * 0.5)", "jnp.cos({0} * 0.5)"),
    ("ops.tan({0} * 0.3)", "jnp.tan({0} * 0.3)"), ("ops.sinh({0} * 0.4)", "jnp.sinh({0} * 0.4)"),
    ("ops.cosh({0} * 0.4)", "jnp.cosh({0} * 0.4)"), ("ops.tanh({0})", "jnp.tanh({0})"),
    ("ops.asin({0} * 0.2)", "jnp.arcsin({0} * 0.2)"), ("ops.atan({0} * 0.2)", "jnp.arctan({0} * 0.2)"),
    ("ops.asinh({0} * 0.2)", "jnp.arcsinh({0} * 0.2)"), ("ops.acosh({0})", "jnp.arccosh({0})"),
    ("ops.atanh({0} * 0.2)", "jnp.arctanh({0} * 0.2)"), ("ops.expm1({0} * 0.3)", "jnp.expm1({0} * 0.3)"),
    ("ops.log1p({0} * 0.3)", "jnp.log1p({0} * 0.3)"), ("ops.square({0})", "jnp.square({0})"),
    ("ops.reciprocal({0})", "jnp.reciprocal({0})"), ("ops.rsqrt({0})", "1 / jnp.sqrt({0})"), ("-{0}", "-{0}"),
    ("{0} ^ 3", "{0} ** 3"), ("{0} ^ 0.5", "{0} ** 0.5"), ("2.0 ^ ({0} * 0.3)", "2.0 ** ({0} * 0.3)"),
    ("ops.conj({0})", "jnp.conj({0})"), ("ops.sign({0})", "{0} / jnp.abs({0})"),
    ("ops.sigmoid({0} * 0.5)", "1 / (1 + jnp.exp(-{0} * 0.5))"), ("{0}:t()", "{0}.T"),
    ("ops.cumsum({0}, 1)", "jnp.cumsum({0}, 1)"), ("ops.cumprod({0} * 0.5, 0)", "jnp.cumprod({0} * 0.5, 0)"),
    ("ops.flip({0}, {{ 0 }})", "jnp.flip({0}, 0)"), ("ops.fft({0})", "jnp.fft.fft({0})"),
    ("ops.ifft({0}, nil, 0)", "jnp.fft.ifft({0}, axis=0)"), ("ops.fft2({0}) * 0.2", "jnp.fft.fft2({0}) * 0.2"),
    ("ops.rfft(ops.real({0}), 4)[{{ ms.slice(), ms.slice(0, 3) }}]", "jnp.fft.rfft(jnp.real({0}), 4)[:, 0:3]"),
    ("ops.polar(ops.abs({0}), ops.imag({0}))", "jnp.abs({0}) * jnp.exp(1j * jnp.imag({0}))"),
    ("ops.tril({0})", "jnp.tril({0})"), ("ops.roll({0}, 1, 0)", "jnp.roll({0}, 1, 0)"),
    ("ops.concat({{ {0}[{{ ms.slice(1, nil) }}], {0}[{{ ms.slice(0, 1) }}] }}, 0)", "jnp.concatenate([{0}[1:], {0}[:1]], 0)"),
    ("ops.where(ops.greater(ops.real({0}), 0.1), {0}, {0} * {0})", "jnp.where(jnp.real({0}) > 0.1, {0}, {0} * {0})"),
]
BINARY = [
    ("{0} + {1}", "{0} + {1}"), ("{0} - {1}", "{0} - {1}"), ("{0} * {1}", "{0} * {1}"), ("{0} / {1}", "{0} / {1}"),
    ("ops.matmul({0}, {1}) * 0.5", "({0} @ {1}) * 0.5"), ("ops.pow({0}, {1} * 0.2)", "{0} ** ({1} * 0.2)"),
    ("{0} * ops.conj({1})", "{0} * jnp.conj({1})"), ("{0} * ops.real({1})", "{0} * jnp.real({1})"),
    ("{0} / ops.abs({1})", "{0} / jnp.abs({1})"), ("{0} * r", "{0} * r"), ("{0} + r", "{0} + r"),
    ("ops.einsum('ij,kj->ik', {0}, {1}) * 0.5", "jnp.einsum('ij,kj->ik', {0}, {1}) * 0.5"),
    ("ops.addcmul({0}, {1}, {0}, 0.5)", "{0} + 0.5 * {1} * {0}"),
]
LOSS = [
    ("ops.square(ops.abs({0})):sum()", "jnp.square(jnp.abs({0})).sum()"), ("ops.abs({0}):sum()", "jnp.abs({0}).sum()"),
    ("ops.real({0}):sum()", "jnp.real({0}).sum()"), ("ops.imag({0}):sum()", "jnp.imag({0}).sum()"),
    ("ops.real({0} * ops.conj({0})):mean()", "jnp.real({0} * jnp.conj({0})).mean()"),
    ("ops.square(ops.angle({0})):sum()", "jnp.square(jnp.angle({0})).sum()"),
    ("ops.abs({0}:sum())", "jnp.abs({0}.sum())"), ("ops.abs(ops.prod({0}, 1)):sum()", "jnp.abs(jnp.prod({0}, 1)).sum()"),
    ("ops.irfft({0}, 4):square():sum()", "jnp.square(jnp.fft.irfft({0}, 4)).sum()"),
]


def program(draw):
    names, lua, python = ["x", "y"], [], []
    for step in range(draw.randint(2, 6)):
        name = f"v{step}"
        if draw.random() < 0.55:
            (a, b), arguments = draw.choice(UNARY), [draw.choice(names)]
        else:
            (a, b), arguments = draw.choice(BINARY), [draw.choice(names), draw.choice(names)]
        lua.append(f"local {name} = {a.format(*arguments)}")
        python.append(f"{name} = {b.format(*arguments)}")
        names += [name, name]  # what is new is used more often
    a, b = draw.choice(LOSS)
    lua.append(f"return {a.format(names[-1])}")
    python.append(f"return {b.format(names[-1])}")
    scope = {"jnp": jnp}
    exec("def f(x, y, r):\n  " + "\n  ".join(python), scope)
    return "\n".join(lua), scope["f"]


def evaluated(f, inputs):
    value, grads = jax.value_and_grad(f, (0, 1, 2))(*inputs)
    return [np.asarray(value)] + [np.conj(np.asarray(g)) for g in grads]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("file")
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    draw, rng, cases = random.Random(21), np.random.default_rng(21), []
    while len(cases) < options.count:
        text, f = program(draw)
        x, y = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2))
        inputs = [np.round(x, 3), np.round(y, 3), np.round(rng.uniform(0.5, 1.5, 3), 3)]
        results = evaluated(f, inputs)
        size = max(np.abs(r).max() for r in results)
        if not all(np.isfinite(r).all() for r in results) or size > 1e4:
            continue
        moved = evaluated(f, [v * (1 + 1e-7) for v in inputs])
        turned = evaluated(f, [inputs[0] * (1 + 1e-7j), inputs[1] * (1 - 1e-7j), inputs[2]])
        if any(np.abs(a - b).max() > 1e-4 * max(1, size) for other in (moved, turned) for a, b in zip(results, other)):
            continue
        # jax takes the derivative of arccosh from the other branch where the real part is negative: what differences of
        # the loss deny is left out.
        step = [1e-6 * (rng.normal(size=v.shape) + (0 if v.ndim == 1 else 1j * rng.normal(size=v.shape))) for v in inputs]
        ahead, behind = (f(*(v + sign * d for v, d in zip(inputs, step))) for sign in (1, -1))
        along = sum(np.real(np.conj(g) * d).sum() for g, d in zip(results[1:], step))
        if abs((ahead - behind) / 2 - along) > 1e-6 * max(1, size) * 1e-3:
            continue

        def pairs(z):
            return [[float(f"{v.real:.15g}"), float(f"{v.imag:.15g}")] for v in z.ravel()]
        cases.append({"program": text, "x": pairs(inputs[0]), "y": pairs(inputs[1]), "r": inputs[2].tolist(),
                      "value": float(results[0]), "dx": pairs(results[1]), "dy": pairs(results[2]),
                      "dr": np.real(results[3]).tolist()})
    with open(options.file, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
