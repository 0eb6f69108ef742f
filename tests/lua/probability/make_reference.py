"""Writes reference.json beside it: what PyTorch and scipy give for distributions and bijectors, in double precision.

    python3 tests/lua/probability/make_reference.py       (needs PyTorch and scipy)"""
import json
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from torch import distributions as d

torch.set_default_dtype(torch.float64)

REAL = [-7.5, -1.25, -0.3, 0.0, 0.7, 2.0, 5.5]
POSITIVE = [-1.0, 0.01, 0.3, 0.9, 2.0, 6.5, 40.0]
UNIT = [-0.2, 0.001, 0.2, 0.5, 0.77, 0.999, 1.5]
COUNTS = [-1.0, 0.0, 1.0, 2.0, 2.5, 5.0, 12.0]
# Name, parameters, those of another distribution, values, PyTorch's class, scipy's frozen distribution.
FAMILIES = [
    ("Normal", {"mean": [0.5, -1.0], "sd": [0.7, 2.5]}, {"mean": [0.0, 0.3], "sd": [1.5, 0.4]}, REAL, d.Normal, stats.norm),
    ("Laplace", {"mean": [0.5, -1.0], "sd": [0.7, 2.5]}, {"mean": [0.0, 0.3], "sd": [1.5, 0.4]}, REAL, d.Laplace, stats.laplace),
    ("Logistic", {"loc": [0.5, -1.0], "scale": [0.7, 2.5]}, None, REAL, None, stats.logistic),
    ("Gumbel", {"loc": [0.5, -1.0], "scale": [0.7, 2.5]}, {"loc": [0.0, 0.3], "scale": [1.5, 0.9]}, REAL, d.Gumbel, stats.gumbel_r),
    ("Cauchy", {"loc": [0.5, -1.0], "scale": [0.7, 2.5]}, {"loc": [0.0, 0.3], "scale": [1.5, 0.4]}, REAL, d.Cauchy, stats.cauchy),
    ("HalfNormal", {"mean": [0.0, 0.0], "sd": [0.7, 2.5]}, {"mean": [0.0, 0.0], "sd": [1.5, 0.4]}, POSITIVE, None, stats.halfnorm),
    ("LogNormal", {"loc": [0.5, -1.0], "scale": [0.7, 1.5]}, {"loc": [0.0, 0.3], "scale": [1.5, 0.4]}, POSITIVE, d.LogNormal,
     lambda loc, scale: stats.lognorm(s=scale, scale=np.exp(loc))),
    ("Exponential", {"rate": [0.5, 3.0]}, {"rate": [1.5, 0.4]}, POSITIVE, d.Exponential, lambda rate: stats.expon(scale=1 / rate)),
    ("Uniform", {"low": [-1.0, 0.0], "high": [1.0, 5.0]}, {"low": [-2.0, -1.0], "high": [1.0, 6.0]}, REAL, d.Uniform,
     lambda low, high: stats.uniform(low, high - low)),
    ("Gamma", {"concentration": [0.5, 3.5], "rate": [0.7, 2.0]}, {"concentration": [1.5, 0.4], "rate": [1.0, 1.2]}, POSITIVE, d.Gamma,
     lambda a, rate: stats.gamma(a, scale=1 / rate)),
    ("Beta", {"concentration1": [0.5, 3.5], "concentration0": [0.7, 2.0]}, {"concentration1": [1.5, 0.4], "concentration0": [1.0, 1.2]},
     UNIT, d.Beta, stats.beta),
    ("StudentT", {"df": [1.5, 5.0], "mean": [0.5, -1.0], "sd": [0.7, 2.5]}, None, REAL, d.StudentT, stats.t),
    ("Bernoulli", {"probs": [0.2, 0.75]}, {"probs": [0.5, 0.4]}, COUNTS, d.Bernoulli, stats.bernoulli),
    ("Geometric", {"probs": [0.2, 0.75]}, {"probs": [0.5, 0.4]}, COUNTS, d.Geometric, lambda p: stats.geom(p, loc=-1)),
    ("Poisson", {"rate": [0.4, 6.0]}, {"rate": [1.5, 5.0]}, COUNTS, d.Poisson, stats.poisson),
]


