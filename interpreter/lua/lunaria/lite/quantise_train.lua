-- Quantisation-aware training: layers that round their inputs and weights while they are trained, so that the weights learn to
-- live with it. Gradients pass straight through the rounding (ops.fake_quantize).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local copy = require "lunaria.nn.copy"
local graph = require "lunaria.lite.quantise_graph"
local layers_of = require "lunaria.lite.quantise_layers"
local predicting = require "lunaria.nn.predicting"
local quantise = require "lunaria.lite.quantise"
local ranges = require "lunaria.lite.quantise_ranges"
local weights = require "lunaria.lite.quantise_weights"

local ops = ms.ops
local fake_quantize, stop_gradient = ops.fake_quantize, ops.stop_gradient
local along = weights.along
local fail, describe = arguments.fail, arguments.describe

local M = {}

-- Scale and zero point of a range, both tensors; as ranges.affine gives them for numbers.
local function affine(low, high, least, most)
  low, high = ops.minimum(low, 0.0), ops.maximum(high, 0.0)
  local scale = (high - low) / (most - least)
  scale = ops.where(ops.equal(scale, 0.0), 1.0, scale)
  return scale, ops.clamp(ops.round(least - low / scale), least, most)
end

-- The range of inputs follows that of the batches.
local function follow(self, x)
  local low, high = stop_gradient(ops.amin(x)), stop_gradient(ops.amax(x))
  local kept = self.seen * self.averaging
  self.input_low:assign(self.input_low * kept + low * (1.0 - kept))
  self.input_high:assign(self.input_high * kept + high * (1.0 - kept))
  self.seen:assign(ops.ones_like(self.seen))
end

-- A zero point that is learned is a whole number all the same.
local function whole(zero) return zero + stop_gradient(ops.round(zero) - zero) end

local function rounded_input(self, x)
  if self.is_learned then
    return fake_quantize(x, ops.abs(self.input_scale), whole(self.input_zero_point), self.input_min, self.input_max)
  end
  if self.training then follow(self, x) end
  local scale, zero = affine(self.input_low, self.input_high, self.input_min, self.input_max)
  return fake_quantize(x, stop_gradient(scale), stop_gradient(zero), self.input_min, self.input_max)
end

-- The scale of a weight by its largest magnitudes, or the learned one.
local function scale_of(self, w)
  if self.is_learned then return ops.abs(self.weight_scale) end
  return stop_gradient(weights.scale(stop_gradient(w), self.weight_bits, self.weight_axis, 0))
end

-- What a normalisation behind the layer multiplies its channels with; 0 would take the weight with it.
local function factor_of(self)
  local norm = self.norm
  local factor = norm.gamma / ops.sqrt(norm.moving_variance + norm.eps)
  return ops.where(ops.less(ops.abs(factor), 1e-6), 1e-6, factor)
end

local classes, kind_of = {}, {}
for _, kind in ipairs(layers_of.kinds) do
  if not kind.is_table then
    local class = kind.class:extend(kind.class._name .. "Qat")
    classes[kind.class], kind_of[class] = class, kind
    class.kind, class.auto_prefix = kind, false
    class.norm, class.is_learned = false, false
    function class:construct(x)
      x = rounded_input(self, x)
      local w = self.weight
      if not self.norm then
        return kind.apply(self, x, fake_quantize(w, scale_of(self, w), 0.0, self.weight_min, self.weight_max, self.weight_axis))
      end
      -- The weight is rounded as it will be with the normalisation in it; the normalisation itself sees what it saw without.
      local factor = factor_of(self)
      local folded = w * along(factor, 0, w.ndim)
      local rounded = fake_quantize(folded, scale_of(self, folded), 0.0, self.weight_min, self.weight_max, self.weight_axis)
      local y = kind.apply(self, x, rounded)
      local per_result = along(factor, 1, y.ndim)
      if self.bias then
        local bias = along(self.bias, 1, y.ndim)
        y = (y - bias) / per_result + bias
      else
        y = y / per_result
      end
      return self.norm(y)
    end
    function class:extend_repr()
      return ("%s, weight=[%d, %d], input=[%d, %d]"):format(kind.class.extend_repr(self), self.weight_min, self.weight_max, self.input_min,
        self.input_max)
    end
  end
