"""Programs that are stopped at random moments: killed while they save files of all formats, which then are the old ones or the new
ones, whole, with nothing beside them once they are saved again; and interrupted (Ctrl-C) in the midst of anything, which ends them within two
seconds with a message.

usage: stops_test.py PROGRAM [--kills N] [--interrupts N] [--seed N]"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Saves a file again and again; its elements are all equal. The first argument is the kind.
SAVE = r"""
local ms = require "lunaria"
local kind, nn = arg[1], ms.nn
local w = ms.Parameter(ms.ones { 300, 300 }, "w")
local function filled(n)
  w:fill_(n)
  return w
end
local net = nn.Cell:extend "Net"
function net:construct(x) return ms.ops.matmul(x, self.w) end
local cell = net()
cell.w = w
local save = {
  npy = function(n) ms.save("file.npy", filled(n)) end, npz = function(n) ms.save("file.npz", { w = filled(n) }) end,
  safetensors = function(n) ms.save("file.safetensors", { w = filled(n) }) end,
  ckpt = function(n) ms.save_checkpoint({ w = filled(n) }, "file.ckpt", { async_save = n % 2 == 0 }) end,
  mindir = function(n)
    filled(n)
    ms.export(cell, ms.ones { 2, 300 }, { file_name = "file" })
  end,
  onnx = function(n)
    filled(n)
    ms.export(cell, ms.ones { 2, 300 }, { file_name = "file", file_format = "ONNX" })
  end,
  mindrecord = function(n)
    local writer = ms.mindrecord.FileWriter("file.mindrecord", 1, true)
    writer:add_schema { w = { type = "float32", shape = { 300 } } }
    local row = ms.full({ 300 }, n, ms.float32)
    for _ = 1, 40 do writer:write_raw_data { { w = row } } end
    writer:commit()
  end,
  tfrecord = function(n)
    ms.dataset.NumpySlicesDataset({ w = ms.full({ 60, 100 }, n, ms.float32) }, { shuffle = false }):save "file.tfrecord"
  end,
}
local n = math.tointeger(arg[2])
save[kind](n)
print "begun"
io.flush()
while not arg[3] do
  n = n + 1
  save[kind](n)
end
"""

CHECK = r"""
local ms = require "lunaria"
local read = {
  npy = function() return ms.load "file.npy" end, npz = function() return ms.load("file.npz").w end,
  safetensors = function() return ms.load("file.safetensors").w end, ckpt = function() return ms.load_checkpoint("file.ckpt").w end,
  mindir = function() return (ms.load "file.mindir")(ms.ones { 2, 300 }) end,
  onnx = function() return (ms.load "file.onnx")(ms.ones { 2, 300 }) end,
  mindrecord = function() return ms.dataset.MindDataset("file.mindrecord", { shuffle = false }):batch(40):create_tuple_iterator()() end,
  tfrecord = function() return ms.dataset.TFRecordDataset("file.tfrecord", { shuffle = false }):batch(60):create_tuple_iterator()() end,
}
for i = 1, #arg, 2 do
  local folder, kind = arg[i], arg[i + 1]
  local done, problem = pcall(function()
    local here = require "lunaria".io.kind(folder) and folder
    for name, f in pairs(read) do
      if name == kind then
        local load, mind, tf = ms.load, ms.dataset.MindDataset, ms.dataset.TFRecordDataset
        local checkpoint = ms.load_checkpoint
        rawset(ms, "load", function(p) return load(here .. "/" .. p) end)
        rawset(ms, "load_checkpoint", function(p) return checkpoint(here .. "/" .. p) end)
        rawset(ms.dataset, "MindDataset", function(p, o) return mind(here .. "/" .. p, o) end)
        rawset(ms.dataset, "TFRecordDataset", function(p, o) return tf(here .. "/" .. p, o) end)
        local fine, x = pcall(f)
        rawset(ms, "load", load) rawset(ms, "load_checkpoint", checkpoint)
        rawset(ms.dataset, "MindDataset", mind) rawset(ms.dataset, "TFRecordDataset", tf)
        assert(fine, x)
        assert(x.size >= 600 and ms.ops.amax(x):item() == ms.ops.amin(x):item(), "elements of two files")
      end
    end
  end)
  print(done and "whole" or "FAIL " .. folder .. " " .. kind .. ": " .. tostring(problem))
