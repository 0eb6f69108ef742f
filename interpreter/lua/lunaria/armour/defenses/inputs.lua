-- Transformations of inputs that wash out what an attack has added. They change pictures (N, C, H, W) or (N, H, W); defend(network) gives
-- the network behind them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local filters = require "lunaria.armour.filters"
local jpeg = require "lunaria.armour.natural.jpeg"
local picture = require "lunaria.armour.natural.picture"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local InputTransformation = class.Object:extend("InputTransformation")
InputTransformation._called = "transformation"

local M = {}

local forms = [[A call takes pictures (N, H, W) or (N, C, H, W) of floats from 0 to 1 and gives pictures of the same shape.]]

-- As (N, C, H, W).
local function checked(name, inputs)
  common.images(name, inputs, 0.0, 1.0)
  if inputs.ndim == 4 then return inputs end
  if inputs.ndim ~= 3 then fail(name, ("pictures must be (N, H, W) or (N, C, H, W), got %s"):format(tostring(inputs.shape))) end
  return ops.expand_dims(inputs, 1)
end

function InputTransformation:__call(inputs)
  return self:_change(checked(getmetatable(self)._name, inputs)):reshape { table.unpack(inputs.shape) }
end

--- The network behind the transformation, a function from pictures to what it gives. network: a cell or a function. straight_through:
--- whether gradients pass the transformation as if it changed nothing (backward pass differentiable approximation, Athalye et al., 2018),
--- as attacks that know it have it: default true. Without it transformations that round have no gradient, and attacks by
--- gradients seem to fail.
---     > transformation = ms.armour.defenses.BitDepthReduction(2)
---     > defended = transformation:defend(ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 3)))
---     > defended(ms.rand { 2, 1, 2, 2 }).shape --> (2, 3)
function InputTransformation:defend(network, straight_through)
  local where = "defend"
  network, straight_through = arguments.named(where, { "network", "straight_through" }, network, straight_through)
  if not arguments.is_callable(network) then fail(where, "network must be a cell or a function, got " .. arguments.describe(network)) end
  if straight_through == nil then straight_through = true end
  if not check.boolean(where, "straight_through", straight_through) then return function(x) return network(self(x)) end end
  return function(x)
    -- Rounding in between must not leave the range that a second transformation expects.
    local given = ops.stop_gradient(x)
    return network(x + ops.stop_gradient(self(given) - given))
  end
end

local function define(name, signature, doc)
  return class.define(InputTransformation, name, signature, doc .. "\n\n" .. forms .. ([[


  > x = ms.rand { 2, 1, 8, 8 }
  > ms.armour.defenses.%s()(x).shape --> (2, 1, 8, 8)]]):format(name))
end

local Jpeg = define("JpegCompression", "quality=75",
  [[Pictures through JPEG and back (Guo et al., 2018); of 1 or 3 channels. quality: from 1 to 100.]])
M.JpegCompression = Jpeg
function Jpeg:setup(a)
  self._quality = check.positive("JpegCompression", "quality", a.quality)
  if self._quality > 100 then fail("JpegCompression", ("quality must be from 1 to 100, got %d"):format(self._quality)) end
end
function Jpeg:_change(x) return jpeg("JpegCompression", x, self._quality) end

local Depth = define("BitDepthReduction", "bits=4",
  [[Pictures with few levels (feature squeezing, Xu et al., 2018). bits: 2 ^ bits levels are left, from 1 to 8.]])
M.BitDepthReduction = Depth
function Depth:setup(a)
  self._bits = check.positive("BitDepthReduction", "bits", a.bits)
  if self._bits > 8 then fail("BitDepthReduction", ("bits must be from 1 to 8, got %d"):format(self._bits)) end
end
function Depth:_change(x)
  local steps = 2 ^ self._bits - 1
  return ops.floor(ops.clamp(x, 0.0, 1.0) * steps + 0.5) / steps
end

local Variation = define("TotalVariationMinimization", "weight=0.1, iterations=50",
  [[Pictures that are near and have little total variation (Guo et al., 2018), by Chambolle's projection (2004). weight: how much variation
counts, above 0. iterations: of the projection.]])
M.TotalVariationMinimization = Variation
function Variation:setup(a)
  self._weight = check.number_positive("TotalVariationMinimization", "weight", a.weight)
  self._iterations = check.positive("TotalVariationMinimization", "iterations", a.iterations)
end

-- The step for which the projection converges.
local dual_step = 0.125

function Variation:_change(x)
  local flat, back = filters.planes(x)
  local height, width = flat.shape[3], flat.shape[4]
  -- Differences to the next row and column; 0 at the last one.
  local function slopes(u)
    local down = ops.pad(u[{ ms.slice(), ms.slice(), ms.slice(1, height) }]
      - u[{ ms.slice(), ms.slice(), ms.slice(0, height - 1) }], { 0, 0, 0, 1 })
    local right = ops.pad(u[{ ms.slice(), ms.slice(), ms.slice(), ms.slice(1, width) }]
      - u[{ ms.slice(), ms.slice(), ms.slice(), ms.slice(0, width - 1) }], { 0, 1 })
    return down, right
  end
  -- The adjoint of slopes, negative.
  local function divergence(p, q)
    local up = ops.pad(p[{ ms.slice(), ms.slice(), ms.slice(0, height - 1) }], { 0, 0, 0, 1 })
    local left = ops.pad(q[{ ms.slice(), ms.slice(), ms.slice(), ms.slice(0, width - 1) }], { 0, 1 })
    local above = ops.pad(p[{ ms.slice(), ms.slice(), ms.slice(0, height - 1) }], { 0, 0, 1, 0 })
    local before = ops.pad(q[{ ms.slice(), ms.slice(), ms.slice(), ms.slice(0, width - 1) }], { 1, 0 })
    return up - above + left - before
  end
  local p, q = ops.zeros_like(flat), ops.zeros_like(flat)
  for _ = 1, self._iterations do
    local down, right = slopes(divergence(p, q) - flat / self._weight)
    local size = 1 + dual_step * ops.sqrt(ops.square(down) + ops.square(right) + 1e-20)
    p, q = (p + dual_step * down) / size, (q + dual_step * right) / size
  end
  return back(ops.clamp(flat - self._weight * divergence(p, q), 0.0, 1.0))
end

local Resize = define("RandomResizePad", "smallest=0.9, seed=nil",
  [[Pictures that are made smaller by chance and put at a place by chance on black (Xie et al., 2018); the shape stays. smallest: the least
size, a share, above 0 and at most 1. seed: of what is drawn (nil: from the session's random numbers). All pictures of a call are changed
alike.]])
M.RandomResizePad = Resize
function Resize:setup(a)
  self._smallest = check.number_positive("RandomResizePad", "smallest", a.smallest)
  if self._smallest > 1 then fail("RandomResizePad", ("smallest must be at most 1, got %g"):format(self._smallest)) end
  self._draws = common.generator(a.seed, "RandomResizePad")
end
function Resize:_change(x)
  local height, width = x.shape[3], x.shape[4]
  local factor = picture.between(self._draws, self._smallest, 1)
  local right, down = self._draws:number() * (1 - factor) * (width - 1), self._draws:number() * (1 - factor) * (height - 1)
  return picture.warped(x, height, width, function(u, v) return (u - right) / factor, (v - down) / factor end)
end

return M
