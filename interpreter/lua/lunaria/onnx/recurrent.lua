-- ONNX's recurrent layers.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"
local quantised = require "lunaria.onnx.quantised"

local ops = ms.ops

-- Activations by name: f(alpha, beta), with ONNX's own values where a node has none.
local activations = {
  relu = function() return ops.relu end,
  tanh = function() return ops.tanh end,
  sigmoid = function() return ops.sigmoid end,
  softsign = function() return ops.softsign end,
  softplus = function() return function(x) return ops.logaddexp(x, ops.zeros_like(x)) end end,
  affine = function(alpha, beta) return function(x) return x * (alpha or 1.0) + (beta or 0.0) end end,
  leakyrelu = function(alpha) return function(x) return ops.leaky_relu(x, alpha or 0.01) end end,
  thresholdedrelu = function(alpha)
    return function(x) return ops.where(ops.greater(x, alpha or 1.0), x, ops.zeros_like(x)) end
  end,
  scaledtanh = function(alpha, beta) return function(x) return ops.tanh(x * (beta or 1.0)) * (alpha or 1.0) end end,
  hardsigmoid = function(alpha, beta)
    return function(x) return ops.clamp(x * (alpha or 0.2) + (beta or 0.5), 0.0, 1.0) end
  end,
  elu = function(alpha) return function(x) return ops.elu(x, alpha or 1.0) end end,
}

-- The activations of one direction; parameters are given in turn to those that take them.
local takes = { affine = 2, leakyrelu = 1, thresholdedrelu = 1, scaledtanh = 2, hardsigmoid = 2, elu = 1 }

