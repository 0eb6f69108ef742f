"""Writes more.json: further calls of operators, with results of numpy, scipy and torch, or of their definition in loops.

Run with a Python that has these three:  python3 more.py > more.json
"""
import itertools
import math

import numpy as np
import scipy.linalg
import scipy.special as sp
import torch
import torch.nn.functional as F
from cases import case, integers, normal, uniform, write

torch.set_default_dtype(torch.float64)


def t(x):
    return torch.tensor(np.asarray(x))


def slopes(f, cotangent, *operands):
    """Gradients of <f(operands), cotangent>."""
    leaves = [t(x).requires_grad_() for x in operands]
    out = f(*leaves)
    return torch.autograd.grad(out, leaves, t(cotangent))


def loop(shape, f):
    out = np.zeros(shape)
    for at in np.ndindex(*shape):
        out[at] = f(*at)
    return out


# Arithmetic.
a, b = normal(3, 4), normal(3, 4)
whole, other = integers(-9, 9, 12), integers(1, 5, 12) * np.array([1, -1] * 6)
case("truncate_div", [a, b], np.trunc(a / b))
case("truncate_div", [whole, other], np.trunc(whole / other).astype(int))
base, power = uniform(0.2, 3, 6), normal(6)
case("float_power", [base, power], base**power)
case("copysign", [a, b], np.copysign(a, b))
case("nextafter", [a, b], np.nextafter(a, b), 1e-16)
case("xdivy", [np.array([0.0, 0.0, 1.5, -2.0]), np.array([0.0, 2.0, 3.0, 0.5])], [0, 0, 0.5, -4])
case("lcm", [whole, other], np.lcm(whole, other))
case("ldexp", [a, 3], np.ldexp(a, 3))
case("positive", [a], a)
case("round_to_even", [np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6])], [0, 2, 2, 0, -2, 2, 3])
points = uniform(0.3, 9, 7)
case("trigamma", [points], sp.polygamma(1, points), 1e-10)
case("isposinf", [np.array([1.0, np.inf, -np.inf, np.nan])], [False, True, False, False])
case("isneginf", [np.array([1.0, np.inf, -np.inf, np.nan])], [False, False, True, False])
case("signbit", [np.array([1.0, -0.0, 0.0, -3.0, -np.inf])], [False, True, False, True, True])
case("invert", [whole], ~whole)
case("invert", [np.array([True, False])], [False, True])
case("bitwise_left_shift", [whole, abs(other)], whole << abs(other))
case("bitwise_right_shift", [whole, abs(other)], whole >> abs(other))
case("approximate_equal", [np.array([1.0, 1.0, 1.0]), np.array([1.000001, 1.1, 0.5]), 0.2], [True, True, False])

# Activations and what their derivatives are made of.
x, dy = normal(2, 6), normal(2, 6)
case("gelu_erf", [x], F.gelu(t(x)), 1e-11)
case("gelu_tanh", [x], F.gelu(t(x), approximate="tanh"), 1e-11)
case("fast_gelu", [x], x / (1 + np.exp(-1.702 * x)), 1e-11)
case("gelu_erf_grad", [dy, x], slopes(F.gelu, dy, x)[0], 1e-11)
case("gelu_tanh_grad", [dy, x], slopes(lambda v: F.gelu(v, approximate="tanh"), dy, x)[0], 1e-11)
case("silu_grad", [dy, x], slopes(F.silu, dy, x)[0], 1e-11)
case("relu_grad", [dy, np.maximum(x, 0)], slopes(F.relu, dy, x)[0])
case("tanh_grad", [dy, np.tanh(x)], slopes(torch.tanh, dy, x)[0], 1e-11)
case("sigmoid_grad", [dy, sp.expit(x)], slopes(torch.sigmoid, dy, x)[0], 1e-11)
for axis in (-1, 0):
    case("softmax_grad", [dy, F.softmax(t(x), axis), axis], slopes(lambda v: F.softmax(v, axis), dy, x)[0], 1e-11)
    case("log_softmax_grad", [dy, F.log_softmax(t(x), axis), axis],
         slopes(lambda v: F.log_softmax(v, axis), dy, x)[0], 1e-11)

