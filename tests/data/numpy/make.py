"""Writes calls.txt: 5,000 random calls of ms.numpy as Lua text, each with what numpy gives for it.

    python3 make.py [SEED] > calls.txt        (with a Python that has numpy)

A line is: call, then for each result its dtype, its shape and its elements, or a plain value, separated by tabs. Tensors of the calls are
made from Lua tables: T(kind, {sizes}, {elements}). Floats that come from plain values only are float32 here as everywhere in
Lunaria; numpy is asked with arrays of float32 then.
"""
import sys
import warnings

import numpy as np

from text import Text, lua, number, result

warnings.simplefilter("ignore")
rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
rows = []

FLOATS = ["float32", "float64", "float16"]
INTS = ["int8", "int16", "int32", "int64", "uint8"]
REAL = ["float32", "float64", "float32", "int32", "int64", "float16", "int8", "uint8", "bool"]


def call(name, args, expected=None, kwargs=None, f=None):
    """One call; f or numpy's function of this name gives the result."""
    kwargs = kwargs or {}
    args = [np.asarray(a) if isinstance(a, np.generic) else a for a in args]
    if expected is None:
        try:
            expected = (f or getattr(np, name))(*args, **kwargs)
        except (ValueError, TypeError, IndexError, OverflowError, np.linalg.LinAlgError):
            return False
    if not isinstance(expected, (tuple, list)):
        expected = [expected]
    expected = list(expected)
    text = [lua(a) for a in args]
    if kwargs:
        text.append(lua(kwargs))
    rows.append("\t".join([f"{name}({','.join(text)})"] + [result(v) for v in expected]))
    return True


def pick(values):
    return values[rng.integers(len(values))]


def shape(low=0, high=3, top=4):
    return tuple(int(n) for n in rng.integers(1, top, size=rng.integers(low, high + 1)))


def array(dtype=None, sizes=None, low=-4.0, high=4.0):
    dtype = dtype or pick(REAL)
    sizes = shape() if sizes is None else sizes
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, sizes)).astype(bool)
    if "int" in dtype:
        a = max(low, 0) if dtype[0] == "u" else np.ceil(low)
        return np.asarray(rng.integers(int(a), max(int(high), int(a) + 1) + 1, sizes)).astype(dtype)
    x = np.round(rng.uniform(low, high, sizes), 2)
    return np.asarray(x).astype("float16").astype(dtype) if dtype == "float16" else np.asarray(x, dtype)


def other(sizes):
    """A shape that broadcasts with this one."""
    result = [n if rng.random() < 0.6 else 1 for n in sizes]
    return tuple(result[rng.integers(0, len(result) + 1):]) if rng.random() < 0.5 else tuple(result)


def axis_of(x, none=0.3):
    if x.ndim == 0 or rng.random() < none:
        return None
    return int(rng.integers(-x.ndim, x.ndim))


def keyed(**options):
    return {k: v for k, v in options.items() if v is not None}


cases = {}


def case(*names):
    def add(f):
        for n in names:
            cases[n] = lambda n=n: f(n)
        return f
    return add


# Renamed or gone in newer versions of numpy.
def sometrue(x, axis=None, keepdims=False):
    return np.any(x, axis=axis, keepdims=keepdims)


def in1d(a, b, invert=False):
    return np.isin(np.asarray(a).ravel(), b, invert=invert)


def narrow(x):
    """What numpy makes of plain numbers as float64 is float32 here."""
    x = np.asarray(x)
    return x.astype(np.float32) if x.dtype == np.float64 else x


domains = {"arcsin": (-1, 1), "arccos": (-1, 1), "arctanh": (-0.9, 0.9), "arccosh": (1, 4), "log": (0.1, 5), "log2": (0.1, 5),
           "log10": (0.1, 5), "log1p": (-0.9, 4), "sqrt": (0, 9), "reciprocal": (0.5, 4), "tan": (-1.2, 1.2)}


@case(*"""sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt deg2rad
    radians rad2deg cbrt abs absolute square reciprocal floor ceil trunc fix rint fabs negative positive sign isnan isinf isfinite
    isposinf isneginf signbit logical_not invert bitwise_not nan_to_num""".split())
