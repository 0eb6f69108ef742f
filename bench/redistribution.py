"""Plans of redistributions beside those of PyTorch, XLA and MindSpore, by one model of costs: a step among n ranks takes a latency
(twice for all_reduce) for each of its rounds, and the time of the bytes that the busiest rank gets.

usage: redistribution.py LUNARIA     prints one JSON row for each peer, mesh and size of tensor."""
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

LATENCY, SECONDS_PER_BYTE, WIDTH = 1e-5, 1e-10, 4
MESHES = [(4, 2), (4, 2, 2), (8, 16)]
SIDES = [128, 2048]  # of tensors with two axes: 64 KB, 16 MB
MOST = {"torch": 200, "torch, least cost": 200, "XLA": 110, "MindSpore": 200}  # pairs of layouts
NAMES = "xyz"


class Cost:
    """What a plan of collective steps costs, with the bytes that a rank holds before and after each."""

    def __init__(self):
        self.seconds, self.bytes = 0.0, 0.0

    def add(self, rounds, received):
        self.bytes += received
        self.seconds += rounds * LATENCY + received * SECONDS_PER_BYTE

    def step(self, kind, n, before, after):
        log = math.ceil(math.log2(n))
        if kind == "all_gather":
            self.add(log, after - before)
        elif kind == "all_reduce":
            whole = log * (LATENCY + before * SECONDS_PER_BYTE)  # in each round to one partner, which is quicker for little
            self.add(2 * log, received := 2 * (n - 1) / n * before)
            self.seconds += min(0.0, whole - 2 * log * LATENCY - received * SECONDS_PER_BYTE)
        elif kind == "reduce_scatter":
            self.add(log, (n - 1) * after)
        elif kind == "all_to_all":
            self.add(n - 1, (n - 1) / n * after)
        elif kind == "permute":
            self.add(1, after)


def layouts(mesh, rank, partial):
    """All layouts: a tuple of mesh axes for each axis of the tensor, and the set of those along which values are incomplete."""
    for places in itertools.product(range(rank + 1 + partial), repeat=len(mesh)):
        lists = [[a for a, place in enumerate(places) if place == d + 1] for d in range(rank)]
        incomplete = frozenset(a for a, place in enumerate(places) if place == rank + 1)
        yield from ((cuts, incomplete) for cuts in itertools.product(*(list(itertools.permutations(one)) for one in lists)))


def text(layout):
    cuts, incomplete = layout
    parts = ["@" + ".".join(NAMES[a] for a in axes) if axes else "*" for axes in cuts]
    return f"[{', '.join(parts)}]" + (" +" + ".".join(NAMES[a] for a in sorted(incomplete)) if incomplete else "")


class Torch:
    """DTensor's planner, on ranks that do not exist."""

    partial, several_axes = True, True

    def __init__(self, mesh, least):
        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import _dtensor_spec, _redistribute
        from torch.testing._internal.distributed.fake_pg import FakeStore

        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", rank=0, world_size=math.prod(mesh), store=FakeStore())
        self.torch, self.spec, self.least = torch, _dtensor_spec, least
        self.plan = _redistribute._gen_transform_infos_non_cached
        self.mesh, self.sizes = init_device_mesh("cpu", mesh, mesh_dim_names=tuple(NAMES[: len(mesh)])), mesh

    def supports(self, layout):
        # Its placements cut an axis of the tensor along the mesh axes in their order.
        return all(list(axes) == sorted(axes) for axes in layout[0])

    def made(self, layout, side):
        from torch.distributed.tensor import Partial, Replicate, Shard

        placements = [Partial() if a in layout[1] else Replicate() for a in range(len(self.sizes))]
        for axis, axes in enumerate(layout[0]):
            for a in axes:
                placements[a] = Shard(axis)
        meta = self.spec.TensorMeta(self.torch.Size((side, side)), (side, 1), self.torch.float32)
        return self.spec.DTensorSpec(self.mesh, tuple(placements), tensor_meta=meta)

    def cost(self, source, target, side):
        cost, size = Cost(), side * side * WIDTH / math.prod(self.sizes[a] for axes in source[0] for a in axes)
        for info in self.plan(self.made(source, side), self.made(target, side), self.least):
            n, (before, after) = self.sizes[info.mesh_dim], info.src_dst_placements
            kind, new = None, size
            if before.is_shard() and after.is_replicate():
                kind, new = "all_gather", size * n
            elif before.is_shard() and after.is_shard():
                kind = "all_to_all"
            elif before.is_partial() and after.is_replicate():
                kind = "all_reduce"
            elif before.is_partial() and after.is_shard():
                kind, new = "reduce_scatter", size / n
            elif before.is_replicate() and after.is_shard():
                new = size / n
            if kind:
                cost.step(kind, n, size, new)
            size = new
        return cost


