-- Recurrent layers: LSTM, GRU and RNN over sequences of shape (length, batch, size), or (batch, length, size) with
-- batch_first. What the input contributes to all gates is computed for the whole sequence at once; the loop over the
-- steps is a plain one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe, by_name = arguments.fail, arguments.check, arguments.describe, arguments.by_name
local is_table = arguments.is_table
local layer, Cell = cells.layer, cells.Cell
local dense, sigmoid, tanh, relu, split = ops.dense, ops.sigmoid, ops.tanh, ops.relu, ops.split

local classes = {}

-- Where x is; tensors are made where operators are told to put their results.
local function zeros_beside(x, shape)
  local zeros = ops.zeros(shape, x.dtype)
  return zeros.device == x.device and zeros or zeros:to(x.device)
end

-- The inputs of a call that may be left out, and given by name.
local states_name, layer_names = { "hx" }, { "hx", "seq_length" }

-- Steps get what the input and what the state before contribute to the gates, and the state; they give the new state.
-- Gates are in the order i, f, g, o (LSTM) and r, z, n (GRU).
local function lstm_step(x, h, _, c, size)
  local i, f, g, o = split(x + h, size, -1)
  c = sigmoid(f) * c + sigmoid(i) * tanh(g)
  return sigmoid(o) * tanh(c), c
end

local function gru_step(x, h, state, _, size)
  local xr, xz, xn = split(x, size, -1)
  local hr, hz, hn = split(h, size, -1)
  local z = sigmoid(xz + hz)
  local n = tanh(xn + sigmoid(xr + hr) * hn)
  return n + z * (state - n)
end

local function tanh_step(x, h)
  return tanh(x + h)
end

local function relu_step(x, h)
  return relu(x + h)
end

local function set_sizes(self, name, a)
  self.input_size = check.positive(name, "input_size", a.input_size)
  self.hidden_size = check.positive(name, "hidden_size", a.hidden_size)
  self.has_bias = check.boolean(name, "has_bias", a.has_bias)
end

-- The weights of one step with so many inputs; their names end in `suffix`.
local function add_weights(self, gates, inputs, suffix, dtype)
  local draw, rows = init.Uniform(1 / math.sqrt(self.hidden_size)), gates * self.hidden_size
  local function add(what, shape)
    self[what .. suffix] = ms.Parameter(init.initializer(draw, shape, dtype), what .. suffix)
  end
  add("weight_ih", { rows, inputs })
  add("weight_hh", { rows, self.hidden_size })
  if self.has_bias then
    add("bias_ih", { rows })
    add("bias_hh", { rows })
  end
end

local function setup(self, name, a, gates, step)
  set_sizes(self, name, a)
  self.num_layers = check.positive(name, "num_layers", a.num_layers)
  if self.num_layers > 1000 then
    fail(name, ("num_layers must be at most 1000, got %d"):format(self.num_layers))
  end
  self.batch_first = check.boolean(name, "batch_first", a.batch_first)
  self.dropout = check.probability(name, "dropout", a.dropout)
  self.bidirectional = check.boolean(name, "bidirectional", a.bidirectional)
  self.step = step
  self.suffixes = self.bidirectional and { "", "_reverse" } or { "" }
  for k = 0, self.num_layers - 1 do
    local inputs = k == 0 and self.input_size or self.hidden_size * #self.suffixes
    for _, suffix in ipairs(self.suffixes) do add_weights(self, gates, inputs, ("_l%d%s"):format(k, suffix), a.dtype) end
  end
end

-- The state to start from, checked, as a list of one tensor per layer and direction.
local function states(self, name, what, given, x)
  local count, batch = self.num_layers * #self.suffixes, x.shape[2]
  if given == nil then
    given = zeros_beside(x, { count, batch, self.hidden_size })
  elseif not ms.is_tensor(given) then
    fail(name, what .. " must be a tensor, got " .. describe(given))
  end
  local shape = given.shape
  if #shape ~= 3 or shape[1] ~= count or shape[2] ~= batch or shape[3] ~= self.hidden_size then
    fail(name, ("%s has shape %s, it must be (%d, %d, %d): layers and directions, batch, hidden_size"):format(
      what, tostring(shape), count, batch, self.hidden_size))
  end
  return { ops.unbind(given, 0) }