def unary(name):
    low, high = domains.get(name, (-4, 4))
    dtype = pick(INTS + ["bool"]) if name in ("invert", "bitwise_not") else None
    x = array(dtype, None, low, high)
    if name in ("negative", "positive", "sign", "square") and x.dtype == bool:
        return False
    if name in ("isposinf", "isneginf") and x.dtype.kind != "f":
        return False
    if name in ("arccosh", "log", "log2", "log10", "log1p", "arctanh", "reciprocal", "arcsin", "arccos") and x.dtype.kind != "f":
        x = np.ones_like(x)
        if name == "arctanh":
            x = np.zeros_like(x)
    if name == "fix" and x.dtype.kind == "b":
        return False
    if name.startswith("is") and x.dtype.kind == "f" and x.size and rng.random() < 0.7:
        x = x.copy()
        x.ravel()[rng.integers(x.size)] = pick([np.nan, np.inf, -np.inf])
        x = np.asarray(x)
    if name == "nan_to_num" and x.dtype.kind == "f" and x.size and x.ndim:
        x[(0,) * x.ndim] = pick([np.nan, np.nan, np.inf])
    if rng.random() < 0.1 and x.ndim == 0 and x.dtype.kind == "f":
        # A plain number alone gives float32.
        return call(name, [float(np.float32(x))], getattr(np, name)(np.float32(x)))
    return call(name, [x])


@case("around")
def around(name):
    x = array(pick(FLOATS + ["int32"]))
    return call(name, [x, int(rng.integers(0, 2))], f=np.around)


BINARY = """add subtract multiply divide true_divide power maximum minimum fmax fmin floor_divide remainder mod fmod arctan2 hypot
    copysign logaddexp logaddexp2 heaviside float_power equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor gcd lcm divmod isclose""".split()


@case(*BINARY)
def binary(name):
    whole = name.startswith("bitwise") or name in ("gcd", "lcm")
    sizes = shape()
    kinds = (INTS + ["bool"] * name.startswith("bitwise")) if whole else REAL
    a, b = array(pick(kinds), sizes), array(pick(kinds), other(sizes))
    if name == "subtract" and a.dtype == b.dtype == bool:
        return False
    if name in ("power", "float_power"):
        a, b = np.abs(a), np.abs(b) if b.dtype.kind != "b" else b
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            a, b = np.minimum(a, 3).astype(a.dtype), np.minimum(b, 3).astype(b.dtype)
        if "float16" in (a.dtype.name, b.dtype.name):
            b = np.minimum(b, 2).astype(b.dtype)
    if name in ("floor_divide", "remainder", "mod", "fmod", "divmod", "divide", "true_divide"):
        if b.dtype.kind == "f":
            b = np.where(b == 0, np.ones_like(b), b)
        if a.dtype.kind == "b" and b.dtype.kind == "b":
            return False
        if name in ("divide", "true_divide"):
            b = np.where(b == 0, np.ones_like(b), b)
        if "float16" in (a.dtype.name, b.dtype.name) and name != "divide":
            return False
    if name in ("copysign", "heaviside", "arctan2", "hypot") and a.dtype == b.dtype == bool:
        return False
    choice = rng.random()
    scalars = name not in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")
    if choice < 0.12 and b.dtype.kind in "if" and scalars:
        value = int(rng.integers(1, 4)) if rng.random() < 0.5 else float(rng.integers(1, 8)) / 4
        if name in ("floor_divide", "remainder", "mod", "fmod", "divmod") and a.dtype.name == "float16":
            return False
        return call(name, [a, value])
    if choice < 0.2 and scalars and name not in ("divmod", "power"):
        # A nested table counts as int64 or float32.
        values = array(pick(["int64", "float32"]), (sizes[-1],) if sizes else (2,))
        if name in ("float_power",):
            values = np.abs(values)
        if np.any(values == 0):
            return False
        return call(name, [a, Text("{" + ",".join(number(v) for v in values) + "}")], getattr(np, name)(a, values))
    return call(name, [a, b])


