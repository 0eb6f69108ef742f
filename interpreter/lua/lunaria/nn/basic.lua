-- Fully connected layers, lookup tables and what only changes the form of its input.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local activation = require "lunaria.nn.activation"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell
local dense, embedding, flatten = ops.dense, ops.embedding, ops.flatten

local Dense = layer(Cell, "Dense",
  "in_channels, out_channels, weight_init=nil, bias_init=nil, has_bias=true, activation=nil, dtype=nil",
  [[Fully connected layer: y = x W^T + b, with W of shape (out_channels, in_channels).

W is drawn by HeUniform(sqrt(5)) and b uniformly within 1 / sqrt(in_channels), unless weight_init and bias_init say
otherwise (a name such as "normal", an initializer, a tensor or a number). activation is the name of a function or a cell
that is applied to y.

  > ms.nn.Dense(784, 10)(images)
  > ms.nn.Dense(3, 4)(ms.ones { 2, 3 }).shape --> (2, 4)
  > ms.nn.Dense(3, 4, { has_bias = false, activation = "relu" })
  Dense<
    input_channels=3, output_channels=4
    (activation): ReLU<>
    >]])

function Dense:setup(a)
  self.in_channels = check.positive("Dense", "in_channels", a.in_channels)
  self.out_channels = check.positive("Dense", "out_channels", a.out_channels)
  self.has_bias = check.boolean("Dense", "has_bias", a.has_bias)
  self.weight = ms.Parameter(
    init.initializer(a.weight_init or init.HeUniform(math.sqrt(5)), { self.out_channels, self.in_channels }, a.dtype), "weight")
  if self.has_bias then
    local bias_init = a.bias_init or init.Uniform(1 / math.sqrt(self.in_channels))
    self.bias = ms.Parameter(init.initializer(bias_init, { self.out_channels }, a.dtype), "bias")
  end
  if type(a.activation) == "string" then
    self.activation = activation.activation_of(a.activation, "Dense")
  elseif is_cell(a.activation) or type(a.activation) == "function" then
    self.activation = a.activation
  elseif a.activation ~= nil then
    fail("Dense", "activation must be a name or a cell, got " .. describe(a.activation))
  end
end

function Dense:construct(x)
  local y = dense(x, self.weight, self.bias)
  local f = self.activation
  if f then
    return f(y)
  end
  return y
end

function Dense:extend_repr()
  return ("input_channels=%d, output_channels=%d%s"):format(self.in_channels, self.out_channels, self.has_bias and ", has_bias=true" or "")
end

local Embedding = layer(Cell, "Embedding",
  "vocab_size, embedding_size, use_one_hot=false, embedding_table=\"normal\", dtype=nil, padding_idx=nil",
  [[Rows of a table of shape (vocab_size, embedding_size) for the indices in the input.

The row padding_idx is zero at the start and gets no gradient.
  > ms.nn.Embedding(10, 4)(ms.tensor { 1, 2, 3 }).shape --> (3, 4)]])

function Embedding:setup(a)
  self.vocab_size = check.positive("Embedding", "vocab_size", a.vocab_size)
  self.embedding_size = check.positive("Embedding", "embedding_size", a.embedding_size)
  self.use_one_hot = check.boolean("Embedding", "use_one_hot", a.use_one_hot)
  local values = init.initializer(a.embedding_table, { self.vocab_size, self.embedding_size }, a.dtype)
  if a.padding_idx ~= nil then
    local row = check.not_negative("Embedding", "padding_idx", a.padding_idx)
    if row >= self.vocab_size then
      fail("Embedding", ("padding_idx must be less than vocab_size (%d), got %d"):format(self.vocab_size, row))
    end
    self.padding_idx = row
    values[row] = 0
  end
  self.embedding_table = ms.Parameter(values, "embedding_table")
end

function Embedding:construct(indices)
  return embedding(indices, self.embedding_table, self.padding_idx)
end

function Embedding:extend_repr()
  return ("vocab_size=%d, embedding_size=%d"):format(self.vocab_size, self.embedding_size)
end

local Flatten = layer(Cell, "Flatten", "start_dim=1, end_dim=-1", [[Joins the axes from start_dim to end_dim; all but the first by default.
  > ms.nn.Flatten()(ms.ones { 2, 3, 4 }).shape --> (2, 12)]])

function Flatten:setup(a)
  self.start_dim = check.integer("Flatten", "start_dim", a.start_dim)
  self.end_dim = check.integer("Flatten", "end_dim", a.end_dim)
  self.options = { start_dim = self.start_dim, end_dim = self.end_dim }
end

function Flatten:construct(x)
  return flatten(x, self.options)
end

local Pad = layer(Cell, "Pad", "paddings, mode=\"CONSTANT\"",
  [[Adds elements around every axis: paddings has a pair {before, after} for each; mode is CONSTANT (zeros) or REFLECT.
  > ms.nn.Pad({ { 1, 1 }, { 0, 2 } })(ms.ones { 2, 3 }).shape --> (4, 5)]])

