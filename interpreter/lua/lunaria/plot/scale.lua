-- Axes: from data to places between 0 and 1, ticks at round numbers and their labels, colours for numbers.
local data = require "lunaria.plot.data"

local scale = {}

local function exponent(x)
  return math.floor(math.log(x, 10) + 1e-9)
end

-- A number with so many digits after the point; very large and very small ones with an exponent.
local function label(x, step)
  local size = math.max(math.abs(x), step)
  if x == 0 then
    return "0"
  elseif size >= 1e6 or size < 1e-3 then
    local digits = math.max(0, exponent(math.abs(x)) - exponent(step))
    local text = (("%%.%de"):format(digits)):format(x)
    return (text:gsub("e%+?(%-?)0*(%d)", "e%1%2"))
  end
  return (("%%.%df"):format(math.max(0, -exponent(step)))):format(x)
end

--- Ticks from low to high at round numbers, about `count` of them: a list of { value =, label = }.
function scale.linear_ticks(low, high, count)
  if not (high > low) then
    return { { value = low, label = ("%.6g"):format(low) } }
  end
  local raw = high / count - low / count
  local power = 10.0 ^ exponent(raw)
  local ratio = raw / power
  local step = power * (ratio < 1.5 and 1 or ratio < 3.5 and 2 or ratio < 7.5 and 5 or 10)
  local ticks = {}
  for i = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) do
    local value = i * step
    ticks[#ticks + 1] = { value = value, label = label(value, step) }
  end
  return ticks
end

--- Ticks of a logarithmic axis: powers of ten, with 2 and 5 between them when there are few.
function scale.log_ticks(low, high)
  local first, last = math.floor(math.log(low, 10) + 1e-9), math.ceil(math.log(high, 10) - 1e-9)
  local between = last - first <= 2 and { 1, 2, 5 } or { 1 }
  local stride = math.max(1, (last - first + 6) // 7)
  local ticks = {}
  for power = first, last do
    if (power - first) % stride == 0 then
      for _, factor in ipairs(between) do
        local value = factor * 10.0 ^ power
        if value >= low * (1 - 1e-9) and value <= high * (1 + 1e-9) then
          ticks[#ticks + 1] = { value = value, label = label(value, value) }
        end
      end
    end
  end
  return ticks
end

-- Room beside the data must not lead out of what a number can be.
local LEAST, GREATEST = 2.3e-308, 1.7e308

local Axis = {}
Axis.__index = Axis

--- Where a value lies on the axis, 0 to 1; nothing for a value that has no place (NaN, 0 on a logarithmic axis).
function Axis:place(value)
  if self.categories then
    local i = self.index[value]
    return i and (i - 0.5) / #self.categories
  end
  if not data.is_finite(value) or (self.log and value <= 0) then
    return nil
  end
  if self.log then
    value = math.log(value)
  end
  -- Halves, since the distance between two numbers can be too large for one.
  local share = (value / 2 - self.from / 2) / (self.to / 2 - self.from / 2)
  return self.reversed and 1 - share or share
end

--- An axis over numbers. Options: log, exact (no room beside the data), zero (must show 0), domain, reversed.
function scale.axis(low, high, options)
  if not low then
    low, high = options.log and 1 or 0, options.log and 10 or 1
  end
  if options.zero and not options.log then
    low, high = math.min(low, 0), math.max(high, 0)
  end
  local fixed = options.domain
  if not fixed then
    if low == high then
      local room = options.log and 0 or math.max(math.abs(low) * 0.5, 0.5)
      low, high = options.log and low / 2 or low - room, options.log and high * 2 or high + room
    elseif not options.exact then
      if options.log then
        local room = (high / low) ^ 0.04
        low, high = low / room, high * room
      else
        local room = high * 0.04 - low * 0.04
        low = low == 0 and options.zero and 0 or low - room
        high = high == 0 and options.zero and 0 or high + room
      end
    end
  else
    low, high = fixed[1], fixed[2]
  end
  low, high = math.max(low, options.log and LEAST or -GREATEST), math.min(high, GREATEST)
  local axis = setmetatable({ low = low, high = high, log = options.log, reversed = options.reversed }, Axis)
  axis.from, axis.to = low, high
  if axis.log then
    axis.from, axis.to = math.log(low), math.log(high)
  end
  return axis
end

--- An axis over names.
function scale.category_axis(names)
  local axis = setmetatable({ categories = {}, index = {} }, Axis)
  for _, name in ipairs(names) do
    if not axis.index[name] then
      axis.categories[#axis.categories + 1] = name
      axis.index[name] = #axis.categories
    end
  end
  return axis
end

function Axis:ticks(count)
  if not self.categories then
    return self.log and scale.log_ticks(self.low, self.high) or scale.linear_ticks(self.low, self.high, count)
  end
  local ticks, stride = {}, math.max(1, math.ceil(#self.categories / math.max(1, count)))
  for i = 1, #self.categories, stride do
    ticks[#ticks + 1] = { value = self.categories[i], label = self.categories[i] }
  end
  return ticks
end

-- Tableau's ten colours, which Vega takes too.
scale.colors = {
  "#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b279a2", "#ff9da6", "#9d755d", "#bab0ac",
}

-- Colours at equal distances; between them one is interpolated.
scale.maps = {
  viridis = { 0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725 },
  magma = { 0x000004, 0x180f3d, 0x440f76, 0x721f81, 0x9e2f7f, 0xcd4071, 0xf1605d, 0xfd9668, 0xfeca8d, 0xfcfdbf },
  coolwarm = { 0x3b4cc0, 0x6788ee, 0x9abbff, 0xc9d7f0, 0xdddddd, 0xedd1c2, 0xf7a889, 0xe26952, 0xb40426 },
  grey = { 0x000000, 0xffffff },
}

--- Red, green and blue, 0 to 255, of a share between 0 and 1; NaN is a light grey.
function scale.rgb(map, share)
  if share ~= share then
    return 224, 224, 224
  end
  local colors = scale.maps[map]
  local at = math.min(1, math.max(0, share)) * (#colors - 1)
  local i = math.min(math.floor(at), #colors - 2)
  local a, b, part = colors[i + 1], colors[i + 2], at - i
  local function mixed(shift)
    local from, to = a >> shift & 255, b >> shift & 255
    return math.floor(from + (to - from) * part + 0.5)
  end
  return mixed(16), mixed(8), mixed(0)
end

function scale.hex(map, share)
  return ("#%02x%02x%02x"):format(scale.rgb(map, share))
end

return scale