@case("clip")
def clip(name):
    x = array(pick(FLOATS + ["int32", "int64"]))
    low, high = int(rng.integers(-3, 0)), int(rng.integers(0, 3))
    return call(name, [x, pick([low, None]), high])


@case("convolve", "correlate")
def slide(name):
    a, v = array(None, (int(rng.integers(1, 6)),)), array(None, (int(rng.integers(1, 4)),))
    if name == "correlate" and a.dtype.name == "float16":
        return False
    if "bool" in (a.dtype.name, v.dtype.name):
        return False
    if "int8" in (a.dtype.name, v.dtype.name):
        return False
    return call(name, [a, v, pick(["full", "same", "valid"])])


@case("array_equal", "array_equiv")
def same(name):
    a = array()
    b = a.copy() if rng.random() < 0.5 else array(a.dtype.name, a.shape)
    return call(name, [a, b], bool(getattr(np, name)(a, b)))


@case("isscalar")
def isscalar(name):
    x = pick([1, 2.5, True, "text", array()])
    return call(name, [x], bool(np.isscalar(x)))


@case("isin", "in1d")
def members(name):
    a, b = array(pick(INTS), None, 0, 5), array(pick(INTS), (3,), 0, 5)
    return call(name, [a, b], kwargs=keyed(invert=pick([None, True])), f=in1d if name == "in1d" else np.isin)


REDUCE = "sum prod max min amax amin mean std var ptp nansum nanmean nanmax nanmin nanstd nanvar sometrue count_nonzero".split()


@case(*REDUCE)
def reduce(name):
    x = array()
    if name.startswith("nan") and x.dtype.kind == "f" and x.size > 1 and x.ndim:
        x.ravel()[rng.integers(x.size)] = np.nan
    if name == "ptp" and x.dtype.kind == "b":
        return False
    if x.dtype.name == "float16" and name in ("std", "var", "nanstd", "nanvar", "mean", "nanmean", "prod"):
        return False
    options = keyed(axis=axis_of(x), keepdims=pick([None, True]))
    if name in ("std", "var"):
        options.update(keyed(ddof=pick([None, None, 0])))
    if x.ndim > 1 and rng.random() < 0.15:
        options["axis"] = tuple(sorted(rng.choice(x.ndim, 2, replace=False).tolist()))
    f = sometrue if name == "sometrue" else None
    value = (f or getattr(np, name))(x, **options)
    if isinstance(value, int):
        value = np.int64(value)
    return call(name, [x], value, options)


@case("argmax", "argmin")
def places(name):
    x = array()
    return call(name, [x], kwargs=keyed(axis=axis_of(x)))


@case("cumsum", "cumprod", "nancumsum")
def scans(name):
    x = array(None, None, -2, 2)
    return call(name, [x], kwargs=keyed(axis=axis_of(x)))


@case("average")
def average(name):
    x = array(pick(["float32", "float64", "int32"]), shape(1, 2))
    axis = axis_of(x)
    w = None
    if rng.random() < 0.6:
        w = array(pick(["float32", "float64", "int32"]), x.shape if axis is None else (x.shape[axis],), 1, 4)
    return call(name, [x], kwargs=keyed(axis=axis, weights=w))


@case("cov", "corrcoef")
def covariance(name):
    x = array(pick(["float64", "int32"]), (int(rng.integers(2, 4)), int(rng.integers(3, 6))))
    options = keyed(rowvar=pick([None, False, True]))
    if name == "cov":
        options.update(keyed(bias=pick([None, True])))
    if name == "cov" and rng.random() < 0.3 and "rowvar" not in options:
        options["fweights"] = array("int64", (x.shape[1],), 1, 3)
    value = getattr(np, name)(x, **options)
    return not np.any(np.isnan(value)) and call(name, [x], value, options)


@case("diff")
def diff(name):
    x = array(None, shape(1))
    return call(name, [x], kwargs=keyed(n=pick([None, 1, 2]), axis=axis_of(x)))


