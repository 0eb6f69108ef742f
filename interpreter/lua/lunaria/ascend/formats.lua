-- The layouts of tensors on the chip: channels in blocks of 16 (NC1HWC0), matrices in squares of 16 x 16 (fractals).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local ops = ms.ops

local M = {}

local function up(n) return (n + 15) // 16 * 16 end

-- Zeros behind the given axes, up to the next multiple of 16.
local function padded(x, axes)
  for axis in pairs(axes) do
    local missing = up(x.shape[axis]) - x.shape[axis]
    if missing > 0 then
      local shape = {}
      for i = 1, #x.shape do shape[i] = i == axis and missing or x.shape[i] end
      x = ops.concat({ x, ops.zeros(shape, x.dtype):to(x.device) }, axis - 1)
    end
  end
  return x
end

local function slice(x, sizes)
  local index = {}
  for i, n in ipairs(sizes) do index[i] = ms.slice(0, n) end
  return x[index]
end

local to = {}
-- (m, k) -> (k / 16, m, 16): columns of squares, each square by rows.
function to.FRACTAL_NZ(x)
  x = padded(x, { true, true })
  local m, k = x.shape[1], x.shape[2]
  return ops.transpose(ops.reshape(x, { m, k // 16, 16 }), { 1, 0, 2 })
end
-- (k, n) -> (k / 16, n / 16, 16 of n, 16 of k): what the right operand of mmad is made of.
function to.FRACTAL_ZN(x)
  x = padded(x, { true, true })
  local k, n = x.shape[1], x.shape[2]
  return ops.transpose(ops.reshape(x, { k // 16, 16, n // 16, 16 }), { 0, 2, 3, 1 })
end
-- (n, c, h, w) -> (n, c / 16, h, w, 16)
function to.NC1HWC0(x)
  x = padded(x, { [2] = true })
  local n, c, h, w = table.unpack(x.shape)
  return ops.transpose(ops.reshape(x, { n, c // 16, 16, h, w }), { 0, 1, 3, 4, 2 })
end
-- (o, c, h, w) -> (c / 16 * h * w, o / 16, 16 of o, 16 of c)
function to.FRACTAL_Z(x)
  x = padded(x, { true, true })
  local o, c, h, w = table.unpack(x.shape)
  local y = ops.transpose(ops.reshape(x, { o // 16, 16, c // 16, 16, h, w }), { 2, 4, 5, 0, 1, 3 })
  return ops.reshape(y, { c // 16 * h * w, o // 16, 16, 16 })
end

local from = {}
function from.FRACTAL_NZ(x, shape)
  local k1, m = x.shape[1], x.shape[2]
  return slice(ops.reshape(ops.transpose(x, { 1, 0, 2 }), { m, k1 * 16 }), shape)
end
function from.FRACTAL_ZN(x, shape)
  local k1, n1 = x.shape[1], x.shape[2]
  return slice(ops.reshape(ops.transpose(x, { 0, 3, 1, 2 }), { k1 * 16, n1 * 16 }), shape)
end
function from.NC1HWC0(x, shape)
  local n, c1, h, w = table.unpack(x.shape)
  return slice(ops.reshape(ops.transpose(x, { 0, 1, 4, 2, 3 }), { n, c1 * 16, h, w }), shape)
end
function from.FRACTAL_Z(x, shape)
  local o, c, h, w = up(shape[1]), up(shape[2]), shape[3], shape[4]
  local y = ops.reshape(x, { c // 16, h, w, o // 16, 16, 16 })
  return slice(ops.reshape(ops.transpose(y, { 3, 4, 0, 5, 1, 2 }), { o, c, h, w }), shape)
end

local ranks = { FRACTAL_NZ = 2, FRACTAL_ZN = 2, NC1HWC0 = 4, FRACTAL_Z = 4 }

local function known(where, format)
  if ranks[format] then return ranks[format] end
  arguments.fail(where, ("there is no format '%s'; there are: FRACTAL_NZ, FRACTAL_Z, FRACTAL_ZN, NC1HWC0"):format(tostring(format)))
end

--- The tensor in a format of the chip: "NC1HWC0" and "FRACTAL_Z" of four axes, "FRACTAL_NZ" and "FRACTAL_ZN" of two. Sizes are filled up
-- to multiples of 16 with zeros.
---     > ms.ascend.to_format(ms.zeros { 20, 40 }, "FRACTAL_NZ").shape --> (3, 32, 16)
function M.to_format(x, format)
  local rank = known("ascend.to_format", format)
  if not ms.is_tensor(x) or #x.shape ~= rank then
    arguments.fail("ascend.to_format", ("%s is a format of tensors with %d axes, got %s"):format(format, rank, arguments.describe(x)))
  end
  return to[format](x):contiguous()
end

--- Back from a format: shape is that of the tensor before.
---     > ms.ascend.from_format(ms.ascend.to_format(ms.ones { 2, 3 }, "FRACTAL_ZN"), "FRACTAL_ZN", { 2, 3 }).shape --> (2, 3)
function M.from_format(x, format, shape)
  local rank = known("ascend.from_format", format)
  if not ms.is_tensor(x) then arguments.fail("ascend.from_format", "x must be a tensor, got " .. arguments.describe(x)) end
  if type(shape) ~= "table" or #shape ~= rank then
    arguments.fail("ascend.from_format", ("shape must have %d numbers for %s"):format(rank, format))
  end
  return from[format](x, shape):contiguous()
end

return M
