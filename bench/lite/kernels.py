"""Kernels of the light runtime against onnxruntime, one thread: the products and convolutions of whole networks, each list
of layers as one ONNX model and as one sequence of kernels, timed in turns; the smallest processor times count.

usage: kernels.py PROGRAM [--isa avx2] [--net NAME] [--rounds N] [--layers] [--integer]

PROGRAM is build/bench/lite_kernel_times. --isa limits our kernels only; onnxruntime takes what the processor has. --layers
prints our time of each layer. --integer compares our 8-bit kernels with our floats (s7: weights within 64). Poolings and attention's softmax are left
out on both sides."""
import argparse
import subprocess

import numpy as np

RANDOM = np.random.default_rng(0)


def conv(c, size, out, kernel, stride=1, groups=1, act="relu", residual=False, method="auto", chain=True):
    return {"kind": "conv", "c": c, "size": size, "out": out, "kernel": kernel, "stride": stride, "pad": kernel // 2, "groups": groups,
            "act": act, "residual": residual, "method": method, "chain": chain}


def gemm(m, n, k, act="none", chain=False, scaled=True):
    return {"kind": "gemm", "m": m, "n": n, "k": k, "act": act, "chain": chain, "scaled": scaled}


def bmm(batch, m, n, k, transposed):
    return {"kind": "bmm", "batch": batch, "m": m, "n": n, "k": k, "transposed": transposed}