@case("ediff1d")
def ediff1d(name):
    x = array(pick(["int64", "float32", "float64"]))
    return call(name, [x], kwargs=keyed(to_end=pick([None, np.array([5], x.dtype)])))


@case("trapz")
def trapz(name):
    x = array(pick(["float32", "float64", "int32"]), shape(1, 2))
    return call(name, [x], kwargs=keyed(dx=pick([None, 2.0]), axis=axis_of(x)), f=np.trapezoid)


@case("gradient")
def gradient(name):
    x = array(pick(["float32", "float64"]), (int(rng.integers(3, 6)),) if rng.random() < 0.5 else (3, 4))
    if x.ndim == 1 and rng.random() < 0.3:
        return call(name, [x, np.cumsum(rng.integers(1, 4, x.shape)).astype(x.dtype)])
    args = [x] + ([2.0] if rng.random() < 0.4 else [])
    return call(name, args, kwargs=keyed(axis=axis_of(x, 0.5), edge_order=pick([None, 2])))


@case("unwrap")
def unwrap(name):
    return call(name, [array(pick(["float32", "float64"]), shape(1, 2), -9, 9)])


@case("zeros", "ones", "empty")
def fresh(name):
    sizes = shape(1)
    dtype = pick([None, "int32", "float16", "bool", "float64", "int8"])
    f = np.zeros if name == "empty" else getattr(np, name)
    value = f(sizes, dtype or "float32")
    return call(name, [sizes if rng.random() < 0.7 else list(sizes)] + ([np.dtype(dtype)] if dtype else []), value)


@case("zeros_like", "ones_like", "empty_like")
def likes(name):
    x = array()
    f = np.zeros_like if name == "empty_like" else getattr(np, name)
    return call(name, [x], kwargs=keyed(dtype=pick([None, np.dtype("int32"), np.dtype("float64")])), f=f)


@case("full")
def full(name):
    return call(name, [shape(1), int(rng.integers(0, 9))], kwargs=keyed(dtype=pick([None, np.dtype("float32"), np.dtype("int8")])))


@case("full_like")
def full_like(name):
    return call(name, [array(), int(rng.integers(0, 2))])


@case("array", "asarray")
def asarray(name):
    x = array()
    return call(name, [x], kwargs=keyed(dtype=pick([None, np.dtype("int32"), np.dtype("float64"), np.dtype("bool")])))


@case("asfarray")
def asfarray(name):
    x = array(pick(["float32", "int32", "float64"]))
    return call(name, [x], x if x.dtype.kind == "f" else x.astype("float32"))


@case("copy")
def copy(name):
    return call(name, [array()])


@case("arange")
def arange(name):
    start, n, step = int(rng.integers(-4, 4)), int(rng.integers(0, 6)), int(rng.integers(1, 4))
    if rng.random() < 0.3:
        return call(name, [start + 0.5, start + n + 0.5, step], narrow(np.arange(start + 0.5, start + n + 0.5, step)))
    return call(name, [start, start + n * step, step])


@case("linspace")
def linspace(name):
    a, b = int(rng.integers(-4, 4)), int(rng.integers(5, 9))
    options = keyed(endpoint=pick([None, False]), dtype=pick([None, np.dtype("float64"), np.dtype("int32")]))
    value = np.linspace(a, b, int(n := rng.integers(1, 7)), **options)
    return call(name, [a, b, int(n)], value if "dtype" in options else narrow(value), options)


@case("logspace", "geomspace")
def powers(name):
    a, b, n = int(rng.integers(1, 3)), int(rng.integers(3, 5)), int(rng.integers(2, 6))
    options = keyed(endpoint=pick([None, False]), dtype=pick([None, np.dtype("float64")]))
    value = getattr(np, name)(a, b, n, **options)
    return call(name, [a, b, n], value if "dtype" in options else narrow(value), options)


@case("eye", "tri")
def eye(name):
    n, m, k = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(-2, 3))
    dtype = np.dtype(pick(["float32", "int32"]))
    return call(name, [n, m, k, dtype])


