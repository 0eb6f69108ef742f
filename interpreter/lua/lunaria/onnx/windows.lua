-- ONNX operators with windows: convolution and pooling.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops
local M = {}

local function filled(list, rank, value)
  if list then return list end
  local made = {}
  for i = 1, rank do made[i] = value end
  return made
end

local auto_pads = { NOTSET = true, VALID = true, SAME_UPPER = true, SAME_LOWER = true }
local function check_pad(a, node)
  if not auto_pads[a.auto_pad] then node.fail(("auto_pad '%s' is not known"):format(a.auto_pad)) end
end

-- What is padded before and after each axis.
local function padding(a, x, kernel, strides, dilations)
  local rank = #kernel
  if a.auto_pad == "NOTSET" then return filled(a.pads, 2 * rank, 0) end
  local pads = {}
  for i = 1, rank do
    pads[i], pads[i + rank] = 0, 0
    if a.auto_pad ~= "VALID" then
      local n = x.shape[i + 2]
      local out = (n + strides[i] - 1) // strides[i]
      local all = math.max(0, (out - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - n)
      local less = all // 2
      pads[i] = a.auto_pad == "SAME_UPPER" and less or all - less
      pads[i + rank] = all - pads[i]
    end
  end
  return pads
end

-- ops.pad's list: the last axis first.
local function pad_list(pads, rank)
  local flat = {}
  for i = rank, 1, -1 do
    flat[#flat + 1] = pads[i]
    flat[#flat + 1] = pads[i + rank]
  end
  return flat
end

local function is_symmetric(pads, rank)
  for i = 1, rank do
    if pads[i] ~= pads[i + rank] or pads[i] < 0 then return false end
  end
  return true
end

local function is_zero(pads)
  for _, n in ipairs(pads) do
    if n ~= 0 then return false end
  end
  return true
end

local function spatial(x, w)
  local kernel = {}
  for i = 3, w.ndim do kernel[i - 2] = w.shape[i] end
  return kernel, x.ndim - 2
end

local convolutions = { ops.conv1d, ops.conv2d, ops.conv3d }

--- The function for a node that convolves: of the input, the kernels and the bias.
function M.convolution(a, node)
  check_pad(a, node)
  local fixed
  if a.auto_pad == "NOTSET" and (not a.pads or is_symmetric(a.pads, #a.pads // 2)) then
    fixed = a.pads and { table.unpack(a.pads, 1, #a.pads // 2) } or 0
  end
  return function(x, w, bias)
    local rank = x.ndim - 2
    local conv = convolutions[rank]
    if not conv then error(("Conv: inputs of %d axes are not supported"):format(x.ndim), 0) end
    local strides, dilations = filled(a.strides, rank, 1), filled(a.dilations, rank, 1)
    if fixed then return conv(x, w, bias, strides, "pad", fixed, dilations, a.group) end
    local pads = padding(a, x, (spatial(x, w)), strides, dilations)
    local sides, is_cut = {}, false
    for i = 1, rank do
      sides[2 * i - 1], sides[2 * i] = pads[i], pads[i + rank]
      is_cut = is_cut or pads[i] < 0 or pads[i + rank] < 0
    end
    if not is_cut then return conv(x, w, bias, strides, "pad", sides, dilations, a.group) end
    return conv(ops.pad(x, pad_list(pads, rank), "constant", 0), w, bias, strides, "valid", 0, dilations, a.group)
  end
end

local shape = "auto_pad:s=NOTSET dilations:ints group:i=1 kernel_shape:ints pads:ints strides:ints"
define.define("Conv", shape, 2, 3, function(a, node)
  local conv = M.convolution(a, node)
  return function(x, w, bias) return conv(x, w, bias) end
end)

local transposed = { ops.conv_transpose1d, ops.conv_transpose2d, ops.conv_transpose3d }

define.define("ConvTranspose", shape .. " output_padding:ints output_shape:ints", 2, 3, function(a, node)
  check_pad(a, node)
  return function(x, w, bias)
    local kernel, rank = spatial(x, w)
    local conv = transposed[rank]
    if not conv then error(("ConvTranspose: inputs of %d axes are not supported"):format(x.ndim), 0) end
    local strides, dilations = filled(a.strides, rank, 1), filled(a.dilations, rank, 1)
    local more = filled(a.output_padding, rank, 0)
    local pads = filled(a.auto_pad == "NOTSET" and not a.output_shape and a.pads or nil, 2 * rank, 0)
    if a.output_shape or a.auto_pad == "SAME_UPPER" or a.auto_pad == "SAME_LOWER" then
      local wanted = a.output_shape or {}
      for i = 1, rank do
        local out = wanted[#wanted - rank + i] or x.shape[i + 2] * strides[i]
        local all = (x.shape[i + 2] - 1) * strides[i] + more[i] + (kernel[i] - 1) * dilations[i] + 1 - out
        local half = all // 2
        pads[i] = a.auto_pad == "SAME_UPPER" and half or all - half
        pads[i + rank] = all - pads[i]
      end
    end
    if is_symmetric(pads, rank) and is_zero(more) then
      return conv(x, w, bias, strides, { table.unpack(pads, 1, rank) }, 0, a.group, dilations)
    end
    local y = conv(x, w, nil, strides, 0, 0, a.group, dilations)
    local cut = {}
    for i = 1, rank do cut[i], cut[i + rank] = -pads[i], more[i] - pads[i + rank] end
    y = ops.pad(y, pad_list(cut, rank), "constant", 0)
    return bias and ops.bias_add(y, bias) or y
  end
end)

-- How a pool looks at x: what is padded (with more at the end where the last window goes over it), and the sizes of the
-- result.
local function pool_plan(a, x)
  local kernel = a.kernel_shape
  local rank = #kernel
  local strides, dilations = filled(a.strides, rank, 1), filled(a.dilations, rank, 1)
  local pads = padding(a, x, kernel, strides, dilations)
  local wide, out = {}, {}
  for i = 1, rank do
    local span = (kernel[i] - 1) * dilations[i] + 1
    local room = x.shape[i + 2] + pads[i] + pads[i + rank] - span
    out[i] = room // strides[i] + 1
    if a.ceil_mode ~= 0 and room % strides[i] ~= 0 then
      -- A window that begins behind the elements does not count.
      if out[i] * strides[i] < x.shape[i + 2] + pads[i] then out[i] = out[i] + 1 end
    end
    wide[i] = pads[i]
    wide[i + rank] = math.max(pads[i + rank], (out[i] - 1) * strides[i] + span - x.shape[i + 2] - pads[i])
  end
  return { kernel = kernel, rank = rank, strides = strides, dilations = dilations, pads = pads, wide = wide, out = out }
end

-- What no window may take for its largest element.
local lowest = { [ms.int8] = -128, [ms.uint8] = 0, [ms.int16] = -32768, [ms.int32] = -(1 << 31), [ms.int64] = math.mininteger }

local max_pools = { ops.max_pool1d, ops.max_pool2d, ops.max_pool3d }
local pool = "auto_pad:s=NOTSET ceil_mode:i=0 dilations:ints kernel_shape:ints! pads:ints strides:ints"

-- The results are those of windows that fit, with some left over at the end.
local function trimmed(y, out)
  for i, n in ipairs(out) do
    if y.shape[i + 2] ~= n then y = ops.narrow(y, i + 1, 0, n) end
  end
  return y
end

-- Positions within the padded planes as positions in the whole tensor.
local function positions(where, x, plan, column)
  local rank, sizes = plan.rank, {}
  for i = 1, rank do sizes[i] = x.shape[i + 2] + plan.wide[i] + plan.wide[i + rank] end
  local index, factor, rest = nil, 1, ops.cast(where, ms.int64)
  local coordinates = {}
  for i = rank, 1, -1 do
    coordinates[i] = ops.sub(ops.remainder(rest, sizes[i]), plan.wide[i])
    rest = ops.floor_divide(rest, sizes[i])
  end
  for step = 1, rank do
    local i = column and step or rank + 1 - step
    local part = ops.mul(coordinates[i], factor)
    index = index and ops.add(index, part) or part
    factor = factor * x.shape[i + 2]
  end
  local planes = ops.mul(ops.arange(x.shape[1] * x.shape[2], nil, 1, ms.int64), factor)
  local shape_of = { x.shape[1], x.shape[2] }
  for i = 1, rank do shape_of[i + 2] = 1 end
  return ops.add(index, ops.reshape(planes, shape_of))
end

define.define("MaxPool", pool .. " storage_order:i=0", 1, 1, function(a, node)
  check_pad(a, node)
  local column = a.storage_order ~= 0
  local simple = a.auto_pad == "NOTSET" and a.ceil_mode == 0 and not node.wanted[2]
    and (not a.pads or is_symmetric(a.pads, #a.kernel_shape))
  local rank = #a.kernel_shape
  local f = max_pools[rank]
  if not f then node.fail(("windows of %d axes are not supported"):format(rank)) end
  local strides, dilations = filled(a.strides, rank, 1), filled(a.dilations, rank, 1)
  if simple then
    local pads = a.pads and { table.unpack(a.pads, 1, rank) } or 0
    for i = 1, rank do simple = simple and (pads == 0 or 2 * pads[i] <= a.kernel_shape[i]) end
    if simple then return function(x) return f(x, a.kernel_shape, strides, pads, dilations) end end
  end
  return function(x)
    local plan = pool_plan(a, x)
    local padded = x
    if not is_zero(plan.wide) then
      padded = ops.pad(x, pad_list(plan.wide, rank), "constant", lowest[x.dtype] or -math.huge)
    end
    if not node.wanted[2] then return trimmed(f(padded, plan.kernel, strides, 0, dilations), plan.out) end
    local y, where = f(padded, plan.kernel, strides, 0, dilations, true)
    return trimmed(y, plan.out), positions(trimmed(where, plan.out), x, plan, column)
  end
end)

-- The sums over windows, by a convolution with ones over each plane.
local function window_sums(x, plan, pads)
  local rank = plan.rank
  local planes, shape_of, ones = { x.shape[1] * x.shape[2], 1 }, {}, { 1, 1 }
  for i = 1, rank do planes[i + 2], ones[i + 2] = x.shape[i + 2], plan.kernel[i] end
  local padded = ops.reshape(x, planes)
  if not is_zero(pads) then padded = ops.pad(padded, pad_list(pads, rank), "constant", 0) end
  local y = convolutions[rank](padded, ops.ones(ones, x.dtype), nil, plan.strides, "valid", 0, plan.dilations, 1)
  y = trimmed(y, plan.out)
  shape_of[1], shape_of[2] = x.shape[1], x.shape[2]
  for i = 1, rank do shape_of[i + 2] = y.shape[i + 2] end
  return ops.reshape(y, shape_of)
end

-- How many elements each window covers; the padding that the node asks for counts where `all` says so.
local function window_counts(x, plan, all)
  local one, count = {}, { 1, 1 }
  for i = 1, plan.rank do
    local list = {}
    define.listed(plan.out[i], plan.kernel[i])
    local from = all and -plan.pads[i] or 0
    local to = x.shape[i + 2] + (all and plan.pads[i + plan.rank] or 0)
    for o = 0, plan.out[i] - 1 do
      local n = 0
      for k = 0, plan.kernel[i] - 1 do
        local at = o * plan.strides[i] - plan.pads[i] + k * plan.dilations[i]
        if at >= from and at < to then n = n + 1 end
      end
      list[o + 1] = n
    end
    local shape_of = {}
    for k = 1, plan.rank do shape_of[k] = k == i and #list or 1 end
    one[i] = ops.reshape(ms.tensor(list, ms.float32), shape_of)
  end
  local product = one[1]
  for i = 2, plan.rank do product = product * one[i] end
  for i = 1, plan.rank do count[i + 2] = plan.out[i] end
  return ops.cast(ops.reshape(product, count), x.dtype)
end

local avg_pools = { ops.avg_pool1d, ops.avg_pool2d, ops.avg_pool3d }

define.define("AveragePool", pool .. " count_include_pad:i=0", 1, 1, function(a, node)
  check_pad(a, node)
  local rank, all = #a.kernel_shape, a.count_include_pad ~= 0
  local f = avg_pools[rank]
  if not f then node.fail(("windows of %d axes are not supported"):format(rank)) end
  local dilated = a.dilations and false
  for _, d in ipairs(a.dilations or {}) do dilated = dilated or d ~= 1 end
  local simple = a.auto_pad == "NOTSET" and a.ceil_mode == 0 and not dilated
    and (not a.pads or is_symmetric(a.pads, rank))
  for i = 1, a.pads and rank or 0 do simple = simple and 2 * a.pads[i] <= a.kernel_shape[i] end
  if simple then
    local pads, strides = a.pads and { table.unpack(a.pads, 1, rank) } or 0, filled(a.strides, rank, 1)
    return function(x) return f(x, a.kernel_shape, strides, pads, false, all) end
  end
  return function(x)
    return define.widened(x, function(w)
      local plan = pool_plan(a, w)
      return window_sums(w, plan, plan.wide) / window_counts(w, plan, all)
    end)
  end
end)

define.define("LpPool", pool .. " p:i=2", 1, 1, function(a, node)
  check_pad(a, node)
  local p = a.p
  if not convolutions[#a.kernel_shape] then node.fail(("windows of %d axes are not supported"):format(#a.kernel_shape)) end
  return function(x)
    local plan = pool_plan(a, x)
    local sums = window_sums(ops.pow(ops.abs(x), p), plan, plan.wide)
    return ops.pow(sums, 1.0 / p)
  end
end)

local function places(x)
  local list = {}
  for i = 2, x.ndim - 1 do list[#list + 1] = i end
  return list
end
define.plain("GlobalAveragePool", 1, function(x) return ops.reduce_mean(x, places(x), true) end)
define.plain("GlobalMaxPool", 1, function(x) return ops.amax(x, places(x), true) end)
define.define("GlobalLpPool", "p:i=2", 1, 1, function(a)
  return function(x) return ops.pow(ops.reduce_sum(ops.pow(ops.abs(x), a.p), places(x), true), 1.0 / a.p) end
end)

define.define("MaxUnpool", "kernel_shape:ints! pads:ints strides:ints", 2, 3, function(a)
  local rank = #a.kernel_shape
  local strides, pads = filled(a.strides, rank, 1), filled(a.pads, 2 * rank, 0)
  return function(x, indices, output_shape)
    local natural = { x.shape[1], x.shape[2] }
    for i = 1, rank do
      natural[i + 2] = (x.shape[i + 2] - 1) * strides[i] - pads[i] - pads[i + rank] + a.kernel_shape[i]
    end
    local size = 1
    for _, n in ipairs(natural) do size = size * n end
    local flat = ops.reshape(indices, { -1, 1 })
    local y = ops.reshape(ops.scatter_nd(flat, ops.reshape(x, { -1 }), { size }), natural)
    if not output_shape then return y end
    local wanted, more = define.integers(output_shape), {}
    for i = 1, rank do more[i], more[i + rank] = 0, wanted[i + 2] - natural[i + 2] end
    return ops.pad(y, pad_list(more, rank), "constant", 0)
  end
end)

define.define("Col2Im", "dilations:ints pads:ints strides:ints", 3, 3, function(a, node)
  local image_of, block_of = define.list_reader(node, 2), define.list_reader(node, 3)
  return function(x, image, block)
    image, block = image_of(image), block_of(block)
    local rank = #image
    local strides, dilations = filled(a.strides, rank, 1), filled(a.dilations, rank, 1)
    local pads = filled(a.pads, 2 * rank, 0)
    local cells, size, out, padded = 1, 1, {}, {}
    for i = 1, rank do
      padded[i] = image[i] + pads[i] + pads[i + rank]
      out[i] = (padded[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1
      cells, size = cells * block[i], size * padded[i]
    end
    -- Where each column's elements go in the padded image.
    local where
    for i = 1, rank do
      local factor = 1
      for k = i + 1, rank do factor = factor * padded[k] end
      local inside, over = {}, {}
      for k = 1, 2 * rank do inside[k], over[k] = 1, 1 end
      inside[i], over[rank + i] = block[i], out[i]
      local at = ops.reshape(ops.arange(block[i], nil, 1, ms.int64) * (dilations[i] * factor), inside)
        + ops.reshape(ops.arange(out[i], nil, 1, ms.int64) * (strides[i] * factor), over)
      where = where and where + at or at
    end
    local n, c = x.shape[1], x.shape[2] // cells
    local rows = ops.transpose(ops.reshape(x, { n * c, -1 }), { 1, 0 })
    local sums = ops.scatter_nd(ops.reshape(where, { -1, 1 }), rows, { size, n * c })
    local result = { n, c }
    for i = 1, rank do result[i + 2] = padded[i] end
    local y = ops.reshape(ops.transpose(sums, { 1, 0 }), result)
    for i = 1, rank do
      if padded[i] ~= image[i] then y = ops.narrow(y, i + 1, pads[i], image[i]) end
    end
    return y
  end
end)

return M