class Xla:
    """The collectives that XLA compiles a change of shardings to, on devices that it is told of."""

    partial, several_axes = False, True

    def __init__(self, mesh):
        import jax
        import numpy

        self.jax = jax
        self.mesh = jax.sharding.Mesh(numpy.array(jax.devices()[: math.prod(mesh)]).reshape(mesh), tuple(NAMES[: len(mesh)]))

    def supports(self, _):
        return True

    def made(self, layout):
        names = [tuple(NAMES[a] for a in axes) or None for axes in layout[0]]
        return self.jax.sharding.NamedSharding(self.mesh, self.jax.sharding.PartitionSpec(*names))

    def cost(self, source, target, side):
        value = self.jax.ShapeDtypeStruct((side, side), "float32")
        same = self.jax.jit(lambda x: x, in_shardings=self.made(source), out_shardings=self.made(target))
        cost = Cost()
        pattern = r"= (\(?[^=]*?) (all-gather|all-to-all|all-reduce|collective-permute|reduce-scatter)(?:-start)?\((.*)"
        for result, kind, rest in re.findall(pattern, re.sub(r"/\*.*?\*/", "", same.lower(value).compile().as_text())):
            shapes = re.findall(r"f32\[([\d,]*)\]", result)
            size = WIDTH * sum(math.prod(int(n) for n in shape.split(",") if n) for shape in shapes)
            if kind == "collective-permute":
                cost.step("permute", 2, size, size)
                continue
            n = self.group_size(rest)
            before = {"all-gather": size / n, "reduce-scatter": size * n}.get(kind, size)
            cost.step(kind.replace("-", "_"), n, before, size)
        return cost

    @staticmethod
    def group_size(rest):
        """Of replica_groups={{0,1},...}, [4,2]<=[8] (groups, size) or mesh['a'=4,'b'=2] {'a','b':(2)2}."""
        if found := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
            return found[1].count(",") + 1
        if found := re.search(r"replica_groups=\[\d+,(\d+)\]", rest):
            return int(found[1])
        sizes, axes = re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", rest).groups()
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", sizes))
        return math.prod(int(part or sizes[name]) for name, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", axes))


class MindSpore:
    """The planner behind transform_checkpoints and reshard."""

    partial, several_axes = False, False

    def __init__(self, mesh):
        from mindspore._c_expression import TensorTransform

        self.transform, self.sizes = TensorTransform.get_instance(), mesh

    def supports(self, layout):
        return all(len(axes) <= 1 for axes in layout[0])

    def cost(self, source, target, side):
        def made(layout):
            numbers = [len(self.sizes) - 1 - axes[0] if axes else -1 for axes in layout[0]]
            return (list(self.sizes), numbers, [side, side])

        ranks = list(range(math.prod(self.sizes)))
        worst = Cost()
        for rank in ranks:
            cost, size = Cost(), side * side * WIDTH / math.prod(self.sizes[a] for axes in source[0] for a in axes)
            for name, values in self.transform.transform_tensor_sharding(made(source), made(target), ranks, False, rank):
                if name == "AllConcat":
                    n = len(values) - 1
                    cost.step("all_gather", n, size, size * n)
                    size *= n
                elif name in ("Slice", "StridedSlice"):
                    half = len(values) // 3
                    begin, end = values[:half], values[half : 2 * half]
                    size = WIDTH * math.prod(b - a for a, b in zip(begin, end))
                elif name != "Reshape":
                    raise RuntimeError(f"an operator {name} is not known to this bench")
            worst = max(worst, cost, key=lambda c: c.seconds)
        return worst


def ours(lunaria, questions):
    lines = "".join("|".join(question) + "\n" for question in questions)
    done = subprocess.run([lunaria, "bench/redistribution.lua"], input=lines, text=True, check=True, stdout=subprocess.PIPE,
                          cwd=Path(__file__).resolve().parent.parent)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def compare(lunaria, name, peer, mesh, side):
    every = [one for one in layouts(mesh, 2, peer.partial) if peer.supports(one)]
    # A peer makes no incomplete values of complete ones.
    pairs = [(a, b) for a in every for b in every if a != b and b[1] <= a[1]]
    if len(pairs) > MOST[name]:
        pairs = random.Random(1).sample(pairs, MOST[name])
    sizes = ", ".join(f"{NAMES[a]}={n}" for a, n in enumerate(mesh))
    plans = ours(lunaria, [(sizes, f"{side},{side}", text(a), text(b)) for a, b in pairs])
    ratios, more, least = [], [], []
    for (source, target), (seconds, moved, bound) in zip(pairs, plans):
        theirs = peer.cost(source, target, side)
        ratios.append((seconds + 1e-12) / (theirs.seconds + 1e-12))
        more.append((theirs.seconds + 1e-12) / (seconds + 1e-12) if seconds else 1.0)
        least.append((theirs.bytes, moved, bound))
        if seconds > theirs.seconds * (1 + 1e-6):
            print(f"{name}: {text(source)} to {text(target)}: {seconds:.3g} s, theirs {theirs.seconds:.3g} s", file=sys.stderr)
    worse = sum(ratio < 1 - 1e-6 for ratio in ratios)
    note = (f"worst of {len(pairs)} pairs; ours is cheaper in {worse}, at the most {max(more):.3g} times; bytes in all: "
            f"theirs {sum(b for b, _, _ in least) / max(1.0, sum(m for _, m, _ in least)):.3g} times")
    print(json.dumps({"workload": f"{name}: {'x'.join(map(str, mesh))}, {side} x {side}: seconds / theirs", "value": max(ratios),
                      "unit": "", "limit": 1.0, "pass": max(ratios) <= 1 + 1e-6, "note": note}), flush=True)


def main(lunaria):
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={max(map(math.prod, MESHES))}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    warnings.simplefilter("ignore")
    makers = {"torch": lambda mesh: Torch(mesh, False), "torch, least cost": lambda mesh: Torch(mesh, True), "XLA": Xla,
              "MindSpore": MindSpore}
    for name, maker in makers.items():
        for mesh in MESHES:
            try:
                peer = maker(mesh)
            except ImportError as error:
                print(f"{name} is not there: {error}", file=sys.stderr)
                break
            for side in SIDES:
                compare(lunaria, name, peer, mesh, side)


if __name__ == "__main__":
    main(sys.argv[1])
