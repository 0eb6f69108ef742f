-- From the numbers that a tensor had while a network was calibrated to the range that its integers cover, and from a range to
-- a scale and a zero point.
local ms = require "lunaria"

local ops = ms.ops
local M = {}

M.BINS = 2048

--- The least and the largest integer of a format.
function M.limits(bits, is_narrow)
  local most = (1 << (bits - 1)) - 1
  return is_narrow and -most or -most - 1, most
end

--- Scale and zero point of the signed format of so many bits over [low, high], which is widened to have 0: that is a number of
--- the format itself, so that padding and rectified numbers are exact. A range of nothing but 0 has the scale 1.
function M.affine(low, high, bits)
  low, high = math.min(low, 0.0), math.max(high, 0.0)
  local least, most = M.limits(bits)
  if not (high - low > 0) or high - low == math.huge then return 1.0, 0.0 end
  local scale = (high - low) / (most - least)
  local zero = least - low / scale
  zero = math.floor(zero + 0.5)
  return scale, math.max(least, math.min(most, zero)) + 0.0
end

-- What a tensor had so far. The histogram is made in a second round over the same numbers, when their range is known.
local Observer = {}
Observer.__index = Observer

function M.observer() return setmetatable({ low = math.huge, high = -math.huge, counts = nil, samples = 0 }, Observer) end

function Observer:see_range(x)
  if x.size == 0 then return end
  self.low, self.high = math.min(self.low, ops.amin(x):item()), math.max(self.high, ops.amax(x):item())
end

function Observer:see_counts(x)
  if x.size == 0 or not (self.high > self.low) then return end
  local counts = ops.histc(ops.reshape(x, { -1 }), M.BINS, self.low, self.high)
  self.counts = self.counts and self.counts + counts or counts
end

-- The range in which the middle share of the numbers lies.
local function percentile(self, counts, share)
  local total = 0
  for i = 1, #counts do total = total + counts[i] end
  local cut, width = total * (1 - share) / 2, (self.high - self.low) / #counts
  local from, to, below, above = 1, #counts, 0, 0
  while from < to and below + counts[from] <= cut do
    below, from = below + counts[from], from + 1
  end
  while to > from and above + counts[to] <= cut do
    above, to = above + counts[to], to - 1
  end
  return self.low + (from - 1) * width, self.low + to * width
end

-- The squared error of a histogram whose numbers are rounded to steps within [low, high]: for a bin that lies inside,
-- scale^2 / 12, as numbers lie anywhere between two steps; outside, the distance to the end. Zeros are exact.
local function squared_error(self, counts, low, high, steps)
  local width, scale = (self.high - self.low) / #counts, (high - low) / steps
  local sum = 0
  for i = 1, #counts do
    local count = counts[i]
    if count > 0 then
      local x = self.low + (i - 0.5) * width
      if x < low then
        sum = sum + count * (low - x) ^ 2
      elseif x > high then
        sum = sum + count * (x - high) ^ 2
      elseif math.abs(x) > width then
        sum = sum + count * scale * scale / 12
      end
    end
  end
  return sum
end

-- The range of least squared error: both ends are drawn in by turns.
local function least_error(self, counts, bits)
  local low, high = math.min(self.low, 0.0), math.max(self.high, 0.0)
  local steps = (1 << bits) - 1
  local best, ends = squared_error(self, counts, low, high, steps), { low, high }
  for _ = 1, 2 do
    for side = 1, 2 do
      local full = side == 1 and low or high
      for i = 40, 2, -1 do
        local tried = { ends[1], ends[2] }
        tried[side] = full * i / 40
        if tried[2] > tried[1] then
          local e = squared_error(self, counts, tried[1], tried[2], steps)
          if e < best then best, ends = e, tried end
        end
      end
    end
  end
  return ends[1], ends[2]
end

-- Kullback-Leibler divergence of a histogram's first `n` bins, what lies beyond in the last, from the same in `levels` steps.
local function divergence(counts, n, levels, beyond, total)
  local group, sum = n / levels, 0
  for level = 0, levels - 1 do
    local from, to = math.floor(level * group) + 1, math.floor((level + 1) * group)
    local mass, filled = 0, 0
    for i = from, to do
      mass = mass + counts[i]
      if counts[i] > 0 or i == n and beyond > 0 then filled = filled + 1 end
    end
    -- A step without numbers of its own that stands for those beyond it: as far off as half a number.
    local q = math.max(mass, 0.5) / math.max(filled, 1)
    for i = from, to do
      local p = i == n and counts[i] + beyond or counts[i]
      if p > 0 then sum = sum + p / total * math.log(p / q) end
    end
  end
  return sum
end

-- The threshold for magnitudes that keeps most of their distribution (8-bit inference with TensorRT, Migacz 2017).
local function least_divergence(self, counts, bits)
  local reach, width = math.max(math.abs(self.low), math.abs(self.high)), (self.high - self.low) / #counts
  local magnitudes = {}
  for i = 1, M.BINS do magnitudes[i] = 0 end
  for i = 1, #counts do
    local x = math.abs(self.low + (i - 0.5) * width)
    -- Zeros of a rectified tensor are exact in any case, and would hide what the others look like.
    if x > width then
      local at = math.min(M.BINS, math.floor(x / reach * M.BINS) + 1)
      magnitudes[at] = magnitudes[at] + counts[i]
    end
  end
  local total = 0
  for i = 1, M.BINS do total = total + magnitudes[i] end
  local levels = 1 << (bits - (self.low < 0 and 1 or 0))
  if total == 0 or levels >= M.BINS then return self.low, self.high end
  local best, bound, inside = math.huge, M.BINS, 0
  for n = 1, M.BINS do
    inside = inside + magnitudes[n]
    if n >= levels and (n - levels) % 16 == 0 then
      local d = divergence(magnitudes, n, levels, total - inside, total)
      if d < best then best, bound = d, n end
    end
  end
  local threshold = bound / M.BINS * reach
  return math.max(self.low, -threshold), math.min(self.high, threshold)
end

--- The range of an observed tensor by the method: MAX_MIN, KL, REMOVAL_OUTLIER or MSE.
function Observer:range(method, bits)
  if self.low > self.high then return 0.0, 0.0 end
  if method == "MAX_MIN" or not self.counts then return self.low, self.high end
  local counts = self.counts:tolist()
  if method == "KL" then return least_divergence(self, counts, bits) end
  if method == "REMOVAL_OUTLIER" then return percentile(self, counts, 0.9999) end
  return least_error(self, counts, bits)
end

return M