end

-- For each step the samples whose sequence goes on, as a column of booleans; nil where all sequences are of the whole length.
local function steps_within(name, seq_length, length, batch)
  if seq_length == nil then return nil end
  local counts = seq_length
  if type(counts) == "table" and not ms.is_tensor(counts) then counts = ms.tensor(counts) end
  local fits = ms.is_tensor(counts) and counts.ndim == 1 and counts.shape[1] == batch
  if not fits or counts:is_floating_point() or counts.dtype == ms.bool_ then
    fail(name, ("seq_length must be %d integers, the length of each sequence, got %s"):format(batch, describe(seq_length)))
  end
  counts = ops.reshape(counts, { batch, 1 })
  local within = {}
  for t = 1, length do within[t] = ops.greater(counts, t - 1) end
  return within
end

-- One layer in one direction: the outputs of all steps in order, and the last state. within: the sequences that go on at each step;
-- behind its end a sequence's outputs are 0, and its state is that of its last step.
local function run(self, x, key, h, c, backwards, within)
  local size, step = self.hidden_size, self.step
  local weight, bias = self["weight_hh" .. key], self["bias_hh" .. key]
  local parts = { ops.unbind(dense(x, self["weight_ih" .. key], self["bias_ih" .. key]), 0) }
  local first, last, by = 1, #parts, 1
  if backwards then
    first, last, by = last, first, -1
  end
  local outputs = {}
  for t = first, last, by do
    local new_h, new_c = step(parts[t], dense(h, weight, bias), h, c, size)
    if within then
      outputs[t] = ops.where(within[t], new_h, 0.0)
      h, c = ops.where(within[t], new_h, h), new_c and ops.where(within[t], new_c, c)
    else
      h, c, outputs[t] = new_h, new_c, new_h
    end
  end
  if backwards then
    -- Filled from the end, so that the list is in order.
    outputs = table.move(outputs, 1, #parts, 1, {})
  end
  return ops.stack(outputs, 0), h, c
end

local function forward(self, name, x, hx, cx, seq_length)
  if not ms.is_tensor(x) or x.ndim ~= 3 then
    fail(name, "the input must be a tensor of three axes, got " .. describe(x))
  elseif x.shape[3] ~= self.input_size then
    fail(name, ("the input has shape %s: its last axis must be input_size (%d), got %d"):format(
      tostring(x.shape), self.input_size, x.shape[3]))
  elseif x.shape[1] == 0 or x.shape[2] == 0 then
    fail(name, "the input has no elements: its shape is " .. tostring(x.shape))
  end
  if self.batch_first then
    x = ops.transpose(x, { 1, 0, 2 })
  end
  local within = steps_within(name, seq_length, x.shape[1], x.shape[2])
  local h, c = states(self, name, "hx", hx, x), nil
  if cx ~= false then
    c = states(self, name, "cx", cx, x)
  end
  local last_h, last_c = {}, {}
  local count = #self.suffixes
  for k = 0, self.num_layers - 1 do
    local outputs = {}
    for d = 1, count do
      local at = k * count + d
      local y, hn, cn = run(self, x, ("_l%d%s"):format(k, self.suffixes[d]), h[at], c and c[at], d == 2, within)
      outputs[d], last_h[at], last_c[at] = y, hn, cn
    end
    x = count == 1 and outputs[1] or ops.concat(outputs, -1)
    if self.training and self.dropout > 0 and k < self.num_layers - 1 then
      x = ops.dropout(x, self.dropout, true)
    end
  end
  if self.batch_first then
    x = ops.transpose(x, { 1, 0, 2 })
  end
  return x, ops.stack(last_h, 0), c and ops.stack(last_c, 0)
end

local function describe_layer(self)
  return ("input_size=%d, hidden_size=%d, num_layers=%d, has_bias=%s, batch_first=%s, dropout=%s, bidirectional=%s"):format(
    self.input_size, self.hidden_size, self.num_layers, self.has_bias, self.batch_first, self.dropout, self.bidirectional)
end

local signature = "input_size, hidden_size, num_layers=1, has_bias=true, batch_first=false, dropout=0.0, bidirectional=false, dtype=nil"

local LSTM = layer(Cell, "LSTM", signature,
  [[Long short-term memory: output, state = lstm(x, {h, c}), where the state is {h, c} after the last step.

x is (length, batch, input_size), or (batch, length, input_size) with batch_first; h and c are
(num_layers * directions, batch, hidden_size) and zero where they are left out. Gates are in the order i, f, g, o. seq_length: the
length of each sequence of the batch, behind which outputs are 0 and the state stays: lstm(x, { seq_length = ms.tensor { 3, 2 } }).
  > ms.nn.LSTM(3, 5, { batch_first = true })(ms.ones { 2, 7, 3 }).shape --> (2, 7, 5)]])
function LSTM:setup(a)
  setup(self, "LSTM", a, 4, lstm_step)
end
function LSTM:construct(x, hx, seq_length)
  if is_table(hx) or is_table(seq_length) then hx, seq_length = by_name("LSTM", layer_names, hx, seq_length) end
  hx = hx or {}
  if type(hx) ~= "table" then
    fail("LSTM", "hx must be a table of two tensors {h, c}, got " .. describe(hx))
  end
  local y, h, c = forward(self, "LSTM", x, hx[1], hx[2], seq_length)
  return y, { h, c }
end
LSTM.extend_repr = describe_layer
classes.LSTM = LSTM

local GRU = layer(Cell, "GRU", signature,
  [[Gated recurrent units: output, h = gru(x, h), with the state after the last step.

x is (length, batch, input_size), or (batch, length, input_size) with batch_first; h is
(num_layers * directions, batch, hidden_size) and zero where it is left out. Gates are in the order r, z, n. seq_length: the
length of each sequence of the batch, behind which outputs are 0 and the state stays: gru(x, { seq_length = ms.tensor { 3, 2 } }).
  > ms.nn.GRU(3, 5, { batch_first = true })(ms.ones { 2, 7, 3 }).shape --> (2, 7, 5)]])
function GRU:setup(a)
  setup(self, "GRU", a, 3, gru_step)
end
function GRU:construct(x, hx, seq_length)
  if is_table(hx) or is_table(seq_length) then hx, seq_length = by_name("GRU", layer_names, hx, seq_length) end
  local y, h = forward(self, "GRU", x, hx, false, seq_length)
  return y, h
end
GRU.extend_repr = describe_layer
classes.GRU = GRU

local RNN = layer(Cell, "RNN", (signature:gsub("num_layers=1", "num_layers=1, nonlinearity=\"tanh\"")),
  [[A plain recurrent layer: output, h = rnn(x, h), where each step is h = tanh(W_ih x + b_ih + W_hh h + b_hh).

x is (length, batch, input_size), or (batch, length, input_size) with batch_first; h is
(num_layers * directions, batch, hidden_size) and zero where it is left out. nonlinearity is "tanh" or "relu". seq_length: the
length of each sequence of the batch, behind which outputs are 0 and the state stays: rnn(x, { seq_length = ms.tensor { 3, 2 } }).
  > ms.nn.RNN(3, 5, { batch_first = true })(ms.ones { 2, 7, 3 }).shape --> (2, 7, 5)]])
function RNN:setup(a)
  local name = check.choice("RNN", "nonlinearity", a.nonlinearity, { "tanh", "relu" })
  setup(self, "RNN", a, 1, name == "tanh" and tanh_step or relu_step)
end
function RNN:construct(x, hx, seq_length)
  if is_table(hx) or is_table(seq_length) then hx, seq_length = by_name("RNN", layer_names, hx, seq_length) end
  local y, h = forward(self, "RNN", x, hx, false, seq_length)
  return y, h
end
RNN.extend_repr = describe_layer
classes.RNN = RNN

-- Single steps as cells: cell(x, state), with x of shape (batch, input_size) or (input_size).
local function cell_setup(self, name, a, gates)
  set_sizes(self, name, a)
  add_weights(self, gates, self.input_size, "", a.dtype)
end

-- What the input and the state contribute to the gates, and the states, of which missing ones are zero.
local function contributions(self, name, x, h, c)
  if not ms.is_tensor(x) or x.ndim < 1 or x.ndim > 2 or x.shape[x.ndim] ~= self.input_size then
    fail(name, ("x must be a tensor of shape (batch, input_size) with input_size %d, got %s"):format(self.input_size, describe(x)))
  end
  local shape = x.ndim == 2 and { x.shape[1], self.hidden_size } or { self.hidden_size }
  local function state(what, given)
    if given == nil then return zeros_beside(x, shape) end
    local fits = ms.is_tensor(given) and given.ndim == #shape
    for i, size in ipairs(fits and shape or {}) do fits = fits and given.shape[i] == size end
    if not fits then
      fail(name, ("%s must be a tensor of shape (%s), got %s"):format(what, table.concat(shape, ", "), describe(given)))
    end
    return given
  end
  h, c = state("hx", h), c ~= false and state("cx", c) or nil
  return dense(x, self.weight_ih, self.bias_ih), dense(h, self.weight_hh, self.bias_hh), h, c
end

local function describe_cell(self)
  return ("input_size=%d, hidden_size=%d, has_bias=%s"):format(self.input_size, self.hidden_size, self.has_bias)
end

local cell_signature = "input_size, hidden_size, has_bias=true, dtype=nil"

local LSTMCell = layer(Cell, "LSTMCell", cell_signature,
  [[One step of long short-term memory: h, c = cell(x, { h, c }).

x is (batch, input_size); h and c are (batch, hidden_size) and zero where they are left out. Gates are in the order i, f, g, o.

  > ms.nn.LSTMCell(3, 5)(ms.ones { 2, 3 }).shape --> (2, 5)]])
function LSTMCell:setup(a)
  cell_setup(self, "LSTMCell", a, 4)
end
function LSTMCell:construct(x, hx)
  if is_table(hx) then hx = by_name("LSTMCell", states_name, hx) end
  hx = hx or {}
  if type(hx) ~= "table" then
    fail("LSTMCell", "hx must be a table of two tensors {h, c}, got " .. describe(hx))
  end
  local from_x, from_h, h, c = contributions(self, "LSTMCell", x, hx[1], hx[2])
  return lstm_step(from_x, from_h, h, c, self.hidden_size)
end
LSTMCell.extend_repr = describe_cell
classes.LSTMCell = LSTMCell

local GRUCell = layer(Cell, "GRUCell", cell_signature,
  [[One step of gated recurrent units: h = cell(x, h).

x is (batch, input_size); h is (batch, hidden_size) and zero where it is left out. Gates are in the order r, z, n.

  > ms.nn.GRUCell(3, 5)(ms.ones { 2, 3 }).shape --> (2, 5)]])
function GRUCell:setup(a)
  cell_setup(self, "GRUCell", a, 3)
end
function GRUCell:construct(x, hx)
  if is_table(hx) then hx = by_name("GRUCell", states_name, hx) end
  local from_x, from_h, h = contributions(self, "GRUCell", x, hx, false)
  return gru_step(from_x, from_h, h, nil, self.hidden_size)
end
GRUCell.extend_repr = describe_cell
classes.GRUCell = GRUCell

local RNNCell = layer(Cell, "RNNCell", (cell_signature:gsub("has_bias=true", "has_bias=true, nonlinearity=\"tanh\"")),
  [[One step of a plain recurrent layer: h = cell(x, h) = tanh(W_ih x + b_ih + W_hh h + b_hh).

x is (batch, input_size); h is (batch, hidden_size) and zero where it is left out. nonlinearity is "tanh" or "relu".

  > ms.nn.RNNCell(3, 5)(ms.ones { 2, 3 }).shape --> (2, 5)]])
function RNNCell:setup(a)
  self.step = check.choice("RNNCell", "nonlinearity", a.nonlinearity, { "tanh", "relu" }) == "tanh" and tanh_step or relu_step
  cell_setup(self, "RNNCell", a, 1)
end
function RNNCell:construct(x, hx)
  if is_table(hx) then hx = by_name("RNNCell", states_name, hx) end
  local from_x, from_h = contributions(self, "RNNCell", x, hx, false)
  return self.step(from_x, from_h)
end
RNNCell.extend_repr = describe_cell
classes.RNNCell = RNNCell

return classes
