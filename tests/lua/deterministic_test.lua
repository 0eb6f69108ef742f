-- A training program gives the same bits whenever it is run, with an empty cache of kernels and with a
-- full one, in eager mode and in graph mode.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local program = [[
local ms = require "lunaria"
local nn = ms.nn
ms.set_context { mode = arg[1] == "graph" and ms.GRAPH_MODE or ms.PYNATIVE_MODE }
ms.set_seed(3)
local net = nn.SequentialCell { nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
  nn.Dense(512, 32), nn.ReLU(), nn.Dropout { p = 0.2 }, nn.Dense(32, 10) }
local adam, loss = nn.Adam(net:trainable_params(), 0.01), nn.CrossEntropyLoss()
local step = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, adam.parameters)
local function train(x, y)
  local l, g = step(x, y)
  adam(g)
  return l
end
if arg[1] == "graph" then train = ms.jit(train, { jit_level = "auto" }) end
for _ = 1, 12 do
  local x = ms.randn { 16, 3, 16, 16 }
  io.write(("%a "):format(train(x, (ms.rand { 16 } * 10):astype(ms.int32)):item()))
end
for _, p in ipairs(net:trainable_params()) do io.write(("%a "):format((p * p):sum():item())) end
]]

local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local path = folder .. "/program.lua"
local file = assert(io.open(path, "w"))
file:write(program)
file:close()

local function run(mode, cache, threads)
  local pipe = assert(io.popen(("XDG_CACHE_HOME=%s/%s OMP_NUM_THREADS=%d %s %s %s 2>&1"):format(folder, cache, threads, arg[-1],
    path, mode)))
  local text = pipe:read("a")
  assert(pipe:close(), text)
  assert(select(2, text:gsub("0x", "")) > 12, text)
  return text
end

for _, threads in ipairs { 1, 2 } do
  t.test("eager, threads " .. threads, function() t.equal(run("eager", "e", threads), run("eager", "e", threads)) end)
  t.test("graph, threads " .. threads, function()
    local first = run("graph", "g" .. threads, threads)
    t.equal(run("graph", "g" .. threads, threads), first)
    t.equal(run("graph", "other" .. threads, threads), first)
  end)
end
t.test("the setting", function()
  t.equal(ms.get_context("deterministic"), "OFF")
  ms.set_context { deterministic = true }
  t.equal(ms.get_context("deterministic"), "ON")
  ms.set_context { deterministic = "OFF" }
  t.equal(ms.get_context("deterministic"), "OFF")
  t.fails({ "deterministic", "ON" }, ms.set_context, { deterministic = "maybe" })
end)
-- Many short rows are laid side by side.
t.test("a row of softmax has the same bits among many rows as alone, compiled too", function()
  for _, dtype in ipairs { "float32", "float64" } do
    for n = 1, 17 do
      local x = (ms.ops.sin(ms.ops.arange(67 * n) * 1.3) * 3):reshape(67, n):astype(ms[dtype])
      x[{ 3, n - 1 }] = -1 / 0
      x[{ 5, n // 2 }] = 100.0
      local f = ms.jit(function(v) return ms.ops.softmax(v * 1, -1) end)
      local y, compiled = ms.ops.softmax(x, -1), f(x) and f(x) and f(x)
      t.equal(compiled:tolist(), y:tolist())
      for row = 0, 66, 3 do
        if n > 1 or row ~= 3 then t.equal(ms.ops.softmax(x[row]:reshape(1, n), -1)[0]:tolist(), y[row]:tolist()) end
      end
    end
  end
end)
os.execute("rm -r " .. folder)
t.finish()
