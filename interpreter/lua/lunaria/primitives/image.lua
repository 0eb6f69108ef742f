-- Primitives of MindSpore on pictures and boxes. Rows for nn/primitives.lua, as in array.lua.
local ms = require "lunaria"
local common = require "lunaria.primitives.common"

local ops = ms.ops
local number, numbers = common.number, common.numbers
local P = {}

-- The channels lie behind the other axes.
local function channels(x)
  local list, last = {}, #x.shape - 1
  for i = 1, 3 do list[i] = ops.squeeze(ops.narrow(x, last, i - 1, 1), last) end
  return list[1], list[2], list[3]
end
local function to_hsv(x)
  local r, g, b = channels(x)
  local top, low = ops.amax(x, -1), ops.amin(x, -1)
  local range = top - low
  local grey = ops.equal(range, 0)
  local by = ops.where(grey, ops.ones_like(range), range)
  local hue = ops.where(ops.equal(top, r), (g - b) / by, ops.where(ops.equal(top, g), (b - r) / by + 2, (r - g) / by + 4)) / 6
  hue = ops.where(grey, ops.zeros_like(hue), hue - ops.floor(hue))
  local dark = ops.equal(top, 0)
  return hue, ops.where(dark, ops.zeros_like(top), range / ops.where(dark, ops.ones_like(top), top)), top
end
local function to_rgb(h, s, v)
  -- Each channel is the value less what a trapezium of the hue takes off.
  local function channel(offset)
    local k = ops.remainder(h * 6 + offset, 6.0)
    return v - v * s * ops.clamp(ops.minimum(k, 4 - k), 0.0, 1.0)
  end
  return ops.stack({ channel(5), channel(3), channel(1) }, -1)
end
P.RGBToHSV = { "", "x", function(_, x) return ops.stack({ to_hsv(x) }, -1) end }
P.HSVToRGB = { "", "x", function(_, x) return to_rgb(channels(x)) end }
P.AdjustHue = { "", "image, delta", function(_, x, delta)
  local h, s, v = to_hsv(x)
  h = h + delta
  return to_rgb(h - ops.floor(h), s, v)
end }
P.AdjustSaturation = { "", "image, scale", function(_, x, scale)
  local h, s, v = to_hsv(x)
  return to_rgb(h, ops.clamp(s * scale, 0.0, 1.0), v)
end }
P.CropAndResize = { "method=\"bilinear\", extrapolation_value=0.0", "x, boxes, box_index, crop_size", function(a, x, boxes, index, size)
  return ops.crop_and_resize(x, boxes, index, numbers(size), a.method, a.extrapolation_value)
end, { method = { "bilinear", "nearest" } } }
local function resized(mode)
  return function(a, x, size)
    size = numbers(size or a.size)
    local align = a.align_corners
    if mode == "nearest" or mode == "area" then align = nil end
    return ops.interpolate(x, size, { mode = mode, align_corners = align })
  end
end
-- Sizes of a kind that interpolate has: with half_pixel_centers, or with corners that stay.
local function of_corners(mode)
  local plain = resized(mode)
  return function(a, x, size)
    if a.align_corners or a.half_pixel_centers then return plain(a, x, size) end
    -- Neither: places are multiples of the ratio, from the first corner on.
    local out, result = numbers(size), x
    for axis = 1, 2 do
      local n = x.shape[axis + 2]
      local at = ops.arange(out[axis]) * (n / out[axis])
      if mode == "nearest" then
        result = ops.gather(result, ops.cast(ops.floor(at), ms.int64), axis + 1)
      else
        local low = ops.floor(at)
        local part = ops.reshape(at - low, axis == 1 and { -1, 1 } or { -1 })
        local first = ops.cast(low, ms.int64)
        result = ops.gather(result, first, axis + 1) * (1 - part) + ops.gather(result, ops.minimum(first + 1, n - 1), axis + 1) * part
      end
    end
    return result
  end
