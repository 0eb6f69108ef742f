-- Pooling as cells. pad_mode "same" pads so that there are as many windows as inputs divided by the stride, "valid" does
-- not pad, "pad" pads as padding says.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local layer, Cell = cells.layer, cells.Cell

local function setup(self, name, a, axes)
  self.kernel_size = check.sizes(name, "kernel_size", a.kernel_size, axes, 1)
  self.stride = check.sizes(name, "stride", a.stride, axes, 1)
  local pad_mode = type(a.pad_mode) == "string" and a.pad_mode:lower() or a.pad_mode
  self.pad_mode = check.choice(name, "pad_mode", pad_mode, { "same", "valid", "pad" })
  self.padding = check.sizes(name, "padding", a.padding, axes, 0)
  self.ceil_mode = check.boolean(name, "ceil_mode", a.ceil_mode)
  for i, size in ipairs(self.padding) do
    if size ~= 0 and self.pad_mode ~= "pad" then
      fail(name, ("padding must be 0 with pad_mode '%s', got %d"):format(self.pad_mode, size), "use pad_mode = \"pad\"")
    elseif size > self.kernel_size[i] // 2 then
      fail(name, ("padding must be at most half of kernel_size (%d), got %d"):format(self.kernel_size[i], size))
    end
  end
end

