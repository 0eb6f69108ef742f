-- Filters of pictures: medians, means of similar surroundings, convolutions with a kernel for all channels. Pictures are (N, ..., H, W);
-- each channel of each is filtered by itself, and outside of a picture is its mirror image, the edge included.
local ms = require "lunaria"

local ops = ms.ops

local filters = {}

-- The numbers of the rows of an axis of `size` from -before on to size - 1 + after, mirrored at both edges.
local function mirrored(size, before, after)
  local list = {}
  for i = -before, size - 1 + after do
    local k = i % (2 * size)
    list[#list + 1] = k < size and k or 2 * size - 1 - k
  end
  return ms.tensor(list, ms.int64)
end

--- The pictures with so many rows and columns more, mirror images of what is inside.
function filters.padded(x, top, bottom, left, right)
  local axis = x.ndim - 2
  if top > 0 or bottom > 0 then x = x:index_select(axis, mirrored(x.shape[axis + 1], top, bottom)) end
  if left > 0 or right > 0 then x = x:index_select(axis + 1, mirrored(x.shape[axis + 2], left, right)) end
  return x
end

-- As (planes, 1, H, W), and a function that brings a result of this form back.
local function planes(x)
  local height, width, shape = x.shape[x.ndim - 1], x.shape[x.ndim], { table.unpack(x.shape) }
  return x:reshape { -1, 1, height, width }, function(y) return y:reshape(shape) end
end
filters.planes = planes

-- A window of padded planes: the pixels that lie so far down and right.
local function shifted(padded, down, right, height, width)
  return padded[{ ms.slice(), ms.slice(), ms.slice(down, down + height), ms.slice(right, right + width) }]
end

--- The median of windows of size x size pixels. Of an even number of pixels it is the upper of the two in the middle, and the window
--- reaches further up and left.
function filters.median(x, size)
  local flat, back = planes(x)
  local height, width = flat.shape[3], flat.shape[4]
  local before = size // 2
  local padded, stack = filters.padded(flat, before, size - 1 - before, before, size - 1 - before), {}
  for i = 0, size - 1 do
    for j = 0, size - 1 do stack[#stack + 1] = shifted(padded, i, j, height, width) end
  end
  local sorted = (ops.sort(ops.stack(stack, 0), 0))
  return back(sorted[#stack // 2])
end

--- The correlation with a kernel (h, w) of odd sides.
function filters.correlated(x, kernel)
  local flat, back = planes(x)
  local h, w = kernel.shape[1], kernel.shape[2]
  local padded = filters.padded(flat, h // 2, h // 2, w // 2, w // 2)
  return back(ops.conv2d(padded, kernel:astype(x.dtype):reshape { 1, 1, h, w }, nil, 1, "valid"))
end

--- A kernel of side 2 reach + 1 whose weights sum to 1. points: a list of { row, column, weight }, places from the middle; between pixels a
--- weight is divided by the distances, and what lies outside is lost.
function filters.kernel(reach, points)
  local side = 2 * reach + 1
  local weights = {}
  for i = 1, side * side do weights[i] = 0.0 end
  local function add(row, column, weight)
    if row >= 0 and row < side and column >= 0 and column < side then
      weights[row * side + column + 1] = weights[row * side + column + 1] + weight
    end
  end
  for _, point in ipairs(points) do
    local row, column, weight = reach + point[1], reach + point[2], point[3]
    local i, j = math.floor(row), math.floor(column)
    local p, q = row - i, column - j
    add(i, j, weight * (1 - p) * (1 - q))
    add(i, j + 1, weight * (1 - p) * q)
    add(i + 1, j, weight * p * (1 - q))
    add(i + 1, j + 1, weight * p * q)
  end
  local kernel = ms.tensor(weights, ms.float64):reshape { side, side }
  return kernel / ops.sum(kernel)
end

--- The weights of a Gaussian of a standard deviation at size places, which sum to 1.
function filters.gaussian(size, deviation, dtype)
  local place = ops.arange(size):astype(ms.float64) - (size - 1) / 2
  local weights = ops.exp(-ops.square(place) / (2 * deviation * deviation))
  return (weights / ops.sum(weights)):astype(dtype or ms.float32)
end

--- The correlation with a Gaussian of size x size pixels, which is taken as rows and columns one after the other. deviation: nil takes
--- that which OpenCV has for the size.
function filters.gaussian_blur(x, size, deviation)
  local weights = filters.gaussian(size, deviation or 0.3 * ((size - 1) * 0.5 - 1) + 0.8, x.dtype)
  return filters.correlated(filters.correlated(x, weights:reshape { 1, size }), weights:reshape { size, 1 })
end

--- Means of pixels, weighted by how alike their surroundings are (non-local means, Buades et al., 2005). Options: patch=3 (the side of
--- the surroundings), search=11 (the side of the window in which they are looked for), strength=4/255 (differences that count little).
function filters.non_local_means(x, options)
  local patch, search, strength = options.patch or 3, options.search or 11, options.strength or 4 / 255
  local flat, back = planes(x)
  local height, width = flat.shape[3], flat.shape[4]
  local reach = search // 2
  local padded = filters.padded(flat, reach, reach, reach, reach)
  local box = ops.full({ patch, patch }, 1.0 / (patch * patch), x.dtype)
  local sum, total
  for i = 0, search - 1 do
    for j = 0, search - 1 do
      local other = shifted(padded, i, j, height, width)
      local weight = ops.exp(-filters.correlated(ops.square(other - flat), box) / (strength * strength))
      sum = sum and sum + weight * other or weight * other
      total = total and total + weight or weight
    end
  end
  return back(sum / total)
end

return filters