# Reductions and order.
block = normal(3, 4, 5)
case("reduce_sum", [block, 1, True], block.sum(1, keepdims=True))
case("reduce_mean", [block, [0, 2]], block.mean((0, 2)))
case("aminmax", [block, {"axis": 1}], block.min(1), result=1)
case("aminmax", [block, {"axis": 1}], block.max(1), result=2)
for order in ("fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
    case("matrix_norm", [a, order], np.linalg.norm(a, order), 1e-11)
case("matrix_norm", [block, 1, [0, 2], True], np.linalg.norm(block, 1, (0, 2), True), 1e-11)
weights, terms = normal(3, 5), normal(3, 5)
state, forward = np.zeros(3), []
for k in range(5):
    state = weights[:, k] * state + terms[:, k]
    forward.append(state)
case("linear_recurrence", [weights, terms, 1], np.stack(forward, 1))
state, backward = np.zeros(3), []
for k in reversed(range(5)):
    state = (weights[:, k + 1] if k < 4 else 0) * state + terms[:, k]
    backward.append(state)
case("linear_recurrence", [weights, terms, 1, {"reverse": True}], np.stack(backward[::-1], 1))
case("msort", [a], np.sort(a, 0))
gaps = normal(3, 5)
gaps[0, 1] = gaps[2, 0] = gaps[2, 4] = np.nan
case("nanmedian", [gaps], torch.nanmedian(t(gaps), -1)[0], result=1)
case("nanmedian", [gaps, 0, True], torch.nanmedian(t(gaps), 0, True)[0], result=1)
case("kthvalue", [block, 2, 1], torch.kthvalue(t(block), 2, 1)[0], result=1)
case("kthvalue", [block, 3, 0, True], torch.kthvalue(t(block), 3, 0, True)[1], result=2)
for how in ("linear", "lower", "higher", "midpoint", "nearest"):
    case("nanquantile", [gaps, 0.3, 1, False, {"interpolation": how}], np.nanquantile(gaps, 0.3, 1, method=how))
labels = np.array([2, 0, 2, 3, 0, 1, 0])
seen = np.unique(labels)
case("unique_with_pad", [labels, 9], np.concatenate([seen, [9] * (7 - len(seen))]), result=1)
case("unique_with_pad", [labels, 9], np.searchsorted(seen, labels), result=2)
case("cov", [a], np.cov(a), 1e-11)
frequency, importance = np.array([1, 3, 2, 1]), uniform(0.5, 2, 4)
case("cov", [a, {"correction": 0, "fweights": frequency, "aweights": importance}], np.cov(a, ddof=0, fweights=frequency, aweights=importance), 1e-11)

# Normalisation.
scale, shift = uniform(0.5, 2, 5), normal(5)
rows_, slope = normal(4, 5), normal(4, 5)
case("layer_norm_grad", [slope, rows_, scale, 1, 1e-5],
     slopes(lambda v: F.layer_norm(v, (5,), t(scale), None, 1e-5), slope, rows_)[0], 1e-10, result=1)
channels, over, w4 = normal(2, 4, 3), normal(2, 4, 3), uniform(0.5, 2, 4)
case("group_norm_grad", [over, channels, w4, 2, 1e-5],
     slopes(lambda v: F.group_norm(v, 2, t(w4), None, 1e-5), over, channels)[0], 1e-10, result=1)
case("instance_norm", [channels, w4, normal(4) * 0 + 0.5, 1e-5],
     F.instance_norm(t(channels), weight=t(w4), bias=t(np.full(4, 0.5)), eps=1e-5), 1e-10)
case("batch_norm_train", [channels, w4, np.full(4, 0.5), 1e-5],
     F.batch_norm(t(channels), None, None, t(w4), t(np.full(4, 0.5)), True, 0.1, 1e-5), 1e-10, result=1)
case("batch_norm_train", [channels, w4, np.full(4, 0.5), 1e-5], channels.mean((0, 2)), 1e-10, result=2)
case("batch_norm_grad", [over, channels, w4, 1e-5],
     slopes(lambda v: F.batch_norm(v, None, None, t(w4), None, True, 0.1, 1e-5), over, channels)[0], 1e-10, result=1)
joint = rows_ + slope
case("add_rms_norm", [rows_, slope, scale, 1e-6],
     joint / np.sqrt((joint**2).mean(-1, keepdims=True) + 1e-6) * scale, 1e-10, result=1)
case("add_layer_norm", [rows_, slope, scale, shift, 1e-5],
     F.layer_norm(t(joint), (5,), t(scale), t(shift), 1e-5), 1e-10, result=1)

# Losses and labels.
p, target = uniform(0.05, 0.95, 3, 4), uniform(0, 1, 3, 4)
case("bernoulli_cross_entropy", [p, target], F.binary_cross_entropy(t(p), t(target), reduction="none"), 1e-10)
emphasis = uniform(0.5, 2, 3, 4)
case("sigmoid_cross_entropy", [a, target],
     F.binary_cross_entropy_with_logits(t(a), t(target), reduction="none"), 1e-10)
case("sigmoid_cross_entropy", [a, target, emphasis],
     F.binary_cross_entropy_with_logits(t(a), t(target), reduction="none", pos_weight=t(emphasis)), 1e-10)
case("huber_element", [a, b, 0.8, 1.0], F.huber_loss(t(a), t(b), reduction="none", delta=0.8), 1e-11)
scores, answers = normal(3, 5), np.array([4, 0, 2])
for how in ("mean", "sum", "none"):
    case("multi_margin_loss", [scores, answers, 2, 1.5, scale, how],
         F.multi_margin_loss(t(scores), t(answers), 2, 1.5, t(scale), reduction=how), 1e-10)
    several = np.array([[3, 1, -1, 0, 2], [0, -1, 1, 2, 3], [4, 3, 2, -1, 0]])
    case("multilabel_margin_loss", [scores, several, how],
         F.multilabel_margin_loss(t(scores), t(several), reduction=how), 1e-10)
case("intopk", [scores, answers, 2], [answers[i] in np.argsort(-scores[i])[:2] for i in range(3)])

# Views, pieces and rearrangements.
case("reshape_as", [block, normal(5, 12)], block.reshape(5, 12))
case("atleast_3d", [normal(3) * 0 + 2], np.full((1, 3, 1), 2.0))
case("adjoint", [a], a.T)
case("expand_as", [normal(4, 1) * 0 + 1.5, block], np.full((3, 4, 5), 1.5))
case("type_as", [np.array([1.7, -2.7]), np.array([1])], [1, -2])
case("fliplr", [block], np.fliplr(block))
case("flipud", [block], np.flipud(block))
case("diagflat", [a, 1], np.diagflat(a, 1))
case("repeat_elements", [a, 3, 1], np.repeat(a, 3, 1))
case("sliding_window", [block, 1, 2], np.lib.stride_tricks.sliding_window_view(block, 2, 1))
for name, f in {"hsplit": np.hsplit, "vsplit": np.vsplit, "dsplit": np.dsplit}.items():
    given = normal(4, 6, 2)
    for k, part in enumerate(f(given, 2), 1):
        case(name, [given, 2], part, result=k)
for k, part in enumerate(np.array_split(block, 3, 2), 1):
    case("tensor_split", [block, 3, 2], part, result=k)
for k, part in enumerate(np.array_split(block, [1, 3], 1), 1):
    case("tensor_split", [block, [1, 3], 1], part, result=k)
case("slice_scatter", [normal(5, 3) * 0, a[:2, :3], 0, 1, 5, 2],
     torch.slice_scatter(torch.zeros(5, 3), t(a[:2, :3]), 0, 1, 5, 2))
case("select_scatter", [a, normal(4) * 0 + 7, 0, 1], torch.select_scatter(t(a), torch.full((4,), 7.0), 0, 1))
case("diagonal_scatter", [block, normal(3, 4) * 0 + 5, 1, 1, 2],
     torch.diagonal_scatter(t(block), torch.full((3, 4), 5.0), 1, 1, 2))
assigned = block.copy()
assigned[0:3:2, 1:3] = 9
case("slice_assign", [block, 9.0, [0, 1], [3, 3], [2, 1]], assigned)
mask, source = np.array([[True, False, True, True]] * 3), normal(12)
case("masked_scatter", [a, mask, source], t(a).masked_scatter(t(mask), t(source)))
case("argwhere", [np.array([[0.0, 1.5], [2.0, 0.0]])], [[0, 1], [1, 0]])
case("padding", [normal(3, 1) * 0 + 4, 3], [[4, 0, 0]] * 3)

# Scatters.
table, places, updates = uniform(1, 2, 5, 3), np.array([[4], [0], [4]]), uniform(1, 2, 3, 3)
how_to = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
          "min": np.minimum}
