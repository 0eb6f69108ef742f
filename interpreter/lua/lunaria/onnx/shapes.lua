-- ONNX operators that change shapes, and that make tensors of shapes.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops
local list_reader, number = define.list_reader, define.number

local function filled(wanted, x)
  local shape = {}
  for i, n in ipairs(wanted) do shape[i] = n == 0 and x.shape[i] or n end
  return shape
end

define.define("Reshape", "allowzero:i=0 shape:ints consumed_inputs:ints", 1, 2, function(a, node)
  local keep = a.allowzero ~= 0
  local read = node.inputs == 2 and list_reader(node, 2) or function() return a.shape end
  local known = node.inputs == 1 and a.shape or define.known_integers(node, 2)
  local zero = true
  if known then
    zero = false
    for _, n in ipairs(known) do zero = zero or n == 0 end
  end
  if known and (keep or not zero) then return function(x) return ops.reshape(x, known) end end
  return function(x, shape)
    local wanted = read(shape)
    return ops.reshape(x, keep and wanted or filled(wanted, x))
  end
end)

define.define("Transpose", "perm:ints", 1, 1, function(a)
  local perm = a.perm
  return function(x)
    if perm then return ops.transpose(x, perm) end
    local back = {}
    for i = 1, x.ndim do back[i] = x.ndim - i end
    return ops.transpose(x, back)
  end
end)

define.define("Flatten", "axis:i=1", 1, 1, function(a)
  local axis = a.axis
  return function(x)
    local first, second, from = 1, 1, define.axis(x, axis)
    for i = 1, x.ndim do
      if i <= from then first = first * x.shape[i] else second = second * x.shape[i] end
    end
    return ops.reshape(x, { first, second })
  end
end)

define.define("Squeeze", "axes:ints", 1, 2, function(a, node)
  local read = node.inputs == 2 and list_reader(node, 2) or function() return a.axes end
  return function(x, axes)
    axes = read(axes)
    if not axes then return ops.squeeze(x) end
    if #axes == 0 then return ops.identity(x) end
    return ops.squeeze(x, axes)
  end
end)

define.define("Unsqueeze", "axes:ints", 1, 2, function(a, node)
  local read = node.inputs == 2 and list_reader(node, 2) or function() return a.axes end
  if node.inputs == 1 and not a.axes then node.fail "axes are missing" end
  return function(x, axes)
    local rank, sorted = x.ndim, {}
    for i, axis in ipairs(read(axes)) do sorted[i] = axis end
    for i, axis in ipairs(sorted) do sorted[i] = axis < 0 and axis + rank + #sorted or axis end
    table.sort(sorted)
    for _, axis in ipairs(sorted) do x = ops.expand_dims(x, axis) end
    return x
  end
end)

define.define("Concat", "axis:i=1", 1, 1000, function(a)
  local axis = a.axis
  return function(...) return ops.concat({ ... }, axis) end
end)

define.define("Split", "axis:i=0 split:ints num_outputs:i", 1, 2, function(a, node)
  local axis, parts = a.axis, a.num_outputs or node.outputs
  local read = node.given[2] and list_reader(node, 2) or function() return a.split end
  return function(x, split)
    local lengths = read(split)
    if not lengths then
      local length = x.shape[define.axis(x, axis) + 1]
      if parts < 1 then node.fail(("num_outputs must be positive, got %d"):format(parts)) end
      define.listed(parts)
      local each = (length + parts - 1) // parts
      lengths = {}
      for i = 1, parts do lengths[i] = math.max(0, math.min(each, length - (i - 1) * each)) end
    end
    return ops.split(x, lengths, axis)
  end
end)

-- Positions beyond these are at the edge of any axis.
local edge = (1 << 31) - 1

define.define("Slice", "starts:ints ends:ints axes:ints", 1, 5, function(a, node)
  local old = node.version < 10
  local starts, ends = list_reader(node, 2), list_reader(node, 3)
  local axes, steps = list_reader(node, 4), list_reader(node, 5)
  if old and not (a.starts and a.ends) then node.fail "starts and ends are missing" end
  return function(x, s, e, on, by)
    s, e = old and a.starts or starts(s), old and a.ends or ends(e)
    on, by = old and a.axes or axes(on), not old and steps(by) or nil
    local first, last, step = {}, {}, {}
    for i = 1, x.ndim do first[i], last[i], step[i] = 0, edge, 1 end
    for i = 1, #s do
      local k = define.axis(x, on and on[i] or i - 1) + 1
      step[k] = by and by[i] or 1
      first[k] = math.max(math.min(s[i], edge), -edge)
      last[k] = math.max(math.min(e[i], edge), -edge)
    end
    if x.ndim == 0 then return x end
    return ops.strided_slice(x, first, last, step)
  end
end)