end
local both = "align_corners=false, half_pixel_centers=false"
P.ResizeBilinearV2 = { both, "image, size", of_corners "bilinear" }
P.ResizeBilinear = { "size, " .. both, "x", function(a, x) return of_corners "bilinear" (a, x, a.size) end }
P.ResizeNearestNeighborV2 = { both, "image, size", of_corners "nearest", { align_corners = { false } } }
P.ResizeNearestNeighbor = { "size, " .. both, "x", function(a, x)
  return of_corners "nearest" (a, x, a.size)
end, { align_corners = { false } } }
-- The cubic of Keys through four pixels; those beyond the edge are the edge's, or where pixels have centres, left out.
local function cubic_weights(n, count, a)
  local rows, bend = {}, a.half_pixel_centers and -0.5 or -0.75
  for i = 0, count - 1 do
    local at, row, sum = i * n / count, {}, 0
    if a.half_pixel_centers then at = (i + 0.5) * n / count - 0.5 end
    if a.align_corners and count > 1 then at = i * (n - 1) / (count - 1) end
    for k = 1, n do row[k] = 0.0 end
    local low = math.floor(at)
    for k = low - 1, low + 2 do
      local d = math.abs(at - k)
      local weight = d <= 1 and ((bend + 2) * d - (bend + 3)) * d * d + 1 or ((bend * d - 5 * bend) * d + 8 * bend) * d - 4 * bend
      local inside = k >= 0 and k < n
      if inside or not a.half_pixel_centers then
        local place = math.max(math.min(k, n - 1), 0) + 1
        row[place], sum = row[place] + weight, sum + weight
      end
    end
    for k = 1, n do row[k] = row[k] / sum end
    rows[i + 1] = row
  end
  return ms.tensor(rows, ms.float32)
end
P.ResizeBicubic = { both, "image, size", function(a, x, size)
  local out = numbers(size)
  if a.align_corners and a.half_pixel_centers then
    require("lunaria.nn.arguments").fail("ResizeBicubic", "align_corners and half_pixel_centers cannot both be true")
  end
  local wide = ops.matmul(x, ops.permute(cubic_weights(x.shape[4], out[2], a), { 1, 0 }))
  return ops.matmul(cubic_weights(x.shape[3], out[1], a), wide)
end }
P.ResizeLinear1D = { "coordinate_transformation_mode=\"align_corners\"", "x, size", function(a, x, size)
  return ops.interpolate(x, numbers(size), { mode = "linear", align_corners = a.coordinate_transformation_mode == "align_corners" })
end, { coordinate_transformation_mode = { "align_corners", "half_pixel" } } }
P.UpsampleNearest3D = { "", "x, output_size, scales", function(_, x, size, scales)
  return ops.interpolate(x, size and numbers(size), scales and numbers(scales), { mode = "nearest" })
end }
P.UpsampleTrilinear3D = { "align_corners=false", "x, output_size, scales", function(a, x, size, scales)
  return ops.interpolate(x, size and numbers(size), scales and numbers(scales), { mode = "trilinear", align_corners = a.align_corners })
end }
-- Of pictures with the channels behind: means over areas.
P.ResizeArea = { "align_corners=false", "images, size", function(_, x, size)
  local result, out = x, numbers(size)
  for axis = 1, 2 do
    local n, count = x.shape[axis + 1], out[axis]
    local rows = {}
    for i = 0, count - 1 do
      local from, to, weights = i * n / count, (i + 1) * n / count, {}
      for k = 1, n do weights[k] = math.max(math.min(to, k) - math.max(from, k - 1), 0.0) * count / n end
      rows[i + 1] = weights
    end
    local moved = ops.moveaxis(result, axis, -1)
    result = ops.moveaxis(ops.matmul(moved, ops.permute(ms.tensor(rows, ms.float32), { 1, 0 })), -1, axis)
  end
  return result
end, { align_corners = { false } } }

-- Pictures moved and stretched: each pixel of the result is a mean of those around its place, weighed by a kernel.
local function sinc(x) return x == 0 and 1.0 or math.sin(math.pi * x) / (math.pi * x) end
local function lanczos(radius)
  return { radius, function(x) return x >= radius and 0.0 or sinc(x) * sinc(x / radius) end }
end
local function cubic(b, c)
  return { 2, function(x)
    if x < 1 then return ((12 - 9 * b - 6 * c) * x ^ 3 + (-18 + 12 * b + 6 * c) * x ^ 2 + 6 - 2 * b) / 6 end
    return x >= 2 and 0.0 or ((-b - 6 * c) * x ^ 3 + (6 * b + 30 * c) * x ^ 2 + (-12 * b - 48 * c) * x + 8 * b + 24 * c) / 6
  end }
end
local kernels = { lanczos1 = lanczos(1), lanczos3 = lanczos(3), lanczos5 = lanczos(5), keyscubic = cubic(0, 0.5),
  mitchellcubic = cubic(1 / 3, 1 / 3),
  gaussian = { 1.5, function(x) return x >= 1.5 and 0.0 or math.exp(-x * x / (2 * 0.5 * 0.5)) end },
  box = { 0.5, function(x) return x < 0.5 and 1.0 or x == 0.5 and 0.5 or 0.0 end },
  triangle = { 1, function(x) return x < 1 and 1 - x or 0.0 end } }
