"""The peers of bench/compiled.lua: PyTorch with its fused optimizers, torch.compile, jax.jit and onnxruntime."""
import os

THREADS = int(os.environ["OMP_NUM_THREADS"])
os.environ["JAX_PLATFORMS"] = "cpu"
if THREADS == 1:
    # XLA counts the cores that it may run on.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import io

import harness
import jax
import jax.numpy as jnp
import networks
import networks_jax
import numpy as np
import torch

RANDOM = np.random.RandomState(0)


def normal(*shape):
    return RANDOM.randn(*shape).astype(np.float32)


def classes(count):
    return RANDOM.randint(0, 10, count)


def tokens(*shape):
    return RANDOM.randint(0, 256, shape)


def channels_last(x):
    return jnp.asarray(x.transpose(0, 2, 3, 1) if x.ndim == 4 else x)


def sgd(parameters):
    return torch.optim.SGD(parameters, 1e-5, momentum=0.9, fused=True)


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-6, fused=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, 1e-6, weight_decay=0.01, fused=True)


def train_torch(make, make_optimizer, x, y, compiled):
    torch.manual_seed(1)
    torch.set_grad_enabled(True)
    net = make().train()
    optimizer = make_optimizer(net.parameters())
    images, labels = torch.from_numpy(x()), torch.from_numpy(y())

    def loss():
        return networks.loss(net, images, labels)

    if compiled:
        torch._dynamo.reset()
        loss = torch.compile(loss)

    def step():
        torch.set_grad_enabled(True)
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()

    return harness.calls("step()", step=step)


def train_jax(make, make_step, x, y):
    parameters, logits = make()
    step, start = make_step(logits)
    step = jax.jit(step, donate_argnums=0)
    images, labels, state = channels_last(x()), jnp.asarray(y()), [start(parameters)]

    def run(n):
        for _ in range(n):
            state[0], _ = step(state[0], images, labels)
        jax.block_until_ready(state[0])

    return run


def training(name, torch_optimizer, make_step, x, y):
    make = getattr(networks, name)
    return {"torch": lambda: train_torch(make, torch_optimizer, x, y, False),
            "torch_compile": lambda: train_torch(make, torch_optimizer, x, y, True),
            "jax": lambda: train_jax(getattr(networks_jax, name), make_step, x, y)}


HIDDEN, STEPS = 32, 100


def rnn_inputs():
    weights = [normal(HIDDEN, HIDDEN) / np.sqrt(np.float32(HIDDEN)) for _ in range(4)]
    bias = np.zeros(HIDDEN, np.float32)
    return normal(STEPS, 1, HIDDEN), np.zeros((1, HIDDEN), np.float32), [*weights[:2], bias, *weights[2:], bias]


def rnn_torch(compiled):
    x, start, weights = rnn_inputs()
    x, start = torch.from_numpy(x), torch.from_numpy(start)
    weights = [torch.from_numpy(w.copy()).requires_grad_() for w in weights]
    torch._dynamo.reset()
    loss = torch.compile(networks.rnn) if compiled else networks.rnn

    def step():
        torch.set_grad_enabled(True)
        return torch.autograd.grad(loss(x, start, *weights), weights)

    return harness.calls("step()", step=step)


def rnn_jax(loss):
    x, start, weights = rnn_inputs()
    weights = [jnp.asarray(w) for w in weights]
    step = jax.jit(jax.value_and_grad(loss))
    x, start = jnp.asarray(x), jnp.asarray(start)

    def run(n):
        for _ in range(n):
            result = step(weights, x, start)
        jax.block_until_ready(result)

    return run


def infer_torch(make, x, compiled):
    torch.set_grad_enabled(False)
    net, images = make().eval(), torch.from_numpy(x())
    if compiled:
        torch._dynamo.reset()
        net = torch.compile(net)
    run = harness.calls("net(images)", net=net, images=images)

    def without_gradients(n):
        with torch.inference_mode():
            run(n)

    return without_gradients