local function broadcast_shape(x, wanted)
  local shape = {}
  local rank = math.max(x.ndim, #wanted)
  for i = 1, rank do
    local n, m = x.shape[i - rank + x.ndim], wanted[i - rank + #wanted]
    if i - rank + x.ndim < 1 then n = 1 end
    if i - rank + #wanted < 1 then m = 1 end
    shape[i] = n == 1 and m or n
  end
  return shape
end

define.define("Expand", "", 2, 2, function(_, node)
  local read = list_reader(node, 2)
  return function(x, shape) return ops.broadcast_to(x, broadcast_shape(x, read(shape))) end
end)

define.define("Tile", "", 2, 3, function(_, node)
  local read = list_reader(node, 2)
  return function(x, repeats) return ops.tile(x, read(repeats)) end
end)

define.define("Shape", "start:i=0 end:i", 1, 1, function(a)
  local from, to = a.start, a["end"]
  return function(x)
    local list, rank = {}, x.ndim
    local first = math.max(0, from > rank and rank or from < 0 and from + rank or from)
    local last = math.min(rank, not to and rank or to < 0 and to + rank or to)
    for i = first + 1, last do list[#list + 1] = x.shape[i] end
    return ms.tensor(list, ms.int64)
  end
end)

define.plain("Size", 1, function(x) return ms.tensor(x.size, ms.int64) end)

define.define("Constant", "value:t value_float:f value_floats:floats value_int:i value_ints:ints value_string:s value_strings:strings",
  0, 0, function(a, node)
    local value = a.value
    if not value and a.value_float then value = ms.tensor(a.value_float, ms.float32) end
    if not value and a.value_floats then value = ms.tensor(a.value_floats, ms.float32) end
    if not value and a.value_int then value = ms.tensor(a.value_int, ms.int64) end
    if not value and a.value_ints then value = ms.tensor(a.value_ints, ms.int64) end
    if not value then node.fail "has no value that is a tensor" end
    return function() return value end
  end)

define.define("ConstantOfShape", "value:t", 1, 1, function(a, node)
  local read = list_reader(node, 1)
  local value = a.value and number(a.value) or 0.0
  local dtype = a.value and a.value.dtype or ms.float32
  return function(shape) return ops.full(read(shape), value, dtype) end
end)

define.define("Range", "stash_type:i=1", 3, 3, function()
  return function(start, limit, delta)
    local first, last, step = number(start), number(limit), number(delta)
    local count = math.max(0, math.ceil((last - first) / step))
    if define.is_float(start.dtype) then
      return ops.cast(ops.add(ops.mul(ops.arange(count, nil, 1, ms.float64), step), first), start.dtype)
    end
    return ops.add(ops.mul(ops.arange(count, nil, 1, start.dtype), step), first)
  end
end)

-- Where column - row = k.
local function diagonal(rows, columns, k)
  local i = ops.reshape(ops.arange(rows, nil, 1, ms.int64), { rows, 1 })
  local j = ops.reshape(ops.arange(columns, nil, 1, ms.int64), { 1, columns })
  return ops.equal(ops.sub(j, i), k)
end

define.define("EyeLike", "dtype:i k:i=0", 1, 1, function(a, node)
  local dtype = a.dtype and define.dtype(node, a.dtype)
  return function(x) return ops.cast(diagonal(x.shape[1], x.shape[2], a.k), dtype or x.dtype) end
end)

define.define("OneHot", "axis:i=-1", 3, 3, function(a)
  local axis = a.axis
  return function(indices, depth, values)
    local n = math.tointeger(number(depth)) or math.floor(number(depth))
    local at = ops.cast(indices, ms.int64)
    at = ops.where(ops.less(at, 0), ops.add(at, n), at)
    local where = axis < 0 and axis + indices.ndim + 1 or axis
    local shape = {}
    for i = 0, indices.ndim do shape[i + 1] = i == where and n or 1 end
    local hot = ops.equal(ops.expand_dims(at, where), ops.reshape(ops.arange(n, nil, 1, ms.int64), shape))
    return ops.where(hot, values[1], values[0])
  end
end)

define.define("Trilu", "upper:i=1", 1, 2, function(a)
  local f = a.upper ~= 0 and ops.triu or ops.tril
  return function(x, k)
    if x.size == 0 then return ops.identity(x) end
    return f(x, k and number(k) or 0)
  end
end)

local modes = { constant = "constant", reflect = "reflect", edge = "edge", wrap = "circular" }

-- The positions that an axis of n elements has after `before` and `after` more.
local function positions(mode, n, before, after)
  local list = {}
  define.listed(0.0 + n + before + after)
  for i = -before, n + after - 1 do
    local at
    if mode == "edge" then
      at = math.max(0, math.min(n - 1, i))
    elseif mode == "wrap" then
      at = i % n
    else
      local period = math.max(1, 2 * n - 2)
      at = i % period
      at = at < n and at or period - at
    end
    list[#list + 1] = at
  end
  return list
end

define.define("Pad", "mode:s=constant pads:ints paddings:ints value:f=0", 1, 4, function(a, node)
  local mode = a.mode
  if not modes[mode] then node.fail(("the mode '%s' is not known"):format(mode)) end
  local old = node.version < 11
  local read, axes_of = list_reader(node, 2), list_reader(node, 4)
  return function(x, pads, value, axes)
    local list = old and (a.pads or a.paddings) or read(pads)
    axes = axes_of(axes)
    local before, after = {}, {}
    for i = 1, x.ndim do before[i], after[i] = 0, 0 end
    local count = #list // 2
    for i = 1, count do
      local k = define.axis(x, axes and axes[i] or i - 1) + 1
      before[k], after[k] = list[i], list[i + count]
    end
    if mode == "constant" then
      local fill = old and a.value or value and number(value) or 0
      local flat = {}
      for k = x.ndim, 1, -1 do
        flat[#flat + 1] = before[k]
        flat[#flat + 1] = after[k]
      end
      if x.dtype == ms.bool_ then
        return ops.cast(ops.pad(ops.cast(x, ms.uint8), flat, "constant", fill == true and 1 or fill == false and 0 or fill), ms.bool_)
      end
      return ops.pad(x, flat, "constant", fill)
    end
    for k = 1, x.ndim do
      if before[k] ~= 0 or after[k] ~= 0 then
        x = ops.index_select(x, k - 1, ms.tensor(positions(mode, x.shape[k], before[k], after[k]), ms.int64))
      end
    end
    return x
  end
end)

define.define("CenterCropPad", "axes:ints", 2, 2, function(a, node)
  local read = list_reader(node, 2)
  return function(x, shape)
    local wanted = read(shape)
    for i, n in ipairs(wanted) do
      local axis = define.axis(x, a.axes and a.axes[i] or i - 1)
      local have = x.shape[axis + 1]
      if n < have then
        x = ops.narrow(x, axis, (have - n) // 2, n)
      elseif n > have then
        local flat = {}
        for _ = 1, 2 * (x.ndim - axis - 1) do flat[#flat + 1] = 0 end
        flat[#flat + 1] = (n - have) // 2
        flat[#flat + 1] = n - have - (n - have) // 2
        x = ops.pad(x, flat, "constant", 0)
      end
    end
    return x
  end
end)

define.define("DepthToSpace", "blocksize:i! mode:s=DCR", 1, 1, function(a, node)
  local b, column = a.blocksize, a.mode == "CRD"
  if not column and a.mode ~= "DCR" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  return function(x)
    local n, c, h, w = x.shape[1], x.shape[2] // (b * b), x.shape[3], x.shape[4]
    local y
    if column then
      y = ops.transpose(ops.reshape(x, { n, c, b, b, h, w }), { 0, 1, 4, 2, 5, 3 })
    else
      y = ops.transpose(ops.reshape(x, { n, b, b, c, h, w }), { 0, 3, 4, 1, 5, 2 })
    end
    return ops.reshape(y, { n, c, h * b, w * b })
  end
end)

define.define("SpaceToDepth", "blocksize:i! mode:s=DCR", 1, 1, function(a, node)
  local b, column = a.blocksize, a.mode == "CRD"
  if not column and a.mode ~= "DCR" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  return function(x)
    local n, c, h, w = x.shape[1], x.shape[2], x.shape[3] // b, x.shape[4] // b
    local y = ops.reshape(x, { n, c, h, b, w, b })
    y = ops.transpose(y, column and { 0, 1, 3, 5, 2, 4 } or { 0, 3, 5, 1, 2, 4 })
    return ops.reshape(y, { n, c * b * b, h, w })
  end
end)
