import harness

SHAPES = {"lenet1": (32, 1, 32, 6, 5, 1, 0), "lenet2": (32, 6, 14, 16, 5, 1, 0), "resnet_first": (4, 3, 224, 64, 7, 2, 3),
          "resnet_3x3_64": (8, 64, 56, 64, 3, 1, 1), "resnet_1x1_256_64": (8, 256, 56, 64, 1, 1, 0),
          "resnet_3x3_128_s2": (8, 128, 56, 128, 3, 2, 1), "resnet_3x3_512": (8, 512, 7, 512, 3, 1, 1)}


def setup(batch, channels, size, out_channels, kernel, stride, padding):
    import torch

    return harness.calls(f"conv2d(x, w, None, {stride}, {padding})", x=torch.randn(batch, channels, size, size),
                         w=torch.randn(out_channels, channels, kernel, kernel), conv2d=torch.nn.functional.conv2d)


harness.serve({name: {"torch": lambda s=s: setup(*s)} for name, s in SHAPES.items()})
