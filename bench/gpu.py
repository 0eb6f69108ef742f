"""Run by gpu.sh where PyTorch is installed: the workloads of gpu.lua on the same GPU, one line "workload microseconds" each.
What Lunaria does in graph mode is compared with torch.compile and CUDA graphs ("reduce-overhead")."""
import time

import networks
import torch

DEVICE = "cuda"


def measure(name, function):
    for _ in range(5):
        function()
    torch.cuda.synchronize()
    calls, least = 1, 0.3
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        if seconds >= least:
            print(f"{name} {seconds / calls * 1e6:.2f}", flush=True)
            return
        calls *= 10 if seconds < least / 20 else 2


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=DEVICE).to(dtype)


def train(name, net, make_optimizer, x, y):
    net = net.to(DEVICE).train()
    optimizer = make_optimizer(net.parameters())

    def step(model):
        optimizer.zero_grad(set_to_none=True)
        networks.loss(model, x, y).backward()
        optimizer.step()

    measure(f"{name}_eager", lambda: step(net))
    compiled = torch.compile(net, mode="reduce-overhead")
    measure(f"{name}_graph", lambda: step(compiled))


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    return "_tf32" if allowed else ""


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def main():
    allow_tf32(False)
    for n in (256, 1024, 4096, 8192):
        for dtype in (torch.float32, torch.bfloat16):
            a, b = random(n, n, dtype=dtype), random(n, n, dtype=dtype)
            measure(f"matmul_{str(dtype).split('.')[1]}_{n}", lambda: a @ b)
    x, y, four = random(64 << 20), random(64 << 20), random(4)
    measure("add", lambda: x + y)
    measure("sum", lambda: x.sum())
    measure("add_of_4", lambda: four + four)
    chain = torch.compile(lambda: torch.tanh(four * 2 + 1) * four - four, mode="reduce-overhead")
    measure("chain_of_4", chain)
    rows = random(16384, 4096)
    measure("softmax", lambda: torch.softmax(rows, -1))
    measure("sum_of_rows", lambda: rows.sum(-1))
    measure("sum_of_columns", lambda: rows.sum(0))
    measure("layer_norm", lambda: torch.nn.functional.layer_norm(rows, rows.shape[1:]))
    for dtype in (torch.float32, torch.bfloat16):
        q, k, v = (random(8, 12, 1024, 64, dtype=dtype).requires_grad_() for _ in range(3))
        name = str(dtype).split(".")[1]
        measure(f"attention_{name}", lambda: attention(q.detach(), k.detach(), v.detach()))
        out = attention(q, k, v)
        measure(f"attention_grad_{name}", lambda: torch.autograd.grad(out, (q, k, v), out.detach(), retain_graph=True))
    image, kernel = random(32, 64, 56, 56), random(64, 64, 3, 3)
    for allowed in (False, True):
        measure("conv2d" + allow_tf32(allowed), lambda: torch.nn.functional.conv2d(image, kernel, padding=1))
    allow_tf32(False)
    halves = image.bfloat16(), kernel.bfloat16()
    measure("conv2d_bfloat16", lambda: torch.nn.functional.conv2d(*halves, padding=1))
    classes = torch.randint(0, 10, (64,), device=DEVICE)
    train("train_mlp", networks.mlp(), lambda p: torch.optim.Adam(p, 1e-6, fused=True), random(64, 784), classes)
    tokens = torch.randint(0, 256, (8, 128), device=DEVICE)
    train("train_gpt", networks.gpt(), lambda p: torch.optim.AdamW(p, 1e-6, weight_decay=0.01, fused=True), tokens, tokens)
    for allowed in (False, True):
        train("train_resnet18" + allow_tf32(allowed), networks.resnet18(),
              lambda p: torch.optim.SGD(p, 1e-5, momentum=0.9, fused=True), random(32, 3, 32, 32), classes[:32])


if __name__ == "__main__":
    main()