for how, f in how_to.items():
    result = table.copy()
    f.at(result, places[:, 0], updates)
    case("tensor_scatter_nd", [table, places, updates, how], result)
    if how not in ("add", "sub"):
        case(f"tensor_scatter_{how}", [table, places, updates], result)
    if how != "add":
        case(f"scatter_{how}", [table, places[:, 0], updates], result)
replaced = table.copy()
replaced[[1, 3]] = updates[:2]
case("scatter_update", [table, np.array([1, 3]), updates[:2]], replaced)
case("index_copy", [table, 0, np.array([1, 3]), updates[:2]], replaced)
case("inplace_update", [table, updates[:2], [1, 3]], replaced)
for name, sign in (("inplace_add", 1), ("inplace_sub", -1)):
    changed = table.copy()
    changed[[1, 3]] += sign * updates[:2]
    case(name, [table, updates[:2], [1, 3]], changed)
case("scatter_add", [table, 0, np.array([[4, 0, 1], [4, 4, 2]]), updates[:2]],
     t(table).scatter_add(0, t(np.array([[4, 0, 1], [4, 4, 2]])), t(updates[:2])))
ids = np.array([2, 0, 2, -1, 0])
products = np.ones((3, 3))
for row, i in zip(table, ids):
    if i >= 0:
        products[i] *= row