@case("identity")
def identity(name):
    return call(name, [int(rng.integers(1, 5)), np.dtype(pick(["float32", "int64"]))])


@case("bartlett", "blackman", "hamming", "hanning")
def windows(name):
    n = int(rng.integers(1, 12))
    return call(name, [n], narrow(np.round(getattr(np, name)(n), 12) + 0.0))


@case("vander")
def vander(name):
    return call(name, [array(pick(["int64", "float32", "float64"]), (int(rng.integers(1, 4)),))],
                kwargs=keyed(increasing=pick([None, True])))


@case("promote_types")
def promote_types(name):
    a, b = np.dtype(pick(REAL)), np.dtype(pick(REAL))
    return call(name, [a, b])


@case("result_type")
def result_type(name):
    a, b = array(None, (1,)), pick([array(None, (1,)), 2, 0.5])
    return call(name, [a, b])


@case("reshape")
def reshape(name):
    x = array()
    return call(name, [x, pick([(-1,), (x.size,), (1, x.size), (x.size, 1, 1)])])


@case("ravel", "fliplr", "flipud")
def plain(name):
    return call(name, [array(None, shape(2))])


@case("squeeze")
def squeeze(name):
    return call(name, [array(None, shape(1, 3, 3))])


@case("expand_dims")
def expand_dims(name):
    x = array()
    return call(name, [x, int(rng.integers(-x.ndim - 1, x.ndim + 1))])


@case("transpose")
def transpose(name):
    x = array()
    return call(name, [x] + ([tuple(rng.permutation(x.ndim).tolist())] if x.ndim and rng.random() < 0.5 else []))


@case("swapaxes", "moveaxis", "rollaxis")
def axes(name):
    x = array(None, shape(1))
    a, b = (int(v) for v in rng.integers(0, x.ndim, 2))
    return call(name, [x, a, b])


@case("broadcast_to")
def broadcast_to(name):
    x = array(None, shape(0, 2))
    return call(name, [x, (2,) + x.shape])


@case("broadcast_arrays")
def broadcast_arrays(name):
    sizes = shape()
    return call(name, [array(None, sizes), array(None, other(sizes))])


@case("atleast_1d", "atleast_2d", "atleast_3d")
def atleast(name):
    return call(name, [array() for _ in range(rng.integers(1, 3))])


@case("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack")
def join(name):
    sizes = shape(1, 2 if name == "column_stack" else 3)
    list_ = [array(None, sizes) for _ in range(rng.integers(1, 4))]
    options = keyed(axis=pick([None, 0, -1])) if name in ("concatenate", "stack") else {}
    return call(name, [list_], kwargs=options)


@case("append")
def append(name):
    sizes = shape(1, 2)
    return call(name, [array(None, sizes), array(None, sizes)], kwargs=keyed(axis=pick([None, 0, -1])))


@case("split", "array_split", "hsplit", "vsplit", "dsplit")
def cut(name):
    axis = {"hsplit": 1, "dsplit": 2}.get(name, 0)
    sizes = [2] * max(axis + 1, 2 if name == "vsplit" else 1)
    sizes[axis] = int(rng.integers(2, 7))
    x = array(None, tuple(sizes))
    return call(name, [x, pick([2, 1, (1, 2), (1,)])])


@case("tile")
def tile(name):
    return call(name, [array(None, shape(0, 2)), pick([2, (2, 1), (1, 2), (2,)])])


@case("repeat")
def repeat(name):
    x = array(None, shape(1, 2))
    axis = axis_of(x)
    many = pick([2, 1, 3, None])
    if many is None:
        many = tuple(rng.integers(0, 3, x.size if axis is None else x.shape[axis]).tolist())
        if sum(many) == 0:
            return False
    ok = call(name, [x, many], kwargs=keyed(axis=axis))
    if ok:
        rows[-1] = rows[-1].replace("repeat(", "repeat_(", 1)
    return ok


@case("roll")
def roll(name):
    x = array()
    return call(name, [x, int(rng.integers(-3, 4))], kwargs=keyed(axis=axis_of(x)))


