-- Dropout of elements and of whole channels.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local dropout = ops.dropout

local Dropout = layer(Cell, "Dropout", "keep_prob=nil, p=nil, dtype=nil",
  [[In training, zeroes elements with probability p (0.5 by default) and divides the others by 1 - p; else the input itself.

p is given by name, as MindSpore's first argument is the probability to keep: nn.Dropout{ p = 0.1 }.
  > ms.nn.Dropout({ p = 0.5 }):set_train(false)(ms.ones { 3 }):sum():item() --> 3.0]])

local init = Dropout.init
function Dropout:init(...)
  local first = ...
  if math.type(first) and first < 0.5 then
    arguments.warn("Dropout", ("the first argument is the probability to keep: %g of the elements become 0"):format(1 - first),
      ("nn.Dropout { p = %g } drops as many, nn.Dropout { keep_prob = %g } keeps them"):format(first, first))
  end
  init(self, ...)
end

function Dropout:setup(a)
  if a.p ~= nil and a.keep_prob ~= nil then
    fail("Dropout", "takes either keep_prob or p, got both")
  elseif a.keep_prob ~= nil then
    self.p = 1 - check.probability("Dropout", "keep_prob", a.keep_prob)
  else
    self.p = check.probability("Dropout", "p", a.p or 0.5)
  end
end

function Dropout:construct(x)
  if self.training then
    return dropout(x, self.p, true)
  end
  return ops.identity(x)
end

function Dropout:extend_repr()
  return ("p=%s"):format(self.p)
end

-- Channels are the axis before the last `axes` ones; least: the least number of axes.
local function of_channels(axes, least, forms)
  local name = ("Dropout%dd"):format(axes)
  local class = layer(Cell, name, "p=0.5",
    ([[In training, zeroes whole channels with probability p and divides the others by 1 - p; else the input itself.

The input is %s; each channel of each sample is drawn for itself.

  > ms.nn.%s(0.5)(ms.ones { %s }):sum():item()
  6.0]]):format(forms, name, "2, 3" .. (", 1"):rep(axes)))
  function class:setup(a)
    self.p = check.probability(name, "p", a.p)
  end
  function class:construct(x)
    local rank = ms.is_tensor(x) and x.ndim
    if not rank or rank < least or rank > axes + 2 then
      fail(name, ("the input must be a tensor %s, got %s"):format(forms, describe(x)))
    end
    if not self.training then return ops.identity(x) end
    local shape = {}
    for i = 1, rank do shape[i] = i <= rank - axes and x.shape[i] or 1 end
    local ones = ops.ones(shape, x.dtype)
    return x * dropout(ones.device == x.device and ones or ones:to(x.device), self.p, true)
  end
  function class:extend_repr()
    return ("p=%s"):format(self.p)
  end
  return class
end

return {
  Dropout = Dropout,
  Dropout1d = of_channels(1, 2, "(N, C, L) or (C, L)"),
  Dropout2d = of_channels(2, 4, "(N, C, H, W)"),
  Dropout3d = of_channels(3, 5, "(N, C, D, H, W)"),
}
