-- Encoder and decoder of the transformer (Vaswani and others 2017), layer by layer and as a whole. All take masks as
-- nn.MultiheadAttention does: true where something must not be seen, or numbers that are added to the scores. Masks are given by
-- position or by name.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local basic = require "lunaria.nn.basic"
local cells = require "lunaria.nn.cell"
local container = require "lunaria.nn.container"
local copy = require "lunaria.nn.copy"
local dropout = require "lunaria.nn.dropout"
local init = require "lunaria.common.initializer"
local norm = require "lunaria.nn.norm"
local attention = require "lunaria.nn.transformer"

local ops = ms.ops
local fail, check, describe, by_name = arguments.fail, arguments.check, arguments.describe, arguments.by_name
local is_table = arguments.is_table
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell

local activations = { relu = ops.relu, gelu = ops.gelu_erf }

local function activation_of(name, value)
  if type(value) == "string" and activations[value] then return activations[value] end
  if is_cell(value) or type(value) == "function" then return value end
  return fail(name, "activation must be 'relu', 'gelu', a function or a cell, got " .. describe(value))
end

local layer_signature = "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=\"relu\", layer_norm_eps=1e-5, batch_first=false, "
  .. "norm_first=false, dtype=nil"

-- What layers of encoder and decoder have in common: attention, two fully connected layers, and `count` normalisations.
local function layer_setup(self, name, a, count)
  local width = check.positive(name, "d_model", a.d_model)
  local heads = check.positive(name, "nhead", a.nhead)
  if width % heads ~= 0 then
    fail(name, ("d_model (%d) must be divisible by nhead (%d)"):format(width, heads))
  end
  local inner = check.positive(name, "dim_feedforward", a.dim_feedforward)
  local p = check.probability(name, "dropout", a.dropout)
  local eps = check.number_not_negative(name, "layer_norm_eps", a.layer_norm_eps)
  self.batch_first = check.boolean(name, "batch_first", a.batch_first)
  self.norm_first = check.boolean(name, "norm_first", a.norm_first)
  self.d_model, self.nhead = width, heads
  local options = { dropout = p, batch_first = self.batch_first, dtype = a.dtype }
  self.self_attn = attention.MultiheadAttention(width, heads, options)
  if count == 3 then
    self.multihead_attn = attention.MultiheadAttention(width, heads, options)
  end
  self.linear1 = basic.Dense(width, inner, { has_bias = true, dtype = a.dtype })
  self.dropout = dropout.Dropout { p = p }
  self.linear2 = basic.Dense(inner, width, { has_bias = true, dtype = a.dtype })
  for i = 1, count do
    self["norm" .. i] = norm.LayerNorm({ width }, { epsilon = eps, dtype = a.dtype })
    self["dropout" .. i] = dropout.Dropout { p = p }
  end
  self.activation = activation_of(name, a.activation)
end

-- (length, batch, d_model), (batch, length, d_model), or without the batch.
local function check_input(self, name, what, x)
  if not ms.is_tensor(x) or x.ndim < 2 or x.ndim > 3 or x.shape[x.ndim] ~= self.d_model then
    fail(name, ("%s must be a tensor of two or three axes, the last of size d_model (%d), got %s"):format(what, self.d_model, describe(x)))
  end
end

local function attend(self, cell, x, memory, mask, padding_mask)
  if x.ndim == 2 then
    -- One sequence is a batch of one.
    local axis = self.batch_first and 0 or 1
    if padding_mask and padding_mask.ndim == 1 then padding_mask = ops.expand_dims(padding_mask, 0) end
    memory = ops.expand_dims(memory, axis)
    return ops.squeeze(cell(ops.expand_dims(x, axis), memory, memory, padding_mask, false, mask), axis)
  end
  return cell(x, memory, memory, padding_mask, false, mask)
end

local function feed_forward(self, x)
  return self.linear2(self.dropout(self.activation(self.linear1(x))))
end

local function describe_layer(self)
  return ("d_model=%d, nhead=%d, batch_first=%s, norm_first=%s"):format(self.d_model, self.nhead, self.batch_first, self.norm_first)
end

local encoder_masks = { "src_mask", "src_key_padding_mask" }
local decoder_masks = { "tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask" }

local TransformerEncoderLayer = layer(Cell, "TransformerEncoderLayer", layer_signature,
  [[A layer of the transformer's encoder, self-attention and a network of two layers: cell(src, src_mask, src_key_padding_mask).

src is (length, batch, d_model), or (batch, length, d_model) with batch_first. src_mask (length, length) says what must not be seen,
src_key_padding_mask (batch, length) which elements are padding. d_model: the size of a vector. nhead: the number of heads.
dim_feedforward: the size of
the inner layer. layer_norm_eps: the eps of the normalisations. norm_first: whether the normalisations come before
attention and network, instead of behind the sums.

  > ms.nn.TransformerEncoderLayer(8, 2, { dim_feedforward = 16, batch_first = true })(ms.ones { 2, 5, 8 }).shape --> (2, 5, 8)]])
