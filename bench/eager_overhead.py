import harness


def setup(library, expression, *shape):
    """The expression over two tensors a and b of one shape; `add` and `matmul` are the library's functions."""
    if library == "torch":
        import torch

        return harness.calls(expression, a=torch.randn(shape), b=torch.randn(shape), add=torch.add, matmul=torch.matmul)
    import numpy

    random = numpy.random.default_rng(1)
    a, b = (random.standard_normal(shape, numpy.float32) for _ in range(2))
    return harness.calls(expression, a=a, b=b, add=numpy.add, matmul=numpy.matmul)


CASES = {"add_4": ("add(a, b)", 4), "operator_add_4": ("a + b", 4), "matmul_4x4": ("matmul(a, b)", 4, 4),
         "add_32x32": ("add(a, b)", 32, 32)}
harness.serve({name: {library: lambda library=library, case=case: setup(library, *case) for library in ("torch", "numpy")}
               for name, case in CASES.items()})
