-- Fully connected layers, lookup tables and what only changes the form of its input.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local activation = require "lunaria.nn.activation"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell
local dense, embedding, flatten, dropout = ops.dense, ops.embedding, ops.flatten, ops.dropout

local Dense = layer(Cell, "Dense",
  "in_channels, out_channels, weight_init=nil, bias_init=nil, has_bias=true, activation=nil, dtype=nil",
  [[Fully connected layer: y = x W^T + b, with W of shape (out_channels, in_channels).

W is drawn by HeUniform(sqrt(5)) and b uniformly within 1 / sqrt(in_channels), unless weight_init and bias_init say
otherwise (a name such as "normal", an initializer, a tensor or a number). activation is the name of a function or a cell
that is applied to y.

  > ms.nn.Dense(784, 10)(images)]])

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
    self.activation = activation.get_activation(a.activation, "Dense")
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

The row padding_idx is zero at the start and gets no gradient.]])

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

local Flatten = layer(Cell, "Flatten", "start_dim=1, end_dim=-1", "Joins the axes from start_dim to end_dim; all but the first by default.")

function Flatten:setup(a)
  self.start_dim = check.integer("Flatten", "start_dim", a.start_dim)
  self.end_dim = check.integer("Flatten", "end_dim", a.end_dim)
  self.options = { start_dim = self.start_dim, end_dim = self.end_dim }
end

function Flatten:construct(x)
  return flatten(x, self.options)
end

local Dropout = layer(Cell, "Dropout", "keep_prob=nil, p=nil, dtype=nil",
  [[In training, zeroes elements with probability p (0.5 by default) and divides the others by 1 - p; else the input itself.

p is given by name, as MindSpore's first argument is the probability to keep: nn.Dropout{ p = 0.1 }.]])

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
  return x
end

function Dropout:extend_repr()
  return ("p=%s"):format(self.p)
end

local Pad = layer(Cell, "Pad", "paddings, mode=\"CONSTANT\"",
  "Adds elements around every axis: paddings has a pair {before, after} for each; mode is CONSTANT (zeros) or REFLECT.")

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

return { Dense = Dense, Linear = Dense, Embedding = Embedding, Flatten = Flatten, Dropout = Dropout, Pad = Pad }
