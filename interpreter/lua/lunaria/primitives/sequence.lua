-- Primitives of MindSpore on sequences: recurrent networks, losses over alignments, repeated words. Rows for nn/primitives.lua, as in
-- array.lua.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail = arguments.fail
local P = {}

-- The results of steps, each in one tensor along time.
local function over_time(count, x, step)
  local lists = {}
  for k = 1, count do lists[k] = {} end
  for time = 0, #x - 1 do
    for k, y in ipairs { step(x[time]) } do lists[k][time + 1] = y end
  end
  for k = 1, count do lists[k] = ops.stack(lists[k]) end
  return table.unpack(lists)
end

-- One step of an LSTM: gates of the inputs and the hidden state, in the order that `place` tells.
local function lstm_step(gates, c, place, forget_bias)
  local parts = { ops.tensor_split(gates, 4, 1) }
  local i, f, j, o = parts[place.i], parts[place.f], parts[place.j], parts[place.o]
  i, f, j, o = ops.sigmoid(i), ops.sigmoid(f + forget_bias), ops.tanh(j), ops.sigmoid(o)
  c = f * c + i * j
  local squashed = ops.tanh(c)
  return o * squashed, c, i, j, f, o, squashed
end
local of_cell, of_layer = { i = 1, j = 2, f = 3, o = 4 }, { i = 1, f = 2, j = 3, o = 4 }

P.BasicLSTMCell = { "keep_prob=1.0, forget_bias=1.0, state_is_tuple=true, activation=\"tanh\"", "x, h, c, w, b", function(a, x, h, c, w, b)
  local y, state, i, j, f, o, squashed = lstm_step(ops.matmul(ops.concat({ x, h }, 1), w) + b, c, of_cell, a.forget_bias)
  return state, y, i, j, f, o, squashed
end, { keep_prob = { 1.0 }, state_is_tuple = { true }, activation = { "tanh" } } }
local whole = { direction = { "UNIDIRECTIONAL" }, cell_depth = { 1 }, keep_prob = { 1.0 }, cell_clip = { -1.0 }, num_proj = { 0 },
  time_major = { true }, activation = { "tanh" } }
local function and_only(more)
  local choices = {}
  for _, list in ipairs { whole, more } do
    for name, values in pairs(list) do choices[name] = values end
  end
  return choices
end
local function no_lengths(where, lengths)
  if lengths ~= nil then fail(where, "seq_length must be nil: all sequences are of one length") end
end
P.DynamicRNN = { "cell_type=\"LSTM\", direction=\"UNIDIRECTIONAL\", cell_depth=1, use_peephole=false, keep_prob=1.0, cell_clip=-1.0, "
  .. "num_proj=0, time_major=true, activation=\"tanh\", forget_bias=0.0, is_training=true", "x, w, b, seq_length, init_h, init_c",
  function(a, x, w, b, lengths, h, c)
    no_lengths("DynamicRNN", lengths)
    h, c = h[0], c[0]
    return over_time(8, x, function(row)
      local i, j, f, o, squashed
      h, c, i, j, f, o, squashed = lstm_step(ops.matmul(ops.concat({ row, h }, 1), w) + b, c, of_cell, a.forget_bias)
      return h, h, c, i, j, f, o, squashed
    end)
  end, and_only { cell_type = { "LSTM" }, use_peephole = { false } } }
