#!/usr/bin/env python3
"""Writes tests/data/conformance/language-programs.json: Lua programs with the values and gradients that PyTorch gives.

    python tests/conformance/reference/reference.py tests/data/conformance/language-programs.json

Each program stands beside a function of torch that computes the same in another way where there is one (a factorisation
of torch.linalg for loops over elements, new tensors for writes in place). The file is read by programs.lua.
"""
import json
import sys

import torch

torch.set_default_dtype(torch.float64)
PROGRAMS = []
HEAD = 'local ms = require "lunaria"; local ops = ms.ops\n'


def tensor(value):
    return torch.tensor(value, dtype=torch.float64)


def inputs_of(value):
    if isinstance(value, dict):
        if "__list__" in value:
            return [inputs_of(v) for v in value["__list__"]]
        return {k: inputs_of(v) for k, v in value.items()}
    return tensor(value)


def leaves(value, found):
    if isinstance(value, dict):
        for key in sorted(value):
            leaves(value[key], found)
    elif isinstance(value, list):
        for item in value:
            leaves(item, found)
    else:
        found.append(value)
    return found


def value_and_grads(f, *args):
    """The value of f and its gradients by all tensors in the arguments, tables in the order of their keys."""
    tensors = leaves(list(args), [])
    for t in tensors:
        t.requires_grad_(True)
    value = f(*args)
    grads = torch.autograd.grad(value, tensors, allow_unused=True)
    return [value] + [torch.zeros_like(t) if g is None else g for t, g in zip(tensors, grads)]


def program(name, tags, lua, inputs, rtol32=2e-4, atol32=2e-5):
    """Decorates the function of torch; `inputs` is a list of cases. The Lua chunk gives a function of the inputs."""

    def add(f):
        for k, case in enumerate(inputs):
            expected = [v.detach().tolist() for v in f(*[inputs_of(x) for x in case])]
            PROGRAMS.append({
                "id": f"{name}.{k}", "name": name, "tags": tags, "lua": HEAD + lua.strip("\n"), "inputs": case,
                "expected": expected, "checked_by": ["torch-f64"],
                "rtol_float64": 1e-8, "atol_float64": 1e-9, "rtol_float32": rtol32, "atol_float32": atol32,
            })
        return f

    return add


def main():
    import algorithms
    import learning
    import objects

    del algorithms, learning, objects
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        names = {p["name"] for p in PROGRAMS}
        json.dump({
            "format": "lunaria-grad-programs-1", "set": "language", "arg_base": 0, "axis_base": 0, "module": "lunaria",
            "n_programs": len(names), "n_cases": len(PROGRAMS), "programs": PROGRAMS,
        }, out, indent=1)
        out.write("\n")
    print(f"{len(names)} programs, {len(PROGRAMS)} cases")


if __name__ == "__main__":
    # The modules with the programs import this one by its name.
    sys.modules["reference"] = sys.modules["__main__"]
    main()
