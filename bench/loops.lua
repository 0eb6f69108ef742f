-- Run by loops.py: loops whose number of turns differs from call to call. Prints one figure a line, its name before it: the
-- part of the calls that ran compiled, times against those of eager calls that take turns with them, and the time per step
-- of training on sequences of random lengths against that on one length; each the fastest of some rounds.
local ms = require "lunaria"
local ops = ms.ops

local ROUNDS, CALLS = 7, 300
ms.set_num_threads(1)

local function time(f)
  local start = ms.clock()
  f()
  return ms.clock() - start
end

local function iterate(x, n)
  local i, h = 0, x
  while i < n do
    h = ops.tanh(h * 0.9 + x * 0.1) * 0.99
    i = i + 1
  end
  return h
end

math.randomseed(1)
local turns = {}
for k = 1, CALLS do turns[k] = math.random(1, 1000) end
local x = ops.full({ 256 }, 0.5)
local share, eager, first, later = 1, math.huge, math.huge, math.huge
for _ = 1, ROUNDS do
  local compiled = ms.jit(iterate)
  local function pass(f)
    return time(function() for k = 1, CALLS do f(x, turns[k]) end end)
  end
  eager, first = math.min(eager, pass(iterate)), math.min(first, pass(compiled))
  share = math.min(share, ms.jit_report(compiled).compiled_calls / CALLS)
  eager, later = math.min(eager, pass(iterate)), math.min(later, pass(compiled))
end
print("share", share)
print("first", first / eager)
print("later", later / eager)

local SHORTEST, LONGEST, BATCH, INPUTS, HIDDEN = 20, 100, 16, 32, 64

local function rnn(sequence, wx, wh, bias)
  local h, loss = ops.zeros { BATCH, HIDDEN }, 0
  for t = 0, sequence.shape[1] - 1 do
    h = ops.tanh(ops.matmul(sequence[t], wx) + ops.matmul(h, wh) + bias)
    loss = loss + (h * h):mean()
  end
  return loss / sequence.shape[1]
end

local function trainer()
  local weights = { ops.randn(INPUTS, HIDDEN) * 0.1, ops.randn(HIDDEN, HIDDEN) * 0.1, ops.zeros { HIDDEN } }
  local step = ms.jit(ms.value_and_grad(rnn, { 1, 2, 3 }))
  return function(sequence)
    local _, gradients = step(sequence, table.unpack(weights))
    for i, g in ipairs(gradients) do weights[i] = weights[i] - g * 0.01 end
  end
end

local sequences, lengths = {}, {}
for length = SHORTEST, LONGEST do
  sequences[length] = ops.randn(length, BATCH, INPUTS)
  lengths[#lengths + 1] = length
end
local fixed, varied = trainer(), trainer()
local function shuffle()
  for i = #lengths, 2, -1 do
    local j = math.random(i)
    lengths[i], lengths[j] = lengths[j], lengths[i]
  end
end
local function train_varied() for _, length in ipairs(lengths) do varied(sequences[length]) end end
local function train_fixed() for _ = 1, #lengths do fixed(sequences[(SHORTEST + LONGEST) // 2]) end end
local new, many, one = nil, math.huge, math.huge
for round = 1, 3 + ROUNDS do
  shuffle()
  local here, there = time(train_varied), time(train_fixed)
  new = new or here
  -- The first rounds record and compile what the others run.
  if round > 3 then many, one = math.min(many, here), math.min(one, there) end
end
print("lengths", many / one)
print("new_lengths", new / one)
