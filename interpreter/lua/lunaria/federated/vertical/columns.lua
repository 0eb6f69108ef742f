-- Columns of vertical parties: checks, and quantiles.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops, f64 = ms.ops, ms.float64
local fail, describe = arguments.fail, arguments.describe
local columns = {}

--- x as float64 (n, columns), finite; n: how many rows it must have, nil for any number. may_lack: nil may stand for no columns.
function columns.checked(where, x, n, may_lack)
  if x == nil and may_lack then return nil end
  if not ms.is_tensor(x) or x.ndim ~= 2 or x.size == 0 then
    fail(where, "columns must be a tensor (rows, columns), got " .. describe(x))
  end
  if n and x.shape[1] ~= n then fail(where, ("there are %d rows of columns and %d labels"):format(x.shape[1], n)) end
  x = x:astype(f64)
  if not ops.all(ops.isfinite(x)):item() then fail(where, "columns hold nan or infinity", "fill what is missing first") end
  return x
end

--- The leader's labels as float64 (n,). is_binary: they must be 0 or 1; hint: what takes others.
function columns.labels(where, y, is_binary, hint)
  if not ms.is_tensor(y) or y.size == 0 then fail(where, "the leader needs labels, a tensor (n,), got " .. describe(y)) end
  y = y:reshape { y.size }:astype(f64)
  if not ops.all(ops.isfinite(y)):item() then fail(where, "labels hold nan or infinity") end
  if is_binary and not ops.all(ops.logical_or(ops.equal(y, 0), ops.equal(y, 1))):item() then fail(where, "labels must be 0 or 1", hint) end
  return y
end

--- Upper edges of at most `bins` intervals with about as many of the column's values each: increasing values of the column, the last one
--- infinite.
function columns.quantiles(column, bins)
  local sorted = (ops.sort(column))
  local n = sorted.shape[1]
  local ranks = {}
  for b = 1, bins - 1 do ranks[b] = math.min(n - 1, b * n // bins) end
  local candidates = sorted[ms.tensor(ranks, ms.int64)]:tolist()
  local greatest, edges = sorted[n - 1]:item(), {}
  for _, value in ipairs(candidates) do
    -- Nothing lies above the greatest value.
    if value < greatest and value ~= edges[#edges] then edges[#edges + 1] = value end
  end
  edges[#edges + 1] = math.huge
  return ms.tensor(edges, f64)
end

return columns
