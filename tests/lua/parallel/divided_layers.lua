-- A rank of tests/lua/parallel/divided_layers_test.lua: layers whose work is divided among ranks. Writes what it has, piece by piece and
-- in numbers that can be compared, into FOLDER/RANK-of-RANKS.txt. arg: folder, mode.
local ms = require "lunaria"
local c = ms.communication
local rank, ranks = c.get_rank(), c.get_group_size()
local file <close> = assert(io.open(("%s/%d-of-%d.txt"):format(arg[1], rank, ranks), "w"))
if arg[2] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(11)

local function write(name, x)
  file:write(name, " ")
  for _, number in ipairs(x:astype(ms.float64):reshape { -1 }:tolist()) do file:write(("%.17g "):format(number)) end
  file:write "\n"
end
-- This rank's piece along an axis; all of it after all ranks have given theirs.
local function piece(x, axis)
  local length = x.shape[axis + 1] // ranks
  local cuts = {}
  for i = 1, axis do cuts[i] = ms.slice() end
  cuts[axis + 1] = ms.slice(rank * length, (rank + 1) * length)
  return x[cuts]:copy()
end
local function whole(x, axis) return ms.ops.all_gather(x, axis) end

-- The most memory that a rank uses for a piece of always the same length.
if arg[2] == "memory" then
  local ring = ms.nn.RingAttention { causal = true }
  local x = ms.ops.randn { 1, 4, 128, 16 }
  -- What nothing uses any more goes at once.
  local matmul = ms.ops.matmul
  ms.ops.matmul = function(...)
    collectgarbage()
    return matmul(...)
  end
  collectgarbage()
  local before = ms.runtime.memory_allocated()
  ms.runtime.reset_peak_memory_stats()
  ms.grad(function(a, b, e) return (ring(a, b, e) * x):sum() end, { 0, 1, 2 })(x, x, x)
  file:write(("memory %d\n"):format(ms.runtime.max_memory_allocated() - before))
  return
end

-- A mixture of experts: 24 tokens, some of which find no room; and one in which each rank's tokens want one expert.
for _, settings in ipairs { { 4, 2, 0.9 }, { 8, 1, 1.0 }, { 4, 3, 4.0 } } do
  local experts, top_k, factor = table.unpack(settings)
  local moe = ms.nn.MixtureOfExperts(6, 10, experts, { top_k = top_k, capacity_factor = factor })
  local x = piece(ms.ops.randn { 24, 6 }, 0)
  local aim = piece(ms.ops.randn { 24, 6 }, 0)
  local parameters = moe:trainable_params()
  local function loss(input)
    local y, balance = moe(input)
    return (y * aim):sum() + balance / ranks, y, balance
  end
  local values, of_input, gradients
  for _ = 1, arg[2] == "graph" and 6 or 1 do
    values, of_input, gradients = ms.value_and_grad(loss, 0, parameters, true)(x)
  end
  write("result", whole(values[2], 0))
  write("balance", values[3])
  write("input", whole(of_input, 0))
  for i, parameter in ipairs(parameters) do
    local gradient = gradients[i]
    write(parameter.name, parameter.name ~= "gate" and whole(gradient, 0) or ms.ops.all_reduce(gradient))
  end
end

-- A table whose rows are divided among ranks, with each of its optimizers: eight rows of a batch in each step.
for _, optimizer in ipairs { "sgd", "adagrad", "lazy_adam" } do
  local rows_of = ms.nn.RowTable(23, 3, { optimizer = optimizer, learning_rate = 0.1 })
  local weight = ms.ops.randn { 3 }
  for step = 1, 4 do
    local indices = piece(ms.ops.randint(0, 11, { 8, 2 }) * 2 + step % 2, 0)
    local rows, places, ticket = rows_of:pull(indices)
    local function loss(table) return ms.ops.sigmoid((ms.ops.gather(table, places, 0) * weight):sum(-1)):sum() end
    local value, gradient = ms.value_and_grad(loss)(rows)
    rows_of:push(ticket, gradient)
    write("loss", ms.ops.all_reduce(value))
  end
  write(optimizer, rows_of(ms.arange(23)))
  assert(rows_of.embedding_table.shape[1] <= (23 + ranks - 1) // ranks)
end

-- Ring attention against attention over the whole sequence.
for _, causal in ipairs { false, true } do
  local q, k, v, d = ms.ops.randn { 2, 3, 8, 4 }, ms.ops.randn { 2, 3, 8, 4 }, ms.ops.randn { 2, 3, 8, 4 }, ms.ops.randn { 2, 3, 8, 4 }
  local ring = ms.nn.RingAttention { causal = causal, scale = causal and 0.7 or nil }
  local own = piece(d, 2)
  local function f(a, b, e) return (ring(a, b, e) * own):sum() end
  local gradients
  for _ = 1, arg[2] == "graph" and 6 or 1 do gradients = ms.grad(f, { 0, 1, 2 })(piece(q, 2), piece(k, 2), piece(v, 2)) end
  write("attention", whole(ring(piece(q, 2), piece(k, 2), piece(v, 2)), 2))
  for i = 1, 3 do write("gradient", whole(gradients[i], 2)) end
  if ranks == 1 then
    local function attend(a, b, e)
      local s = ms.ops.matmul(a, b:transpose(0, 1, 3, 2)) * (causal and 0.7 or 0.5)
      if causal then s = ms.ops.masked_fill(s, ms.ops.triu(ms.ones({ 8, 8 }, ms.bool), 1), -1e30) end
      return ms.ops.matmul(ms.ops.softmax(s, -1), e)
    end
    local expected = ms.grad(function(a, b, e) return (attend(a, b, e) * d):sum() end, { 0, 1, 2 })(q, k, v)
    assert((attend(q, k, v) - ring(q, k, v)):abs():max():item() < 1e-5)
    for i = 1, 3 do assert((expected[i] - gradients[i]):abs():max():item() < 1e-5) end
  end
end