def listed(x):
    return [None if np.isnan(v) else ("inf" if v > 0 else "-inf") if np.isinf(v) else float(v) for v in np.asarray(x).reshape(-1)]


def family(name, parameters, other, values, torch_class, scipy_class):
    frozen = scipy_class(*[np.array(v) for v in parameters.values()])
    x = np.array(values)[:, None]
    density = frozen.logpmf if hasattr(frozen, "pmf") and name in ("Bernoulli", "Geometric", "Poisson") else frozen.logpdf
    with np.errstate(all="ignore"):
        row = {"name": name, "parameters": parameters, "other": other, "values": values, "log_prob": listed(density(x)),
               "cdf": listed(frozen.cdf(x)), "survival_function": listed(frozen.sf(x)), "mean": listed(frozen.mean()),
               "var": listed(frozen.var()), "entropy": listed([float(scipy_class(*p).entropy()) for p in zip(*parameters.values())])}
    if other and torch_class:
        a = torch_class(*[torch.tensor(v) for v in parameters.values()])
        b = torch_class(*[torch.tensor(v) for v in other.values()])
        row["kl_loss"] = d.kl_divergence(a, b).tolist()
    if torch_class:
        # The gradient of the sum of log_prob over the values that are possible, with respect to the parameters.
        leaves = [torch.tensor(v, requires_grad=True) for v in parameters.values()]
        inside = [v for v, p in zip(values, np.isfinite(density(x)).all(axis=1)) if p]
        row["inside"] = inside
        torch_class(*leaves, validate_args=False).log_prob(torch.tensor(inside)[:, None]).sum().backward()
        row["gradients"] = [leaf.grad.tolist() for leaf in leaves]
    return row


def bijectors():
    x = torch.tensor([-0.9, -0.2, 0.1, 0.8], requires_grad=True)
    functions = {
        "Exp": ({}, torch.exp), "ScalarAffine": ({"scale": -2.0, "shift": 0.5}, lambda v: -2.0 * v + 0.5),
        "Softplus": ({"sharpness": 2.0}, lambda v: torch.nn.functional.softplus(v, beta=2.0)),
        "PowerTransform": ({"power": 0.5}, lambda v: (1 + 0.5 * v) ** 2),
        "GumbelCDF": ({"loc": 0.2, "scale": 1.5}, lambda v: d.Gumbel(0.2, 1.5).cdf(v)),
    }
    rows = []
    for name, (arguments, function) in functions.items():
        y = function(x)
        slope, = torch.autograd.grad(y.sum(), x)
        rows.append({"name": name, "arguments": arguments, "x": x.tolist(), "y": y.tolist(), "log_jacobian": slope.abs().log().tolist()})
    return rows


def special():
    from scipy.special import betainc, gammainc
    a, x = np.meshgrid([0.05, 0.5, 1.0, 3.0, 20.0, 150.0], [0.0, 1e-6, 0.1, 1.0, 2.5, 19.0, 60.0, 140.0, 500.0])
    p, q, z = np.meshgrid([0.2, 1.0, 5.0, 40.0], [0.3, 1.0, 8.0], [0.0, 1e-5, 0.1, 0.5, 0.8, 0.999, 1.0])
    return {"gammainc": {"a": a.ravel().tolist(), "x": x.ravel().tolist(), "y": gammainc(a, x).ravel().tolist()},
            "betainc": {"a": p.ravel().tolist(), "b": q.ravel().tolist(), "x": z.ravel().tolist(), "y": betainc(p, q, z).ravel().tolist()}}


data = {"families": [family(*row) for row in FAMILIES], "bijectors": bijectors(), "special": special()}
text = json.dumps(data, separators=(",", ":")).replace("},{", "},\n{")
Path(__file__).with_name("reference.json").write_text(text + "\n")