P.DynamicGRUV2 = { "direction=\"UNIDIRECTIONAL\", cell_depth=1, keep_prob=1.0, cell_clip=-1.0, num_proj=0, time_major=true, "
  .. "activation=\"tanh\", gate_order=\"rzh\", reset_after=true, is_training=true",
    "x, weight_input, weight_hidden, bias_input, bias_hidden, seq_length, init_h",
  function(a, x, w_input, w_hidden, b_input, b_hidden, lengths, h)
    no_lengths("DynamicGRUV2", lengths)
    if #h.shape == 3 then h = h[0] end
    local r_at, z_at = a.gate_order == "rzh" and 1 or 2, a.gate_order == "rzh" and 2 or 1
    return over_time(6, x, function(row)
      local of_input, of_hidden = ops.matmul(row, w_input), ops.matmul(h, w_hidden)
      if b_input ~= nil then of_input = of_input + b_input end
      if b_hidden ~= nil then of_hidden = of_hidden + b_hidden end
      local one, other = { ops.tensor_split(of_input, 3, 1) }, { ops.tensor_split(of_hidden, 3, 1) }
      local reset, update = ops.sigmoid(one[r_at] + other[r_at]), ops.sigmoid(one[z_at] + other[z_at])
      local new = ops.tanh(one[3] + reset * other[3])
      h = (1 - update) * new + update * h
      return h, h, update, reset, new, other[3]
    end)
  end, and_only { gate_order = { "rzh", "zrh" }, reset_after = { true } } }
-- The weights lie in a row: of the inputs, of the hidden state, and the sum of both biases; gates in the order i, f, g, o.
P.LSTM = { "input_size, hidden_size, num_layers, has_bias, bidirectional, dropout, proj_size=0", "input, h, c, w", function(a, x, h, c, w)
  local n, size = a.hidden_size, a.input_size
  local flat, at = ops.reshape(w, { -1 }), 0
  local function take(count)
    at = at + count
    return ops.narrow(flat, 0, at - count, count)
  end
  local w_input, w_hidden = ops.reshape(take(4 * n * size), { 4 * n, size }), ops.reshape(take(4 * n * n), { 4 * n, n })
  local bias = a.has_bias and take(4 * n) or nil
  local state, memory = h[0], c[0]
  local y = over_time(1, x, function(row)
    local gates = ops.dense(row, w_input, bias) + ops.dense(state, w_hidden)
    state, memory = lstm_step(gates, memory, of_layer, 0.0)
    return state
  end)
  return y, ops.expand_dims(state, 0), ops.expand_dims(memory, 0)
end, { num_layers = { 1 }, bidirectional = { false }, dropout = { 0.0, 0 }, proj_size = { 0 } } }

local far = -1e30
-- log(exp(a) + exp(b)) of a list, where -1e30 stands for nothing.
local function added(list) return ops.logsumexp(ops.stack(list), 0) end
local function shifted(x, by)
  local width = x.shape[2]
  if by >= width then return ops.full_like(x, far) end
  return ops.concat({ ops.full({ x.shape[1], by }, far, { dtype = x.dtype }), ops.narrow(x, 1, 0, width - by) }, 1)
end
P.CTCLossV2 = { "blank=0, reduction=\"none\", zero_infinity=false", "log_probs, targets, input_lengths, target_lengths",
  function(a, logs, targets, input_lengths, target_lengths)
    local batch, longest = targets.shape[1], targets.shape[2]
    -- Blanks around the labels.
    local blanks = ops.full({ batch, longest }, a.blank, { dtype = ms.int64 })
    local labels = ops.cast(targets, ms.int64)
    local path = ops.concat({ ops.reshape(ops.stack({ blanks, labels }, -1), { batch, 2 * longest }), ops.narrow(blanks, 1, 0, 1) }, 1)
    local before = ops.concat({ ops.full({ batch, 2 }, a.blank, { dtype = ms.int64 }), ops.narrow(path, 1, 0, 2 * longest - 1) }, 1)
    local skips = ops.logical_and(ops.not_equal(path, a.blank), ops.not_equal(path, before))
    local first = ops.less(ops.arange(2 * longest + 1), 2)
    local alpha, rows = nil, {}
    for time = 0, #logs - 1 do
      local here = ops.gather_elements(logs[time], 1, path)
      if alpha then
        alpha = here + added { alpha, shifted(alpha, 1), ops.where(skips, shifted(alpha, 2), far) }
      else
        alpha = ops.where(first, here, far)
      end
      rows[time + 1] = alpha
    end
    local all = ops.stack(rows, 1)
    local at = ops.reshape(ops.cast(input_lengths, ms.int64) - 1, { batch, 1, 1 })
    local last = ops.squeeze(ops.gather_elements(all, 1, ops.broadcast_to(at, { batch, 1, 2 * longest + 1 })), 1)
    local ends = ops.expand_dims(ops.cast(target_lengths, ms.int64) * 2, 1)
    local loss = -ops.logsumexp(ops.gather_elements(last, 1, ops.concat({ ends, ops.maximum(ends - 1, 0) }, 1)), 1)
    if a.zero_infinity then loss = ops.where(ops.greater(loss, -far / 2), 0.0, loss) end
    return loss, ops.where(ops.less(all, far / 2), -math.huge, all)
  end, { reduction = { "none" } } }