case("unsorted_segment_prod", [table, ids, 3], products)
case("sparse_segment_mean", [table, np.array([4, 1, 1, 0]), np.array([0, 0, 2, 2])],
     [(table[4] + table[1]) / 2, np.zeros(3), (table[1] + table[0]) / 2])

# Construction.
case("fill", ["float64", (2, 3), 2.5], np.full((2, 3), 2.5))
case("new_zeros", [a, (2, 2)], np.zeros((2, 2)))
case("new_ones", [a, (2, 2)], np.ones((2, 2)))
case("new_full", [a, (2, 2), 3.5], np.full((2, 2), 3.5))
case("triu_indices", [3, 5, 1], np.stack(np.triu_indices(3, 1, 5)))
for n in (1, 2, 7, 8):
    case("bartlett_window", [n, False], np.bartlett(n), 1e-6)
    case("blackman_window", [n, False], np.blackman(n), 1e-6)
    case("kaiser_window", [n, False, 8.6], np.kaiser(n, 8.6), 1e-6)
    case("kaiser_window", [n], torch.kaiser_window(n, True, 12.0), 1e-6)
case("vander", [normal(4) * 0 + 2, 3], np.vander(np.full(4, 2.0), 3))
case("cartesian_prod", [[np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])]],
     list(itertools.product([1.0, 2.0], [3.0, 4.0, 5.0])))
