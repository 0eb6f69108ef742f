#!/usr/bin/env python3
"""Checkpoints that MindSpore cuts by its strategy files become the same checkpoints for other ranks as with MindSpore.

usage: checkpoint_test.py LUNARIA [SEED COUNT]
Needs a Python with mindspore: .peers, or LUNARIA_PEERS. Without one the test is skipped (77).
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MAKE = """
import json, os, random, sys
os.environ["GLOG_v"] = "4"
import numpy as np
import mindspore as ms
from mindspore.train import node_strategy_pb2 as pb

out, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, numbers = random.Random(seed), np.random.default_rng(seed)
AXES = {"weight": 2, "bias": 1, "kernel": 3}

def layout(axes, ranks):
    sizes, left = [], ranks
    while left > 1:
        sizes.append(rng.choice([n for n in (2, 4, 8) if left % n == 0]))
        left //= sizes[-1]
    rng.shuffle(sizes)
    sizes = sizes or [1]
    free = list(range(len(sizes)))
    rng.shuffle(free)
    cuts = [free.pop() if free and rng.random() < 0.6 else -1 for _ in range(axes)]
    step = size = 0
    # MindSpore's own transformation mixes up ranks where the optimizer's cut meets axes in another order.
    in_order = [n for n in cuts if n >= 0] == sorted((n for n in cuts if n >= 0), reverse=True)
    repeated = [i for i, n in enumerate(sizes) if len(sizes) - 1 - i not in cuts and n > 1]
    if repeated == [0] and in_order and rng.random() < 0.5:
        step, size = int(np.prod(sizes[1:], dtype=int)), sizes[0]
    return sizes, cuts, step, size

def write(path, layouts):
    strategy = pb.ParallelStrategyMap(current_stage=1)
    item = strategy.parallel_strategy_item.add(node_name="MatMul-op0")
    item.parallel_strategys.stage = 0
    for name, (sizes, cuts, step, size) in layouts.items():
        own = strategy.parallel_layout_item.add(param_name=name).parallel_layouts
        own.field, own.opt_weight_shard_step, own.opt_weight_shard_size = 0, step, size
        own.dev_matrix.add().dim.extend(sizes)
        own.tensor_map.add().dim.extend(cuts)
        own.param_split_shape.add()
        own.indices_offset.add()
    open(path, "wb").write(strategy.SerializeToString())

def cut(value, layout, rank):
    sizes, cuts, _, again = layout
    place = np.unravel_index(rank, sizes)
    for axis, number in enumerate(cuts):
        if number >= 0:
            value = np.split(value, sizes[len(sizes) - 1 - number], axis)[place[len(sizes) - 1 - number]]
    return np.ascontiguousarray(np.split(value, again, 0)[place[0] % again] if again else value)

cases = []
for number in range(count):
    case = f"{out}/{number}"
    ranks = [rng.choice([1, 2, 4, 8]), rng.choice([2, 4, 8])]
    layouts = [{name: layout(axes, n) for name, axes in AXES.items()} for n in ranks]
    values = {name: numbers.standard_normal([64] + [8] * (axes - 1)).astype(np.float32) for name, axes in AXES.items()}
    for rank in range(ranks[0]):
        os.makedirs(f"{case}/src/rank_{rank}")
        ms.save_checkpoint([{"name": name, "data": ms.Tensor(cut(value, layouts[0][name], rank) if ranks[0] > 1 else value)}
                            for name, value in values.items()], f"{case}/src/rank_{rank}/net-1_1.ckpt")
    files = [f"{case}/src.ckpt" if ranks[0] > 1 else None, f"{case}/dst.ckpt"]
    for path, own in zip(files, layouts):
        if path:
            write(path, own)
    ms.transform_checkpoints(f"{case}/src", f"{case}/theirs", "net", *files)
    cases.append({"src": files[0] or "", "dst": files[1], "ranks": ranks[1],
                  "lists": [[int(n) for n in ms.rank_list_for_transform(rank, *files)] for rank in range(ranks[1])]})
json.dump(cases, open(f"{out}/cases.json", "w"))
"""
CHECK = """
local ms = require "lunaria"
local strategies = require "lunaria.parallel.strategy_files"
local equal, fewer = 0, 0
for i, case in ipairs(ms.json.decode(ms.io.read_text(arg[1] .. "/cases.json"))) do
  local folder, src = ("%s/%d"):format(arg[1], i - 1), case.src ~= "" and case.src or nil
  ms.transform_checkpoints(folder .. "/src", folder .. "/ours", "net", src, case.dst)
  strategies.write(folder .. "/again.ckpt", strategies.read("test", case.dst))
  assert(ms.io.read_text(folder .. "/again.ckpt") == ms.io.read_text(case.dst), folder)
  for rank = 0, case.ranks - 1 do
    local name = ("rank_%d/net%d.ckpt"):format(rank, rank)
    local ours, theirs = ms.load_checkpoint(folder .. "/ours/" .. name), ms.load_checkpoint(folder .. "/theirs/" .. name)
    for key, value in pairs(theirs) do
      assert(tostring(value.shape) == tostring(ours[key].shape) and ms.ops.equal(value, ours[key]):all():item(), name .. " " .. key)
    end
    -- MindSpore may name ranks whose files it does not need; all that we name must be among them.
    local there, list = {}, ms.rank_list_for_transform(rank, src, case.dst)
    for _, number in ipairs(case.lists[rank + 1]) do there[number] = true end
    for _, number in ipairs(list) do assert(there[number], name) end
    if #list == #case.lists[rank + 1] then equal = equal + 1 else fewer = fewer + 1 end
  end
end
print(("lists of ranks: %d equal, %d with fewer ranks than MindSpore's"):format(equal, fewer))
"""


def main():
    python = Path(os.environ.get("LUNARIA_PEERS", ".peers")) / "bin/python3"
    if not python.exists() or subprocess.run([python, "-c", "import mindspore"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             check=False).returncode:
        print("skipped: there is no Python with mindspore in .peers, and LUNARIA_PEERS names none")
        return 77
    seed, count = sys.argv[2:4] if len(sys.argv) > 3 else ("1", "12")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "check.lua"
        script.write_text(CHECK)
        subprocess.run([python, "-c", MAKE, folder, seed, count], check=True)
        return subprocess.run([sys.argv[1], script, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
