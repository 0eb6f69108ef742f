"""Data parallel training of a perceptron on 2 processes, beside PyTorch's DistributedDataParallel with Gloo, in the same run.

    python3 bench/data_parallel.py build/lunaria [--rows 256] [--steps 40] [--rounds 3]

Both divide the processors among their processes. The speed-up is the time of one process with all rows over that of two with half of
them each. Wants an idle machine: of each kind the fastest step of all rounds, which take turns, counts.
"""
import argparse
import os
import socket
import subprocess
import sys

CHILD = """
import os, sys, time, torch
import torch.distributed as dist
rows, steps, threads, ranks = (int(a) for a in sys.argv[1:5])
torch.set_num_threads(threads)
rank = int(os.environ.get("RANK", 0))
torch.manual_seed(1)
n = torch.nn
net = n.Sequential(n.Linear(784, 1024), n.ReLU(), n.Linear(1024, 1024), n.ReLU(), n.Linear(1024, 256), n.ReLU(), n.Linear(256, 10))
model = net
if ranks > 1:
    dist.init_process_group("gloo")
    model = n.parallel.DistributedDataParallel(net)
optimizer, loss = torch.optim.SGD(net.parameters(), 0.01), n.CrossEntropyLoss()
torch.manual_seed(2 + rank)
x, y = torch.randn(rows, 784), torch.randint(0, 10, (rows,))
def step():
    optimizer.zero_grad()
    value = loss(model(x), y)
    value.backward()
    optimizer.step()
    return value.item()
for _ in range(8):
    step()
times = []
for _ in range(steps):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
times.sort()
if rank == 0:
    print("%.9f %.9f" % (times[0], times[len(times) // 2]))
if ranks > 1:
    dist.destroy_process_group()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def torch_step(ranks, rows, steps, threads):
    environment = dict(os.environ, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(rows), str(steps), str(threads), str(ranks)], stdout=subprocess.PIPE,
                         text=True, env=dict(environment, RANK=str(rank)))
        for rank in range(ranks)
    ]
    try:
        return [float(word) for word in children[0].communicate(timeout=300)[0].split()]
    finally:
        for child in children:
            child.kill() if child.poll() is None and child is not children[0] and child.wait(30) is None else None


def lunaria_step(program, ranks, rows, steps, threads, mode):
    words = [program, "launch", "-n", str(ranks), "bench/data_parallel.lua", str(rows), str(steps), mode]
    made = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=300, check=True,
                          env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    return [float(word) for word in made.stdout.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    cores = os.cpu_count()
    kinds = {"PyTorch": lambda ranks, rows: torch_step(ranks, rows, options.steps, max(1, cores // ranks))}
    for mode in "eager", "graph":
        kinds["Lunaria " + mode] = lambda ranks, rows, mode=mode: lunaria_step(
            options.program, ranks, rows, options.steps, max(1, cores // ranks), mode)
    best = {}
    for _ in range(options.rounds):
        for name, run in kinds.items():
            for ranks in 1, 2:
                time = run(ranks, 2 * options.rows // ranks)[0]
                best[name, ranks] = min(best.get((name, ranks), 1e9), time)
    print(f"one process with {2 * options.rows} rows, two with {options.rows} each; load {os.getloadavg()[0]:.1f}")
    for name in kinds:
        one, two = best[name, 1], best[name, 2]
        print(f"{name:15} {one * 1e3:8.2f} ms {two * 1e3:8.2f} ms  speed-up {one / two:.2f}")


if __name__ == "__main__":
    main()