function TransformerEncoderLayer:setup(a)
  layer_setup(self, "TransformerEncoderLayer", a, 2)
end
function TransformerEncoderLayer:construct(src, src_mask, src_key_padding_mask)
  if is_table(src_mask) or is_table(src_key_padding_mask) then
    src_mask, src_key_padding_mask = by_name("TransformerEncoderLayer", encoder_masks, src_mask, src_key_padding_mask)
  end
  check_input(self, "TransformerEncoderLayer", "src", src)
  local x = src
  if self.norm_first then
    local y = self.norm1(x)
    x = x + self.dropout1(attend(self, self.self_attn, y, y, src_mask, src_key_padding_mask))
    return x + self.dropout2(feed_forward(self, self.norm2(x)))
  end
  x = self.norm1(x + self.dropout1(attend(self, self.self_attn, x, x, src_mask, src_key_padding_mask)))
  return self.norm2(x + self.dropout2(feed_forward(self, x)))
end
TransformerEncoderLayer.extend_repr = describe_layer

local TransformerDecoderLayer = layer(Cell, "TransformerDecoderLayer", layer_signature,
  [[A layer of the transformer's decoder, self-attention, attention to the encoder's output and a network of two layers:
cell(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask).

tgt and memory are (length, batch, d_model), or (batch, length, d_model) with batch_first. tgt_mask and memory_mask say what must
not be seen, the other two which elements are padding. d_model: the size of a vector. nhead: the number of heads.
dim_feedforward: the size of the inner
layer. layer_norm_eps: the eps of the normalisations. norm_first: whether the normalisations come before attention and network,
instead of behind the sums.

  > ms.nn.TransformerDecoderLayer(8, 2, { dim_feedforward = 16, batch_first = true })(ms.ones { 2, 5, 8 }, ms.ones { 2, 7, 8 }).shape
  (2, 5, 8)]])
function TransformerDecoderLayer:setup(a)
  layer_setup(self, "TransformerDecoderLayer", a, 3)