@case("flip")
def flip(name):
    x = array()
    return call(name, [x], kwargs=keyed(axis=axis_of(x)))


@case("rot90")
def rot90(name):
    return call(name, [array(None, shape(2)), int(rng.integers(-3, 5))])


@case("pad")
def pad(name):
    x = array(pick(["float32", "float64", "int64"]), shape(1, 2))
    mode = pick("constant edge reflect symmetric wrap linear_ramp maximum minimum mean median".split())
    if mode in ("mean", "median", "linear_ramp") and x.dtype.kind == "i":
        return False
    width = pick([1, (1, 2), tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (x.ndim, 2)))])
    if mode == "reflect" and 1 in x.shape:
        return False
    return call(name, [x, width, mode])


@case("size")
def size(name):
    x = array()
    return call(name, [x], kwargs=keyed(axis=axis_of(x)))


@case("where")
def where(name):
    sizes = shape()
    return call(name, [array("bool", sizes), array(None, other(sizes)), pick([array(None, sizes), 2, 0.5])])


@case("argwhere")
def argwhere(name):
    return call(name, [array(pick(["int32", "bool"]), shape(1), 0, 1)])


@case("select")
def select(name):
    sizes = shape(1)
    return call(name, [[array("bool", sizes) for _ in range(2)], [array("float64", sizes), array("float32", sizes)]])


@case("choose")
def choose(name):
    n = 3
    mode = pick(["wrap", "clip"])
    sizes = shape(1, 2)
    index = array("int64", sizes, -4, 5)
    return call(name, [index, [array("float32", sizes) for _ in range(n)]], kwargs={"mode": mode})


@case("take")
def take(name):
    x = array(None, shape(1))
    axis = axis_of(x)
    n = x.size if axis is None else x.shape[axis]
    return call(name, [x, array("int64", shape(0, 2), -n, n - 1).clip(-n, n - 1)], kwargs=keyed(axis=axis))


@case("take_along_axis")
def take_along_axis(name):
    x = array(None, shape(1))
    axis = int(rng.integers(0, x.ndim))
    return call(name, [x, np.argsort(x, axis), axis])


@case("tril", "triu")
def triangle(name):
    return call(name, [array(None, shape(2)), int(rng.integers(-2, 3))])


@case("tril_indices", "triu_indices")
def triangle_indices(name):
    return call(name, [int(rng.integers(1, 5)), int(rng.integers(-1, 2))])


@case("tril_indices_from", "triu_indices_from")
def triangle_from(name):
    return call(name, [array(None, (int(rng.integers(1, 4)), int(rng.integers(1, 4)))), int(rng.integers(-1, 2))])


@case("diag")
def diag(name):
    return call(name, [array(None, shape(1, 2)), int(rng.integers(-1, 2))])


@case("diagflat")
def diagflat(name):
    return call(name, [array(None, shape(1, 2)), int(rng.integers(-1, 2))])


@case("diagonal", "trace")
def diagonal(name):
    return call(name, [array(None, shape(2)), int(rng.integers(0, 1))])


@case("diag_indices")
def diag_indices(name):
    return call(name, [int(rng.integers(1, 5)), int(rng.integers(1, 4))])


@case("meshgrid")
def meshgrid(name):
    args = [array(None, shape(1, 1)) for _ in range(rng.integers(1, 4))]
    return call(name, args, kwargs=keyed(indexing=pick([None, "ij"]), sparse=pick([None, True])))


@case("indices")
def indices(name):
    return call(name, [shape(1)])


@case("ix_")
def ix_(name):
    return call(name, [array("int64", shape(1, 1), 0, 3) for _ in range(rng.integers(1, 4))])


@case("mgrid", "ogrid")
def grids(name):
    a, b, c = (int(v) for v in rng.integers(1, 4, 3))
    value = getattr(np, name)[0:a, c:b + c + 2:2]
    text = f"{name}[\"0:{a}, {c}:{b + c + 2}:2\"]"
    rows.append("\t".join([text] + [result(v) for v in (value if name == "ogrid" else [value])]))
    return True


