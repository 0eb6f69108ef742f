"""Values as Lua text, and results as fields of a line: what make.py here and for scipy write."""
import numpy as np


class Text(str):
    """Lua text that stands for itself."""


def number(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "inf" if x > 0 else "-inf"
    text = repr(x)
    return text if "." in text or "e" in text else text + ".0"


def lua(x):
    if isinstance(x, Text):
        return str(x)
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return f'"{np.dtype(x).name}"'
    if isinstance(x, np.ndarray):
        short = {"bool": "b", "uint8": "u", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "float16": "f2",
                 "float32": "f4", "float64": "f8"}[x.dtype.name]
        return f'T("{short}",{{{",".join(map(str, x.shape))}}},{{{",".join(number(v) for v in x.ravel())}}})'
    if isinstance(x, str):
        return f'"{x}"'
    if isinstance(x, (list, tuple)):
        return "{" + ",".join(lua(v) for v in x) + "}"
    if isinstance(x, dict):
        return "{" + ",".join(f"{k}={lua(v)}" for k, v in x.items()) + "}"
    if x is None:
        return "nil"
    return number(x)


def shown(v, dtype):
    if dtype == "bool":
        return "1" if v else "0"
    if "int" in dtype:
        return str(int(v))
    digits = {"float16": "%.4g", "float32": "%.8g", "float64": "%.14g"}[dtype]
    v = float(v)
    if np.isnan(v):
        return "nan"
    return digits % v


def result(value):
    if isinstance(value, (bool, np.bool_)) and not isinstance(value, np.generic):
        return "=" + ("true" if value else "false")
    if isinstance(value, int):
        return f"={value}"
    if isinstance(value, np.dtype):
        return f"={value.name}"
    value = np.asarray(value)
    kind = value.dtype.name
    if kind.startswith("complex"):
        kind, part = "complex64", np.stack([value.real, value.imag], -1)
        text = ",".join("%.7g" % v for v in part.ravel())
    else:
        text = ",".join(shown(v, kind) for v in value.ravel())
    return f"{kind}:{','.join(map(str, value.shape))}:{text}"
