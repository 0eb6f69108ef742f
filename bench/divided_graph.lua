-- A transformer block on laid-out tensors: forward, backward and a step of the optimizer, once by operators that run one by one and once
-- as a compiled function; beside it the same block on one rank. Two simulated ranks, or two processes:
--   lunaria bench/divided_graph.lua [rows] [width]
--   lunaria launch -n 2 bench/divided_graph.lua [rows] [width]
-- Prints milliseconds for a step, the least of several rounds.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local rows, width = tonumber(arg[1] or 8), tonumber(arg[2] or 64)
local length, heads = 16, 4
local mesh = ms.mesh({ 2 }, { "tp" })

local Block = nn.Cell:extend "Block"
function Block:init()
  self.norm1, self.norm2 = nn.LayerNorm { width }, nn.LayerNorm { width }
  self.q, self.k, self.v = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
  self.out, self.up, self.down = nn.Dense(width, width), nn.Dense(width, 4 * width), nn.Dense(4 * width, width)
end
function Block:construct(x)
  local n = x.shape[1]
  local function split(y) return y:reshape(n, length, heads, width // heads):transpose(0, 2, 1, 3) end
  local h = self.norm1(x)
  local q, k, v = split(self.q(h)), split(self.k(h)), split(self.v(h))
  local scores = ops.softmax(ops.matmul(q, k:transpose(0, 1, 3, 2)) * (width // heads) ^ -0.5, -1)
  local mixed = ops.matmul(scores, v):transpose(0, 2, 1, 3):reshape(n, length, width)
  x = x + self.out(mixed)
  return x + self.down(ops.gelu(self.up(self.norm2(x))))
end

-- Columns of the first product of a pair, rows of the second: one sum for each pair.
local columns, along = mesh("tp"), mesh(nil, "tp")
local plan = { ["q.weight"] = columns, ["q.bias"] = columns, ["k.weight"] = columns, ["k.bias"] = columns, ["v.weight"] = columns,
  ["v.bias"] = columns, ["up.weight"] = columns, ["up.bias"] = columns, ["out.weight"] = along, ["down.weight"] = along }

local function step_of(divided)
  ms.set_seed(1)
  local net = Block()
  if divided then net:shard({ mesh() }, nil, plan) end
  local optimizer = nn.AdamW(net:trainable_params(), 1e-3)
  local gradients_of = ms.value_and_grad(function(x) return net(x):square():mean() end, nil, optimizer.parameters)
  return function(x)
    local value, gradients = gradients_of(x)
    optimizer(gradients)
    return value
  end
end

local x = ops.randn({ rows, length, width }, nil, 7)
local function measure(name, step)
  local best, value = math.huge, nil
  for _ = 1, 4 do value = step(x) end
  for _ = 1, 8 do
    local start = ms.clock()
    for _ = 1, 5 do value = step(x) end
    value:item()
    best = math.min(best, (ms.clock() - start) / 5)
  end
  if ms.communication.get_rank() == 0 then print(("%-22s %8.3f ms, loss %.6f"):format(name, best / 1e6, value:item())) else value:item() end
end

measure("one rank, eager", step_of(false))
measure("one rank, graph", ms.jit(step_of(false)))
measure("two ranks, eager", step_of(true))
measure("two ranks, graph", ms.jit(step_of(true)))