four = normal(4)
case("combinations", [four, 3], list(itertools.combinations(four, 3)))
case("combinations", [four, 2, True], list(itertools.combinations_with_replacement(four, 2)))

# Linear algebra.
square = normal(3, 3) + 3 * np.eye(3)
case("cofactor", [square], np.linalg.det(square) * np.linalg.inv(square).T, 1e-10)
lu, pivots = scipy.linalg.lu_factor(square)
case("lu_factor", [square], lu, 1e-10, result=1)
right = normal(3, 2)
upper = np.triu(square)
case("solve_triangular", [upper, right], scipy.linalg.solve_triangular(upper, right), 1e-10)
case("solve_triangular", [upper.T, right, True, True], scipy.linalg.solve_triangular(upper.T, right, 1, True), 1e-10)
matrix = normal(4, 3)
(reflectors, tau), _ = scipy.linalg.qr(matrix, mode="raw")
case("geqrf", [matrix], reflectors, 1e-10, result=1)
case("geqrf", [matrix], tau, 1e-10, result=2)
case("orgqr", [reflectors, tau], torch.linalg.householder_product(t(reflectors), t(tau)), 1e-10)
case("ormqr", [reflectors, tau, normal(4, 2) * 0 + 1.5, True, True],
     torch.ormqr(t(reflectors), t(tau), torch.full((4, 2), 1.5), True, True), 1e-10)
symmetric = square + square.T
case("eigh", [symmetric], np.linalg.eigvalsh(symmetric), 1e-10, result=1)
case("svd_factors", [matrix], np.linalg.svd(matrix, compute_uv=False), 1e-10, result=1)
case("affine", [rows_, normal(3, 5) * 0 + 0.5, np.array([1.0, 2.0, 3.0])], rows_.sum(1, keepdims=True) * 0.5 + [1, 2, 3])
pointers, columns, values = np.array([0, 2, 2, 3]), np.array([0, 3, 1]), np.array([1.5, -2.0, 4.0])
dense = normal(4, 2)
sparse = np.zeros((3, 4))
sparse[0, 0], sparse[0, 3], sparse[2, 1] = values
case("csr_matmul", [pointers, columns, values, dense], sparse @ dense)

# Complex numbers and Fourier transforms.
z = normal(3, 5) + 1j * normal(3, 5)
case("complex", [z.real, z.imag], z)
case("real", [z], z.real)
case("imag", [z], z.imag)
case("conjugate", [z], z.conj())
case("view_as_real", [z], np.stack([z.real, z.imag], -1))
case("view_as_complex", [np.stack([z.real, z.imag], -1)], z)
for norm in ("backward", "ortho", "forward"):
    case("ifft", [z, 6, 0, norm], np.fft.ifft(z, 6, 0, norm), 1e-14)
    case("irfft", [z, 7, 1, norm], np.fft.irfft(z, 7, 1, norm), 1e-14)
    for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn"):
        case(name, [z, [4, 6], [0, 1], norm], getattr(np.fft, name)(z, [4, 6], [0, 1], norm), 1e-14)
    for name in ("rfft2", "rfftn"):
        case(name, [z.real, [4, 6], [0, 1], norm], getattr(np.fft, name)(z.real, [4, 6], [0, 1], norm), 1e-14)
case("dft", [z, 5, 1, False, 0.5, False], np.fft.fft(z) * 0.5, 1e-14)
case("dft", [z.real, 5, 1, False, 1.0, True], np.fft.rfft(z.real), 1e-14)
case("dft_real", [z, 8, 1, 0.125], np.fft.irfft(z, 8), 1e-14)