end
"""

# A bit of everything, for ever.
WORK = r"""
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
ms.set_seed(tonumber(arg[1]))
local net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 144, 10))
local x, y = ops.randn { 32, 1, 12, 12 }, ops.randn { 32, 10 }
local optimizer = nn.Adam(net:trainable_params(), 0.01)
local step = ms.value_and_grad(function(a, b) return ops.mean((net(a) - b) ^ 2) end, nil, net:trainable_params())
local works = {
  function() local _, g = step(x, y) optimizer(g) end,
  function() ms.save_checkpoint(net, "net.ckpt") ms.load_checkpoint "net.ckpt" end,
  function() ms.export(net, x, { file_name = "net", file_format = "ONNX" }); (ms.load "net.onnx")(x) end,
  function()
    local ds = ms.dataset.NumpySlicesDataset({ x = x }):shuffle(8):map(function(v) return v * 2 end, "x"):batch(4)
    for _ in ds:create_tuple_iterator { num_epochs = 1 } do end
  end,
  function() ops.svd(ops.randn { 150, 150 }) end, function() ops.randn({ 500, 500 }):matmul(ops.randn { 500, 500 }) end,
  function() local f = ms.jit(function(a) return ops.tanh(a):sum() end) for _ = 1, 30 do f(x) end end,
  function() local t = {} for i = 1, 50000 do t[i] = { i } end table.sort(t, function(a, b) return a[1] > b[1] end) end,
  function() ("x"):rep(1 << 20):gsub("x", "y") end, function() ms.json.decode(ms.json.encode(ops.randn({ 3000 }):tolist())) end,
  function() ms.vmap(function(a) return ops.sum(a * a) end)(x) end, function() ops.sort(ops.randn { 200000 }) end,
  function() load("local t = {} for i = 1, 1000 do t[i] = i end return " .. ("1 + "):rep(2000) .. "1")() end,
}
print "begun"
io.flush()
while true do works[math.random(#works)]() end
"""


def environment(folder):
    return {"PATH": os.environ["PATH"], "HOME": folder, "XDG_CACHE_HOME": folder + "/cache", "TMPDIR": folder, "LANG": "C.UTF-8",
            "OMP_WAIT_POLICY": "passive"}


def begin(program, script, arguments, folder, cwd):
    Path(folder, "script.lua").write_text(script)
    process = subprocess.Popen([program, folder + "/script.lua", *arguments], cwd=cwd, env=environment(folder), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stdout.readline()
    if line != b"begun\n":
        process.kill()
        raise SystemExit(f"FAIL: the program does not begin: {line!r} {process.stderr.read()!r}")
    return process


def kills(program, count, rng):
    kinds = ["npy", "npz", "safetensors", "ckpt", "mindir", "onnx", "mindrecord", "tfrecord"]
    failures, left = [], []
    with tempfile.TemporaryDirectory(prefix="lunaria-kills-") as folder:
        folders = {kind: str(Path(folder, kind)) for kind in kinds}
        for kind in kinds:
            os.mkdir(folders[kind])
        for number in range(count):
            kind = kinds[number % len(kinds)]
            process = begin(program, SAVE, [kind, str(number % 50)], folder, folders[kind])
            time.sleep(rng.random() * 0.06)
            process.kill()
            process.communicate()
            if number % len(kinds) == len(kinds) - 1 or number == count - 1:
                Path(folder, "check.lua").write_text(CHECK)
                pairs = [word for k in kinds[:number + 1] for word in (folders[k], k)]
                done = subprocess.run([program, folder + "/check.lua", *pairs], env=environment(folder), capture_output=True, text=True,
                                      timeout=600, check=False)
                failures += [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
                if done.returncode != 0:
                    failures.append(f"FAIL the check ended with {done.returncode}: {done.stderr[-400:]}")
        # Between a draft's name and its place there is a moment; what is left by then goes when the file is saved next.
        for kind in kinds:
            begin(program, SAVE, [kind, "0", "once"], folder, folders[kind]).communicate()
            left += [name for name in os.listdir(folders[kind]) if name not in {"file." + kind, "file.mindrecord.db"}]
    if left:
        failures.append(f"FAIL files that kills left behind outlive the next save: {left}")
    print(f"{count} kills: {len(failures)} failures", flush=True)
    return failures


def interrupts(program, count, rng):
    failures, slowest = [], 0.0
    with tempfile.TemporaryDirectory(prefix="lunaria-interrupts-") as folder:
        for number in range(count):
            process = begin(program, WORK, [str(number)], folder, folder)
            time.sleep(rng.random() ** 2 * 1.5)
            process.send_signal(signal.SIGINT)
            asked = time.monotonic()
            try:
                _, text = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                failures.append(f"FAIL interrupt {number}: no answer in 60 s")
                continue
            took = time.monotonic() - asked
            slowest = max(slowest, took)
            if process.returncode not in (1, 130, -signal.SIGINT) or (process.returncode == 1 and b"interrupted" not in text) or took > 20:
                failures.append(f"FAIL interrupt {number}: ended with {process.returncode} after {took:.2f} s: {text[-400:]!r}")
        strange = [name for name in os.listdir(folder) if name not in {"script.lua", "cache", "net.ckpt", "net.onnx"}]
        if strange:
            failures.append(f"FAIL files were left behind by interrupts: {strange}")
    print(f"{count} interrupts: {len(failures)} failures, the slowest answer took {slowest:.2f} s", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--interrupts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    program, rng = str(Path(args.program).resolve()), random.Random(args.seed)
    failures = kills(program, args.kills, rng) + interrupts(program, args.interrupts, rng)
    for failure in failures:
        print(failure)
    total = args.kills + args.interrupts
    print(f"{total - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