function Pad:setup(a)
  self.mode = check.choice("Pad", "mode", a.mode, { "CONSTANT", "REFLECT" })
  if type(a.paddings) ~= "table" then
    fail("Pad", "paddings must be a table of pairs, got " .. describe(a.paddings))
  end
  -- The operator wants the last axis first.
  self.amounts = {}
  for i = #a.paddings, 1, -1 do
    local pair = check.sizes("Pad", "paddings", a.paddings[i], 2, 0)
    self.amounts[#self.amounts + 1], self.amounts[#self.amounts + 2] = pair[1], pair[2]
  end
end

function Pad:construct(x)
  return ops.pad(x, self.amounts, self.mode == "REFLECT" and "reflect" or "constant")
end

local Unflatten = layer(Cell, "Unflatten", "axis, unflattened_size",
  [[Splits one axis into several, whose sizes are unflattened_size; one of them may be -1 and follows from the others.

  > ms.nn.Unflatten(1, { 2, -1 })(ms.ones { 3, 8 }).shape --> (3, 2, 4)]])

function Unflatten:setup(a)
  self.axis = check.integer("Unflatten", "axis", a.axis)
  local sizes = a.unflattened_size
  if type(sizes) ~= "table" or #sizes == 0 then
    fail("Unflatten", "unflattened_size must be a table of sizes that is not empty, got " .. describe(sizes))
  end
  self.unflattened_size = {}
  local open = 0
  for i = 1, #sizes do
    local size = check.integer("Unflatten", ("unflattened_size[%d]"):format(i), sizes[i])
    if size == -1 then
      open = open + 1
    elseif size < 1 then
      fail("Unflatten", ("unflattened_size[%d] must be positive or -1, got %d"):format(i, size))
    end
    self.unflattened_size[i] = size
  end
  if open > 1 then fail("Unflatten", "at most one size may be -1, got " .. open) end
end

function Unflatten:construct(x)
  if not ms.is_tensor(x) or self.axis >= x.ndim or self.axis < -x.ndim then
    fail("Unflatten", ("axis is %d, the input is %s"):format(self.axis, describe(x)))
  end
  local at = self.axis % x.ndim + 1
  local given, product, text = x.shape[at], 1, table.concat(self.unflattened_size, ", ")
  local shape = {}
  for i = 1, at - 1 do shape[i] = x.shape[i] end
  for _, size in ipairs(self.unflattened_size) do
    if size ~= -1 then product = product * size end
  end
  for _, size in ipairs(self.unflattened_size) do shape[#shape + 1] = size == -1 and given // product or size end
  if given % product ~= 0 or not text:find("-1", 1, true) and given ~= product then
    fail("Unflatten", ("axis %d has size %d, which is not the product of unflattened_size (%s)"):format(at - 1, given, text))
  end
  for i = at + 1, x.ndim do shape[#shape + 1] = x.shape[i] end
  return ops.reshape(x, shape)
end

function Unflatten:extend_repr()
  return ("axis=%d, unflattened_size=(%s)"):format(self.axis, table.concat(self.unflattened_size, ", "))
end

local EmbeddingLookup = layer(Cell, "EmbeddingLookup",
  "vocab_size, embedding_size, param_init=\"normal\", target=\"CPU\", slice_mode=\"batch_slice\", manual_shapes=nil, max_norm=nil, "
    .. "sparse=true, vocab_cache_size=0, dtype=nil",
  [[Rows of a table of shape (vocab_size, embedding_size) for the indices in the input; with max_norm scaled down to that norm.

param_init: how the table starts. target,
slice_mode, manual_shapes, sparse, vocab_cache_size: for programs written for MindSpore. They say where the table lies
and how it is divided; on one device the result is the same.

  > ms.nn.EmbeddingLookup(10, 4)(ms.tensor { { 1, 2, 3 } }).shape --> (1, 3, 4)]])

function EmbeddingLookup:setup(a)
  self.vocab_size = check.positive("EmbeddingLookup", "vocab_size", a.vocab_size)
  self.embedding_size = check.positive("EmbeddingLookup", "embedding_size", a.embedding_size)
  self.target = check.choice("EmbeddingLookup", "target", a.target, { "CPU", "DEVICE" })
  check.choice("EmbeddingLookup", "slice_mode", a.slice_mode,
    { "batch_slice", "field_slice", "table_row_slice", "table_column_slice" })
  check.boolean("EmbeddingLookup", "sparse", a.sparse)
  check.not_negative("EmbeddingLookup", "vocab_cache_size", a.vocab_cache_size)
  if a.max_norm ~= nil then self.max_norm = check.number_positive("EmbeddingLookup", "max_norm", a.max_norm) end
  self.embedding_table = ms.Parameter(init.initializer(a.param_init, { self.vocab_size, self.embedding_size }, a.dtype), "embedding_table")
end

function EmbeddingLookup:construct(indices)
  return embedding(indices, self.embedding_table, nil, self.max_norm)
end

function EmbeddingLookup:extend_repr()
  return ("vocab_size=%d, embedding_size=%d"):format(self.vocab_size, self.embedding_size)
end

local BiDense = layer(Cell, "BiDense",
  "in1_channels, in2_channels, out_channels, weight_init=nil, bias_init=nil, has_bias=true, dtype=nil",
  [[Bilinear layer: y_k = x1^T W_k x2 + b_k, with W of shape (out_channels, in1_channels, in2_channels).

W and b are drawn uniformly within 1 / sqrt(in1_channels) unless weight_init and bias_init say otherwise. in1_channels: the size of
the first input's last axis. in2_channels: the size of the second input's last axis.

  > ms.nn.BiDense(3, 4, 5)(ms.ones { 2, 3 }, ms.ones { 2, 4 }).shape --> (2, 5)]])

function BiDense:setup(a)
  self.in1_channels = check.positive("BiDense", "in1_channels", a.in1_channels)
  self.in2_channels = check.positive("BiDense", "in2_channels", a.in2_channels)
  self.out_channels = check.positive("BiDense", "out_channels", a.out_channels)
  self.has_bias = check.boolean("BiDense", "has_bias", a.has_bias)
  local draw = init.Uniform(1 / math.sqrt(self.in1_channels))
  self.weight = ms.Parameter(
    init.initializer(a.weight_init or draw, { self.out_channels, self.in1_channels, self.in2_channels }, a.dtype), "weight")
  if self.has_bias then
    self.bias = ms.Parameter(init.initializer(a.bias_init or draw, { self.out_channels }, a.dtype), "bias")
  end
end

function BiDense:construct(x1, x2)
  for which, x in ipairs { x1, x2 } do
    local size = which == 1 and self.in1_channels or self.in2_channels
    if not ms.is_tensor(x) or x.ndim < 1 or x.shape[x.ndim] ~= size then
      fail("BiDense", ("input%d must be a tensor whose last axis is in%d_channels (%d), got %s"):format(which, which, size, describe(x)))
    end
  end
  local shape = {}
  for i = 1, x1.ndim - 1 do shape[i] = x1.shape[i] end
  shape[#shape + 1] = self.out_channels
  shape[#shape + 1] = self.in2_channels
  -- The first input by all matrices at once, then the product with the second one summed up.
  local rows = ops.permute(self.weight, { 1, 0, 2 })
  local left = ops.matmul(x1, ops.reshape(rows, { self.in1_channels, self.out_channels * self.in2_channels }))
  local y = ops.sum(ops.reshape(left, shape) * ops.expand_dims(x2, -2), -1)
  return self.bias and y + self.bias or y
end

function BiDense:extend_repr()
  return ("in1_channels=%d, in2_channels=%d, out_channels=%d, has_bias=%s"):format(
    self.in1_channels, self.in2_channels, self.out_channels, self.has_bias)
end

local ClipByNorm = layer(Cell, "ClipByNorm", "axis=nil",
  [[Scales x down, where need be, so that its norm is at most clip_norm: cell(x, clip_norm). The norm is over all elements, or
along axis, an integer or a table of them.

  > ms.nn.ClipByNorm()(ms.tensor { 3.0, 4.0 }, 1.0):tolist()[1] --> 0.60000002384186]])

function ClipByNorm:setup(a)
  if type(a.axis) == "table" then
    self.axis = {}
    for i = 1, #a.axis do self.axis[i] = check.integer("ClipByNorm", ("axis[%d]"):format(i), a.axis[i]) end
  elseif a.axis ~= nil then
    self.axis = check.integer("ClipByNorm", "axis", a.axis)
  end
end

function ClipByNorm:construct(x, clip_norm)
  if not ms.is_tensor(x) then fail("ClipByNorm", "x must be a tensor, got " .. describe(x)) end
  if not ms.is_tensor(clip_norm) then check.number_not_negative("ClipByNorm", "clip_norm", clip_norm) end
  -- Squares of half precision numbers soon leave its range.
  local wide = x.dtype == ms.float64 and x or ops.cast(x, ms.float32)
  local squares = ops.sum(wide * wide, self.axis, true)
  -- The root of 0 has no derivative.
  local some = ops.gt(squares, 0.0)
  local norm = ops.where(some, ops.sqrt(ops.where(some, squares, 1.0)), 0.0)
  local limit = ops.maximum(norm, clip_norm)
  local any = ops.gt(limit, 0.0)
  return ops.cast(ops.where(any, wide * clip_norm / ops.where(any, limit, 1.0), 0.0), x.dtype)
end

return {
  Dense = Dense, Linear = Dense, Embedding = Embedding, EmbeddingLookup = EmbeddingLookup, BiDense = BiDense, Flatten = Flatten,
  Unflatten = Unflatten, Pad = Pad, ClipByNorm = ClipByNorm,
}