# Convolutions and windows.
image, kernel, bias = normal(2, 4, 5, 6), normal(6, 2, 3, 2), normal(6)
case("conv2d_relu", [image, kernel, bias, 2, "pad", [1, 1, 1, 1], 1, 2],
     F.relu(F.conv2d(t(image), t(kernel), t(bias), 2, 1, 1, 2)), 1e-10)
case("conv2d_last", [image.transpose(0, 2, 3, 1), kernel, bias, 1, [1, 1, 1, 1], [1, 2], 2],
     F.conv2d(t(image), t(kernel), t(bias), 1, 1, (1, 2), 2).permute(0, 2, 3, 1), 1e-10)
out = F.conv2d(t(image), t(kernel), None, 2, 1, 1, 2)
slope_of_out = normal(*out.shape)
both = slopes(lambda u, v: F.conv2d(u, v, None, 2, 1, 1, 2), slope_of_out, image, kernel)
case("conv_input_grad", [slope_of_out, kernel, list(image.shape), 2, [1, 1, 1, 1], 1, 2], both[0], 1e-10)
case("conv_weight_grad", [image, slope_of_out, list(kernel.shape), 2, [1, 1, 1, 1], 1, 2], both[1], 1e-10)
line, filters = normal(2, 4, 5), normal(4, 2, 3)
case("conv_transpose1d", [line, filters, normal(2) * 0 + 0.5, 2, 1, 1],
     F.conv_transpose1d(t(line), t(filters), torch.full((2,), 0.5), 2, 1, 1), 1e-10)
cube, deep = normal(1, 2, 2, 3, 2), normal(2, 2, 2, 2, 3)
case("conv_transpose3d", [cube, deep, None, 2, 1], F.conv_transpose3d(t(cube), t(deep), None, 2, 1), 1e-10)
case("max_pool1d", [line, 3, 2, 1], F.max_pool1d(t(line), 3, 2, 1))
pooled, at = F.max_pool2d(t(image), (2, 3), (2, 1), (1, 1), 1, return_indices=True)
window = [[2, 3], [2, 1], [1, 1, 1, 1], [1, 1], False]
case("max_window", [image] + window, pooled)
case("argmax_window", [image] + window, at)
case("max_window_last", [image.transpose(0, 2, 3, 1)] + window, pooled.permute(0, 2, 3, 1))
over_pool = normal(*pooled.shape)
case("max_window_grad", [over_pool, image] + window,
     slopes(lambda v: F.max_pool2d(v, (2, 3), (2, 1), (1, 1)), over_pool, image)[0])
flat, index = normal(2, 3, 4), integers(0, 12, 2, 2, 2)
case("plane_gather", [flat, index, 2], np.take_along_axis(flat.reshape(2, 12), index.reshape(2, 4), 1).reshape(2, 2, 2))
summed = np.zeros((2, 12))
for plane in range(2):
    np.add.at(summed[plane], index[plane].ravel(), flat[plane].ravel()[:4])
case("plane_scatter", [flat.reshape(2, 12)[:, :4].reshape(2, 2, 2), index, [3, 4], True], summed.reshape(2, 3, 4))
for axes in (1, 2, 3):
    given = normal(*((1, 2) + (4,) * axes))
    small, where = getattr(F, f"max_pool{axes}d")(t(given), 2, return_indices=True)
    case(f"max_unpool{axes}d", [small, where, 2], getattr(F, f"max_unpool{axes}d")(small, where, 2))
solid = normal(1, 2, 4, 4, 5)
case("avg_pool3d", [solid, 2, 2, 0], F.avg_pool3d(t(solid), 2, 2), 1e-11)
case("adaptive_avg_pool3d", [solid, [2, 3, 2]], F.adaptive_avg_pool3d(t(solid), (2, 3, 2)), 1e-11)
case("adaptive_max_pool3d", [solid, [2, 3, 2]], F.adaptive_max_pool3d(t(solid), (2, 3, 2)))
case("adaptive_max_pool1d", [line, 2], F.adaptive_max_pool1d(t(line), 2))
case("adaptive_argmax", [image, [2, 3]], F.adaptive_max_pool2d(t(image), (2, 3), return_indices=True)[1])
over_average = normal(2, 4, 2, 3)
case("avg_pool_grad", [over_average, [5, 6], 2, 2, 0, False, True],
     slopes(lambda v: F.avg_pool2d(v, 2, 2), over_average, image)[0], 1e-11)
