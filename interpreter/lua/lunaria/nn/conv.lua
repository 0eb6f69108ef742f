-- Convolutions as cells. pad_mode is "same" (the default: as many outputs as inputs, divided by the stride), "valid" (no
-- padding) or "pad" (as much as padding says).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local layer, Cell = cells.layer, cells.Cell

local function text_of(sizes)
  return #sizes == 1 and tostring(sizes[1]) or "(" .. table.concat(sizes, ", ") .. ")"
end

-- What all convolutions over `axes` axes have in common. Gives the shape of the weight's window.
local function setup(self, name, a, axes)
  self.in_channels = check.positive(name, "in_channels", a.in_channels)
  self.out_channels = check.positive(name, "out_channels", a.out_channels)
  self.kernel_size = check.sizes(name, "kernel_size", a.kernel_size, axes, 1)
  self.stride = check.sizes(name, "stride", a.stride, axes, 1)
  self.pad_mode = check.choice(name, "pad_mode", a.pad_mode, { "same", "valid", "pad" })
  self.dilation = check.sizes(name, "dilation", a.dilation, axes, 1)
  self.group = check.positive(name, "group", a.group)
  self.has_bias = check.boolean(name, "has_bias", a.has_bias)
  local sides = type(a.padding) == "table" and #a.padding or axes
  if sides ~= axes and sides ~= 2 * axes then
    fail(name, ("padding must be one integer, one per axis (%d) or one per side (%d)"):format(axes, 2 * axes))
  end
  self.padding = check.sizes(name, "padding", a.padding, sides, 0)
  for _, size in ipairs(self.padding) do
    if size ~= 0 and self.pad_mode ~= "pad" then
      fail(name, ("padding must be 0 with pad_mode '%s', got %d"):format(self.pad_mode, size), "use pad_mode = \"pad\"")
    end
  end
  for _, which in ipairs { "in_channels", "out_channels" } do
    if self[which] % self.group ~= 0 then
      fail(name, ("%s (%d) must be divisible by group (%d)"):format(which, self[which], self.group))
    end
  end
  if a.data_format ~= "NCHW" and a.data_format ~= "NCDHW" and a.data_format ~= "NCL" then
    fail(name, "data_format must be channels first ('NCHW'), got " .. arguments.describe(a.data_format),
      "move the channels with x:transpose({0, 3, 1, 2})")
  end
end

