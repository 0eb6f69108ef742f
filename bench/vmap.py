import harness
import jax
import jax.numpy as jnp
import torch

BATCH, INPUTS, HIDDEN, CLASSES = 64, 32, 64, 10
SIZES = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]


def torch_matmul():
    a, b = torch.randn(BATCH, 32, 32), torch.randn(BATCH, 32, 32)
    return harness.calls("f(a, b)", f=torch.func.vmap(torch.matmul), a=a, b=b)


def jax_matmul():
    keys = jax.random.split(jax.random.PRNGKey(0))
    a, b = jax.random.normal(keys[0], (BATCH, 32, 32)), jax.random.normal(keys[1], (BATCH, 32, 32))
    f = jax.vmap(jnp.matmul)
    return harness.calls("f(a, b).block_until_ready()", f=f, a=a, b=b)


def torch_data():
    weights = [torch.randn(*size) / 8 for size in SIZES]
    target = torch.nn.functional.one_hot(torch.randint(CLASSES, (BATCH,)), CLASSES).float()
    return weights, torch.randn(BATCH, INPUTS), target


def torch_loss(weights, x, target):
    w1, b1, w2, b2, w3, b3 = weights
    h = torch.tanh(x @ w1 + b1)
    h = torch.tanh(h @ w2 + b2)
    return -(torch.log_softmax(h @ w3 + b3, -1) * target).sum()


def torch_gradients():
    weights, x, target = torch_data()
    f = torch.func.vmap(torch.func.grad(torch_loss), (None, 0, 0))
    return harness.calls("f(weights, x, target)", f=f, weights=weights, x=x, target=target)


def torch_loop():
    torch.set_grad_enabled(True)
    weights, x, target = torch_data()
    for w in weights:
        w.requires_grad_()

    def step():
        rows = [torch.autograd.grad(torch_loss(weights, x[i], target[i]), weights) for i in range(BATCH)]
        return [torch.stack(column) for column in zip(*rows)]

    return harness.calls("step()", step=step)


def jax_loss(weights, x, target):
    w1, b1, w2, b2, w3, b3 = weights
    h = jnp.tanh(x @ w1 + b1)
    h = jnp.tanh(h @ w2 + b2)
    return -(jax.nn.log_softmax(h @ w3 + b3) * target).sum()


def jax_gradients():
    weights, x, target = torch_data()
    weights, x, target = [jnp.asarray(w.numpy()) for w in weights], jnp.asarray(x.numpy()), jnp.asarray(target.numpy())
    f = jax.vmap(jax.grad(jax_loss), (None, 0, 0))
    return harness.calls("jax.block_until_ready(f(weights, x, target))", jax=jax, f=f, weights=weights, x=x,
                         target=target)


harness.serve({
    "vmap_matmul": {"torch": torch_matmul, "jax": jax_matmul},
    "per_sample_grad": {"torch": torch_gradients, "jax": jax_gradients},
    "per_sample_loop": {"torch": torch_loop},
})
