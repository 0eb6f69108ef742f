-- Fewer normalisations: those within residual blocks of three convolutions go, the last before the sum stays; and a last layer of
-- cosines in place of a dense one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local activation = require("lunaria.nn.activation").classes
local basic = require "lunaria.nn.basic"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local conv = require "lunaria.nn.conv"
local init = require "lunaria.common.initializer"
local norm = require "lunaria.nn.norm"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local M = {}

local CommonHeadLastFN = layer(Cell, "CommonHeadLastFN",
  "in_channels, out_channels, weight_init=\"normal\", bias_init=\"zeros\", has_bias=true",
  [[A last layer of cosines: multiplier (x / |x| . w / |w| + b), with one multiplier that is trained. in_channels, out_channels: the
sizes of input and result. has_bias: whether there is a b.

  > ms.boost.CommonHeadLastFN(3, 4)(ms.ones { 2, 3 }).shape --> (2, 4)]])
M.CommonHeadLastFN = CommonHeadLastFN

function CommonHeadLastFN:setup(a)
  local name = "CommonHeadLastFN"
  local from, to = check.positive(name, "in_channels", a.in_channels), check.positive(name, "out_channels", a.out_channels)
  self.has_bias = check.boolean(name, "has_bias", a.has_bias)
  self.weight = ms.Parameter(init.initializer(a.weight_init, { to, from }), "weight")
  self.multiplier = ms.Parameter(ops.ones { 1 }, "multiplier")
  if self.has_bias then self.bias = ms.Parameter(init.initializer(a.bias_init, { to }), "bias") end
end

-- Rows of length 1; those that are nearly 0 stay so.
local function unit(x) return x * ops.rsqrt(ops.clamp(ops.sum(x * x, 1, true), 1e-4)) end

function CommonHeadLastFN:construct(x)
  local y = ops.matmul(unit(x), ops.swapaxes(unit(self.weight), 0, 1))
  return self.multiplier * (self.has_bias and y + self.bias or y)
end

-- The normalisations of a block that has as many of them as convolutions, at least three, but its last.
local function inner_normalisations(cell)
  local keys, convolutions = {}, 0
  for _, key in ipairs(rawget(cell, "_order") or {}) do
    local child = rawget(cell, key)
    if class.is_a(child, conv.Conv2d) then
      convolutions = convolutions + 1
    elseif class.is_a(child, norm.BatchNorm2d) then
      keys[#keys + 1] = key
    end
  end
  if #keys < 3 or #keys ~= convolutions then return {} end
  keys[#keys] = nil
  return keys
end

-- The last dense layer of a network, with the cell and the key where it stands.
local function last_dense(net)
  local owner, key
  for _, cell in net:cells_and_names() do
    for _, name in ipairs(rawget(cell, "_order") or {}) do
      if class.is_a(rawget(cell, name), basic.Dense) then owner, key = cell, name end
    end
  end
  return owner, key
end

local LessBN = layer(Cell, "LessBN", "network, fn_flag=false, filter=nil",
  [[A network with fewer normalisations: of blocks with three or more nn.Conv2d and as many nn.BatchNorm2d, as the bottlenecks
of ResNet-50, all but the last go. The network is changed; its optimizer is to be made afterwards.

network: the network, or one with its loss. fn_flag: whether the last dense layer becomes a CommonHeadLastFN, with its weight and
bias. filter: a function of the path and the cell that says whether a block is changed.

  > Block = ms.nn.Cell:extend("Block")
  > function Block:init() for i = 1, 3 do self["conv" .. i], self["bn" .. i] = ms.nn.Conv2d(2, 2, 3), ms.nn.BatchNorm2d(2) end end
  > function Block:construct(x) for i = 1, 3 do x = self["bn" .. i](self["conv" .. i](x)) end return x end
  > ms.boost.LessBN(Block()).removed --> 2]])
M.LessBN = LessBN
LessBN.auto_prefix = false

function LessBN:setup(a)
  local name = "LessBN"
  if not cells.is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
  if a.filter ~= nil and not arguments.is_callable(a.filter) then fail(name, "filter must be a function, got " .. describe(a.filter)) end
  self.removed = 0
  for path, cell in a.network:cells_and_names() do
    local keys = inner_normalisations(cell)
    if #keys > 0 and (a.filter == nil or a.filter(path, cell)) then
      for _, key in ipairs(keys) do cell[key] = activation.Identity() end
      self.removed = self.removed + #keys
    end
  end
  if check.boolean(name, "fn_flag", a.fn_flag) then
    local owner, key = last_dense(a.network)
    if not owner then fail(name, "fn_flag is set, but the network has no dense layer") end
    local old = rawget(owner, key)
    local head = CommonHeadLastFN(old.in_channels, old.out_channels, old.weight, old.bias or "zeros", old.has_bias)
    owner[key] = head
  end
  self.network = a.network
end

function LessBN:construct(...) return self.network(...) end

return M
