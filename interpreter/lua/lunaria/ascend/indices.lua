-- Rows of a matrix by their numbers: the scalar unit reads a number and the address of a move follows from it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local kernel = require("lunaria.ascend.kernel").kernel

local M = {}

local most_rows = 2 ^ 24 -- scalar registers are float32

-- How many rows are in UB at a time, and how many numbers are read: whole units of 32 bytes of them.
local function batch_of(t, row_bytes) return math.min(64, (t.chip.ub - 1024) // row_bytes // 8 * 8) end

-- Loads numbers first to first + count - 1 (of int32) to UB, where the scalar unit finds them.
local function numbers(t, buffer, index, first, count)
  t:load(buffer, index:at(first), { count = count })
  t:sync("MTE2", "S", 3)
end

-- table (rows, n), index (count) -> (count, n)
local gather = kernel("gather", { outputs = function(x, index) return { shape = { index.shape[1], x.shape[2] }, dtype = x.dtype } end,
  blocks = function(_, index) return math.max(1, math.min(32, index.shape[1] // 8)) end }, function(t, x, index, y)
  local n, count = x.shape[2], index.shape[1]
  -- Blocks begin at whole units of 32 bytes of the numbers.
  local mine = ((count + t.blocks - 1) // t.blocks + 7) // 8 * 8
  local first, last = t.block * mine, math.min((t.block + 1) * mine, count)
  if first >= last then return end
  local batch = batch_of(t, 2 * n * x.width)
  local list = t:ub(ms.int32, batch)
  local rows = {}
  for slot = 0, 1 do
    rows[slot] = t:ub(x.dtype, batch * n)
    t:set_flag("MTE3", "MTE2", slot)
  end
  local slot = 0
  for at = first, last - 1, batch do
    local part = math.min(batch, last - at)
    numbers(t, list, index, at, part)
    t:wait_flag("MTE3", "MTE2", slot)
    for i = 0, part - 1 do
      t:scalar_load(0, list:at(i))
      t:load(rows[slot]:at(i * n), x, { count = n, register = 0, stride = n })
    end
    t:sync("MTE2", "MTE3", slot)
    t:store(y:at(at * n), rows[slot], { count = part * n })
    t:set_flag("MTE3", "MTE2", slot)
    slot = 1 - slot
  end
  for s = 0, 1 do t:wait_flag("MTE3", "MTE2", s) end
end)

-- x (rows, n), index (count), updates (count, n) -> (rows, n). Two updates may be of one row, so that a block takes some columns of
-- all updates, one after the other, rather than some updates.
local function scatter_kernel(name, adds)
  return kernel(name, { blocks = function(x) return math.min(32, x.shape[2] // 16) end }, function(t, x, index, updates, y)
    local rows, n, count = x.shape[1], x.shape[2], index.shape[1]
    local units = n // 16
    local mine = (units + t.blocks - 1) // t.blocks
    local first, last = t.block * mine * 16, math.min((t.block + 1) * mine, units) * 16
    if first >= last then return end
    local width = last - first
    local batch = batch_of(t, 3 * width * x.width)
    local list, row, sum = t:ub(ms.int32, batch), t:ub(x.dtype, width), t:ub(x.dtype, width)
    local copied = t:ub(x.dtype, batch * width)
    for at = 0, rows - 1, batch do
      local part = math.min(batch, rows - at)
      t:load(copied, x:at(at * n + first), { bursts = part, burst = width, src_stride = n })
      t:sync("MTE2", "MTE3", 0)
      t:store(y:at(at * n + first), copied, { bursts = part, burst = width, dst_stride = n })
      t:sync("MTE3", "MTE2", 0)
    end
    for at = 0, count - 1, batch do
      local part = math.min(batch, count - at)
      numbers(t, list, index, at, part)
      for i = 0, part - 1 do
        t:scalar_load(0, list:at(i))
        t:load(row, updates:at((at + i) * n + first), { count = width })
        if adds then
          t:load(sum, y:at(first), { count = width, register = 0, stride = n })
          t:sync("MTE2", "V", 1)
          t:vadd(row, row, sum)
          t:sync("V", "MTE3", 1)
        else
          t:sync("MTE2", "MTE3", 1)
        end
        t:store(y:at(first), row, { count = width, register = 0, stride = n })
        t:sync("MTE3", "MTE2", 1)
      end
    end
  end)
end
local kernels = { scatter_update = scatter_kernel("scatter_update", false), scatter_add = scatter_kernel("scatter_add", true) }

local function require_rows(name, x, index)
  local where = "ascend.kernels." .. name
  if not ms.is_tensor(x) or #x.shape ~= 2 or x.dtype ~= ms.float16 and x.dtype ~= ms.float32 or x.shape[2] % 16 ~= 0 then
    arguments.fail(where, ("a matrix of float16 or float32 whose rows are a multiple of 16 is expected, got %s"):format(
      arguments.describe(x)))
  end
  local most = 15360 // (x.dtype == ms.float32 and 2 or 1) // 2
  if x.shape[2] > most then arguments.fail(where, ("rows of %s have at most %d elements, got %d"):format(x.dtype, most, x.shape[2])) end
  if not ms.is_tensor(index) or #index.shape ~= 1 or index.dtype ~= ms.int32 or index.shape[1] < 1 then
    arguments.fail(where, ("the numbers of rows must be a vector of int32, got %s"):format(arguments.describe(index)))
  end
  if x.shape[1] > most_rows then arguments.fail(where, ("there are %d rows, and 2^24 can be counted"):format(x.shape[1])) end
end

--- The rows of x with these numbers.
function M.gather(x, index)
  require_rows("gather", x, index)
  return gather(x, index)
end

-- x with rows replaced by, or increased by, those of updates. Numbers may be there several times.
for name, run in pairs(kernels) do
  M[name] = function(x, index, updates)
    require_rows(name, x, index)
    if not ms.is_tensor(updates) or updates.dtype ~= x.dtype or #updates.shape ~= 2 or updates.shape[1] ~= index.shape[1]
      or updates.shape[2] ~= x.shape[2] then
      arguments.fail("ascend.kernels." .. name, ("updates must be (%d, %d) of %s, got %s"):format(index.shape[1], x.shape[2], x.dtype,
        arguments.describe(updates)))
    end
    return run(x, index, updates)
  end
end

return M
