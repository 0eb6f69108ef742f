import harness


def pairs(n):
    import numpy

    x = numpy.random.default_rng(1).normal(size=(n, 2)).astype("float32")
    return x.view("complex64").ravel()


def fft(n, peer, name="fft"):
    import numpy.fft
    import scipy.fft

    x = pairs(n) if name == "fft" else pairs(n).real.copy()
    return harness.calls("f(x)", f=getattr(numpy.fft if peer == "numpy" else scipy.fft, name), x=x)


def both(n, name="fft"):
    return {peer: lambda peer=peer: fft(n, peer, name) for peer in ("numpy", "pocketfft")}


def csr(rows, columns, filled, width):
    import numpy
    import scipy.sparse

    rng = numpy.random.default_rng(1)
    places = numpy.sort(rng.integers(0, columns, (rows, filled), dtype="int32"), 1).ravel()
    starts = numpy.arange(0, rows * filled + 1, filled, dtype="int32")
    matrix = scipy.sparse.csr_matrix((rng.normal(size=rows * filled).astype("float32"), places, starts), (rows, columns))
    return harness.calls("a @ b", a=matrix, b=rng.normal(size=(columns, width)).astype("float32"))


def einsum(equation, shapes):
    import numpy
    import opt_einsum

    rng = numpy.random.default_rng(1)
    operands = [rng.normal(size=shape).astype("float32") for shape in shapes]
    expression = opt_einsum.contract_expression(equation, *shapes, optimize="optimal")
    return harness.calls("f(*x)", f=expression, x=operands)


workloads = {}
for n in (64, 1024, 65536, 1048576, 251, 7919, 65537, 360, 10000, 98280):
    workloads[f"fft_{n}"] = both(n)
for n in (1024, 65536, 10000):
    workloads[f"rfft_{n}"] = both(n, "rfft")
for row in ((20000, 20000, 10, 64), (20000, 20000, 10, 1), (2000, 5000, 100, 32), (100000, 1000, 5, 16)):
    workloads["csr_{}x{}_{}_by_{}".format(*row)] = {"scipy": lambda row=row: csr(*row)}
for equation, shapes in (("ab,bc,cd,de,ef->af", [(40, 60), (60, 30), (30, 80), (80, 20), (20, 50)]),
                         ("abi,bcj,ij,ck,kl->al", [(12, 16, 20), (16, 14, 18), (20, 18), (14, 24), (24, 10)])):
    name = "einsum_" + "".join(c if c.isalnum() else "_" for c in equation)
    workloads[name] = {"opt_einsum": lambda e=equation, s=shapes: einsum(e, s)}
harness.serve(workloads)
