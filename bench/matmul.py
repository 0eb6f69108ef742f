import harness

SHAPES = [(64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
          (64, 784, 512), (64, 512, 256), (64, 512, 10), (1, 784, 512), (1024, 128, 512), (1024, 512, 128), (32, 400, 120)]


def with_torch(m, k, n):
    import torch

    return harness.calls("a @ b", a=torch.randn(m, k), b=torch.randn(k, n))


def with_numpy(m, k, n):
    import numpy

    random = numpy.random.default_rng(1)
    return harness.calls("a @ b", a=random.standard_normal((m, k), numpy.float32),
                         b=random.standard_normal((k, n), numpy.float32))


harness.serve({"matmul_%dx%dx%d" % s: {"torch": lambda s=s: with_torch(*s), "numpy": lambda s=s: with_numpy(*s)}
               for s in SHAPES})