-- Over all ways through the grid of time and labels: a blank goes on in time, a label goes on in the labels.
local function rnnt_costs(blank, acts, labels, input_lengths, label_lengths)
  local logs, costs = ops.log_softmax(acts, -1), {}
  local times, counts, words = input_lengths:tolist(), label_lengths:tolist(), labels:tolist()
  for b = 1, #times do
    local own, alpha = logs[b - 1], {}
    for u = 0, counts[b] do alpha[u] = {} end
    for time = 0, times[b] - 1 do
      for u = 0, counts[b] do
        local ways = {}
        if time > 0 then ways[#ways + 1] = alpha[u][time - 1] + own[{ time - 1, u, blank }] end
        if u > 0 then ways[#ways + 1] = alpha[u - 1][time] + own[{ time, u - 1, words[b][u] }] end
        alpha[u][time] = #ways == 0 and ops.zeros({}, logs.dtype) or #ways == 1 and ways[1] or added(ways)
      end
    end
    costs[b] = -(alpha[counts[b]][times[b] - 1] + own[{ times[b] - 1, counts[b], blank }])
  end
  return ops.stack(costs)
end
P.RNNTLoss = { "blank_label=0", "acts, labels, input_lengths, label_lengths", function(a, acts, ...)
  local rest = { ... }
  local value, slope = ms.value_and_grad(function(x)
    local costs = rnnt_costs(a.blank_label, x, table.unpack(rest))
    return ops.sum(costs), costs
  end, 0, nil, true)(acts)
  return value[2], slope
end }
P.NoRepeatNGram = { "ngram_size=1", "state_seq, log_probs", function(a, sequences, logs)
  local size = a.ngram_size
  if size < 1 or size > sequences.shape[3] then
    fail("NoRepeatNGram", ("ngram_size must be 1 to %d, the length of the sequences, got %s"):format(sequences.shape[3], tostring(size)))
  end
  local banned = {}
  for b, beams in ipairs(sequences:tolist()) do
    banned[b] = {}
    for k, words in ipairs(beams) do
      local row = {}
      for word = 1, logs.shape[3] do row[word] = false end
      for from = 1, #words - size + 1 do
        local same = true
        for i = 0, size - 2 do same = same and words[from + i] == words[#words - size + 2 + i] end
        if same then row[words[from + size - 1] + 1] = true end
      end
      banned[b][k] = row
    end
  end
  return ops.where(ms.tensor(banned), ops.full({}, -3.4028234663852886e38, { dtype = logs.dtype }), logs)
end }
-- Rows of keys and values go to places of the caches, which slot_mapping names; -1: nowhere.
P.ReshapeAndCache = { "", "key, value, key_cache, value_cache, slot_mapping", function(_, key, value, key_cache, value_cache, slots)
  local rows = {}
  for i, slot in ipairs(slots:tolist()) do
    if slot >= 0 then rows[#rows + 1] = i - 1 end
  end
  local used = ms.tensor(rows, ms.int64)
  local function write(cache, x)
    local shape = { table.unpack(cache.shape) }
    local flat = ops.reshape(cache, { shape[1] * shape[2], -1 })
    local new = ops.tensor_scatter_update(flat, ops.expand_dims(ops.cast(ops.gather(slots, used, 0), ms.int64), 1),
      ops.gather(ops.reshape(x, { slots.size, -1 }), used, 0))
    ops.assign(cache, ops.reshape(new, shape))
  end
  write(key_cache, key)
  if value ~= nil then write(value_cache, value) end
  return key
end }

return P