end
function TransformerDecoderLayer:construct(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
  if is_table(tgt_mask) or is_table(memory_mask) or is_table(tgt_key_padding_mask) or is_table(memory_key_padding_mask) then
    tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask =
      by_name("TransformerDecoderLayer", decoder_masks, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
  end
  check_input(self, "TransformerDecoderLayer", "tgt", tgt)
  check_input(self, "TransformerDecoderLayer", "memory", memory)
  if memory.ndim ~= tgt.ndim then
    fail("TransformerDecoderLayer", ("tgt has shape %s and memory %s: both or none have a batch"):format(
      tostring(tgt.shape), tostring(memory.shape)))
  end
  local x = tgt
  if self.norm_first then
    local y = self.norm1(x)
    x = x + self.dropout1(attend(self, self.self_attn, y, y, tgt_mask, tgt_key_padding_mask))
    x = x + self.dropout2(attend(self, self.multihead_attn, self.norm2(x), memory, memory_mask, memory_key_padding_mask))
    return x + self.dropout3(feed_forward(self, self.norm3(x)))
  end
  x = self.norm1(x + self.dropout1(attend(self, self.self_attn, x, x, tgt_mask, tgt_key_padding_mask)))
  x = self.norm2(x + self.dropout2(attend(self, self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask)))
  return self.norm3(x + self.dropout3(feed_forward(self, x)))
end
TransformerDecoderLayer.extend_repr = describe_layer

-- num_layers cells like `one`, and a normalisation behind them.
local function stack_setup(self, name, which, a)
  if not is_cell(a[which]) then
    fail(name, ("%s must be a cell, got %s"):format(which, describe(a[which])))
  end
  self.num_layers = check.positive(name, "num_layers", a.num_layers)
  if self.num_layers > 1000 then
    fail(name, ("num_layers must be at most 1000, got %d"):format(self.num_layers))
  end
  local list = {}
  for i = 1, self.num_layers do list[i] = copy(a[which]) end
  self.layers = container.CellList(list)
  if a.norm ~= nil then
    if not is_cell(a.norm) then fail(name, "norm must be a cell, got " .. describe(a.norm)) end
    self.norm = a.norm
  end
end

local TransformerEncoder = layer(Cell, "TransformerEncoder", "encoder_layer, num_layers, norm=nil",
  [[The transformer's encoder, layers one after the other: cell(src, src_mask, src_key_padding_mask).

encoder_layer: the layer; the encoder has num_layers copies of it, which start with the same values. norm: a normalisation that
follows the last layer.

  > ms.nn.TransformerEncoder(ms.nn.TransformerEncoderLayer(8, 2, 16), 3)(ms.ones { 5, 2, 8 }).shape --> (5, 2, 8)]])
function TransformerEncoder:setup(a)
  stack_setup(self, "TransformerEncoder", "encoder_layer", a)
end
function TransformerEncoder:construct(src, src_mask, src_key_padding_mask)
  if is_table(src_mask) or is_table(src_key_padding_mask) then
    src_mask, src_key_padding_mask = by_name("TransformerEncoder", encoder_masks, src_mask, src_key_padding_mask)
  end
  local x, layers = src, self.layers
  for i = 1, self.num_layers do
    x = layers[i](x, src_mask, src_key_padding_mask)
  end
  return self.norm and self.norm(x) or x
end

local TransformerDecoder = layer(Cell, "TransformerDecoder", "decoder_layer, num_layers, norm=nil",
  [[The transformer's decoder, layers one after the other: cell(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
memory_key_padding_mask).

decoder_layer: the layer; the decoder has num_layers copies of it, which start with the same values. norm: a normalisation that
follows the last layer.

  > ms.nn.TransformerDecoder(ms.nn.TransformerDecoderLayer(8, 2, 16), 3)(ms.ones { 5, 2, 8 }, ms.ones { 7, 2, 8 }).shape --> (5, 2, 8)]])
function TransformerDecoder:setup(a)
  stack_setup(self, "TransformerDecoder", "decoder_layer", a)
end
function TransformerDecoder:construct(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
  if is_table(tgt_mask) or is_table(memory_mask) or is_table(tgt_key_padding_mask) or is_table(memory_key_padding_mask) then
    tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask =
      by_name("TransformerDecoder", decoder_masks, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
  end
  local x, layers = tgt, self.layers
  for i = 1, self.num_layers do
    x = layers[i](x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
  end
  return self.norm and self.norm(x) or x
end

local Transformer = layer(Cell, "Transformer",
  "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation=\"relu\", "
    .. "custom_encoder=nil, custom_decoder=nil, layer_norm_eps=1e-5, batch_first=false, norm_first=false, dtype=nil",
  [[The transformer, encoder and decoder (Vaswani and others 2017): cell(src, tgt, src_mask, tgt_mask, memory_mask,
src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask).

src and tgt are (length, batch, d_model), or (batch, length, d_model) with batch_first; the result has the shape of tgt. Matrices are
drawn by XavierUniform. custom_encoder: a cell in place of the encoder. custom_decoder: a cell in place of the decoder.
num_encoder_layers: the number of the encoder's layers. num_decoder_layers: the number of the decoder's layers.
d_model: the size of a vector. nhead: the number of heads.
dim_feedforward: the size of the inner layers. layer_norm_eps: the eps of the normalisations.
norm_first: whether the normalisations come before attention and network, instead of behind the sums.

  > net = ms.nn.Transformer(8, 2, 1, 1, 16)
  > later = ms.ops.triu(ms.ones({ 5, 5 }, ms.bool_), 1)
  > net(ms.ones { 7, 2, 8 }, ms.ones { 5, 2, 8 }, { tgt_mask = later }).shape --> (5, 2, 8)]])
function Transformer:setup(a)
  local options = {
    dim_feedforward = a.dim_feedforward, dropout = a.dropout, activation = a.activation, layer_norm_eps = a.layer_norm_eps,
    batch_first = a.batch_first, norm_first = a.norm_first, dtype = a.dtype,
  }
  self.d_model = check.positive("Transformer", "d_model", a.d_model)
  local function part(which, custom, count, one, stack)
    if custom ~= nil then
      if not is_cell(custom) then fail("Transformer", ("custom_%s must be a cell, got %s"):format(which, describe(custom))) end
      return custom
    end
    check.positive("Transformer", ("num_%s_layers"):format(which), count)
    return stack(one(a.d_model, a.nhead, options), count,
      norm.LayerNorm({ self.d_model }, { epsilon = a.layer_norm_eps, dtype = a.dtype }))
  end
  self.encoder = part("encoder", a.custom_encoder, a.num_encoder_layers, TransformerEncoderLayer, TransformerEncoder)
  self.decoder = part("decoder", a.custom_decoder, a.num_decoder_layers, TransformerDecoderLayer, TransformerDecoder)
  for _, p in ipairs(self:get_parameters()) do
    if p.ndim > 1 then p:assign(init.initializer("xavier_uniform", p.shape, p.dtype)) end
  end
end
local all_masks = {
  "src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask",
}

function Transformer:construct(src, tgt, src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
    memory_key_padding_mask)
  if is_table(src_mask) or is_table(tgt_mask) or is_table(memory_mask) or is_table(src_key_padding_mask)
    or is_table(tgt_key_padding_mask) or is_table(memory_key_padding_mask) then
    src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask =
      by_name("Transformer", all_masks, src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
        memory_key_padding_mask)
  end
  check_input(self, "Transformer", "src", src)
  check_input(self, "Transformer", "tgt", tgt)
  local memory = self.encoder(src, src_mask, src_key_padding_mask)
  return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
end

return {
  TransformerEncoderLayer = TransformerEncoderLayer, TransformerDecoderLayer = TransformerDecoderLayer,
  TransformerEncoder = TransformerEncoder, TransformerDecoder = TransformerDecoder, Transformer = Transformer,
}
