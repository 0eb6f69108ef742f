"""Writes expected.json: calls of operators as Lua text, with results of independent programs.

Run with a Python that has numpy, scipy, torch, torchvision and mindspore:  python3 make.py > expected.json
"""
import sys

import numpy as np
import scipy.linalg
import scipy.special as sp
import torch
from cases import case, normal, random, rows, uniform, write

# Special functions.
for name, f in {"bessel_j0": sp.j0, "bessel_j1": sp.j1, "bessel_y0": sp.y0, "bessel_y1": sp.y1, "bessel_i0": sp.i0,
                "bessel_i1": sp.i1, "bessel_i0e": sp.i0e, "bessel_i1e": sp.i1e, "bessel_k0": sp.k0,
                "bessel_k1": sp.k1, "bessel_k0e": sp.k0e, "bessel_k1e": sp.k1e}.items():
    x = np.array([0.01, 0.5, 1.0, 3.7, 12.25, 34.5, 35.5, 90.0])
    if name[7] in "ji":
        x = np.concatenate([x, -x, [0.0]])
    case(name, [x], f(x), 1e-11)
a = np.array([0.1, 0.5, 1.0, 2.5, 20.0, 29.0, 31.0, 400.0, 3000.0, 2e5, 1e8])
for factor in (0.01, 0.5, 0.95, 1.0, 1.05, 2.0):
    case("igamma", [a, a * factor], sp.gammainc(a, a * factor), 1e-9)
    case("igammac", [a, a * factor], sp.gammaincc(a, a * factor), 1e-9)
s = np.array([1.01, 1.5, 2.0, 3.3, 10.0, 40.0])
for q in (0.1, 1.0, 2.5, 30.0, 1e6):
    case("zeta", [s, np.full(6, q)], sp.zeta(s, q), 1e-12)
for n in (0, 1, 2, 5):
    x = np.array([0.2, 1.0, 3.5, 40.0])
    case("polygamma", [n, x], sp.polygamma(n, x), 1e-11)
for p in (1, 2, 5):
    x = np.array([2.5, 3.0, 10.25])
    case("mvlgamma", [x, p], sp.multigammaln(x, p), 1e-12)