positive = uniform(0.5, 2, 1, 2, 5, 6)
case("lp_pool2d", [positive, 2, 3, 1], F.lp_pool2d(t(positive), 2, 3, 1), 1e-10)
case("bias_add", [image, np.array([1.0, 2.0, 3.0, 4.0])], image + np.arange(1.0, 5).reshape(1, 4, 1, 1))

# The best class of each step, without repetitions and the blank, which is the last class.
steps, lengths = normal(6, 2, 4), np.array([6, 4])
for merge in (True, False):
    decoded, likely = [], []
    for sample, length in enumerate(lengths):
        best = steps[:length, sample].argmax(-1)
        kept = [c for k, c in enumerate(best) if c != 3 and not (merge and k and c == best[k - 1])]
        decoded += kept
        likely.append(-steps[:length, sample].max(-1).sum())
    case("ctc_greedy_decoder", [steps, lengths, merge], decoded, result=2)
    case("ctc_greedy_decoder", [steps, lengths, merge], np.array(likely)[:, None], 1e-11, result=4)

# Attention: softmax(q k^T scale) v, with keys hidden that come later.
q, k, v, over_heads = normal(2, 2, 5, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 3), normal(2, 2, 5, 3)


def attend(query, key, value, hides):
    weight = query @ key.transpose(-1, -2) * 0.7
    if hides:
        weight = weight.masked_fill(torch.triu(torch.ones(5, 5, dtype=torch.bool), 1), -math.inf)
    return F.softmax(weight, -1) @ value


for causal in (False, True):
    case("attention", [q, k, v, 0.7, causal], attend(t(q), t(k), t(v), causal), 1e-10)
    for n, grad in enumerate(slopes(lambda *args: attend(*args, causal), over_heads, q, k, v), 1):
        case("attention_grad", [over_heads, q, k, v, 0.7, causal, 0], grad, 1e-10, result=n)

