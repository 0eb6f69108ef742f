-- ONNX operators that resample pictures.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- Keys' cubic convolution at distance x.
local function cubic(x, A)
  x = math.abs(x)
  if x <= 1 then return ((A + 2) * x - (A + 3)) * x * x + 1 end
  if x < 2 then return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A end
  return 0.0
end

-- Weights of the elements around a place that is `ratio` (above 0, at most 1) behind the first of the middle two: the
-- first one's position from there, and the list. A kernel that shrinks is widened where antialiasing is asked for.
local function weights_around(a, ratio, scale)
  if a.mode == "nearest" then
    local right
    if ratio == 1 then
      right = true
    elseif a.nearest_mode == "round_prefer_floor" then
      right = ratio > 0.5
    elseif a.nearest_mode == "round_prefer_ceil" then
      right = ratio >= 0.5
    else
      right = a.nearest_mode == "ceil"
    end
    return 0, { right and 0.0 or 1.0, right and 1.0 or 0.0 }
  end
  local reach = a.mode == "cubic" and 2 or 1
  local s = a.antialias ~= 0 and math.min(scale, 1.0) or 1.0
  define.listed(2 * reach / s)
  local from = math.floor(-reach / s) + 1
  local list, sum = {}, 0
  for i = from, 1 - from do
    local x = (i - ratio) * s
    local w = a.mode == "cubic" and cubic(x, a.cubic_coeff_a) or math.max(0, 1 - math.abs(x))
    list[#list + 1] = w
    sum = sum + w
  end
  for i, w in ipairs(list) do list[i] = w / sum end
  return from, list
end

-- Where position x of the result lies in the input.
local function source_of(a, x, n, scale, count, roi)
  local width, mode = scale * n, a.coordinate_transformation_mode
  if mode == "align_corners" then return width == 1 and 0.0 or x * (n - 1) / (width - 1) end
  if mode == "asymmetric" then return x / scale end
  if mode == "tf_crop_and_resize" then
    local at = width == 1 and (roi[2] - roi[1]) * (n - 1) / 2 or x * (roi[2] - roi[1]) * (n - 1) / (width - 1)
    return at + roi[1] * (n - 1)
  end
  if mode == "pytorch_half_pixel" then return width == 1 and -0.5 or (x + 0.5) / scale - 0.5 end
  if mode == "half_pixel_symmetric" then return n / 2 * (1 - count / width) + (x + 0.5) / scale - 0.5 end
  if mode == "tf_half_pixel_for_nn" then return (x + 0.5) / scale end
  return (x + 0.5) / scale - 0.5
end

-- Of a result's element between the elements at base and base + 1 of n: the weight of each of the n.
local function row_of(a, n, base, from, weights)
  local row, sum = {}, 1
  for i = 1, n do row[i] = 0.0 end
  if a.exclude_outside ~= 0 then
    sum = 0
    for k, w in ipairs(weights) do
      local i = base + from + k - 1
      if i < 0 or i >= n then weights[k] = 0.0 else sum = sum + w end
    end
  end
  for k, w in ipairs(weights) do
    local i = math.max(0, math.min(n - 1, base + from + k - 1)) + 1
    row[i] = row[i] + w / sum
  end
  return row
end

-- The matrix that resizes an axis of n elements to `count`, as rows (where each row is one element: its number), and which rows lie
-- outside of the input.
local function resizing(a, n, count, scale, roi)
  local rows, outside, any = {}, {}, false
  local picks = a.mode == "nearest"
  define.listed(count, picks and 1 or n)
  for x = 0, count - 1 do
    local at = source_of(a, x, n, scale, count, roi)
    if roi and (at < 0 or at > n - 1) then outside[x + 1], any = true, true else outside[x + 1] = false end
    local base = math.ceil(at) - 1
    local from, weights = weights_around(a, at - base, scale)
    rows[x + 1] = picks and math.max(0, math.min(n - 1, base + from + (weights[1] > 0.5 and 0 or 1)))
      or row_of(a, n, base, from, weights)
  end
  return rows, any and outside or nil
end

local function apply(a, x, axis, rows)
  if a.mode == "nearest" then return ops.index_select(x, axis, ms.tensor(rows, ms.int64)) end
  local matrix = ops.transpose(ms.tensor(rows, x.dtype), { 1, 0 })
  return define.move(ops.matmul(define.move(x, axis, x.ndim - 1), matrix), x.ndim - 1, axis)
end

local function resized(a, x, axes, scales, counts, roi)
  local dtype = x.dtype
  local exact = a.mode == "nearest" or dtype == ms.float32 or dtype == ms.float64
  local y, mask = exact and x or ops.cast(x, ms.float32), nil
  for k, axis in ipairs(axes) do
    local n = x.shape[axis + 1]
    local window = roi and { roi[k], roi[k + #axes] }
    if counts[k] ~= n or scales[k] ~= 1 or window then
      local rows, outside = resizing(a, n, counts[k], scales[k], window)
      y = apply(a, y, axis, rows)
      if outside then
        local shape = {}
        for i = 1, x.ndim do shape[i] = i == axis + 1 and counts[k] or 1 end
        local here = ops.reshape(ms.tensor(outside, ms.bool_), shape)
        mask = mask and ops.logical_or(mask, here) or here
      end
    end
  end
  if mask then y = ops.where(mask, ops.full({}, a.extrapolation_value, y.dtype), y) end
  if exact then return y end
  if not define.is_float(dtype) then y = ops.round(y) end
  return ops.cast(y, dtype)
end

-- The sizes that keep the proportions.
local function kept_sizes(policy, x, axes, sizes)
  if policy == "stretch" then return sizes, nil end
  local scale
  for k, axis in ipairs(axes) do
    local s = sizes[k] / x.shape[axis + 1]
    scale = not scale and s or policy == "not_larger" and math.min(scale, s) or policy ~= "not_larger" and math.max(scale, s)
      or scale
  end
  local kept = {}
  for k, axis in ipairs(axes) do kept[k] = math.floor(scale * x.shape[axis + 1] + 0.5) end
  return kept, scale
end

local function floats(t) return t and t.size > 0 and ops.cast(ops.reshape(t, { -1 }), ms.float64):tolist() or nil end

local known_modes = { nearest = true, linear = true, cubic = true }
local known_places = {
  half_pixel = true, align_corners = true, asymmetric = true, tf_crop_and_resize = true, pytorch_half_pixel = true,
  half_pixel_symmetric = true, tf_half_pixel_for_nn = true,
}

define.define("Resize",
  "antialias:i=0 axes:ints coordinate_transformation_mode:s cubic_coeff_a:f=-0.75 exclude_outside:i=0 "
  .. "extrapolation_value:f=0 keep_aspect_ratio_policy:s=stretch mode:s=nearest nearest_mode:s=round_prefer_floor", 1, 4,
  function(a, node)
    if node.version < 11 then a.nearest_mode = "floor" end
    a.coordinate_transformation_mode = a.coordinate_transformation_mode or (node.version < 11 and "asymmetric" or "half_pixel")
    if not known_modes[a.mode] then node.fail(("the mode '%s' is not known"):format(a.mode)) end
    if not known_places[a.coordinate_transformation_mode] then
      node.fail(("the coordinate_transformation_mode '%s' is not known"):format(a.coordinate_transformation_mode))
    end
    return function(x, roi, scales, sizes)
      if node.version < 11 then roi, scales = nil, roi end
      local axes = {}
      for i = 1, a.axes and #a.axes or x.ndim do axes[i] = a.axes and define.axis(x, a.axes[i]) or i - 1 end
      local factors, counts = floats(scales), {}
      if factors then
        for k, axis in ipairs(axes) do counts[k] = math.floor(x.shape[axis + 1] * factors[k]) end
      else
        local same
        factors = {}
        counts, same = kept_sizes(a.keep_aspect_ratio_policy, x, axes, define.integers(sizes))
        for k, axis in ipairs(axes) do factors[k] = same or counts[k] / x.shape[axis + 1] end
      end
      local window = a.coordinate_transformation_mode == "tf_crop_and_resize" and floats(roi) or nil
      return resized(a, x, axes, factors, counts, window)
    end
  end)

define.define("Upsample", "mode:s=nearest scales:floats", 1, 2, function(a, node)
  if a.mode ~= "nearest" and a.mode ~= "linear" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  local how = {
    mode = a.mode, nearest_mode = "floor", coordinate_transformation_mode = "asymmetric", antialias = 0, exclude_outside = 0,
    extrapolation_value = 0.0, cubic_coeff_a = -0.75,
  }
  return function(x, scales)
    local factors, axes, counts = floats(scales) or a.scales, {}, {}
    for k, factor in ipairs(factors) do axes[k], counts[k] = k - 1, math.floor(x.shape[k] * factor) end
    return resized(how, x, axes, factors, counts)
  end
end)

-- Places beyond the edges turned back into the picture.
local function reflected(x, low, high)
  local range = high - low
  if range <= 0 then return ops.zeros_like(x) end
  local d = ops.abs(x - low)
  local turns = ops.floor(d / range)
  local rest = d - turns * range
  return ops.where(ops.equal(ops.remainder(turns, 2.0), 0), rest + low, ops.neg(rest) + high)
end

-- Elements of x (batch, channels, sizes ...) at whole places, one tensor of floats for each axis.
local function elements_at(x, places, padding, corners)
  local rank = #places
  local index, inside, factor = nil, nil, 1
  for i = rank, 1, -1 do
    local n, p = x.shape[i + 2], places[i]
    if padding == "zeros" then
      local here = ops.logical_and(ops.greater_equal(p, 0), ops.less(p, n))
      inside = inside and ops.logical_and(inside, here) or here
    elseif padding == "reflection" then
      p = reflected(p, corners and 0 or -0.5, corners and n - 1 or n - 0.5)
      -- Towards zero, as a place between two elements comes to be one of them.
      p = ops.trunc(p)
    end
    p = ops.mul(ops.cast(ops.clamp(p, 0, n - 1), ms.int64), factor)
    index = index and ops.add(index, p) or p
    factor = factor * n
  end
  local shape = define.sizes(index)
  local batch, channels, count = x.shape[1], x.shape[2], index.size // math.max(1, x.shape[1])
  local flat = ops.reshape(x, { batch, channels, -1 })
  local at = ops.broadcast_to(ops.reshape(index, { batch, 1, count }), { batch, channels, count })
  local found = ops.gather_elements(flat, 2, at)
  if inside then
    found = ops.where(ops.reshape(inside, { batch, 1, count }), found, ops.zeros_like(found))
  end
  table.insert(shape, 2, channels)
  return ops.reshape(found, shape)
end

-- Weights of the elements around a place, by the place's fraction.
local around = {
  linear = { first = 0, weights = function(t) return { 1 - t, t } end },
  cubic = {
    first = -1,
    weights = function(t)
      local A, list = -0.75, {}
      for k = -1, 2 do
        local d = k <= 0 and t - k or (t - k) * -1
        if k == 0 or k == 1 then
          list[#list + 1] = ((d * (A + 2)) - (A + 3)) * d * d + 1
        else
          list[#list + 1] = ((d * A - 5 * A) * d + 8 * A) * d - 4 * A
        end
      end
      return list
    end,
  },
}

local grid_modes = { bilinear = "linear", linear = "linear", bicubic = "cubic", cubic = "cubic", nearest = "nearest" }

define.define("GridSample", "align_corners:i=0 mode:s=linear padding_mode:s=zeros", 2, 2, function(a, node)
  local mode, corners, padding = grid_modes[a.mode], a.align_corners ~= 0, a.padding_mode
  if not mode then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  if padding ~= "zeros" and padding ~= "border" and padding ~= "reflection" then
    node.fail(("the padding_mode '%s' is not known"):format(padding))
  end
  return function(x, grid)
    local rank = x.ndim - 2
    local places = {}
    for i = 1, rank do
      local g = ops.squeeze(ops.narrow(grid, -1, rank - i, 1), { -1 })
      local n = x.shape[i + 2]
      local p = corners and (g + 1) * ((n - 1) / 2) or ((g + 1) * n - 1) / 2
      if mode == "nearest" then p = ops.round(p) end
      if padding == "border" then
        p = ops.clamp(p, 0.0, n - 1.0)
      elseif padding == "reflection" and mode ~= "cubic" then
        p = reflected(p, corners and 0 or -0.5, corners and n - 1 or n - 0.5)
        p = mode == "nearest" and ops.round(p) or p
      end
      places[i] = p
    end
    if mode == "nearest" then return elements_at(x, places, padding, corners) end
    local kernel = around[mode]
    local bases, weights = {}, {}
    for i = 1, rank do
      bases[i] = ops.floor(places[i])
      weights[i] = kernel.weights(places[i] - bases[i])
    end
    local sum
    local function add(i, at, weight)
      if i > rank then
        local part = elements_at(x, at, padding, corners) * ops.expand_dims(weight, 1)
        sum = sum and sum + part or part
        return
      end
      for k, w in ipairs(weights[i]) do
        local next_at = { table.unpack(at) }
        next_at[i] = bases[i] + (kernel.first + k - 1)
        add(i + 1, next_at, weight and weight * w or w)
      end
    end
    add(1, {}, nil)
    return sum.dtype == x.dtype and sum or ops.cast(sum, x.dtype)
  end
end)

define.define("AffineGrid", "align_corners:i=0", 2, 2, function(a, node)
  local read = define.list_reader(node, 2)
  return function(theta, size)
    local sizes = read(size)
    local rank = #sizes - 2
    local axes, shape = {}, { table.unpack(sizes, 3) }
    for i = 1, rank do
      local n = shape[i]
      local along = {}
      for k = 1, rank do along[k] = k == i and n or 1 end
      local x = ops.arange(n, nil, 1, theta.dtype)
      x = a.align_corners ~= 0 and x * (2 / math.max(1, n - 1)) - 1 or (x * 2 + 1) / n - 1
      axes[rank + 1 - i] = ops.broadcast_to(ops.reshape(x, along), shape)
    end
    axes[rank + 1] = ops.ones(shape, theta.dtype)
    local points = ops.reshape(ops.stack(axes, -1), { 1, -1, rank + 1 })
    local grid = ops.matmul(points, ops.swapaxes(theta, 1, 2))
    table.insert(shape, 1, sizes[1])
    shape[#shape + 1] = rank
    return ops.reshape(grid, shape)
  end
end)