def resnet18():
    layers = [conv(3, 224, 64, 7, 2, chain=False)]
    c, size = 64, 56
    first = True
    for out, stride in [(64, 1), (128, 2), (256, 2), (512, 2)]:
        layers += [conv(c, size, out, 3, stride, chain=not first)]
        first = False
        layers += [conv(out, size // stride, out, 3, residual=True)]
        if stride == 2:
            layers += [conv(c, size, out, 1, 2, act="none", chain=False)]
        size //= stride
        layers += [conv(out, size, out, 3, chain=stride == 1), conv(out, size, out, 3, residual=True)]
        c = out
    return layers + [gemm(1, 1000, 512)]


def mobilenet_v2():
    layers = [conv(3, 224, 32, 3, 2, act="relu6", chain=False), conv(32, 112, 32, 3, groups=32, act="relu6"),
              conv(32, 112, 16, 1, act="none")]
    c, size = 16, 112
    for t, out, n, s in [(6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(n):
            stride = s if i == 0 else 1
            layers += [conv(c, size, c * t, 1, act="relu6"), conv(c * t, size, c * t, 3, stride, groups=c * t, act="relu6"),
                       conv(c * t, size // stride, out, 1, act="none", residual=i > 0)]
            c, size = out, size // stride
    return layers + [conv(320, 7, 1280, 1, act="relu6"), gemm(1, 1000, 1280)]


def mobilenet_like():  # as shared/peers/onnxruntime_int8.py has it
    layers = [conv(3, 128, 16, 3, 2, chain=False)]
    i, size = 16, 64
    for o, st, t in [(16, 1, 4), (24, 2, 4), (24, 1, 4), (40, 2, 4), (40, 1, 4), (80, 2, 4), (80, 1, 4)]:
        layers += [conv(i, size, i * t, 1), conv(i * t, size, i * t, 3, st, i * t), conv(i * t, size // st, o, 1, act="none", residual=i == o)]
        i, size = o, size // st
    return layers + [conv(i, size, 256, 1), gemm(1, 10, 256)]


def cnn():
    return [conv(3, 32, 32, 3, chain=False), conv(32, 32, 64, 3, 2), conv(64, 16, 64, 3), conv(64, 16, 128, 3, 2), conv(128, 8, 128, 3),
            gemm(1, 10, 128)]


def transformer(m, d, heads, layers, gelu, past=0):
    one = [gemm(m, 3 * d, d)]
    n = past or m
    one += [bmm(heads, m, n, d // heads, True), bmm(heads, m, d // heads, n, False)]
    one += [gemm(m, d, d), gemm(m, 4 * d, d, "gelu" if gelu else "none"), gemm(m, d, 4 * d)]
    return one * layers


NETS = {
    "lenet": lambda: [conv(1, 28, 6, 5, chain=False), {**conv(6, 14, 16, 5, chain=False), "pad": 0}, gemm(1, 120, 400, "relu"),
                      gemm(1, 84, 120, "relu", True), gemm(1, 10, 84, "none", True)],
    "mlp": lambda: [gemm(1, 512, 784, "relu"), gemm(1, 512, 512, "relu", True), gemm(1, 10, 512, "none", True)],
    "cnn": cnn,
    "mobilenet_like": mobilenet_like,
    "resnet18": resnet18,
    "mobilenet_v2": mobilenet_v2,
    "bert": lambda: transformer(128, 768, 12, 12, False),
    "gpt2_step": lambda: transformer(1, 768, 12, 12, False, 256) + [gemm(1, 50257, 768)],
}


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def net(self, layers, batch, isa, kind):
        number = int(self.ask(f"net {isa}")[0])
        if number < 0:
            return None
        for x in layers:
            if x["kind"] == "conv":
                self.ask(f"conv {kind} {batch} {x['c']} {x['size']} {x['size']} {x['out']} {x['kernel']} {x['stride']} {x['pad']} "
                         f"{x['groups']} {x['act']} {int(x['residual'])} {x['method']}")
            elif x["kind"] == "gemm":
                self.ask(f"gemm {kind} {x['m'] * batch} {x['n']} {x['k']} {x['act']} 0")
            else:
                self.ask(f"bmm {x['batch'] * batch} {x['m']} {x['n']} {x['k']} {int(x['transposed'])}")
        return number

    def run(self, number, count):
        return float(self.ask(f"run {number} {count}")[0]) * 1e-9

    def layers(self, number, count):
        return [float(t) * 1e-9 for t in self.ask(f"layers {number} {count}")]


def model(layers, batch):
    """One ONNX model: layers that do not follow one another read inputs of their own."""
    from onnx import TensorProto, helper, numpy_helper
    nodes, weights, inputs, outputs, feeds = [], [], [], [], {}

    def weight(shape, scale=0.05):
        name = f"w{len(weights)}"
        weights.append(numpy_helper.from_array(RANDOM.normal(0, scale, shape).astype(np.float32), name))
        return name

    def entry(shape):
        name = f"x{len(inputs)}"
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        feeds[name] = RANDOM.normal(0, 1, shape).astype(np.float32)
        return name

    def node(kind, ins, **attributes):
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, ins, [name], **attributes))
        return name

    last, shapes, used = None, {}, set()
    for x in layers:
        if x["kind"] == "conv":
            follows = x["chain"] and last and shapes[last] == [batch, x["c"], x["size"], x["size"]]
            source = last if follows else entry([batch, x["c"], x["size"], x["size"]])
            used.add(source)
            y = node("Conv", [source, weight([x["out"], x["c"] // x["groups"], x["kernel"], x["kernel"]]), weight([x["out"]])],
                     kernel_shape=[x["kernel"]] * 2, strides=[x["stride"]] * 2, pads=[x["pad"]] * 4, group=x["groups"])
            size = (x["size"] + 2 * x["pad"] - x["kernel"]) // x["stride"] + 1
            shape = [batch, x["out"], size, size]
            if x["residual"]:
                same = [t for t, s in shapes.items() if s == shape and t != last]
                other = same[-1] if same else entry(shape)
                used.add(other)
                y = node("Add", [y, other])
        elif x["kind"] == "gemm":
            shape = [x["m"] * batch, x["n"]]
            follows = x["chain"] and last and shapes[last] == [x["m"] * batch, x["k"]]
            source = last if follows else entry([x["m"] * batch, x["k"]])
            used.add(source)
            y = node("Gemm", [source, weight([x["k"], x["n"]]), weight([x["n"]])])
        else:
            shape = [batch * x["batch"], x["m"], x["n"]]
            b = entry([batch * x["batch"], x["n"], x["k"]] if x["transposed"] else [batch * x["batch"], x["k"], x["n"]])
            if x["transposed"]:
                b = node("Transpose", [b], perm=[0, 2, 1])
            y = node("MatMul", [entry([batch * x["batch"], x["m"], x["k"]]), b])
        if x.get("act") == "relu":
            y = node("Relu", [y])
        elif x.get("act") == "relu6":
            low, high = (numpy_helper.from_array(np.float32(v), f"limit{len(nodes)}{v}") for v in (0, 6))
            weights.extend([low, high])
            y = node("Clip", [y, low.name, high.name])
        shapes[y] = shape
        last = y
    for t, shape in shapes.items():
        if t not in used:
            outputs.append(helper.make_tensor_value_info(t, TensorProto.FLOAT, shape))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    return made.SerializeToString(), feeds


def session(layers, batch):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    made, feeds = model(layers, batch)
    s = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    # Without copies of inputs and outputs.
    binding = s.io_binding()
    for name, x in feeds.items():
        binding.bind_cpu_input(name, x)
    for y in s.get_outputs():
        binding.bind_output(y.name)
    return lambda: s.run_with_iobinding(binding)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--isa", action="append")
    arguments.add_argument("--net", action="append")
    arguments.add_argument("--rounds", type=int, default=40)
    arguments.add_argument("--batch", type=int, action="append")
    arguments.add_argument("--layers", action="store_true")
    arguments.add_argument("--integer", action="store_true")
    arguments.add_argument("--method", default="auto")
    arguments = arguments.parse_args()
    import time
    ours = Ours(arguments.program)
    for name in arguments.net or NETS:
        for batch in arguments.batch or [1, 8]:
            if name == "gpt2_step" and batch > 1:
                continue
            layers = NETS[name]()
            for x in layers:
                if x["kind"] == "conv" and x["kernel"] == 3 and x["stride"] == 1 and x["groups"] == 1:
                    x["method"] = arguments.method
            peer = None if arguments.integer else session(layers, batch)
            kinds = ["f32", "s8", "s7"] if arguments.integer else ["f32"]
            nets = {(isa, kind): ours.net(layers, batch, isa, kind)
                    for isa in arguments.isa or ["avx2", "avx512" if not arguments.integer else "avx512vnni"] for kind in kinds}
            best = {key: 1e9 for key, number in nets.items() if number is not None}
            theirs = 1e9
            for _ in range(arguments.rounds):
                for _ in range(3 if peer else 0):
                    begin = time.thread_time()
                    peer()
                    theirs = min(theirs, time.thread_time() - begin)
                for key in best:
                    best[key] = min(best[key], ours.run(nets[key], 3))
            line = f"{name:15s} batch {batch}"
            if peer:
                line += f"  onnxruntime {theirs * 1e6:9.0f} us"
                line += "".join(f"  {isa} {t * 1e6:9.0f} us ({theirs / t:4.2f} x)" for (isa, _), t in best.items())
            else:
                for isa in {isa for isa, _ in best}:
                    f, i, r = (best[isa, kind] for kind in kinds)
                    line += f"  {isa} f32 {f * 1e6:9.0f} us  s8 {i * 1e6:9.0f} us ({f / i:4.2f} x)  s7 {r * 1e6:9.0f} us ({f / r:4.2f} x)"
            print(line, flush=True)
            if arguments.layers:
                for key in best:
                    for x, t in zip(layers, ours.layers(nets[key], 20)):
                        if x["kind"] == "conv":
                            size = (x["size"] + 2 * x["pad"] - x["kernel"]) // x["stride"] + 1
                            work = 2 * batch * size * size * x["out"] * x["c"] // x["groups"] * x["kernel"] ** 2
                            text = f"{x['c']}x{x['size']} -> {x['out']} k{x['kernel']} s{x['stride']} g{x['groups']}"
                        else:
                            rows = x["m"] * batch * x.get("batch", 1)
                            work, text = 2 * rows * x["n"] * x["k"], f"{x['kind']} {rows} {x['n']} {x['k']}"
                        print(f"    {key[0]} {key[1]} {text:34s} {t * 1e6:9.1f} us {work / t * 1e-9:7.1f} GFLOPS")


if __name__ == "__main__":
    main()