# Experts of tokens: rows in the order of the experts, and back.
tokens, experts = normal(4, 3), np.array([[2, 0], [1, 2], [0, 1], [2, 1]])
order = np.argsort(experts.ravel(), kind="stable")
case("moe_token_permute", [tokens, experts], tokens[order // 2], result=1)
case("moe_token_permute", [tokens, experts], np.argsort(order, kind="stable"), result=2)
share = uniform(0, 1, 4, 2)
case("moe_token_unpermute", [tokens[order // 2], np.argsort(order, kind="stable"), share],
     tokens * share.sum(1, keepdims=True))

# Layouts of attention: (batch, keys, heads * size), some keys beyond the end of their sequence.
flat_q, flat_k, flat_v = normal(2, 5, 8), normal(2, 5, 8), normal(2, 5, 8)


def heads(x):
    return t(x).reshape(2, -1, 2, 4).transpose(1, 2)


def flat_attention(query, bias):
    weight = heads(query) @ heads(flat_k).transpose(-1, -2) * 0.5 + bias
    return (F.softmax(weight, -1) @ heads(flat_v)).transpose(1, 2).reshape(2, -1, 8)


case("prompt_flash_attention", [flat_q, flat_k, flat_v, {"num_heads": 2, "scale_value": 0.5}],
     flat_attention(flat_q, torch.zeros(1)), 1e-10)
ends = torch.zeros(2, 1, 1, 5)
ends[0, ..., 3:] = -math.inf
case("incre_flash_attention",
     [flat_q[:, :1], flat_k, flat_v, {"num_heads": 2, "scale_value": 0.5, "actual_seq_lengths": [3, 5]}],
     flat_attention(flat_q[:, :1], ends), 1e-10)

# Distances of rows: sums over pairs of what lies between, for the derivatives of norms.
left, right = normal(3, 4), normal(2, 4)
between = left[:, None] - right[None]
case("pair_products", [left, right], between.sum(-1))
case("pair_sums", [left, right], between.sum(1))
by, at_left, at_right = uniform(1, 2, 3, 2), normal(3, 4), normal(2, 4)
powers = np.sign(between / by[..., None]) * np.abs(between / by[..., None]) ** 3
case("pair_products", [left, right, at_left, at_right, by, 3.0, True],
     np.einsum("ik,jk,ijk->ij", at_left, at_right, powers), 1e-11)
each = normal(3, 2)
case("pair_sums", [left, right, each, at_right, by, 3.0, True], np.einsum("ij,jk,ijk->ik", each, at_right, powers), 1e-11)

# What is left.
case("clip_by_norm", [a, 0.5], a * 0.5 / np.linalg.norm(a), 1e-6)
case("clip_by_norm", [a, 100.0], a, 1e-6)
total = math.sqrt((a**2).sum() + (b**2).sum())
case("clip_by_global_norm", [[a, b], 0.5], a * 0.5 / total, 1e-6, result=1)
case("clip_by_global_norm", [[a, b], 0.5], b * 0.5 / total, 1e-6, result=2)
case("label_counts", [np.array([[1, 0, -1, 2], [2, 2, 1, -1]])], [[1, 1, 0, 0], [0, 1, 2, 0]])
factors, pivots = torch.linalg.lu_factor(t(square))
permutation, lower, upper = torch.lu_unpack(factors, pivots)
for n, part in enumerate((permutation, lower, upper), 1):
    case("lu_unpack", [factors, pivots.long() - 1], part, 1e-12, result=n)
ones = np.full((3, 2), 1.5)
case("lu_solve", [ones, factors, pivots.long() - 1], torch.linalg.lu_solve(factors, pivots, t(ones)), 1e-10)
case("permutation_of_pivots", [pivots.long() - 1, 3], permutation)
case("eigvals", [np.array([[1.0, 2.0], [-2.0, 1.0]])], [1 + 2j, 1 - 2j], 1e-12)
case("eig", [np.array([[1.0, 2.0], [-2.0, 1.0]])], [1 + 2j, 1 - 2j], 1e-12, result=1)
case("valid_labels", [np.array([2, 0, -1, 1]), 3, -1], [True, True, False, True], result=2)

# Numbers rounded to the steps of integer formats; half steps are among them.
numbers = np.concatenate([normal(20), np.arange(-8, 8) * 0.125]).reshape(6, 6)


def quantised(x, s, z, low, high):
    return (np.clip(np.rint(x / s) + z, low, high) - z) * s


case("fake_quantize", [numbers, 0.25], quantised(numbers, 0.25, 0, -128, 127), 0)
case("fake_quantize", [numbers, 0.25, 3.0, 0, 7], quantised(numbers, 0.25, 3, 0, 7), 0)
widths, zeros = uniform(0.05, 0.3, 6), integers(-4, 5, 6) * 1.0
case("fake_quantize", [numbers, widths, zeros, -8, 7, 1], quantised(numbers, widths, zeros, -8, 7), 1e-15)
case("fake_quantize", [numbers, widths, 0, -7, 7, 0], quantised(numbers, widths[:, None], 0, -7, 7), 1e-15)
widths = uniform(0.05, 0.3, 6, 2)
case("fake_quantize", [numbers, widths, 0, -8, 7, -1, 4],
     quantised(numbers, np.repeat(widths, 4, 1)[:, :6], 0, -8, 7), 1e-15)
case("fake_quantize_element", [numbers, 0.01, 0.0, -32768, 32767], quantised(numbers, 0.01, 0, -32768, 32767), 1e-15)

write()
