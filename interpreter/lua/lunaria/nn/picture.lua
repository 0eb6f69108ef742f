-- Cells that change the size of pictures: channels into pixels and back, resizing, patches.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local classes = {}

-- An operator with one positive integer.
local function with_count(name, parameter, f, doc)
  local class = layer(Cell, name, parameter, doc)
  class.setup = arguments.settings(name, parameter .. ":positive")
  function class:construct(x) return f(x, self[parameter]) end
  function class:extend_repr() return parameter .. "=" .. self[parameter] end
  classes[name] = class
end
with_count("PixelShuffle", "upscale_factor", ops.pixel_shuffle,
  [[Moves channels into space: (N, C r r, H, W) becomes (N, C, H r, W r), where r is upscale_factor (Shi and others 2016).

  > ms.nn.PixelShuffle(2)(ms.ones { 1, 8, 3, 5 }).shape --> (1, 2, 6, 10)]])
with_count("PixelUnshuffle", "downscale_factor", ops.pixel_unshuffle,
  [[Moves space into channels: (N, C, H r, W r) becomes (N, C r r, H, W), where r is downscale_factor.

  > ms.nn.PixelUnshuffle(2)(ms.ones { 1, 2, 6, 10 }).shape --> (1, 8, 3, 5)]])
with_count("ChannelShuffle", "groups", ops.channel_shuffle,
  [[Takes a channel of each group in turn: of (N, groups k, ...) channel g k + i becomes channel i groups + g (Zhang and others 2018).

  > ms.nn.ChannelShuffle(2)(ms.arange(4):reshape { 1, 4, 1, 1 }):reshape({ -1 }):tolist()[2] --> 2]])

local modes = { "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area" }

local Upsample = layer(Cell, "Upsample", "size=nil, scale_factor=nil, mode=\"nearest\", align_corners=nil, recompute_scale_factor=nil",
  [[Resizes the axes after batch and channels to size, or by scale_factor; one of the two is given.

mode: nearest, nearest-exact, linear (one axis), bilinear or bicubic (two), trilinear (three) or area.

  > ms.nn.Upsample({ scale_factor = 2.0 })(ms.ones { 1, 3, 4, 5 }).shape --> (1, 3, 8, 10)]])
function Upsample:setup(a)
  if (a.size == nil) == (a.scale_factor == nil) then
    fail("Upsample", a.size == nil and "size or scale_factor must be given" or "takes either size or scale_factor, got both")
  end
  self.size, self.scale_factor = a.size, a.scale_factor
  for _, which in ipairs { "size", "scale_factor" } do
    local value = a[which]
    for i, one in ipairs(type(value) == "table" and value or { value }) do
      local label = type(value) == "table" and ("%s[%d]"):format(which, i) or which
      if which == "size" then check.positive("Upsample", label, one) else check.number_positive("Upsample", label, one) end
    end
  end
  self.mode = check.choice("Upsample", "mode", a.mode, modes)
  if a.align_corners ~= nil then
    self.align_corners = check.boolean("Upsample", "align_corners", a.align_corners)
  end
  if a.recompute_scale_factor ~= nil then
    self.recompute_scale_factor = check.boolean("Upsample", "recompute_scale_factor", a.recompute_scale_factor)
  end
end
function Upsample:construct(x)
  return ops.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)
end
function Upsample:extend_repr()
  local function text(value) return type(value) == "table" and "(" .. table.concat(value, ", ") .. ")" or tostring(value) end
  return ("%s, mode=%s"):format(self.size and "size=" .. text(self.size) or "scale_factor=" .. text(self.scale_factor), self.mode)
end

-- {1, rows, columns, 1} as MindSpore writes windows, {rows, columns}, or one number for both.
local function window(name, value)
  if type(value) == "table" and #value == 4 then
    if value[1] ~= 1 or value[4] ~= 1 then
      fail("Unfold", ("%s must be {1, rows, columns, 1}, got {%s}"):format(name, table.concat(value, ", ")))
    end
    value = { value[2], value[3] }
  end
  return check.sizes("Unfold", name, value, 2, 1)
end

local Unfold = layer(Cell, "Unfold", "ksizes, strides, rates, padding=\"valid\"",
  [[The patches of pictures: (N, C, H, W) becomes (N, rows columns C, H', W'), one place for each position of the window.

ksizes: the size of the window, {1, rows, columns, 1}, {rows, columns} or one number. strides: how far the window moves, written
in the same way. rates: the distance between the pixels of a window, written in the same way. padding: "valid" or "same", which
adds zeros so that there are as many positions as pixels divided by the stride. Within a place the pixels of the window
follow one another, each with all its channels. ops.unfold gives patches as columns.

  > ms.nn.Unfold({ 1, 2, 2, 1 }, { 1, 2, 2, 1 }, { 1, 2, 2, 1 })(ms.ones { 2, 3, 6, 6 }).shape --> (2, 12, 2, 2)]])
function Unfold:setup(a)
  self.ksizes, self.strides, self.rates = window("ksizes", a.ksizes), window("strides", a.strides), window("rates", a.rates)
  local padding = type(a.padding) == "string" and a.padding:lower() or a.padding
  self.padding = check.choice("Unfold", "padding", padding, { "valid", "same" })
end
function Unfold:construct(x)
  if not ms.is_tensor(x) or x.ndim ~= 4 then
    fail("Unfold", "the input must be a tensor of four axes (N, C, H, W), got " .. describe(x))
  end
  local amounts, places = {}, {}
  for axis = 1, 2 do
    local size, kernel, stride = x.shape[axis + 2], (self.ksizes[axis] - 1) * self.rates[axis] + 1, self.strides[axis]
    if self.padding == "same" then
      local total = math.max(0, ((size + stride - 1) // stride - 1) * stride + kernel - size)
      amounts[5 - 2 * axis], amounts[6 - 2 * axis] = total // 2, total - total // 2
      size = size + total
    elseif size < kernel then
      fail("Unfold", ("the input has shape %s, which is smaller than the window (%d along axis %d)"):format(
        tostring(x.shape), kernel, axis + 1))
    end
    places[axis] = (size - kernel) // stride + 1
  end
  if #amounts > 0 then x = ops.pad(x, amounts) end
  local batch, channels = x.shape[1], x.shape[2]
  local pixels = self.ksizes[1] * self.ksizes[2]
  local columns = ops.unfold(x, self.ksizes, self.rates, 0, self.strides)
  columns = ops.transpose(ops.reshape(columns, { batch, channels, pixels, places[1] * places[2] }), { 0, 2, 1, 3 })
  return ops.reshape(columns, { batch, pixels * channels, places[1], places[2] })
end
function Unfold:extend_repr()
  return ("ksizes=(%s), strides=(%s), rates=(%s), padding=%s"):format(table.concat(self.ksizes, ", "),
    table.concat(self.strides, ", "), table.concat(self.rates, ", "), self.padding)
end

classes.Upsample, classes.Unfold = Upsample, Unfold
return classes
