-- Adasum (Maleki et al. 2020): a sum of the updates of several workers that does not take what two of them share twice. Parallel
-- updates count once, orthogonal ones add up:
--
--     adasum(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b
--
-- for each parameter alone. Of 2^k workers, pairs are joined, then pairs of pairs.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

-- One factor: 1 - dot / (2 norm), and 1 where there is nothing to divide by.
local function factor(dot, norm)
  local some = ops.greater(norm, 0.0)
  return 1.0 - ops.where(some, dot / (2.0 * ops.where(some, norm, ops.ones_like(norm))), ops.zeros_like(dot))
end

local function of_tensors(a, b)
  local dot = ops.sum(a * b)
  return factor(dot, ops.sum(a * a)) * a + factor(dot, ops.sum(b * b)) * b
end

-- Tensors of the same shape, or lists of them.
local function check_pair(where, a, b)
  if type(a) == "table" and type(b) == "table" then
    if #a ~= #b then fail(where, ("a has %d tensors and b has %d"):format(#a, #b)) end
    for i = 1, #a do check_pair(where, a[i], b[i]) end
  elseif not ms.is_tensor(a) or not ms.is_tensor(b) then
    fail(where, ("tensors or lists of tensors are expected, got %s and %s"):format(describe(a), describe(b)))
  elseif tostring(a.shape) ~= tostring(b.shape) then
    fail(where, ("the tensors have shapes %s and %s: they must be the same"):format(tostring(a.shape), tostring(b.shape)))
  end
end

--- The adaptive sum of two updates, tensors or lists of tensors, one for each parameter:
--- (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b. a, b: the updates.
---     > ms.boost.adasum(ms.tensor { 1.0, 0.0 }, ms.tensor { 0.0, 2.0 }):tolist()[2] --> 2.0
---     > ms.boost.adasum(ms.tensor { 1.0, 0.0 }, ms.tensor { 1.0, 0.0 }):tolist()[1] --> 1.0
function M.adasum(a, b)
  check_pair("adasum", a, b)
  if ms.is_tensor(a) then return of_tensors(a, b) end
  local list = {}
  for i = 1, #a do list[i] = of_tensors(a[i], b[i]) end
  return list
end

local AdaSum = cells.layer(cells.Cell, "AdaSum", "device_number",
  [[The adaptive sum of the updates of device_number workers, 2, 4, 8 ... of them, in one process: cell { updates of the first,
updates of the second, ... } gives the sum, a list of tensors, one for each parameter.

It goes as it does between machines: at each level a worker gives half of what it holds to its partner and gets the other half of
the same, products of halves are summed in the group, and each works on its half alone; at the end the parts come together.

  > a = ms.boost.AdaSum(2) { { ms.tensor { 1.0, 0.0 } }, { ms.tensor { 0.0, 2.0 } } }
  > a[1]:tolist()[2] --> 2.0]])
M.AdaSum = AdaSum

function AdaSum:setup(a)
  local count = check.positive("AdaSum", "device_number", a.device_number)
  if count & (count - 1) ~= 0 then fail("AdaSum", ("device_number must be a power of two, got %d"):format(count)) end
  self.device_number = count
end

-- What the workers hold of a vector after joining groups of `width` workers: each its part, in order of the workers within the
-- group, as halves of halves. Gives the same for groups twice as wide.
local function join(held, width)
  local result, count = {}, #held
  for group = 0, count - 1, 2 * width do
    local dots, lefts, rights, pairs_of = {}, {}, {}, {}
    for i = 1, width do
      local left, right = held[group + i], held[group + width + i]
      local half = left.shape[1] // 2
      -- The left partner keeps the first half of both, the right one the second.
      local parts = { { left[{ ms.slice(0, half) }], right[{ ms.slice(0, half) }] },
        { left[{ ms.slice(half, nil) }], right[{ ms.slice(half, nil) }] } }
      for side = 1, 2 do
        local a, b = parts[side][1], parts[side][2]
        dots[#dots + 1], lefts[#lefts + 1], rights[#rights + 1] = ops.sum(a * b), ops.sum(a * a), ops.sum(b * b)
      end
      pairs_of[i] = parts
    end
    -- The sums over the group.
    local function total(parts) return ops.sum(ops.stack(parts, 0)) end
    local dot, left, right = total(dots), total(lefts), total(rights)
    for i = 1, width do
      for side = 1, 2 do
        local part = pairs_of[i][side]
        result[group + (side - 1) * width + i] = factor(dot, left) * part[1] + factor(dot, right) * part[2]
      end
    end
  end
  return result
end

-- What the workers hold, brought together: the last halves first.
local function together(held, width)
  while width > 1 do
    width = width // 2
    local joined = {}
    for i = 1, width do joined[i] = ops.concat({ held[i], held[i + width] }, 0) end
    held = joined
  end
  return held[1]
end

function AdaSum:construct(updates)
  local count = self.device_number
  if type(updates) ~= "table" or #updates ~= count then
    fail("AdaSum", ("a list of the updates of %d workers is expected, got %s"):format(count,
      type(updates) == "table" and #updates .. " of them" or describe(updates)))
  end
  for i = 2, count do check_pair("AdaSum", updates[1], updates[i]) end
  if count == 1 then return updates[1] end
  local sums = {}
  for p, first in ipairs(updates[1]) do
    local held = {}
    for i = 1, count do held[i] = ops.reshape(updates[i][p], { -1 }) end
    local width = 1
    while width < count do
      held = join(held, width)
      width = 2 * width
    end
    sums[p] = ops.reshape(together(held, count), first.shape)
  end
  return sums
end

return M
