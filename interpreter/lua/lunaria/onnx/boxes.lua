-- ONNX operators on boxes, and convolution at places that the input gives.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- Corners of a box in order, and its area.
local function corners(box, centred)
  local a, b, c, d = table.unpack(box)
  if centred then
    local x, y, w, h = a, b, c / 2, d / 2
    return { y - h, x - w, y + h, x + w, 4 * w * h }
  end
  local top, bottom, left, right = math.min(a, c), math.max(a, c), math.min(b, d), math.max(b, d)
  return { top, left, bottom, right, (bottom - top) * (right - left) }
end

local function overlap(p, q)
  local height = math.min(p[3], q[3]) - math.max(p[1], q[1])
  local width = math.min(p[4], q[4]) - math.max(p[2], q[2])
  if height <= 0 or width <= 0 then return 0.0 end
  local both = height * width
  return both / (p[5] + q[5] - both)
end

-- The boxes that are kept of one class, best first: a box goes that overlaps a better one by more than the threshold.
local function suppressed(boxes, scores, most, overlap_most, score_least)
  local order = {}
  for i, score in ipairs(scores) do
    if not score_least or score > score_least then order[#order + 1] = i end
  end
  table.sort(order, function(i, k)
    if scores[i] ~= scores[k] then return scores[i] > scores[k] end
    return i < k
  end)
  local kept = {}
  for _, i in ipairs(order) do
    if #kept >= most then break end
    local free = true
    for _, k in ipairs(kept) do free = free and overlap(boxes[i], boxes[k]) <= overlap_most end
    if free then kept[#kept + 1] = i end
  end
  return kept
end

define.define("NonMaxSuppression", "center_point_box:i=0", 2, 5, function(a)
  return function(boxes, scores, most, overlap_most, score_least)
    local limit = most and define.number(most) or 0
    local threshold = overlap_most and define.number(overlap_most) or 0.0
    local least = score_least and define.number(score_least)
    local found = {}
    local all_boxes, all_scores = boxes:tolist(), scores:tolist()
    for batch, list in ipairs(all_scores) do
      local shapes = {}
      for i, box in ipairs(all_boxes[batch]) do shapes[i] = corners(box, a.center_point_box ~= 0) end
      for class, row in ipairs(list) do
        for _, i in ipairs(suppressed(shapes, row, limit, threshold, least)) do
          found[#found + 1] = { batch - 1, class - 1, i - 1 }
        end
      end
    end
    if #found == 0 then return ops.zeros({ 0, 3 }, ms.int64) end
    return ms.tensor(found, ms.int64)
  end
end)

-- Where one axis of a region is sampled: for each place the two elements beside it and their weights, all zero outside.
local function samples(from, each, bins, count, size)
  local list = {}
  define.listed(bins, count)
  for bin = 0, bins - 1 do
    for i = 0, count - 1 do
      local at = from + bin * each + (i + 0.5) * each / count
      local outside = at < -1 or at > size
      at = math.max(at, 0)
      local low = math.floor(at)
      if low >= size - 1 then
        low, at = size - 1, size - 1.0
      end
      list[#list + 1] = { low, math.min(low + 1, size - 1), outside and 0.0 or 1 - (at - low), outside and 0.0 or at - low }
    end
  end
  return list
end

local function column(list, k, dtype)
  local values = {}
  for i, row in ipairs(list) do values[i] = row[k] end
  return ms.tensor(values, dtype)
end

-- A region (channels, height, width) of one picture: every sample, as (channels, rows, columns, 4 products).
local function region(picture, rows, columns, combine)
  local total
  for i = 1, 2 do
    local lines = ops.gather(picture, column(rows, i, ms.int64), 1)
    local down = ops.reshape(column(rows, i + 2, picture.dtype), { -1, 1 })
    for k = 1, 2 do
      local across = column(columns, k + 2, picture.dtype)
      local part = ops.gather(lines, column(columns, k, ms.int64), 2) * down * across
      total = total and combine(total, part) or part
    end
  end
  return total
end

define.define("RoiAlign",
  "coordinate_transformation_mode:s mode:s=avg output_height:i=1 output_width:i=1 sampling_ratio:i=0 spatial_scale:f=1", 3, 3,
  function(a, node)
    local place = a.coordinate_transformation_mode or (node.version >= 16 and "half_pixel" or "output_half_pixel")
    if a.mode ~= "avg" and a.mode ~= "max" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
    local half, largest = place == "half_pixel", a.mode == "max"
    local offset, high, wide = half and 0.5 or 0.0, a.output_height, a.output_width
    return function(x, rois, batches)
      local results = {}
      local numbers = define.integers(batches)
      for n, roi in ipairs(rois:tolist()) do
        local left, top = roi[1] * a.spatial_scale - offset, roi[2] * a.spatial_scale - offset
        local width, height = roi[3] * a.spatial_scale - offset - left, roi[4] * a.spatial_scale - offset - top
        if not half then width, height = math.max(width, 1.0), math.max(height, 1.0) end
        local down = a.sampling_ratio > 0 and a.sampling_ratio or math.max(1, math.ceil(height / high))
        local across = a.sampling_ratio > 0 and a.sampling_ratio or math.max(1, math.ceil(width / wide))
        local rows = samples(top, height / high, high, down, x.shape[3])
        local columns = samples(left, width / wide, wide, across, x.shape[4])
        local found = region(x[numbers[n]], rows, columns, largest and ops.maximum or ops.add)
        found = ops.reshape(found, { x.shape[2], high, down, wide, across })
        results[n] = largest and ops.amax(found, { 2, 4 }) or ops.reduce_mean(found, { 2, 4 })
      end
      if #results == 0 then return ops.zeros({ 0, x.shape[2], high, wide }, x.dtype) end
      return ops.stack(results, 0)
    end
  end)

-- Elements of planes (groups, channels, height * width) between whole places, zeros outside.
local function between(planes, height, width, y, x)
  local groups, channels = planes.shape[1], planes.shape[2]
  local top, left, sum = ops.floor(y), ops.floor(x), nil
  for i = 0, 1 do
    for k = 0, 1 do
      local row, line = top + i, left + k
      local inside = ops.logical_and(
        ops.logical_and(ops.greater_equal(row, 0), ops.less(row, height)),
        ops.logical_and(ops.greater_equal(line, 0), ops.less(line, width)))
      local weight = (i == 1 and y - top or (y - top) * -1 + 1) * (k == 1 and x - left or (x - left) * -1 + 1)
      weight = ops.where(inside, weight, ops.zeros_like(weight))
      local at = ops.clamp(row, 0, height - 1) * width + ops.clamp(line, 0, width - 1)
      at = ops.cast(ops.reshape(at, { groups, 1, -1 }), ms.int64)
      local found = ops.gather_elements(planes, 2, ops.broadcast_to(at, { groups, channels, at.shape[3] }))
      local part = found * ops.reshape(weight, { groups, 1, -1 })
      sum = sum and sum + part or part
    end
  end
  return sum
end

define.define("DeformConv",
  "dilations:ints group:i=1 kernel_shape:ints offset_group:i=1 pads:ints strides:ints", 3, 5, function(a)
    local strides, dilations, pads = a.strides or { 1, 1 }, a.dilations or { 1, 1 }, a.pads or { 0, 0, 0, 0 }
    local groups = a.offset_group
    return function(x, w, offset, bias, mask)
      local n, c, height, width = x.shape[1], x.shape[2], x.shape[3], x.shape[4]
      local kh, kw, oh, ow = w.shape[3], w.shape[4], offset.shape[3], offset.shape[4]
      local cells = kh * kw
      local shift = ops.reshape(offset, { n * groups, cells, 2, oh, ow })
      local function places(axis, kernel, count, shape_of_kernel, shape_of_result)
        local inner = ops.reshape(ops.arange(kernel, nil, 1, x.dtype) * dilations[axis], shape_of_kernel)
        local outer = ops.reshape(ops.arange(count, nil, 1, x.dtype) * strides[axis] - pads[axis], shape_of_result)
        local grid = ops.broadcast_to(inner + outer, { kh, kw, oh, ow })
        return ops.reshape(grid, { 1, cells, oh, ow }) + ops.squeeze(ops.narrow(shift, 2, axis - 1, 1), { 2 })
      end
      local y = places(1, kh, oh, { kh, 1, 1, 1 }, { 1, 1, oh, 1 })
      local z = places(2, kw, ow, { 1, kw, 1, 1 }, { 1, 1, 1, ow })
      local columns = between(ops.reshape(x, { n * groups, c // groups, height * width }), height, width, y, z)
      columns = ops.reshape(columns, { n, groups, c // groups, cells, oh * ow })
      if mask then columns = columns * ops.reshape(mask, { n, groups, 1, cells, oh * ow }) end
      columns = ops.reshape(columns, { n, a.group, c // a.group * cells, oh * ow })
      local result = ops.matmul(ops.reshape(w, { 1, a.group, w.shape[1] // a.group, -1 }), columns)
      result = ops.reshape(result, { n, w.shape[1], oh, ow })
      return bias and ops.bias_add(result, bias) or result
    end
  end)