# Boxes, as MindSpore and torchvision have them.
anchors = np.array([[0, 0, 4, 4], [1, 1, 3, 6], [2.5, 0.5, 9, 7]])
truth = np.array([[0, 1, 5, 4], [1, 1, 4, 6], [2, 0.5, 7, 7]])
deltas = np.array([[0.1, -0.2, 0.3, 0.1], [5, 1, 9, -9], [0, 0, 0, 0]])
means, stds = (0.1, 0.2, 0.0, 0.0), (1.0, 1.0, 0.5, 2.0)
try:
    import mindspore
    from mindspore import Tensor, ops

    def f32(x):
        return Tensor(x.astype(np.float32))

    case("iou", [anchors, truth], ops.iou(f32(anchors), f32(truth)).asnumpy(), 1e-6)
    case("iou", [anchors, truth, "iof"], ops.iou(f32(anchors), f32(truth), "iof").asnumpy(), 1e-6)
    case("bounding_box_encode", [anchors, truth, means, stds],
         ops.bounding_box_encode(f32(anchors), f32(truth), means, stds).asnumpy(), 1e-5)
    case("bounding_box_decode", [anchors, deltas, (8, 6), means, stds],
         ops.bounding_box_decode(f32(anchors), f32(deltas), (8, 6), means, stds).asnumpy(), 1e-5)
    inside = np.array([[0, 0, 5, 5], [0, 0, 4.9, 5], [-1, 0, 2, 2], [0, 0, 5, 6]])
    meta = np.array([3.0, 3.0, 2.0])
    case("check_valid", [inside, meta], ops.check_valid(f32(inside), f32(meta)).asnumpy())
    images = np.arange(40.0).reshape(2, 4, 5, 1)
    cuts = np.array([[0.1, 0.2, 0.85, 0.8], [0, 0, 1, 1], [-0.2, 0, 1.3, 1.1], [0.9, 0.9, 0.15, 0.1]])
    which = np.array([0, 1, 0, 1])
    for method in ("bilinear", "nearest"):
        for size in ((3, 2), (1, 2)):
            case("crop_and_resize", [images, cuts, which, size, method, -1.0],
                 ops.crop_and_resize(f32(images), f32(cuts), Tensor(which.astype(np.int32)), size, method,
                                     -1.0).asnumpy(), 1e-5)
    x = normal(2, 3)
    bands = normal(3, 2)
    i32 = mindspore.int32
    case("matrix_diag", [x, [-1, 0], -1, -1, 5.0],
         ops.matrix_diag(f32(x), Tensor([-1, 0], i32), padding_value=Tensor(5.0, mindspore.float32)).asnumpy(), 1e-6)
    case("matrix_diag", [bands, [0, 2], 2, 4, 0.5, "LEFT_RIGHT"],
         ops.matrix_diag(f32(bands), Tensor([0, 2], i32), 2, 4, Tensor(0.5, mindspore.float32), "LEFT_RIGHT").asnumpy(),
         1e-6)
    y = normal(2, 3, 4)
    for k in ([-1, 2], [0, 0], [1, 3], [-2, -1]):
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
            part = ops.matrix_diag_part(f32(y), Tensor(k, i32), Tensor(5.0, mindspore.float32), align).asnumpy()
            case("matrix_diag_part", [y, k, 5.0, align], part, 1e-6)
            fresh = np.round(random.normal(size=part.shape), 3)
            case("matrix_set_diag", [y, fresh, k, align],
                 ops.matrix_set_diag(f32(y), f32(fresh), Tensor(k, i32), align).asnumpy(), 1e-6)
    case("matrix_band_part", [y, 1, 0], ops.matrix_band_part(f32(y), 1, 0).asnumpy(), 1e-6)
    case("matrix_band_part", [y, -1, 2], ops.matrix_band_part(f32(y), -1, 2).asnumpy(), 1e-6)
    x = normal(2, 3, 4, 6)
    case("space_to_batch_nd", [x, (2, 3), ((1, 1), (0, 3))],
         ops.space_to_batch_nd(f32(x), [2, 3], [[1, 1], [0, 3]]).asnumpy(), 1e-6)
    x = normal(12, 1, 2, 2)
    case("batch_to_space_nd", [x, (2, 3), ((1, 0), (0, 2))],
         ops.batch_to_space_nd(f32(x), [2, 3], [[1, 0], [0, 2]]).asnumpy(), 1e-6)
    x = normal(2, 3)
    for mode in ("REFLECT", "SYMMETRIC"):
        case("mirror_pad", [x, ((1, 1), (2, 2)), mode],
             ops.mirror_pad(f32(x), Tensor([[1, 1], [2, 2]], i32), mode).asnumpy(), 1e-6)
    case("renorm", [x, 2, 0, 1.0], ops.renorm(f32(x), 2, 0, 1.0).asnumpy(), 1e-5)
except ImportError:
    print("without mindspore: its cases are missing", file=sys.stderr)


def t(x):
    return torch.from_numpy(np.asarray(x))


# Linear systems, norms and distances.
factor = np.tril(uniform(0.5, 2, 2, 3, 3))
rhs = normal(2, 3, 2)
case("cholesky_solve", [rhs, factor], torch.cholesky_solve(t(rhs), t(factor)), 1e-10)
upper = np.swapaxes(factor, -1, -2).copy()
case("cholesky_solve", [rhs, upper, True], torch.cholesky_solve(t(rhs), t(upper), upper=True), 1e-10)
case("cholesky_inverse", [factor], torch.cholesky_inverse(t(factor)), 1e-10)
case("cholesky_inverse", [upper, True], torch.cholesky_inverse(t(upper), upper=True), 1e-10)
for m, n in ((5, 3), (3, 5), (4, 4)):
    a, b = normal(m, n), normal(m, 2)
    case("lstsq", [a, b], np.linalg.lstsq(a, b, rcond=None)[0], 1e-9)
a = normal(2, 3, 3)
case("cond", [a], np.linalg.cond(a), 1e-9)
for p in ("fro", "nuc", 1, -1, 2, -2):
    case("cond", [a, p], np.linalg.cond(a, p), 1e-9)
x, y = normal(4, 3), normal(4, 3)
for p in (1.0, 2.0, 3.0):
    case("dist", [x, y, p], torch.dist(t(x), t(y), p))
    case("pdist", [x, p], torch.pdist(t(x), p))
case("vecdot", [x, y], torch.linalg.vecdot(t(x), t(y)))
case("vecdot", [x, y, 0], torch.linalg.vecdot(t(x), t(y), dim=0))

weight, bias = normal(5, 3, 2), normal(5)
left, right = normal(4, 3), normal(4, 2)
case("bidense", [left, right, weight, bias],
     torch.nn.functional.bilinear(t(left), t(right), t(weight), t(bias)))