@case("ravel_multi_index")
def ravel_multi_index(name):
    dims = shape(1)
    index = tuple(np.asarray(rng.integers(0, n, (2,))) for n in dims)
    return call(name, [index, dims], kwargs=keyed(order=pick([None, "F"])))


@case("unravel_index")
def unravel_index(name):
    dims = shape(1)
    return call(name, [np.asarray(rng.integers(0, int(np.prod(dims)), (3,))), dims], kwargs=keyed(order=pick([None, "F"])))


@case("apply_along_axis")
def apply_along_axis(name):
    x = array(pick(["int64", "float64"]), shape(1))
    axis = int(rng.integers(0, x.ndim))
    f = pick(["sum", "cumsum", "max"])
    return call(name, [Text("np." + f), axis, x], np.apply_along_axis(getattr(np, f), axis, x))


@case("apply_over_axes")
def apply_over_axes(name):
    x = array("float64", shape(2))
    return call(name, [Text("np.sum"), x, (0, 1)], np.apply_over_axes(np.sum, x, (0, 1)))


@case("piecewise")
def piecewise(name):
    x = array(pick(["float32", "float64", "int64"]), shape(1, 2))
    value = np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2])
    return call(name, [x, Text(f"{{ {lua(x < 0)}, {lua(x >= 0)} }}"),
                       Text("{ function(v) return -v end, function(v) return v * 2 end }")], value)


@case("unique")
def unique(name):
    x = array(pick(INTS + ["float32", "bool"]), None, 0, 3)
    ok = rng.random()
    if ok < 0.4:
        return call(name, [x])
    value = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    return call(name, [x], value, {"return_index": True, "return_inverse": True, "return_counts": True})


@case("intersect1d", "setdiff1d")
def sets(name):
    return call(name, [array(pick(INTS), (4,), 0, 5), array(pick(INTS), (3,), 0, 5)])


@case("searchsorted")
def searchsorted(name):
    x = np.sort(array(pick(["float32", "int32", "float64"]), (4,)))
    return call(name, [x, array(pick(["float32", "int32", "float64"]))], kwargs=keyed(side=pick([None, "right"])))


@case("digitize")
def digitize(name):
    edges = np.unique(array(pick(["float32", "float64", "int64"]), (4,)))
    edges = edges[::-1].copy() if rng.random() < 0.3 else edges
    return call(name, [array(pick(["float32", "float64", "int32"])), edges], kwargs=keyed(right=pick([None, True])))


@case("bincount")
def bincount(name):
    x = array(pick(["int64", "int32", "uint8"]), (5,), 0, 4)
    return call(name, [x], kwargs=keyed(weights=pick([None, array("float64", (5,))]), minlength=pick([None, 7])))


@case("histogram", "histogram_bin_edges")
def histogram(name):
    x = array(pick(["float64", "int64", "float32"]), (7,))
    bins = pick([3, 5, np.array([-4.0, -1.0, 2.0, 4.0]), "sqrt", "sturges"])
    options = keyed(range=pick([None, (-3.0, 3.0)])) if not isinstance(bins, (np.ndarray, str)) else {}
    if name == "histogram" and rng.random() < 0.3 and x.dtype == "float64":
        options["density"] = True
    value = getattr(np, name)(x, bins, **options)
    if options.get("density") and np.any(np.isnan(value[0])):
        return False
    return call(name, [x, bins], value, options)


@case("histogram2d", "histogramdd")
def histogram2d(name):
    if name == "histogram2d":
        return call(name, [array("float64", (6,)), array("float64", (6,)), int(rng.integers(1, 4))])
    x = array("float64", (6, 2))
    counts, edges = np.histogramdd(x, 3)
    rows.append("\t".join([f"histogramdd({lua(x)},3)", result(counts)] + [result(e) for e in edges]))
    return True


