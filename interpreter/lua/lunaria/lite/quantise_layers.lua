-- Layers that compute with quantised inputs and weights: dense layers and convolutions as they are, but with fake_quantize in
-- front of the input and of the weight. Parameters keep their names, so that checkpoints fit.
local ms = require "lunaria"
local cells = require "lunaria.nn.cell"
local basic = require "lunaria.nn.basic"
local conv = require "lunaria.nn.conv"
local ranges = require "lunaria.lite.quantise_ranges"
local weights = require "lunaria.lite.quantise_weights"

local ops = ms.ops
local fake_quantize = ops.fake_quantize

local M = {}

local function apply_dense(self, x, w)
  local y = ops.dense(x, w, self.bias)
  return self.activation and self.activation(y) or y
end
local function apply_convolution(operator)
  return function(self, x, w)
    return operator(x, w, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)
  end
end
local function apply_transposed(operator)
  return function(self, x, w)
    return operator(x, w, self.bias, self.stride, self.before, self.extra, self.group, self.dilation)
  end
end

-- Of each class: what it computes of x and a weight, and the axis of the weight's output channels.
local kinds = {
  { class = basic.Dense, apply = apply_dense, outputs = 0 },
  { class = conv.Conv1d, apply = apply_convolution(ops.conv1d), outputs = 0, is_convolution = true },
  { class = conv.Conv2d, apply = apply_convolution(ops.conv2d), outputs = 0, is_convolution = true },
  { class = conv.Conv3d, apply = apply_convolution(ops.conv3d), outputs = 0, is_convolution = true },
  { class = conv.Conv1dTranspose, apply = apply_transposed(ops.conv_transpose1d), outputs = 1, is_transposed = true },
  { class = conv.Conv2dTranspose, apply = apply_transposed(ops.conv_transpose2d), outputs = 1, is_transposed = true },
  { class = conv.Conv3dTranspose, apply = apply_transposed(ops.conv_transpose3d), outputs = 1, is_transposed = true },
  { class = basic.Embedding, apply = function(self, x, w) return ops.embedding(x, w, self.padding_idx) end, outputs = 0,
    weight = "embedding_table", is_table = true },
}

--- A name for a parameter of the cell that the weight belongs to: "fc.weight" and "scale" give "fc.scale".
function M.beside(weight, name) return (weight.name:gsub("[^.]*$", name)) end

-- A parameter that is not trained.
local function set_constant(layer, name, value)
  local t = ms.is_tensor(value) and value or ms.tensor(value, ms.float32)
  layer[name] = ms.Parameter(t, M.beside(layer[layer.kind.weight], name), false)
end

-- The input, rounded: to a fixed range, or to that of this very call.
local function rounded_input(self, x)
  if self.input_scale then
    return fake_quantize(x, self.input_scale, self.input_zero_point, self.input_min, self.input_max)
  end
  local low, high = ops.minimum(ops.amin(x), 0.0), ops.maximum(ops.amax(x), 0.0)
  local least, most = self.input_min, self.input_max
  local scale = (high - low) / (most - least)
  scale = ops.where(ops.equal(scale, 0.0), 1.0, scale)
  local zero = ops.clamp(ops.round(low / scale * -1.0) + least, least, most)
  return fake_quantize(x, scale, zero, least, most)
end

-- Blocks of a convolution's weight lie along all inputs of an output: channels and window.
local function rounded_weight(self, w)
  if self.weight_block > 0 and w.ndim > 2 then
    local rows = ops.reshape(w, { w.shape[1], w.size // w.shape[1] })
    rows = fake_quantize(rows, self.weight_scale, 0.0, self.weight_min, self.weight_max, 1, self.weight_block)
    return ops.reshape(rows, w.shape)
  end
  return fake_quantize(w, self.weight_scale, 0.0, self.weight_min, self.weight_max, self.weight_axis, self.weight_block)
end

for _, kind in ipairs(kinds) do
  local class = kind.class:extend(kind.class._name .. "Quant")
  local apply, weight_name = kind.apply, kind.weight or "weight"
  kind.quantised, kind.weight = class, weight_name
  class.kind, class.is_quantised = kind, true
  class.input_scale, class.input_min, class.weight_scale, class.observe = false, false, false, false
  function class:construct(x)
    if self.observe then return self.observe(self, x) end
    if self.input_min then x = rounded_input(self, x) end
    local w = self[weight_name]
    if self.weight_scale then w = rounded_weight(self, w) end
    return apply(self, x, w)
  end
  function class:extend_repr()
    local text = kind.class.extend_repr(self)
    if self.weight_scale then
      text = text .. (", weight=[%d, %d]"):format(self.weight_min, self.weight_max)
      if self.weight_block > 0 then text = text .. (" in blocks of %d"):format(self.weight_block) end
    end
    if self.input_min then
      text = text .. (", input=[%d, %d]%s"):format(self.input_min, self.input_max, self.input_scale and "" or " dynamic")
    end
    return text
  end
end

M.kinds = kinds

--- What a cell is, if it is a layer that can be quantised: a row of the table above. A layer that computes something of its own
--- (a class that extends one of these) is none.
function M.kind_of(cell)
  local class = getmetatable(cell)
  if not cells.is_cell(cell) or rawget(cell, "construct") or cell._special then return nil end
  for _, kind in ipairs(kinds) do
    if class == kind.class or class == kind.quantised then return kind end
  end
end

--- Makes a layer one of the quantised classes, in place: it computes as before until something is set.
function M.prepare(layer, kind)
  setmetatable(layer, kind.quantised)
  if kind.is_table then rawset(layer, "use_one_hot", false) end
  return layer
end

--- Back to the layer that it was.
function M.restore(layer)
  local kind = layer.kind
  for _, field in ipairs { "input_scale", "input_zero_point", "weight_scale" } do layer[field] = nil end
  for _, field in ipairs { "input_min", "input_max", "weight_min", "weight_max", "weight_axis", "weight_block", "observe" } do
    rawset(layer, field, nil)
  end
  setmetatable(layer, kind.class)
end

--- Has the layer round its input: over [low, high], or where low is nil over the range of each input.
function M.set_input(layer, bits, low, high)
  layer.input_min, layer.input_max = ranges.limits(bits)
  if not low then return end
  M.set_fixed_input(layer, layer.input_min, layer.input_max, ranges.affine(low, high, bits))
end

--- Has the layer round its input to a format with this scale and zero point.
function M.set_fixed_input(layer, least, most, scale, zero)
  layer.input_min, layer.input_max = least, most
  set_constant(layer, "input_scale", scale)
  set_constant(layer, "input_zero_point", zero)
end

--- Has the layer round its weight: scale is one number, or a tensor for the axis and the block.
function M.set_weight(layer, bits, scale, axis, block)
  layer.weight_min, layer.weight_max = weights.limits(bits, block)
  layer.weight_axis, layer.weight_block = axis, block
  set_constant(layer, "weight_scale", scale)
end

function M.weight_of(layer) return layer[layer.kind.weight] end

--- What the layer computes of x with another weight, and what the weight and the input become.
function M.apply(layer, x, w) return layer.kind.apply(layer, x, w) end
M.rounded_input, M.rounded_weight = rounded_input, rounded_weight

return M