-- What "same" adds to the last axes of a shape: in the order of ops.pad (last axis first; before, after), and whether
-- that is anything.
local function same_padding(self, shape)
  local amounts, any = {}, false
  local axes = #self.kernel_size
  for i = axes, 1, -1 do
    local size, kernel, stride = shape[#shape - axes + i], self.kernel_size[i], self.stride[i]
    local total = math.max(0, ((size + stride - 1) // stride - 1) * stride + kernel - size)
    amounts[#amounts + 1] = total // 2
    amounts[#amounts + 1] = total - total // 2
    any = any or total > 0
  end
  return amounts, any
end

local function extend_repr(self)
  local function text(sizes)
    return #sizes == 1 and tostring(sizes[1]) or "(" .. table.concat(sizes, ", ") .. ")"
  end
  return ("kernel_size=%s, stride=%s, pad_mode=%s"):format(text(self.kernel_size), text(self.stride), self.pad_mode:upper())
end

-- PyTorch's stride is the size of the window where none is given.
local function warn_without_stride(class, name)
  local init = class.init
  function class:init(...)
    local size = ...
    if select("#", ...) == 1 and math.type(size) and size > 1 then
      arguments.warn(name, "the stride is 1 where none is given",
        ("nn.%s(%g, %g) has one output for each window beside another; { stride = 1 } says that 1 is meant"):format(name, size, size))
    end
    init(self, ...)
  end
end

local function max_pool(name, axes, operator, doc)
  local class = layer(Cell, name,
    "kernel_size=1, stride=1, pad_mode=\"valid\", padding=0, dilation=1, return_indices=false, ceil_mode=false", doc)
  warn_without_stride(class, name)
  function class:setup(a)
    setup(self, name, a, axes)
    self.dilation = check.sizes(name, "dilation", a.dilation, axes, 1)
    self.return_indices = check.boolean(name, "return_indices", a.return_indices)
    if self.pad_mode == "same" and (self.return_indices or self.ceil_mode) then
      fail(name, "return_indices and ceil_mode are not for pad_mode 'same'")
    end
  end
  function class:construct(x)
    if self.pad_mode == "same" then
      local amounts, any = same_padding(self, x.shape)
      if any then
        x = ops.pad(x, amounts, "constant", -math.huge)
      end
    end
    return operator(x, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode)
  end
  class.extend_repr = extend_repr
  return class
end

local function avg_pool(name, axes, operator, doc)
  local class = layer(Cell, name,
    "kernel_size=1, stride=1, pad_mode=\"valid\", padding=0, ceil_mode=false, count_include_pad=true, divisor_override=nil", doc)
  warn_without_stride(class, name)
  function class:setup(a)
    setup(self, name, a, axes)
    self.count_include_pad = check.boolean(name, "count_include_pad", a.count_include_pad)
    if a.divisor_override ~= nil then
      self.divisor_override = check.positive(name, "divisor_override", a.divisor_override)
    end
  end
  function class:construct(x)
    if self.pad_mode == "same" then
      local amounts, any = same_padding(self, x.shape)
      if any then
        -- The mean is over what is there: the sum of a window over how many of its elements are no padding.
        local inside = ops.pad(ops.ones_like(x), amounts)
        local sum = operator(ops.pad(x, amounts), self.kernel_size, self.stride, 0, false, true, 1)
        return sum / operator(inside, self.kernel_size, self.stride, 0, false, true, 1)
      end
    end
    return operator(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override or 0)
  end
  class.extend_repr = extend_repr
  return class
end

local function adaptive(name, axes, operator, doc, with_indices)
  local class = layer(Cell, name, with_indices and "output_size, return_indices=false" or "output_size", doc)
  function class:setup(a)
    if with_indices then
      self.return_indices = check.boolean(name, "return_indices", a.return_indices)
    end
    local size = a.output_size
    if type(size) ~= "table" then
      size = check.sizes(name, "output_size", size, axes, 1)
    end
    self.output_size = size
  end
  function class:construct(x)
    if with_indices then
      return operator(x, self.output_size, self.return_indices)
    end
    return operator(x, self.output_size)
  end
  function class:extend_repr()
    return "output_size=(" .. table.concat(self.output_size, ", ") .. ")"
  end
  return class
end

local function max_unpool(name, axes, operator, doc)
  local class = layer(Cell, name, "kernel_size, stride=nil, padding=0", doc)
  function class:setup(a)
    self.kernel_size = check.sizes(name, "kernel_size", a.kernel_size, axes, 1)
    self.stride = a.stride == nil and self.kernel_size or check.sizes(name, "stride", a.stride, axes, 1)
    self.padding = check.sizes(name, "padding", a.padding, axes, 0)
  end
  function class:construct(x, indices, output_size)
    return operator(x, indices, self.kernel_size, self.stride, self.padding, output_size)
  end
  function class:extend_repr()
    return ("kernel_size=(%s), stride=(%s)"):format(table.concat(self.kernel_size, ", "), table.concat(self.stride, ", "))
  end
  return class
end

local function lp_pool(name, axes, operator, doc)
  local class = layer(Cell, name, "norm_type, kernel_size, stride=nil, ceil_mode=false", doc)
  function class:setup(a)
    self.norm_type = check.number_positive(name, "norm_type", a.norm_type)
    self.kernel_size = check.sizes(name, "kernel_size", a.kernel_size, axes, 1)
    self.stride = a.stride == nil and self.kernel_size or check.sizes(name, "stride", a.stride, axes, 1)
    self.ceil_mode = check.boolean(name, "ceil_mode", a.ceil_mode)
  end
  function class:construct(x)
    return operator(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
  end
  return class
end

-- The operator has the last two parameters the other way round.
local function max_pool3d(x, kernel_size, stride, padding, dilation, return_indices, ceil_mode)
  return ops.max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
end

return {
  MaxPool1d = max_pool("MaxPool1d", 1, ops.max_pool1d, [[Largest element of each window of the last axis.
  > ms.nn.MaxPool1d(2, 2)(ms.ones { 1, 3, 8 }).shape --> (1, 3, 4)]]),
  MaxPool2d = max_pool("MaxPool2d", 2, ops.max_pool2d,
    [[Largest element of each window of the last two axes; stride is 1 by default. nn.MaxPool2d(2, 2) halves both axes.
  > ms.nn.MaxPool2d(2, 2)(ms.ones { 1, 3, 8, 8 }).shape --> (1, 3, 4, 4)]]),
  AvgPool1d = avg_pool("AvgPool1d", 1, ops.avg_pool1d, [[Mean of each window of the last axis.
  > ms.nn.AvgPool1d(2, 2)(ms.ones { 1, 3, 8 }).shape --> (1, 3, 4)]]),
  AvgPool2d = avg_pool("AvgPool2d", 2, ops.avg_pool2d, [[Mean of each window of the last two axes; stride is 1 by default.
  > ms.nn.AvgPool2d(2, 2)(ms.ones { 1, 3, 8, 8 }).shape --> (1, 3, 4, 4)]]),
  MaxPool3d = max_pool("MaxPool3d", 3, max_pool3d,
    [[Largest element of each window of the last three axes; stride is 1 by default.

  > ms.nn.MaxPool3d(2, 2)(ms.ones { 1, 3, 4, 6, 8 }).shape
  (1, 3, 2, 3, 4)]]),
  AvgPool3d = avg_pool("AvgPool3d", 3, ops.avg_pool3d,
    [[Mean of each window of the last three axes; stride is 1 by default.

  > ms.nn.AvgPool3d(2, 2)(ms.ones { 1, 3, 4, 6, 8 }).shape
  (1, 3, 2, 3, 4)]]),
  MaxUnpool1d = max_unpool("MaxUnpool1d", 1, ops.max_unpool1d,
    [[Puts maxima back where nn.MaxPool1d with return_indices found them; 0 elsewhere: cell(x, indices, output_size).

stride is kernel_size by default. output_size: the size of the result where several would fit, as {L} or the whole shape.

  > ms.nn.MaxUnpool1d(2)(ms.tensor { { { 4.0 } } }, ms.tensor { { { 1 } } })[0][0]:tolist()[2]
  4.0]]),
  MaxUnpool2d = max_unpool("MaxUnpool2d", 2, ops.max_unpool2d,
    [[Puts maxima back where nn.MaxPool2d with return_indices found them; 0 elsewhere: cell(x, indices, output_size).

stride is kernel_size by default. output_size: the size of the result where several would fit, as {H, W} or the whole shape.

  > ms.nn.MaxUnpool2d(2)(ms.tensor { { { { 4.0 } } } }, ms.tensor { { { { 3 } } } })[0][0][1]:tolist()[2]
  4.0]]),
  MaxUnpool3d = max_unpool("MaxUnpool3d", 3, ops.max_unpool3d,
    [[Puts maxima back where nn.MaxPool3d with return_indices found them; 0 elsewhere: cell(x, indices, output_size).

stride is kernel_size by default. output_size: the size of the result where several would fit, as {D, H, W} or the whole shape.

  > ms.nn.MaxUnpool3d { kernel_size = { 1, 1, 2 } }(ms.tensor { { { { { 4.0 } } } } }, ms.tensor { { { { { 1 } } } } }):sum():item()
  4.0]]),
  LPPool1d = lp_pool("LPPool1d", 1, ops.lp_pool1d,
    [[Norm of order norm_type of each window of the last axis; stride is kernel_size by default.

  > ms.nn.LPPool1d(2.0, 2)(ms.tensor { { { 3.0, 4.0 } } }):item()
  5.0]]),
  LPPool2d = lp_pool("LPPool2d", 2, ops.lp_pool2d,
    [[Norm of order norm_type of each window of the last two axes; stride is kernel_size by default.

  > ms.nn.LPPool2d(1.0, 2)(ms.ones { 1, 1, 2, 2 }):item()
  4.0]]),
  AdaptiveMaxPool1d = adaptive("AdaptiveMaxPool1d", 1, ops.adaptive_max_pool1d,
    [[Largest elements of windows such that the last axis gets output_size elements.

  > ms.nn.AdaptiveMaxPool1d(2)(ms.ones { 1, 3, 8 }).shape
  (1, 3, 2)]], true),
  AdaptiveMaxPool3d = adaptive("AdaptiveMaxPool3d", 3, ops.adaptive_max_pool3d,
    [[Largest elements of windows such that the last three axes get output_size elements.

  > ms.nn.AdaptiveMaxPool3d({ 1, 2, 3 })(ms.ones { 1, 3, 4, 6, 8 }).shape
  (1, 3, 1, 2, 3)]], true),
  AdaptiveAvgPool1d = adaptive("AdaptiveAvgPool1d", 1, ops.adaptive_avg_pool1d,
    [[Means over windows such that the last axis gets output_size elements.
  > ms.nn.AdaptiveAvgPool1d(2)(ms.ones { 1, 3, 8 }).shape --> (1, 3, 2)]]),
  AdaptiveAvgPool2d = adaptive("AdaptiveAvgPool2d", 2, ops.adaptive_avg_pool2d,
    [[Means over windows such that the last two axes get output_size elements.
  > ms.nn.AdaptiveAvgPool2d(2)(ms.ones { 1, 3, 8, 8 }).shape --> (1, 3, 2, 2)]]),
  AdaptiveAvgPool3d = adaptive("AdaptiveAvgPool3d", 3, ops.adaptive_avg_pool3d,
    [[Means over windows such that the last three axes get output_size elements; -1 keeps a size.

  > ms.nn.AdaptiveAvgPool3d({ 1, 2, 3 })(ms.ones { 1, 3, 4, 6, 8 }).shape
  (1, 3, 1, 2, 3)]]),
  AdaptiveMaxPool2d = adaptive("AdaptiveMaxPool2d", 2, ops.adaptive_max_pool2d,
    [[Largest elements of windows such that the last two axes get output_size elements; -1 keeps a size.

  > ms.nn.AdaptiveMaxPool2d(2)(ms.ones { 1, 3, 6, 8 }).shape --> (1, 3, 2, 2)]], true),
}