local function activations_of(a, node, names, directions)
  local list, alphas, betas = {}, 1, 1
  local given = a.activations or {}
  for d = 1, directions do
    list[d] = {}
    for i = 1, #names do
      local name = (given[(d - 1) * #names + i] or names[i]):lower()
      local make = activations[name]
      if not make then node.fail(("the activation '%s' is not known"):format(name)) end
      local alpha, beta
      if (takes[name] or 0) >= 1 and a.activation_alpha then
        alpha, alphas = a.activation_alpha[alphas], alphas + 1
      end
      if takes[name] == 2 and a.activation_beta then
        beta, betas = a.activation_beta[betas], betas + 1
      end
      list[d][i] = make(alpha, beta)
    end
  end
  return list
end

-- Runs a layer: step(x, state, d, t) gives the next state (h first) for direction d. Sequences may be shorter than the
-- others: their states then stay, and their outputs are zeros.
local function run(a, directions, x, lengths, states, step)
  if a.layout ~= 0 then
    x = ops.transpose(x, { 1, 0, 2 })
    for i, state in ipairs(states) do states[i] = ops.transpose(state, { 1, 0, 2 }) end
  end
  local length, batch = x.shape[1], x.shape[2]
  local outputs, finals = {}, {}
  for d = 1, directions do
    local back = a.direction == "reverse" or d == 2
    local state, list = {}, {}
    for i, all in ipairs(states) do state[i] = all[d - 1] end
    local input = x
    if back then
      input = lengths and ops.reverse_sequence(x, lengths, 0, 1) or ops.flip(x, { 0 })
    end
    for t = 0, length - 1 do
      local after = step(input[t], state, d, t)
      if lengths then
        local live = ops.reshape(ops.greater(lengths, t), { batch, 1 })
        list[t + 1] = ops.where(live, after[1], ops.zeros_like(after[1]))
        for i = 1, #after do after[i] = ops.where(live, after[i], state[i]) end
      else
        list[t + 1] = after[1]
      end
      state = after
    end
    local y = ops.stack(list, 0)
    if back then y = lengths and ops.reverse_sequence(y, lengths, 0, 1) or ops.flip(y, { 0 }) end
    outputs[d] = y
    for i = 1, #state do
      finals[i] = finals[i] or {}
      finals[i][d] = state[i]
    end
  end
  local y = ops.stack(outputs, 1)
  for i, list in ipairs(finals) do finals[i] = ops.stack(list, a.layout ~= 0 and 1 or 0) end
  if a.layout ~= 0 then y = ops.transpose(y, { 2, 0, 1, 3 }) end
  return y, table.unpack(finals)
end

local function clipped(a, x) return a.clip and ops.clamp(x, -a.clip, a.clip) or x end

local function parts(t, count) return { ops.chunk(t, count, -1) } end

local shared = "activation_alpha:floats activation_beta:floats activations:strings clip:f direction:s=forward "
  .. "hidden_size:i layout:i=0 output_sequence:i=0 "

local function layer(name, more, most, names, gates, make)
  define.define(name, shared .. more, 3, most, function(a, node)
    local directions = a.direction == "bidirectional" and 2 or 1
    if directions == 1 and a.direction ~= "forward" and a.direction ~= "reverse" then
      node.fail(("the direction '%s' is not known"):format(a.direction))
    end
    local acts = activations_of(a, node, names, directions)
    return function(x, w, r, b, lengths, ...)
      if make.plain then x, w, r = make.plain(x, w, r, lengths, ...) end
      local hidden, batch = r.shape[3], x.shape[a.layout ~= 0 and 1 or 2]
      local states = make.states(...)
      for i = 1, make.count do
        states[i] = states[i] or ops.zeros(a.layout ~= 0 and { batch, directions, hidden } or { directions, batch, hidden },
          x.dtype)
      end
      local weights = {}
      for d = 1, directions do
        local bias = b and { ops.split(b[d - 1], { gates * hidden, gates * hidden }, 0) }
        weights[d] = {
          w = ops.transpose(w[d - 1], { 1, 0 }), r = ops.transpose(r[d - 1], { 1, 0 }), wb = bias and bias[1],
          rb = bias and bias[2], p = make.peephole and make.peephole(d, hidden, ...),
        }
      end
      return run(a, directions, x, lengths and ops.cast(lengths, ms.int64), states, function(input, state, d, t)
        return make.step(a, weights[d], acts[d], input, state, lengths, t)
      end)
    end
  end)
end

local function affine(x, w, b)
  local y = ops.matmul(x, w)
  return b and y + b or y
end

layer("RNN", "", 6, { "Tanh" }, 1, {
  count = 1,
  states = function(h) return { h } end,
  step = function(a, w, f, x, state) return { f[1](clipped(a, affine(x, w.w, w.wb) + affine(state[1], w.r, w.rb))) } end,
})

layer("GRU", "linear_before_reset:i=0", 6, { "Sigmoid", "Tanh" }, 3, {
  count = 1,
  states = function(h) return { h } end,
  step = function(a, w, f, x, state)
    local h = state[1]
    local gx = parts(affine(x, w.w, w.wb), 3)
    local wide = parts(w.r, 3)
    local rb = w.rb and parts(w.rb, 3) or {}
    local z = f[1](clipped(a, gx[1] + affine(h, wide[1], rb[1])))
    local r = f[1](clipped(a, gx[2] + affine(h, wide[2], rb[2])))
    local n
    if a.linear_before_reset ~= 0 then
      n = gx[3] + r * affine(h, wide[3], rb[3])
    else
      n = gx[3] + affine(r * h, wide[3], rb[3])
    end
    return { (1 - z) * f[2](clipped(a, n)) + z * h }
  end,
})

local lstm = {
  count = 2,
  states = function(h, c) return { h, c } end,
  peephole = function(d, hidden, _, _, p) return p and { ops.split(p[d - 1], { hidden, hidden, hidden }, 0) } end,
  step = function(a, w, f, x, state)
    local h, c, p = state[1], state[2], w.p
    -- Gates in the order input, output, forget, cell.
    local g = parts(affine(x, w.w, w.wb) + affine(h, w.r, w.rb), 4)
    local i = f[1](clipped(a, p and g[1] + p[1] * c or g[1]))
    local forget = a.input_forget ~= 0 and 1 - i or f[1](clipped(a, p and g[3] + p[3] * c or g[3]))
    local cell = forget * c + i * f[2](clipped(a, g[4]))
    local o = f[1](clipped(a, p and g[2] + p[2] * cell or g[2]))
    return { o * f[3](cell), cell }
  end,
}
layer("LSTM", "input_forget:i=0", 8, { "Sigmoid", "Tanh", "Tanh" }, 4, lstm)

-- onnxruntime's LSTM with weights of 8 bits, which lie the other way round: the inputs as a whole, and the state of each step,
-- are rounded to 8 bits as well.
local function unquantised(w, scale, zero)
  local function along(t) return ops.reshape(ops.cast(t, ms.float32), { t.shape[1], 1, -1 }) end
  local y = ops.cast(w, ms.float32)
  if zero then y = y - along(zero) end
  return ops.transpose(y * along(scale), { 0, 2, 1 })
end
local function rounded(x)
  local y, scale, zero = quantised.dynamic(x)
  return (ops.cast(y, ms.float32) - ops.cast(zero, ms.float32)) * scale
end
layer("com.microsoft:DynamicQuantizeLSTM", "input_forget:i=0", 12, { "Sigmoid", "Tanh", "Tanh" }, 4, {
  count = 2,
  plain = function(x, w, r, lengths, _, _, _, w_scale, w_zero, r_scale, r_zero)
    if lengths then -- what lies behind the longest sequence has no part in the range
      local live = ops.less(ops.arange(x.shape[1]), ops.amax(lengths))
      x = ops.where(ops.reshape(live, { -1, 1, 1 }), x, ops.zeros_like(x))
    end
    return rounded(x), unquantised(w, w_scale, w_zero), unquantised(r, r_scale, r_zero)
  end,
  states = lstm.states,
  peephole = lstm.peephole,
  step = function(a, w, f, x, state, lengths, t)
    local h = state[1]
    if lengths then -- nor have states of sequences that have ended
      h = ops.where(ops.reshape(ops.greater_equal(lengths, t), { -1, 1 }), h, ops.zeros_like(h))
    end
    return lstm.step(a, w, f, x, { rounded(h), state[2] })
  end,
})
