-- LoRA (Hu and others, 2021): a matrix that stays as it is gets the product of two thin ones beside it, which alone are trained, and
-- at the end are added to it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local language = require "lunaria.nn.language"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local LoRADense = cells.layer(cells.Cell, "LoRADense", "base, rank=8, alpha=16",
  [[A fully connected layer beside a given one: y = base(x) + (x A^T) B^T alpha / rank, where A and B are trained and the base is not.

base: a nn.BlockDense or nn.Dense, whose weight may be in blocks. rank: the rows of A. alpha: how much the new part counts. A is drawn and
B is zero, so that at first the layer is its base.
  > base = ms.nn.Dense(8, 4)
  > ms.nn.LoRADense(base, { rank = 2 })(ms.ones { 1, 8 }):tolist()[1][1] == base(ms.ones { 1, 8 }):tolist()[1][1] --> true]])

function LoRADense:setup(a)
  local name, base = "LoRADense", a.base
  if not cells.is_cell(base) or not ms.is_parameter(base.weight) or base.weight.ndim ~= 2 then
    fail(name, "base must be a cell with a weight of two axes, got " .. describe(base))
  end
  self.rank, self.alpha = check.positive(name, "rank", a.rank), check.number_positive(name, "alpha", a.alpha)
  self.base = base
  for _, parameter in ipairs(base:get_parameters()) do parameter.requires_grad = false end
  local outputs = base.weight:sizes(0)
  local inputs = base.form and (ops.dequantize_blocks(base.weight[{ ms.slice(0, 1) }], base.form)):sizes(1) or base.weight:sizes(1)
  self.A = ms.Parameter(ops.randn { self.rank, inputs } / math.sqrt(inputs), "A")
  self.B = ms.Parameter(ops.zeros { outputs, self.rank }, "B")
end

function LoRADense:construct(x)
  return self.base(x) + ops.dense(ops.dense(x, self.A), self.B) * (self.alpha / self.rank)
end

--- The layer that gives the same with one matrix, in blocks where the base's is.
function LoRADense:merged()
  local base = self.base
  local weight = base.form and ops.dequantize_blocks(base.weight, base.form) or base.weight
  weight = weight + ops.matmul(self.B, self.A) * (self.alpha / self.rank)
  local form = base.form
  if form and form:find "_k$" then form = "q8_0" end
  return language.BlockDense(form and ops.quantize_blocks(weight, form) or weight, { form = form, bias = base.bias })
end

function LoRADense:extend_repr() return ("rank=%d, alpha=%g"):format(self.rank, self.alpha) end

local parts = { "q", "k", "v", "o", "gate", "up", "down" }

-- Calls f for the layers of the targets: with their block, the name and the layer.
local function each_layer(decoder, targets, f)
  for i = 1, #decoder.layers do
    for _, name in ipairs(targets) do
      local block = decoder.layers[i]
      if block[name] then f(block, name, block[name]) end
    end
  end
end

--- Puts LoRA layers around layers of a decoder, so that they alone are trained: decoder:trainable_params() are theirs. Gives the decoder.
--- decoder: of ms.lite.load_decoder or ms.lite.Decoder, whose weights may be in blocks. options: rank (8), alpha (16), targets, a list of
--- "q", "k", "v", "o", "gate", "up" and "down" (q and v).
---     > config = { vocabulary = 20, width = 16, layers = 1, heads = 2, inner = 32, length = 16 }
---     > #ms.lite.add_lora(ms.lite.Decoder(config), { rank = 2 }):trainable_params() --> 4
function M.add_lora(decoder, options)
  local where = "add_lora"
  options = options and arguments.options(where, options, { rank = "number", alpha = "number", targets = "table" }, "{ rank = 8 }") or {}
  local targets = options.targets or { "q", "v" }
  for _, name in ipairs(targets) do check.choice(where, "targets", name, parts) end
  each_layer(decoder, targets, function(_, _, layer)
    if layer.base then fail(where, "the decoder has LoRA layers already", "ms.lite.merge_lora(decoder) adds them to its weights") end
  end)
  local trained, frozen = decoder:trainable_params(), decoder._state.frozen or {}
  each_layer(decoder, targets, function(block, name, layer)
    block[name] = LoRADense(layer, { rank = options.rank or 8, alpha = options.alpha or 16 })
  end)
  for _, parameter in ipairs(trained) do
    frozen[#frozen + 1], parameter.requires_grad = parameter, false
  end
  decoder._state.frozen, decoder._state.run = frozen, nil
  return decoder
end

--- Adds what LoRA layers have learnt to the weights that they stand beside; the decoder is then one without such layers. Weights in
--- blocks are put into blocks of the same form again (of "q4_k" and "q6_k" those of "q8_0"). What was trained before add_lora is
--- trained again. Gives the decoder. decoder: of ms.lite.add_lora.
---     > config = { vocabulary = 20, width = 16, layers = 1, heads = 2, inner = 32, length = 16 }
---     > decoder = ms.lite.merge_lora(ms.lite.add_lora(ms.lite.Decoder(config)))
---     > decoder.layers[1].q.form == nil and decoder.layers[1].q.A == nil --> true
function M.merge_lora(decoder)
  local frozen, was_trained = decoder._state.frozen, {}
  for _, parameter in ipairs(frozen or {}) do parameter.requires_grad, was_trained[parameter] = true, true end
  each_layer(decoder, parts, function(block, name, layer)
    if not layer.base or not layer.merged then return end
    block[name] = layer:merged()
    if frozen then block[name].weight.requires_grad = was_trained[layer.base.weight] or false end
  end)
  decoder._state.frozen, decoder._state.run = nil, nil
  return decoder
end

return { classes = { LoRADense = LoRADense }, functions = M }
