import harness

SIZES = {"16K": (16, 1024), "4M": (4096, 1024)}
TORCH = {
    "add": "x + y", "add_row": "x + v", "relu": "torch.relu(x)", "exp": "torch.exp(x)", "tanh": "torch.tanh(x)",
    "sigmoid": "torch.sigmoid(x)", "gelu_erf": "gelu(x)", "gelu_tanh": "gelu(x, approximate='tanh')", "sum": "x.sum()",
    "sum_axis0": "x.sum(0)", "sum_axis1": "x.sum(1)", "softmax": "torch.softmax(x, -1)",
    "layer_norm": "layer_norm(x, shape, v, v)", "transpose": "x.t().contiguous()",
    "chain": "torch.tanh(x * 1.5 + 0.25) * torch.sigmoid(x) + x"}
NUMPY = {
    "add": "x + y", "add_row": "x + v", "relu": "np.maximum(x, zero)", "exp": "np.exp(x)", "tanh": "np.tanh(x)",
    "sum": "x.sum()", "sum_axis0": "x.sum(0)", "sum_axis1": "x.sum(1)", "transpose": "np.ascontiguousarray(x.T)"}


def with_torch(expression, rows, columns):
    import torch
    from torch.nn import functional

    return harness.calls(expression, x=torch.randn(rows, columns), y=torch.randn(rows, columns), v=torch.randn(columns),
                         torch=torch, gelu=functional.gelu, layer_norm=functional.layer_norm, shape=(columns,))


def with_numpy(expression, rows, columns):
    import numpy

    random = numpy.random.default_rng(1)
    x, y, v = (random.standard_normal(shape, numpy.float32) for shape in ((rows, columns), (rows, columns), columns))
    return harness.calls(expression, x=x, y=y, v=v, np=numpy, zero=numpy.float32(0))


workloads = {}
for label, size in SIZES.items():
    for name, expression in TORCH.items():
        peers = {"torch": lambda e=expression, s=size: with_torch(e, *s)}
        if name in NUMPY:
            peers["numpy"] = lambda e=NUMPY[name], s=size: with_numpy(e, *s)
        workloads[f"{name}_{label}"] = peers
harness.serve(workloads)
