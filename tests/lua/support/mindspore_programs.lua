-- Programs with control flow that MindSpore's operators can say, as { name, f, inputs }: inputs are lists of arguments, of which
-- the first is the example and the others go other ways.
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local T = ms.tensor
local a, b = T { { 1.0, -2.0 }, { 0.5, 3.0 } }, T { { -1.0, 2.0 }, { -0.5, -3.0 } }
local i = T({ { 3, -7 }, { 12, 5 } }, ms.int32)

local list = {}
local function program(name, inputs, f) list[#list + 1] = { name = name, f = f, inputs = inputs } end

program("a branch", { { a }, { b } }, function(x)
  if x:sum() > 2 then return x * 2 end
  return -x
end)
program("code after a branch, two results", { { a }, { b } }, function(x)
  local y = x
  if x:sum() > 2 then y = x * 2 end
  return y + 1, x
end)
program("else if", { { a }, { a * 4 }, { b } }, function(x)
  local s = x:sum():item()
  if s > 5 then return x / s elseif s > 0 then return x * s end
  return -x
end)
program("while", { { a }, { b } }, function(x)
  while x:sum() < 10 do x = x:abs() * 1.5 + 1 end
  return x - 3
end)
program("a short for", { { a }, { b } }, function(x)
  for k = 1, 4 do
    if x:sum() > 0 then x = x * 0.5 - k else x = ops.sin(x) + 1 end
  end
  return x
end)
program("a long for", { { a }, { b } }, function(x)
  for k = 1, 300 do
    if x:sum() > 0 then x = ops.sin(x) - k else x = x * 0.5 + k end
  end
  return x
end)
program("two conditions, and a number that counts", { { a }, { b } }, function(x)
  local turns = 0
  while turns < 80 and x:sum() < 1000 do
    x = x * 1.5 + 1
    turns = turns + 1
  end
  return x - turns
end)
program("a number that is read", { { a }, { b } }, function(x)
  local sum = 0.0
  while sum < 5 do
    sum = sum + x:abs():max():item()
    x = x + sum
  end
  return x
end)
program("truths that are read", { { a }, { b } }, function(x)
  while ops.any(ops.less(x, 10)):item() do x = x + 1 end
  if not ops.all(ops.greater(x, 12)):item() then x = x * 2 end
  return x
end)
program("arithmetic of numbers", { { a }, { b } }, function(x)
  local k = 0
  while x:sum() < 1000 do
    if k % 3 == 0 then x = x + k // 2 else x = x * 1.25 + k / 4 end
    k = k + 1
    x = x + 1
  end
  return x
end)
program("nested loops", { { a }, { b } }, function(x)
  local y = x
  for k = 1, 3 do
    local n = 0
    while y:sum() < 50 * k do
      y = y:abs() + n + 1
      n = n + 1
    end
  end
  return y, x
end)
program("break and an early return", { { a }, { b }, { a * 9 } }, function(x)
  for k = 1, 100 do
    x = x * 1.1
    if x:max() > 20 then return x - k end
    if x:min() < -6 then break end
  end
  return x * 0
end)
program("two inputs, integers", { { a, i }, { b, -i } }, function(x, n)
  while n:max() > 0 do
    n = ops.floor_divide(n, 2) - 1
    x = x + n
  end
  return x, n
end)
program("a function whose ways give a tensor and what a method gives", { { a }, { b } }, function(x)
  local function row(y)
    if y:sum() > 2 then
      local first = ops.tanh(y["0"])
      return first
    end
    return y:at(0, ":")
  end
  return row(x) + 1
end)
program("indices that hold texts", { { a }, { b } }, function(x)
  local how = ":, 0"
  if x:sum() > 2 then how = "..., 1" end
  local y = x[how] + x[{ ":", 0 }]
  if y:sum() > 0 then return y:at("0:1") * 2 end
  return x:at("...", 0)["1:"]
end)
local first_row = ms.slice(0, 1)
program("slices and new axes", { { a }, { b } }, function(x)
  local last = ms.slice(-1, nil)
  if x:sum() > 2 then return x[{ first_row, 0 }] + x[last]["0, 0"] end
  return x[{ ms.slice(nil, nil, 2), 1 }] * x[{ ms.newaxis, 0 }]["0, 0"]
end)
program("tables of numbers, texts, dtypes and operators", { { a }, { b } }, function(x)
  local how = { axis = 0, keepdims = true }
  local steps = { ops.tanh, { ms.float16, "float32" }, { "...", { ms.newaxis, 0 } } }
  if x:sum() > 2 then x = x * 2 end
  local y = steps[1](x):astype(steps[2][1]):astype(steps[2][2])
  if y:sum() > 0 then y = y - 1 end
  return ops.sum(y, how), y[steps[3][1]] + 1, y[steps[3][2]]
end)
program("a table that ways fill and a loop changes", { { a }, { b } }, function(x)
  local state = { h = x, n = 0 }
  if x:sum() > 2 then state.by = x * 2 else state.by = x:abs() end
  while state.h:sum() < 50 do
    state.h = state.h:abs() + state.by
    state.n = state.n + 1
  end
  return state.h + state.n
end)
ms.set_seed(3)
local Router = nn.Cell:extend("Router")
function Router:init()
  self.first, self.second, self.scale = nn.Dense(2, 2), nn.Dense(2, 2), 0.5
  self.layers = nn.CellList { nn.Dense(2, 2), nn.ReLU(), nn.Dense(2, 2) }
end
function Router:construct(x)
  local turns = 0
  while turns < 8 and x:abs():sum() > 1 do
    if x:sum() > 0 then x = self.first(x) else x = self.second(x) end
    x = self.second(self.first(x)) * self.scale
    turns = turns + 1
  end
  for _, layer in ipairs(self.layers) do x = layer(x) end
  return x
end
program("a cell with branches and loops", { { a }, { b }, { a * 9 } }, Router())
return list