end

local known = {
  bit_num = quantise.known.activation_bit_num,
  activation_bit_num = quantise.known.activation_bit_num,
  per_channel = "boolean",
  range = arguments.one_of("moving_average", "learned"),
  averaging = function(v) return type(v) == "number" and v >= 0 and v < 1, "a number from 0 to less than 1" end,
  skip_quant_node = "table",
  calibrate_data = quantise.known.calibrate_data,
  calibrate_size = arguments.positive,
}

local function set_up(layer, o)
  local cell, kind = layer.cell, layer.kind
  setmetatable(cell, classes[kind.class])
  cell.weight_bits, cell.weight_axis = o.bit_num, o.per_channel and kind.outputs or nil
  cell.weight_min, cell.weight_max = ranges.limits(o.bit_num, true)
  cell.input_min, cell.input_max = ranges.limits(o.activation_bit_num)
  cell.averaging, cell.is_learned = o.averaging, o.range == "learned"
end

local function parameter(cell, name, value, is_trained)
  cell[name] = ms.Parameter(ms.is_tensor(value) and value or ms.tensor(value, ms.float32), layers_of.beside(cell.weight, name), is_trained)
end

-- Ranges to start with: those of the samples, or what the first batch says.
local function start(layer, o)
  local cell, seen = layer.cell, layer.observer
  local low, high = 0.0, 0.0
  if seen then low, high = seen:range(o.range == "learned" and "MSE" or "MAX_MIN", o.activation_bit_num) end
  if o.range ~= "learned" then
    parameter(cell, "input_low", low, false)
    parameter(cell, "input_high", high, false)
    parameter(cell, "seen", seen and 1.0 or 0.0, false)
    return
  end
  local scale, zero = ranges.affine(low, high, o.activation_bit_num)
  parameter(cell, "input_scale", scale, true)
  parameter(cell, "input_zero_point", zero, true)
  local w = stop_gradient(cell.weight)
  if cell.norm then w = w * along(stop_gradient(factor_of(cell)), 0, w.ndim) end
  parameter(cell, "weight_scale", weights.scale(w, o.bit_num, cell.weight_axis, 0), true)
end

--- A copy of a network for quantisation-aware training: its dense layers and convolutions round their inputs and weights as they will
--- be rounded, and a normalisation behind a convolution is taken into account. Train the copy as usual, then ms.lite.quantize_trained
--- makes the quantised network of it.
---
--- options: bit_num (8): bits of a weight; activation_bit_num (8); per_channel (true); range: "moving_average" (the ranges of inputs
--- follow those of the batches, the default) or "learned" (scales and zero points are trained; needs calibrate_data); averaging
--- (0.99): how much of the former range stays; skip_quant_node: names of layers that stay as they are; calibrate_data,
--- calibrate_size (100): samples for the ranges to start with, as in ms.lite.quantize. Normalisations are found with a batch of
--- them too: without samples they stay behind the rounded weights.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
---     > aware = ms.lite.quantize_aware(net, { bit_num = 4 })
---     > model = ms.Model(aware, ms.nn.MSELoss(), ms.nn.Adam(aware:trainable_params(), 0.01))
---     > model:train(2, { { ms.ops.randn { 16, 4 }, ms.zeros { 16, 2 } } })
---     > ms.lite.quantize_trained(aware)[1].weight_max --> 7
function M.quantize_aware(network, options)
  local where = "quantize_aware"
  if not cells.is_cell(network) then fail(where, "the network must be a cell, got " .. describe(network)) end
  options = arguments.options(where, options, known, "{ bit_num = 4 }")
  local o = { bit_num = 8, activation_bit_num = 8, per_channel = true, range = "moving_average", averaging = 0.99, calibrate_size = 100 }
  for name, value in pairs(options) do o[name] = value end
  if o.range == "learned" and not o.calibrate_data then fail(where, "range 'learned' starts from samples: calibrate_data is missing") end
  if options.averaging and o.range == "learned" then fail(where, "averaging is for the range 'moving_average'") end
  if options.calibrate_size and not o.calibrate_data then fail(where, "calibrate_size is for calibrate_data") end
  local aware = copy(network)
  local restore = predicting(aware)
  local full = { quant_type = "FULL_QUANT", activation_quant_method = "MSE", quant_strategy = "MAX_MIN", min_quant_weight_size = 0,
    skip_quant_node = o.skip_quant_node }
  local layers = quantise.find_layers(where, aware, full)
  local batches = o.calibrate_data and quantise.read_samples(where, aware, o.calibrate_data, o.calibrate_size)
  local norms = batches and graph.normalisations(aware, layers, batches[1]) or {}
  if batches then
    for _, layer in ipairs(layers) do layers_of.prepare(layer.cell, layer.kind) end
    quantise.calibrate(aware, layers, batches, full)
  end
  for _, layer in ipairs(layers) do
    set_up(layer, o)
    local norm = norms[layer]
    if norm then
      graph.replace(aware, norm, ms.nn.Identity())
      layer.cell.norm = norm
    end
    start(layer, o)
  end
  restore()
  return aware