for a, b, axes in ((normal(2, 3, 4), normal(2, 4, 5), (2, 1)), (normal(2, 3), normal(2, 3), (1, 1)),
                   (normal(2, 3, 4), normal(2, 6, 4), (2, 2)), (normal(2, 3), normal(2, 5, 3), (1, 2)),
                   (normal(2, 3, 4, 5), normal(2, 5, 6), (3, 1))):
    product = np.stack([np.tensordot(p, q, (axes[0] - 1, axes[1] - 1)) for p, q in zip(a, b)])
    product = product.reshape(2, 1) if product.ndim == 1 else product
    case("batch_dot", [a, b, axes], product)
    if axes in ((2, 1), (1, 1)):
        case("batch_dot", [a, b], product)

# Complex numbers and spectra.
z = normal(3, 2) + 1j * normal(3, 2)
case("conj", [z], z.conj(), 1e-6)
case("angle", [z], np.angle(z), 1e-6)
case("angle", [np.array([-1.5, 0.0, 2.0])], np.angle([-1.5, 0.0, 2.0]))
case("polar", [uniform(0.5, 2, 3), np.array([0.1, 2.0, -3.0])], np.zeros(3, complex), 1e-6)
rows.pop()
size, turn = uniform(0.5, 2, 3), np.array([0.1, 2.0, -3.0])
case("polar", [size, turn], size * np.exp(1j * turn), 1e-6)
case("isreal", [np.array([1 + 0j, 1j])], [True, False])
for norm in ("backward", "ortho", "forward"):
    case("hfft", [z, 5, 0, norm], torch.fft.hfft(t(z), 5, 0, norm), 1e-5)
    case("ihfft", [x, 3, 0, norm], torch.fft.ihfft(t(x), 3, 0, norm), 1e-5)
    case("hfft2", [z, [4, 3], [0, 1], norm], torch.fft.hfft2(t(z), (4, 3), (0, 1), norm), 1e-5)
    case("ihfft2", [x, [4, 3], [0, 1], norm], torch.fft.ihfft2(t(x), (4, 3), (0, 1), norm), 1e-5)
    case("hfftn", [z, {"norm": norm}], torch.fft.hfftn(t(z), norm=norm), 1e-5)
    case("ihfftn", [x, {"norm": norm}], torch.fft.ihfftn(t(x), norm=norm), 1e-5)
for n in (1, 4, 5):
    case("fftfreq", [n, 0.5], np.fft.fftfreq(n, 0.5), 1e-6)
    case("rfftfreq", [n, 0.5], np.fft.rfftfreq(n, 0.5), 1e-6)
for axes in (None, 0, [0, 1]):
    given = [] if axes is None else [axes]
    case("fftshift", [x] + given, np.fft.fftshift(x, axes))
    case("ifftshift", [x] + given, np.fft.ifftshift(x, axes))
signal, window = normal(2, 30), uniform(0.2, 1, 6)
for center in (True, False):
    for normalized in (True, False):
        for onesided in (True, False):
            spectrum = torch.stft(t(signal), 8, 3, 6, t(window), center, "reflect", normalized, onesided,
                                  return_complex=True)
            case("stft", [signal, 8, 3, 6, window, center, "reflect", normalized, onesided, True], spectrum, 1e-5)
            if center:
                case("istft", [spectrum.numpy(), 8, 3, 6, window, center, normalized, onesided, 28],
                     torch.istft(spectrum, 8, 3, 6, t(window), center, normalized, onesided, 28), 1e-4)

# Rearrangements.
theta = normal(2, 2, 3)
for corners in (True, False):
    case("affine_grid", [theta, (2, 1, 3, 4), corners],
         torch.nn.functional.affine_grid(t(theta), (2, 1, 3, 4), align_corners=corners))
    deep = normal(1, 3, 4)
    case("affine_grid", [deep, (1, 1, 2, 3, 1), corners],
         torch.nn.functional.affine_grid(t(deep), (1, 1, 2, 3, 1), align_corners=corners))
patches = normal(2, 3, 4, 9)
case("col2im", [patches, (4, 4), (2, 2)], torch.nn.functional.fold(t(patches).reshape(2, 12, 9), (4, 4), (2, 2)))
numbers = np.array([0, 1, 3, -1, 2**62, -2**63])
case("population_count", [numbers], [bin(int(n) & (2**64 - 1)).count("1") for n in numbers])

write()
