-- Weights as integers: their scales, rounding to the nearest or with the errors of earlier columns made up for (GPTQ).
local ms = require "lunaria"
local ranges = require "lunaria.lite.quantise_ranges"

local ops = ms.ops
local M = {}

--- The limits of a weight's format. Blocks of four bits use all sixteen integers, as the files of language models have them.
function M.limits(bits, block) return ranges.limits(bits, not (bits == 4 and block > 0)) end

--- One number for each place along an axis, against a tensor of so many axes.
function M.along(t, axis, rank)
  local shape = {}
  for i = 1, rank do shape[i] = i == axis + 1 and t.size or 1 end
  return ops.reshape(t, shape)
end

local function other_axes(w, axis)
  local axes = {}
  for i = 0, w.ndim - 1 do
    if i ~= axis then axes[#axes + 1] = i end
  end
  return axes
end

-- Blocks along the axis, each a row: (..., blocks, block, ...) with the block's axis behind that of the blocks. The last one may be
-- filled up with zeros.
local function in_blocks(w, axis, block)
  local places = w.shape[axis + 1]
  local missing = -places % block
  if missing > 0 then
    local shape = {}
    for i = 1, w.ndim do shape[i] = w.shape[i] end
    shape[axis + 1] = missing
    w = ops.concat({ w, ops.zeros(shape, w.dtype) }, axis)
  end
  local shape = {}
  for i = 1, w.ndim do
    if i == axis + 1 then
      shape[#shape + 1], shape[#shape + 2] = (places + missing) // block, block
    else
      shape[#shape + 1] = w.shape[i]
    end
  end
  return ops.reshape(w, shape)
end

-- A reduction over all numbers that share a scale.
local function over_scale(reduce, w, axis, block)
  if block > 0 then return reduce(in_blocks(w, axis, block), axis + 1) end
  if axis then return reduce(w, other_axes(w, axis)) end
  return reduce(w)
end

-- Scales are halves where a file holds them so.
local function stored(scale, block)
  return block > 0 and ops.cast(ops.cast(scale, ms.float16), ms.float32) or scale
end

local function without_zeros(scale) return ops.where(ops.equal(scale, 0.0), 1.0, scale) end

--- The scale of a weight: one number, one for each place along the axis, or one for each block along it. In few bits a smaller
--- range may have the smaller error: then the best of some is taken.
function M.scale(w, bits, axis, block)
  local least, most = M.limits(bits, block)
  local scale
  if least < -most then
    -- The number of the largest magnitude becomes the least integer exactly.
    local blocks = in_blocks(w, axis, block)
    local high, low = ops.amax(blocks, axis + 1), ops.amin(blocks, axis + 1)
    scale = ops.where(ops.greater(high, ops.neg(low)), high, low) / least
  else
    scale = over_scale(ops.amax, ops.abs(w), axis, block) / most
  end
  scale = without_zeros(stored(scale, block))
  if bits >= 8 then return scale end
  local function error_of(s)
    local difference = ops.fake_quantize(w, s, 0.0, least, most, axis, block) - w
    return over_scale(ops.sum, difference * difference, axis, block)
  end
  local best = error_of(scale)
  local full = scale
  for i = 1, 12 do
    local tried = without_zeros(stored(full * (1 - i * 0.03), block))
    local e = error_of(tried)
    local better = ops.less(e, best)
    scale, best = ops.where(better, tried, scale), ops.where(better, e, best)
  end
  return scale
end

--- The weight rounded to the nearest integers.
function M.nearest(w, bits, scale, axis, block)
  local least, most = M.limits(bits, block)
  return ops.fake_quantize(w, scale, 0.0, least, most, axis, block)
end

local COLUMNS = 64

--- A weight (n, k) rounded column by column, each column's error made up for by those that follow (GPTQ, Frantar et al. 2022).
--- moments: (k, k), the sum of x x^T over inputs; scale: (n, 1), or (n, blocks).
function M.gptq(w, bits, scale, block, moments)
  local least, most = M.limits(bits, block)
  local n, k = w.shape[1], w.shape[2]
  local diagonal = ops.diagonal(moments)
  local damping = ops.mean(diagonal):item() * 0.01
  if damping == 0 then return M.nearest(w, bits, scale, block > 0 and 1 or 0, block) end
  local h = ops.cast(moments, ms.float64) + ops.eye(k, k, ms.float64) * damping
  local u = ops.cast(ops.cholesky(ops.inverse(h), true), ms.float32)
  local rest, done = ops.transpose(w, { 1, 0 }), {}
  scale = ops.transpose(scale, { 1, 0 })
  for from = 0, k - 1, COLUMNS do
    local count = math.min(COLUMNS, k - from)
    local rows, errors = ops.narrow(rest, 0, 0, count), {}
    local factors = ops.narrow(u, 0, from, count)
    local own = ops.narrow(factors, 1, from, count)
    for j = 0, count - 1 do
      local row = ops.narrow(rows, 0, j, 1)
      local s = ops.narrow(scale, 0, block > 0 and (from + j) // block or 0, 1)
      local rounded = ops.fake_quantize_element(row, s, 0.0, least, most)
      local e = (row - rounded) / own[j][j]
      done[#done + 1], errors[j + 1] = rounded, e
      rows = rows - ops.reshape(own[j], { count, 1 }) * e
    end
    if from + count < k then
      local later = ops.narrow(factors, 1, from + count, k - from - count)
      rest = ops.narrow(rest, 0, count, k - from - count) - ops.matmul(ops.transpose(later, { 1, 0 }), ops.concat(errors, 0))
    end
  end
  return ops.transpose(ops.concat(done, 0), { 1, 0 }):reshape { n, k }
end

local Comparison = {}
Comparison.__index = Comparison

--- Sums over pairs of tensors, from which the error of one against the other follows.
function M.comparison() return setmetatable({ signal = 0, noise = 0, other = 0, product = 0 }, Comparison) end

function Comparison:add(exact, rounded)
  local a, b = ops.cast(ops.reshape(exact, { -1 }), ms.float64), ops.cast(ops.reshape(rounded, { -1 }), ms.float64)
  local d = a - b
  self.signal, self.noise = self.signal + ops.sum(a * a):item(), self.noise + ops.sum(d * d):item()
  self.other, self.product = self.other + ops.sum(b * b):item(), self.product + ops.sum(a * b):item()
end

--- The signal in decibels over the noise, and the cosine of the angle.
function Comparison:result() return M.decibels(self.signal, self.noise), M.cosine(self.signal, self.other, self.product) end

function M.compare(exact, rounded)
  local comparison = M.comparison()
  comparison:add(exact, rounded)
  return comparison:result()
end

function M.decibels(signal, noise)
  if noise == 0 then return math.huge end
  return signal > 0 and 10 * math.log(signal / noise, 10) or -math.huge
end

function M.cosine(a, b, product)
  if a == 0 and b == 0 then return 1.0 end
  return a > 0 and b > 0 and product / math.sqrt(a * b) or 0.0
end

return M
