-- ONNX operators that reduce along axes, run along one, or normalise over one.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- What the reduction of no elements gives.
local function least(dtype, sign)
  if define.is_float(dtype) then return sign * math.huge end
  if dtype == ms.bool_ then return sign > 0 end
  local bits = tonumber(tostring(dtype):match "%d+")
  if tostring(dtype):find "^U" then return sign < 0 and 0 or bits == 64 and -1 or (1 << bits) - 1 end
  return sign > 0 and (1 << bits - 1) - 1 or -(1 << bits - 1)
end

local function empty_result(x, axes, keep, value)
  local gone, shape = {}, {}
  for i = 0, x.ndim - 1 do gone[i] = not axes end
  for _, axis in ipairs(axes or {}) do gone[define.axis(x, axis)] = true end
  for i = 0, x.ndim - 1 do
    if not gone[i] then shape[#shape + 1] = x.shape[i + 1] elseif keep then shape[#shape + 1] = 1 end
  end
  return ops.full(shape, value, x.dtype)
end

-- f(x, axes, keep); `empty` is the result of no elements, where the operator cannot tell.
local function reduction(name, f, empty)
  define.define(name, "axes:ints keepdims:i=1 noop_with_empty_axes:i=0", 1, 2, function(a, node)
    local keep, nothing = a.keepdims ~= 0, a.noop_with_empty_axes ~= 0
    local read = node.given[2] and define.list_reader(node, 2) or function() return a.axes end
    return function(x, given)
      local axes = read(given)
      if axes and #axes == 0 then axes = nil end
      if not axes and nothing then return f(x, {}, true) end
      if not axes then
        axes = {}
        for i = 1, x.ndim do axes[i] = i - 1 end
      end
      if empty and x.size == 0 then return empty_result(x, axes, keep, empty(x.dtype)) end
      return f(x, axes, keep)
    end
  end)
end

-- Sums of integers keep their dtype, and are taken in it.
local function same(f)
  return function(x, axes, keep)
    if #axes == 0 then return ops.identity(x) end
    local y = f(x, axes, keep)
    return y.dtype == x.dtype and y or ops.cast(y, x.dtype)
  end
end
local sum = same(function(x, axes, keep) return ops.reduce_sum(x, axes, keep) end)

reduction("ReduceSum", sum)
reduction("ReduceMean", same(function(x, axes, keep)
  if define.is_float(x.dtype) then return ops.reduce_mean(x, axes, keep) end
  return ops.reduce_mean(ops.cast(x, ms.float64), axes, keep)
end))
reduction("ReduceProd", same(function(x, axes, keep) return ops.prod(x, axes, keep) end))
reduction("ReduceMax", same(function(x, axes, keep) return ops.amax(x, axes, keep) end), function(t) return least(t, -1) end)
reduction("ReduceMin", same(function(x, axes, keep) return ops.amin(x, axes, keep) end), function(t) return least(t, 1) end)
reduction("ReduceL1", function(x, axes, keep) return sum(ops.abs(x), axes, keep) end)
reduction("ReduceSumSquare", function(x, axes, keep) return sum(ops.mul(x, x), axes, keep) end)
reduction("ReduceL2", function(x, axes, keep)
  local root = ops.sqrt(sum(ops.mul(x, x), axes, keep))
  return root.dtype == x.dtype and root or ops.cast(root, x.dtype)
end)
reduction("ReduceLogSum", function(x, axes, keep) return ops.log(sum(x, axes, keep)) end)
reduction("ReduceLogSumExp", function(x, axes, keep)
  if #axes == 0 then return ops.log(ops.exp(x)) end
  return ops.logsumexp(x, axes, keep)
end, function() return -math.huge end)

define.define("CumSum", "exclusive:i=0 reverse:i=0", 2, 2, function(a)
  local options = { exclusive = a.exclusive ~= 0, reverse = a.reverse ~= 0 }
  return function(x, axis) return ops.cumsum(x, define.number(axis), x.dtype, options) end
end)

define.define("CumProd", "exclusive:i=0 reverse:i=0", 2, 2, function(a)
  local exclusive, reverse = a.exclusive ~= 0, a.reverse ~= 0
  return function(x, at)
    local axis = define.axis(x, define.number(at))
    if reverse then x = ops.flip(x, { axis }) end
    if exclusive and x.shape[axis + 1] > 0 then
      local shape = define.sizes(x)
      shape[axis + 1] = 1
      x = ops.concat({ ops.ones(shape, x.dtype), ops.narrow(x, axis, 0, x.shape[axis + 1] - 1) }, axis)
    end
    local y = ops.cumprod(x, axis, x.dtype)
    return reverse and ops.flip(y, { axis }) or y
  end
end)

-- Before version 13 all axes from the given one on are one.
local function along(name, f)
  define.define(name, "axis:i", 1, 1, function(a, node)
    if node.version >= 13 then
      local axis = a.axis or -1
      return function(x) return f(x, axis) end
    end
    local from = a.axis or 1
    return function(x)
      local rows = 1
      for i = 1, define.axis(x, from) do rows = rows * x.shape[i] end
      return ops.reshape(f(ops.reshape(x, { rows, -1 }), 1), define.sizes(x))
    end
  end)
end
along("Softmax", function(x, axis)
  if x.dtype ~= ms.float16 then return ops.softmax(x, axis) end
  -- Rounded at each step, as the operator's definition by others is.
  local e = ops.exp(x - ops.amax(x, { axis }, true))
  return e / ops.reduce_sum(e, { axis }, true)
end)
along("LogSoftmax", function(x, axis) return ops.log_softmax(x, axis) end)
along("Hardmax", function(x, axis)
  local on = define.axis(x, axis)
  local shape = {}
  for i = 0, x.ndim - 1 do shape[i + 1] = i == on and x.shape[on + 1] or 1 end
  local first = ops.cast(ops.argmax(x, on, true), ms.int64)
  return ops.cast(ops.equal(first, ops.reshape(ops.arange(x.shape[on + 1], nil, 1, ms.int64), shape)), x.dtype)
end)

define.define("LpNormalization", "axis:i=-1 p:i=2", 1, 1, function(a, node)
  if a.p ~= 1 and a.p ~= 2 then node.fail "p must be 1 or 2" end
  return function(x)
    local size
    if a.p == 1 then
      size = ops.reduce_sum(ops.abs(x), { a.axis }, true)
    else
      size = ops.sqrt(ops.reduce_sum(ops.mul(x, x), { a.axis }, true))
    end
    -- Zeros stay zeros.
    return ops.div(x, ops.where(ops.equal(size, 0), ops.ones_like(size), size))
  end
end)
