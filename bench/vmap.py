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


def jax_data():
    weights, x, target = torch_data()
    return [jnp.asarray(w.numpy()) for w in weights], jnp.asarray(x.numpy()), jnp.asarray(target.numpy())


def jax_gradients():
    weights, x, target = jax_data()
    f = jax.vmap(jax.grad(jax_loss), (None, 0, 0))
    return harness.calls("jax.block_until_ready(f(weights, x, target))", jax=jax, f=f, weights=weights, x=x,
                         target=target)


def jax_gradients_jitted():
    weights, x, target = jax_data()
    f = jax.jit(jax.vmap(jax.grad(jax_loss), (None, 0, 0)))
    return harness.calls("jax.block_until_ready(f(weights, x, target))", jax=jax, f=f, weights=weights, x=x,
                         target=target)


def torch_batch_gradient():
    weights, x, target = torch_data()
    mapped = torch.func.vmap(torch_loss, (None, 0, 0))
    f = torch.func.grad(lambda weights, x, target: mapped(weights, x, target).mean())
    return harness.calls("f(weights, x, target)", f=f, weights=weights, x=x, target=target)


def jax_batch_gradient(wrap):
    weights, x, target = jax_data()
    mapped = jax.vmap(jax_loss, (None, 0, 0))
    f = wrap(jax.grad(lambda weights, x, target: mapped(weights, x, target).mean()))
    return harness.calls("jax.block_until_ready(f(weights, x, target))", jax=jax, f=f, weights=weights, x=x,
                         target=target)


def torch_jacobian(name):
    a, b, x = torch.randn(64, 64) / 8, torch.randn(64, 64) / 8, torch.randn(64)

    def layers(x):
        return torch.tanh(torch.tanh(x @ a) @ b)

    f = getattr(torch.func, name)(layers if name != "hessian" else lambda x: (layers(x) ** 2).sum())
    return harness.calls("f(x)", f=f, x=x)


def jax_jacobian(name, wrap):
    a, b, x = (jnp.asarray(t.numpy()) for t in (torch.randn(64, 64) / 8, torch.randn(64, 64) / 8, torch.randn(64)))

    def layers(x):
        return jnp.tanh(jnp.tanh(x @ a) @ b)

    f = wrap(getattr(jax, name)(layers if name != "hessian" else lambda x: (layers(x) ** 2).sum()))
    return harness.calls("f(x).block_until_ready()", f=f, x=x)


def jacobians(name):
    return {name: {"torch": lambda: torch_jacobian(name), "jax": lambda: jax_jacobian(name, lambda f: f)},
            name + "_graph": {"jax": lambda: jax_jacobian(name, jax.jit)}}


harness.serve({
    "vmap_matmul": {"torch": torch_matmul, "jax": jax_matmul},
    "per_sample_grad": {"torch": torch_gradients, "jax": jax_gradients},
    "per_sample_loop": {"torch": torch_loop},
    "per_sample_graph": {"jax": jax_gradients_jitted},
    "grad_of_vmap": {"torch": torch_batch_gradient, "jax": lambda: jax_batch_gradient(lambda f: f)},
    "grad_of_vmap_graph": {"jax": lambda: jax_batch_gradient(jax.jit)},
    **jacobians("jacrev"),
    **jacobians("jacfwd"),
    **jacobians("hessian"),
})