local function make_parameters(self, a, first, second)
  local shape, fan_in = { first, second }, second
  for _, size in ipairs(self.kernel_size) do
    shape[#shape + 1] = size
    fan_in = fan_in * size
  end
  self.weight = ms.Parameter(init.initializer(a.weight_init or init.HeUniform(math.sqrt(5)), shape, a.dtype), "weight")
  if self.has_bias then
    local bias_init = a.bias_init or init.Uniform(1 / math.sqrt(fan_in))
    self.bias = ms.Parameter(init.initializer(bias_init, { self.out_channels }, a.dtype), "bias")
  end
end

local function describe_conv(self)
  local sizes = ("input_channels=%d, output_channels=%d, kernel_size=%s, stride=%s"):format(
    self.in_channels, self.out_channels, text_of(self.kernel_size), text_of(self.stride))
  return ("%s, pad_mode=%s, padding=%s, dilation=%s, group=%d, has_bias=%s"):format(
    sizes, self.pad_mode, text_of(self.padding), text_of(self.dilation), self.group, self.has_bias)
end

local signature = "in_channels, out_channels, kernel_size, stride=1, pad_mode=\"same\", padding=0, dilation=1, group=1, "
  .. "has_bias=false, weight_init=nil, bias_init=nil, data_format=\"NCHW\", dtype=nil"

local function convolution(name, axes, operator, doc)
  local class = layer(Cell, name, signature, doc)
  function class:setup(a)
    setup(self, name, a, axes)
    make_parameters(self, a, self.out_channels, self.in_channels // self.group)
  end
  function class:construct(x)
    return operator(x, self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)
  end
  class.extend_repr = describe_conv
  return class
end

local Conv1d = convolution("Conv1d", 1, ops.conv1d, [[Convolution over the last axis of (N, C, L).
  > ms.nn.Conv1d(3, 8, 3)(ms.ones { 2, 3, 16 }).shape --> (2, 8, 16)]])
local Conv2d = convolution("Conv2d", 2, ops.conv2d,
  [[Convolution over the last two axes of (N, C, H, W); the weight has shape (out_channels, in_channels / group, height, width).

kernel_size, stride and dilation are one number or {height, width}. pad_mode is "same", "valid" or "pad"; with "pad" padding is
one number, {height, width} or {top, bottom, left, right}. The weight is drawn by HeUniform(sqrt(5)).

  > ms.nn.Conv2d(1, 6, 5, { pad_mode = "valid" })(images)
  > ms.nn.Conv2d(3, 8, 3)(ms.ones { 2, 3, 16, 16 }).shape --> (2, 8, 16, 16)
  > ms.nn.Conv2d(3, 8, 3, { stride = 2, pad_mode = "pad", padding = 1 })(ms.ones { 2, 3, 16, 16 }).shape --> (2, 8, 8, 8)]])
local Conv3d = convolution("Conv3d", 3, ops.conv3d, [[Convolution over the last three axes of (N, C, D, H, W).
  > ms.nn.Conv3d(3, 8, 3)(ms.ones { 2, 3, 4, 4, 4 }).shape --> (2, 8, 4, 4, 4)]])

local function transposed(name, axes, operator, doc)
  -- MindSpore has output_padding at another place where there are three axes.
  local before = axes == 3 and "group=1, " or "padding=0, "
  local class = layer(Cell, name, (signature:gsub(before, before .. "output_padding=0, ")), doc)
  function class:setup(a)
    setup(self, name, a, axes)
    self.output_padding = check.sizes(name, "output_padding", a.output_padding, axes, 0)
    make_parameters(self, a, self.in_channels, self.out_channels // self.group)
    -- "same" gives sizes that are the input's times the stride: what goes beyond that is cut off at both ends, one more at the second
    -- where it is odd, as the gradient of a convolution has it; where the stride is longer than the kernel's reach, zeros follow.
    self.before, self.extra = {}, {}
    local sides = #self.padding == 2 * axes
    for i = 1, axes do
      local first, last = self.padding[sides and 2 * i - 1 or i], self.padding[sides and 2 * i or i]
      self.extra[i] = self.output_padding[i]
      if self.pad_mode == "same" then
        if self.output_padding[i] ~= 0 then
          fail(name, ("output_padding must be 0 with pad_mode 'same', got %d"):format(self.output_padding[i]), "use pad_mode = \"pad\"")
        end
        local surplus = self.dilation[i] * (self.kernel_size[i] - 1) + 1 - self.stride[i]
        first = math.max(0, surplus) // 2
        last, self.extra[i] = math.max(0, surplus) - first, math.max(0, -surplus)
      end
      self.before[2 * i - 1], self.before[2 * i] = first, last
    end
  end
  function class:construct(x)
    return operator(x, self.weight, self.bias, self.stride, self.before, self.extra, self.group, self.dilation)
  end
  class.extend_repr = describe_conv
  return class
end

local Conv1dTranspose = transposed("Conv1dTranspose", 1, ops.conv_transpose1d, [[Transposed convolution over the last axis of (N, C, L).
  > ms.nn.Conv1dTranspose(3, 8, 4, { stride = 2, pad_mode = "same" })(ms.ones { 2, 3, 8 }).shape --> (2, 8, 16)]])
local Conv2dTranspose = transposed("Conv2dTranspose", 2, ops.conv_transpose2d,
  [[Transposed convolution over the last two axes of (N, C, H, W); the weight has shape (in_channels, out_channels / group, height, width).
  > ms.nn.Conv2dTranspose(3, 8, 4, { stride = 2, pad_mode = "same" })(ms.ones { 2, 3, 8, 8 }).shape --> (2, 8, 16, 16)]])
local Conv3dTranspose = transposed("Conv3dTranspose", 3, ops.conv_transpose3d,
  [[Transposed convolution over the last three axes of (N, C, D, H, W); the weight has shape (in_channels, out_channels / group, depth,
height, width).

  > ms.nn.Conv3dTranspose(2, 3, 2, { stride = 2 })(ms.ones { 1, 2, 3, 4, 5 }).shape --> (1, 3, 6, 8, 10)]])

return {
  Conv1d = Conv1d, Conv2d = Conv2d, Conv3d = Conv3d, Conv1dTranspose = Conv1dTranspose, Conv2dTranspose = Conv2dTranspose,
  Conv3dTranspose = Conv3dTranspose,
}