local kernel_names = {}
for name in pairs(kernels) do kernel_names[#kernel_names + 1] = name end
table.sort(kernel_names)
P.ScaleAndTranslate = { "kernel_type=\"lanczos3\", antialias=true", "images, size, scale, translation", function(a, x, size, scale,
  translation)
  local radius, weight_of = table.unpack(kernels[a.kernel_type])
  local out, stretch, move = numbers(size), numbers(scale), numbers(translation)
  for axis = 1, 2 do
    local n, rows = x.shape[axis + 1], {}
    local wide = a.antialias and math.max(1 / stretch[axis], 1.0) or 1.0
    for i = 0, out[axis] - 1 do
      local at, row, sum = (i + 0.5 - move[axis]) / stretch[axis], {}, 0
      for k = 1, n do
        local d = math.abs(k - 0.5 - at) / wide
        row[k] = at >= 0 and at <= n and d <= radius and weight_of(d) + 0.0 or 0.0
        sum = sum + row[k]
      end
      for k = 1, n do row[k] = sum ~= 0 and row[k] / sum or 0.0 end
      rows[i + 1] = row
    end
    local moved = ops.moveaxis(ops.cast(x, ms.float32), axis, -1)
    x = ops.moveaxis(ops.matmul(moved, ops.permute(ms.tensor(rows, ms.float32), { 1, 0 })), -1, axis)
  end
  return x
end, { kernel_type = kernel_names } }
P.ExtractGlimpse = { "centered=true, normalized=true, uniform_noise=true, noise=\"uniform\"", "x, size, offsets", function(a, x, size,
  offsets)
  local out, results = numbers(size), {}
  local sizes = { x.shape[2], x.shape[3] }
  for b, offset in ipairs(offsets:tolist()) do
    local index = {}
    for axis = 1, 2 do
      local at = offset[axis]
      if a.normalized then at = at * sizes[axis] end
      if a.centered then at = a.normalized and at / 2 + sizes[axis] / 2 or at + sizes[axis] / 2 end
      index[axis] = math.floor(at) - out[axis] // 2
    end
    local picture, inside = x[b - 1], nil
    for axis = 1, 2 do
      local places = ops.arange(out[axis]) + index[axis]
      local here = ops.logical_and(ops.greater_equal(places, 0), ops.less(places, sizes[axis]))
      picture = ops.gather(picture, ops.clamp(places, 0, sizes[axis] - 1), axis - 1)
      here = ops.reshape(here, axis == 1 and { -1, 1, 1 } or { 1, -1, 1 })
      inside = inside and ops.logical_and(inside, here) or here
    end
    local noise = ops.zeros_like(picture)
    if a.noise == "uniform" then noise = ops.rand(picture.shape) elseif a.noise == "gaussian" then noise = ops.randn(picture.shape) end
    results[b] = ops.where(inside, picture, noise)
  end
  return ops.stack(results)
end, { noise = { "uniform", "gaussian", "zero" } } }

-- Boxes that overlap a better one by more than a part of their joint area are left out.
local function area(box) return math.max(box[3] - box[1], 0) * math.max(box[4] - box[2], 0) end
local function overlap(a, b)
  local both_areas = area { math.max(a[1], b[1]), math.max(a[2], b[2]), math.min(a[3], b[3]), math.min(a[4], b[4]) }
  if math.max(a[1], b[1]) >= math.min(a[3], b[3]) or math.max(a[2], b[2]) >= math.min(a[4], b[4]) then both_areas = 0 end
  local all = area(a) + area(b) - both_areas
  return all > 0 and both_areas / all or 0
end
local function suppressed(scores, most, threshold, least, overlap_of)
  local order = {}
  for i, score in ipairs(scores) do
    if score > least then order[#order + 1] = i end
  end
  table.sort(order, function(i, j) return scores[i] > scores[j] or scores[i] == scores[j] and i < j end)
  local kept = {}
  for _, i in ipairs(order) do
    local free = #kept < most
    for _, k in ipairs(kept) do free = free and overlap_of(i, k) <= threshold end
    if free then kept[#kept + 1] = i end
  end
  return kept
end
-- Corners of a box in order: MindSpore's may be any two that lie across.
local function ordered(box)
  return { math.min(box[1], box[3]), math.min(box[2], box[4]), math.max(box[1], box[3]), math.max(box[2], box[4]) }
end
local function places(kept)
  local list = {}
  for i, k in ipairs(kept) do list[i] = k - 1 end
  return ms.tensor(list, ms.int32)
end
P.NonMaxSuppressionV3 = { "", "boxes, scores, max_output_size, iou_threshold, score_threshold", function(_, boxes, scores, most,
  threshold, least)
  local list = boxes:tolist()
  for i, box in ipairs(list) do list[i] = ordered(box) end
  return places(suppressed(scores:tolist(), number(most), number(threshold), number(least), function(i, k)
    return overlap(list[i], list[k])
  end))
end }
P.NonMaxSuppressionWithOverlaps = { "", "overlaps, scores, max_output_size, overlap_threshold, score_threshold",
  function(_, overlaps, scores, most, threshold, least)
    local list = overlaps:tolist()
    return places(suppressed(scores:tolist(), number(most), number(threshold), number(least), function(i, k) return list[i][k] end))
  end }
P.CombinedNonMaxSuppression = { "pad_per_class=false, clip_boxes=true",
  "boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold",
  function(a, boxes, scores, per_class, total, threshold, least)
    local all_boxes, all_scores = boxes:tolist(), scores:tolist()
    local classes, shared = scores.shape[3], boxes.shape[3] == 1
    local most, each = number(total), number(per_class)
    if a.pad_per_class then most = math.min(most, each * classes) end
    local out_boxes, out_scores, out_classes, counts = {}, {}, {}, {}
    for b, rows in ipairs(all_boxes) do
      local found = {}
      for class = 1, classes do
        local own = {}
        for i, row in ipairs(all_scores[b]) do own[i] = row[class] end
        local function box(i) return ordered(rows[i][shared and 1 or class]) end
        for _, i in ipairs(suppressed(own, each, number(threshold), number(least), function(i, k) return overlap(box(i), box(k)) end)) do
          found[#found + 1] = { rows[i][shared and 1 or class], own[i], class - 1 }
        end
      end
      table.sort(found, function(x, y) return x[2] > y[2] end)
      out_boxes[b], out_scores[b], out_classes[b], counts[b] = {}, {}, {}, math.min(#found, most)
      for i = 1, most do
        local one = found[i] or { { 0.0, 0.0, 0.0, 0.0 }, 0.0, 0.0 }
        local box = { table.unpack(one[1]) }
        for k = 1, 4 do
          if a.clip_boxes then box[k] = math.max(math.min(box[k], 1.0), 0.0) end
        end
        out_boxes[b][i], out_scores[b][i], out_classes[b][i] = box, one[2] + 0.0, one[3] + 0.0
      end
    end
    return ms.tensor(out_boxes, ms.float32), ms.tensor(out_scores, ms.float32), ms.tensor(out_classes, ms.float32), ms.tensor(counts,
      ms.int32)
  end }
P.ROIAlign = { "pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1", "features, rois", function(a, features, rois)
  local results, h, w = {}, features.shape[3], features.shape[4]
  for _, roi in ipairs(rois:tolist()) do
    local x1, y1 = roi[2] * a.spatial_scale, roi[3] * a.spatial_scale
    local x2, y2 = (roi[4] + a.roi_end_mode) * a.spatial_scale, (roi[5] + a.roi_end_mode) * a.spatial_scale
    local width, height = x2 - x1, y2 - y1
    if a.roi_end_mode == 0 then width, height = math.max(width, 1.0), math.max(height, 1.0) end
    local picture = features[math.tointeger(roi[1])]
    -- Along each axis: a matrix that takes the mean of the samples of a bin, between two pixels each.
    local function weights(from, length, bins, size)
      local rows = {}
      local count = a.sample_num > 0 and a.sample_num or math.ceil(length / bins)
      for bin = 0, bins - 1 do
        local row = {}
        for k = 1, size do row[k] = 0.0 end
        for s = 0, count - 1 do
          local at = from + (bin + (s + 0.5) / count) * length / bins
          if at >= -1 and at <= size then
            at = math.max(at, 0.0)
            local low = math.min(math.floor(at), size - 1)
            local high = math.min(low + 1, size - 1)
            local part = low == size - 1 and 0.0 or at - low
            row[low + 1] = row[low + 1] + (1 - part) / count
            row[high + 1] = row[high + 1] + part / count
          end
        end
        rows[bin + 1] = row
      end
      return ms.tensor(rows, features.dtype)
    end
    local result = ops.matmul(picture, ops.permute(weights(x1, width, a.pooled_width, w), { 1, 0 }))
    results[#results + 1] = ops.matmul(weights(y1, height, a.pooled_height, h), result)
  end
  return ops.stack(results)
end, { roi_end_mode = { 0, 1 } } }
P.BoundingBoxEncode = "bounding_box_encode: means={0.0;0.0;0.0;0.0}, stds={1.0;1.0;1.0;1.0}"
P.BoundingBoxDecode = "bounding_box_decode: max_shape, means={0.0;0.0;0.0;0.0}, stds={1.0;1.0;1.0;1.0}, wh_ratio_clip=0.016"

return P