end

-- A trained layer as one of a quantised network.
local function finish(cell)
  local kind = kind_of[getmetatable(cell)]
  local bits, axis = cell.weight_bits, cell.weight_axis
  local w, norm = stop_gradient(cell.weight), rawget(cell, "norm")
  if norm then
    local factor = stop_gradient(factor_of(cell))
    w = w * along(factor, 0, w.ndim)
    local bias = cell.bias and cell.bias - norm.moving_mean or ops.neg(norm.moving_mean)
    graph.set_bias(cell, bias * factor + norm.beta)
  end
  local scale = stop_gradient(scale_of(cell, w))
  local input_scale, zero
  if cell.is_learned then
    input_scale, zero = ops.abs(cell.input_scale), ops.round(cell.input_zero_point)
  else
    input_scale, zero = affine(cell.input_low, cell.input_high, cell.input_min, cell.input_max)
  end
  local least, most, limits = cell.input_min, cell.input_max, { cell.weight_min, cell.weight_max }
  for _, key in ipairs { "norm", "input_low", "input_high", "seen", "input_scale", "input_zero_point", "weight_scale" } do
    cell[key] = nil
  end
  for _, key in ipairs { "weight_bits", "averaging", "is_learned" } do rawset(cell, key, nil) end
  setmetatable(cell, kind.quantised)
  cell.weight:set_data(fake_quantize(w, scale, 0.0, limits[1], limits[2], axis))
  layers_of.set_weight(cell, bits, scale, axis, 0)
  layers_of.set_fixed_input(cell, least, most, stop_gradient(input_scale), stop_gradient(zero))
end

--- The quantised network that was trained with ms.lite.quantize_aware, as a copy in evaluation mode: its layers are those that
--- ms.lite.quantize gives, with normalisations in their weights.
---     > aware = ms.lite.quantize_aware(ms.nn.SequentialCell(ms.nn.Dense(4, 8)))
---     > y = aware(ms.ops.ones { 2, 4 })
---     > ms.lite.quantize_trained(aware)[1].weight_scale.shape --> (8,)
function M.quantize_trained(network)
  if not cells.is_cell(network) then fail("quantize_trained", "the network must be a cell, got " .. describe(network)) end
  local quantised, list = copy(network):set_train(false), {}
  for _, cell in quantised:cells_and_names() do
    if kind_of[getmetatable(cell)] then list[#list + 1] = cell end
  end
  if #list == 0 then fail("quantize_trained", "the network has no layer of ms.lite.quantize_aware") end
  for _, cell in ipairs(list) do finish(cell) end
  return quantised
end

return M