def infer_onnx(make, x):
    import onnxruntime

    net, images, file = make().eval(), x(), io.BytesIO()
    torch.set_grad_enabled(False)
    torch.onnx.export(net, (torch.from_numpy(images),), file, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    return harness.calls("run(None, feed)", run=session.run, feed={session.get_inputs()[0].name: images})


def infer_jax(make, x):
    parameters, logits = make()
    f, images = jax.jit(logits), channels_last(x())
    return harness.calls("f(p, x).block_until_ready()", f=f, p=parameters, x=images)


def inference(make, make_jax, x):
    return {"torch": lambda: infer_torch(make, x, False), "torch_compile": lambda: infer_torch(make, x, True),
            "jax": lambda: infer_jax(make_jax, x), "onnxruntime": lambda: infer_onnx(make, x)}


def resnet18_large_jax():
    parameters, logits = networks_jax.resnet18(1000, True)
    return parameters, lambda p, x: logits(p, x, False)[0]


def elementwise(f_torch, f_jax, *inputs):
    def jitted():
        f, x = jax.jit(f_jax), [jnp.asarray(i) for i in inputs]
        return harness.calls("f(*x).block_until_ready()", f=f, x=x)

    def compiled():
        torch.set_grad_enabled(False)
        torch._dynamo.reset()
        return harness.calls("f(*x)", f=torch.compile(f_torch), x=[torch.from_numpy(i) for i in inputs])

    return {"jax": jitted, "torch_compile": compiled}


def chain(count):
    return elementwise(lambda x: torch.tanh(x * 1.5 + 0.25) * torch.sigmoid(x) + x,
                       lambda x: jnp.tanh(x * 1.5 + 0.25) * jax.nn.sigmoid(x) + x, normal(count))


def statements_jax():
    forms = ["jnp.tanh(y * {}) + x", "jnp.exp(y * -{}) * x", "jnp.sin(y + {}) - y", "y / ({} + x * x)",
             "jnp.sqrt(jnp.abs(y) + {}) * x"]
    lines = [" y = " + forms[i % 5].format(round(1 + 1 / (i + 2), 4)) for i in range(1, 1001)]
    names = {"jnp": jnp}
    exec("\n".join(["def f(x):", " y = x", *lines, " return y"]), names)
    f, x = jax.jit(names["f"]), jnp.arange(64, dtype=jnp.float32) / 64
    return harness.calls("f(x).block_until_ready()", f=f, x=x)


harness.serve({
    "train_mlp": training("mlp", adam, networks_jax.adam_step, lambda: normal(64, 784), lambda: classes(64)),
    "train_lenet": training("lenet", sgd, networks_jax.momentum_step, lambda: normal(32, 1, 32, 32), lambda: classes(32)),
    "train_gpt": training("gpt", adamw, lambda f: networks_jax.adam_step(f, 0.01), lambda: tokens(8, 128), lambda: tokens(8, 128)),
    "train_lstm": training("lstm", adam, networks_jax.adam_step, lambda: normal(64, 16, 128), lambda: classes(16)),
    "train_resnet18": training("resnet18", sgd, lambda f: networks_jax.momentum_step(f, True), lambda: normal(8, 3, 32, 32),
                               lambda: classes(8)),
    "train_rnn": {"torch": lambda: rnn_torch(False), "torch_compile": lambda: rnn_torch(True),
                  "jax": lambda: rnn_jax(networks_jax.rnn_unrolled), "jax_scan": lambda: rnn_jax(networks_jax.rnn_scan)},
    "statements": {"jax": statements_jax},
    "infer_mlp": inference(networks.mlp, networks_jax.mlp, lambda: normal(1, 784)),
    "infer_lenet": inference(networks.lenet, networks_jax.lenet, lambda: normal(1, 1, 32, 32)),
    "infer_gpt": inference(networks.gpt, networks_jax.gpt, lambda: tokens(1, 128)),
    "infer_resnet18": inference(lambda: networks.resnet18(1000, True), resnet18_large_jax, lambda: normal(1, 3, 224, 224)),
    "chain_4M": chain(4 << 20),
    "chain_16K": chain(16 << 10),
    "tiny_call": elementwise(torch.add, jnp.add, normal(4), normal(4)),
})
