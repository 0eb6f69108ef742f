"""The networks of bench/networks.py in JAX, in the layouts that XLA likes best: images with their channels last, weights as
(inputs, outputs). A network is a pair of functions: its parameters, and its logits from parameters and input."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

RANDOM = np.random.RandomState(1)


def dense(inputs, outputs):
    return {"w": jnp.asarray(RANDOM.randn(inputs, outputs) / np.sqrt(inputs), jnp.float32), "b": jnp.zeros(outputs)}


def kernel(size, inputs, outputs):
    return jnp.asarray(RANDOM.randn(size, size, inputs, outputs) / np.sqrt(size * size * inputs), jnp.float32)


def apply(p, x):
    return x @ p["w"] + p["b"]


def conv(x, w, stride=1, padding=0):
    return lax.conv_general_dilated(x, w, (stride, stride), ((padding, padding),) * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x, size=2, stride=2, padding=0):
    edge = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), edge)


def layers(p, x):
    for layer in p[:-1]:
        x = jax.nn.relu(apply(layer, x))
    return apply(p[-1], x)


def mlp():
    return [dense(784, 512), dense(512, 256), dense(256, 10)], layers


def lenet():
    parameters = {"c1": kernel(5, 1, 6), "b1": jnp.zeros(6), "c2": kernel(5, 6, 16), "b2": jnp.zeros(16),
                  "dense": [dense(400, 120), dense(120, 84), dense(84, 10)]}

    def logits(p, x):
        x = max_pool(jax.nn.relu(conv(x, p["c1"]) + p["b1"]))
        x = max_pool(jax.nn.relu(conv(x, p["c2"]) + p["b2"]))
        return layers(p["dense"], x.reshape(x.shape[0], -1))

    return parameters, logits


def norm(p, x):
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5) * p["g"] + p["b"]


def gpt(vocabulary=256, width=128, heads=4, depth=4, length=128):
    def ln():
        return {"g": jnp.ones(width), "b": jnp.zeros(width)}

    def block():
        return {"ln1": ln(), "qkv": dense(width, 3 * width), "proj": dense(width, width), "ln2": ln(), "fc": dense(width, 4 * width),
                "out": dense(4 * width, width)}

    parameters = {"wte": jnp.asarray(RANDOM.randn(vocabulary, width) * 0.02, jnp.float32),
                  "wpe": jnp.asarray(RANDOM.randn(length, width) * 0.02, jnp.float32), "ln": ln(),
                  "head": dense(width, vocabulary)["w"], "blocks": [block() for _ in range(depth)]}

    def logits(p, tokens):
        batch, steps = tokens.shape
        h, mask = p["wte"][tokens] + p["wpe"], jnp.tril(jnp.ones((steps, steps), bool))
        for b in p["blocks"]:
            qkv = apply(b["qkv"], norm(b["ln1"], h)).reshape(batch, steps, 3, heads, width // heads)
            q, k, v = jnp.moveaxis(qkv, (2, 3), (0, 2))
            scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(width // heads)
            weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), -1)
            mixed = jnp.einsum("bhts,bhsd->bthd", weights, v).reshape(batch, steps, width)
            h = h + apply(b["proj"], mixed)
            h = h + apply(b["out"], jax.nn.gelu(apply(b["fc"], norm(b["ln2"], h)), approximate=False))
        return norm(p["ln"], h) @ p["head"]

    return parameters, logits


def lstm(inputs=128, hidden=128, classes=10):
    parameters = {"wi": dense(inputs, 4 * hidden), "wh": dense(hidden, 4 * hidden), "out": dense(hidden, classes)}

    def logits(p, x):
        projected = apply(p["wi"], x) + p["wh"]["b"]

        def step(state, at):
            h, c = state
            i, f, g, o = jnp.split(at + h @ p["wh"]["w"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        start = jnp.zeros((x.shape[1], hidden))
        (h, _), _ = lax.scan(step, (start, start), projected)
        return apply(p["out"], h)

    return parameters, logits


STAGES = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))


def batch_norm(x, p, training):
    """The normalised x and the new running statistics."""
    if not training:
        return (x - p["m"]) * lax.rsqrt(p["v"] + 1e-5) * p["g"] + p["b"], (p["m"], p["v"])
    mean = x.mean((0, 1, 2))
    variance = jnp.maximum((x * x).mean((0, 1, 2)) - mean * mean, 0)
    running = (0.9 * p["m"] + 0.1 * mean, 0.9 * p["v"] + 0.1 * variance)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["g"] + p["b"], running


def resnet18(classes=10, large=False):
    """Its logits come with the new running statistics, so that XLA cannot leave them out."""

    def bn(channels):
        return {"g": jnp.ones(channels), "b": jnp.zeros(channels), "m": jnp.zeros(channels), "v": jnp.ones(channels)}

    parameters, inputs = {"c": kernel(7 if large else 3, 3, 64), "n": bn(64), "blocks": [], "out": dense(512, classes)}, 64
    for outputs, stride in STAGES:
        block = {"c1": kernel(3, inputs, outputs), "n1": bn(outputs), "c2": kernel(3, outputs, outputs), "n2": bn(outputs)}
        if stride != 1 or inputs != outputs:
            block |= {"cs": kernel(1, inputs, outputs), "ns": bn(outputs)}
        parameters["blocks"].append(block)
        inputs = outputs

    def logits(p, x, training=True):
        running = []

        def normalise(y, at):
            y, new = batch_norm(y, at, training)
            running.append(new)
            return y

        x = conv(x, p["c"], 2, 3) if large else conv(x, p["c"], 1, 1)
        x = jax.nn.relu(normalise(x, p["n"]))
        if large:
            x = max_pool(x, 3, 2, 1)
        for b, (_, stride) in zip(p["blocks"], STAGES):
            y = jax.nn.relu(normalise(conv(x, b["c1"], stride, 1), b["n1"]))
            y = normalise(conv(y, b["c2"], 1, 1), b["n2"])
            x = jax.nn.relu(y + (normalise(conv(x, b["cs"], stride), b["ns"]) if "cs" in b else x))
        return apply(p["out"], x.mean((1, 2))), running

    return parameters, logits


def rnn_cell(state, x, p):
    w1, u1, b1, w2, u2, b2 = p
    h1 = jnp.tanh(x @ w1 + state[0] @ u1 + b1)
    return h1, jnp.tanh(h1 @ w2 + state[1] @ u2 + b2)


def rnn_scan(p, x, start):
    (_, h2), _ = lax.scan(lambda state, at: (rnn_cell(state, at, p), None), (start, start), x)
    return (h2 * h2).sum()


def rnn_unrolled(p, x, start):
    state = start, start
    for t in range(x.shape[0]):
        state = rnn_cell(state, x[t], p)
    return (state[1] * state[1]).sum()


def loss(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), y[..., None], -1).mean()


def momentum_step(logits, has_statistics=False):
    """(state, x, y) -> (state, loss) with SGD and momentum; the state holds the parameters and their momenta."""

    def value(p, x, y):
        out = logits(p, x)
        return (loss(out[0], y), out[1]) if has_statistics else (loss(out, y), None)

    def step(state, x, y):
        parameters, momenta = state
        (l, running), grads = jax.value_and_grad(value, has_aux=True)(parameters, x, y)
        momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, grads)
        parameters = jax.tree.map(lambda p, m: p - 1e-5 * m, parameters, momenta)
        if has_statistics:
            norms = iter(running)

            def put(n):
                mean, variance = next(norms)
                return n | {"m": mean, "v": variance}

            parameters["n"] = put(parameters["n"])
            for block in parameters["blocks"]:
                for key in ("n1", "n2", "ns"):
                    if key in block:
                        block[key] = put(block[key])
        return (parameters, momenta), l

    return step, lambda p: (p, jax.tree.map(jnp.zeros_like, p))


def adam_step(logits, decay=0.0, rate=1e-6):
    """The same with Adam, or AdamW where there is a decay; the state also holds the number of steps."""

    def step(state, x, y):
        parameters, m, v, t = state
        l, grads = jax.value_and_grad(lambda p: loss(logits(p, x), y))(parameters)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        c1, c2 = 1 - 0.9**t, 1 - 0.999**t
        parameters = jax.tree.map(lambda p, m, v: p * (1 - rate * decay) - rate * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), parameters, m, v)
        return (parameters, m, v, t), l

    return step, lambda p: (p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p), jnp.float32(0))