@case("dot", "inner", "matmul", "outer", "kron", "tensordot")
def products(name):
    n, m, k = (int(v) for v in rng.integers(1, 4, 3))
    a, b = array(), array()
    if a.dtype.name == "float16" or b.dtype.name == "float16" or "int8" in (a.dtype.name, b.dtype.name):
        return False
    kinds = (a.dtype.name, b.dtype.name)
    if name in ("matmul", "dot"):
        left = pick([(n,), (m, n), (2, m, n)])
        right = pick([(n,), (n, k)])
        return call(name, [array(kinds[0], left), array(kinds[1], right)])
    if name == "inner":
        return call(name, [array(kinds[0], (m, n)), array(kinds[1], pick([(n,), (k, n)]))])
    if name == "tensordot":
        if "bool" in kinds:
            return False
        return call(name, [array(kinds[0], (m, n, k)), array(kinds[1], (n, k, 2)), 2])
    return call(name, [array(kinds[0], shape(0, 2)), array(kinds[1], shape(0, 2))])


@case("cross")
def cross(name):
    outer = shape(0, 2)
    return call(name, [array(pick(["float32", "int64"]), outer + (3,)), array(pick(["float32", "int64", "float64"]), outer + (3,))])


@case("multi_dot")
def multi_dot(name):
    n = [int(v) for v in rng.integers(1, 4, 4)]
    return call(name, [[array("float64", (n[i], n[i + 1])) for i in range(3)]], f=np.linalg.multi_dot)


@case("norm")
def norm(name):
    x = array(pick(["float32", "float64", "int32"]), shape(1, 2))
    options = keyed(ord=pick([None, 1, 2, np.inf]) if x.ndim == 1 else pick([None, "fro", 1]), keepdims=pick([None, True]))
    if options.get("ord") == np.inf:
        options["ord"] = Text("1/0")
        return call(name, [x], np.linalg.norm(x, np.inf, keepdims=options.get("keepdims", False)), options)
    return call(name, [x], kwargs=options, f=np.linalg.norm)


@case("polyadd", "polysub", "polymul")
def polynomials(name):
    def kind():
        return pick(["int64", "float32", "float64"])
    return call(name, [array(kind(), (int(rng.integers(1, 4)),)), array(kind(), (int(rng.integers(1, 4)),))])


@case("polyval")
def polyval(name):
    return call(name, [array(pick(["int64", "float64", "float32"]), (3,)), array(pick(["int64", "float64"]))])


@case("polyder", "polyint")
def polyder(name):
    return call(name, [array(pick(["int64", "float64", "float32"]), (4,)), int(rng.integers(1, 3))])


@case("interp")
def interp(name):
    xp = np.cumsum(rng.integers(1, 3, 4)).astype("float64")
    return call(name, [array("float64", None, 0, 9), xp, array("float64", (4,))], kwargs=keyed(left=pick([None, -5.0])))


@case("fft.fft", "fft.ifft", "fft.rfft", "fft.fft2", "fft.fftn", "fft.ifft2", "fft.ifftn", "fft.fftshift", "fft.ifftshift")
def fft(name):
    f = getattr(np.fft, name[4:])
    x = array("float32", shape(2, 2))
    value = f(x)
    return call(name, [x], value if "shift" in name else value.astype("complex64"))


@case("fft.fftfreq", "fft.rfftfreq")
def fftfreq(name):
    n = int(rng.integers(1, 9))
    return call(name, [n], narrow(getattr(np.fft, name[4:])(n)))


@case("fft.irfft")
def irfft(name):
    x = array("float32", (4,))
    rows.append("\t".join([f"fft.irfft(np.fft.rfft({lua(x)}))", result(np.fft.irfft(np.fft.rfft(x)))]))
    return True


wanted = 5000
names = list(cases)
share = wanted // len(names)
for i, name in enumerate(names):
    many = share + (i < wanted % len(names))
    tries = 0
    start = len(rows)
    while len(rows) < start + many and tries < 50 * many:
        tries += 1
        cases[name]()
    if len(rows) < start + many:
        print(f"{name}: {len(rows) - start} of {many}", file=sys.stderr)
missing = wanted - len(rows)
while missing > 0:
    missing -= bool(cases[pick(BINARY)]())
print("\n".join(rows))
