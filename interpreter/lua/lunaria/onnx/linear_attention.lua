-- ONNX's attention by a state, and the convolution that goes with it.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- (batch, length, heads * size) as (batch, heads, length, size), in float32.
local function heads(x, count)
  local y = ops.reshape(ops.cast(x, ms.float32), { x.shape[1], x.shape[2], count, x.shape[3] // count })
  return ops.transpose(y, { 0, 2, 1, 3 })
end

local rules = { linear = { false, false }, gated = { true, false }, delta = { false, true }, gated_delta = { true, true } }

define.define("LinearAttention", "chunk_size:i=64 kv_num_heads:i! q_num_heads:i! scale:f=0 update_rule:s=gated_delta", 3, 6,
  function(a, node)
    local rule = rules[a.update_rule]
    if not rule then node.fail(("the update_rule '%s' is not known"):format(a.update_rule)) end
    local gated, corrected = rule[1], rule[2]
    if gated ~= (node.given[5] == true) or corrected ~= (node.given[6] == true) then
      node.fail(("the update_rule '%s' does not fit the inputs"):format(a.update_rule))
    end
    return function(query, key, value, past, decay, beta)
      local count, wide = a.kv_num_heads, a.q_num_heads
      local q, k, v = heads(query, wide), heads(key, count), heads(value, count)
      local g = decay and ops.exp(heads(decay, count))
      local b = beta and heads(beta, beta.shape[3])
      local batch, length, size = q.shape[1], q.shape[3], q.shape[4]
      local scale = a.scale ~= 0 and a.scale or 1 / math.sqrt(size)
      local state = past and ops.cast(past, ms.float32) or ops.zeros({ batch, count, size, v.shape[4] }, ms.float32)
      local list = {}
      for t = 0, length - 1 do
        local key_now, value_now = ops.narrow(k, 2, t, 1), ops.narrow(v, 2, t, 1)
        if gated then state = state * ops.swapaxes(ops.narrow(g, 2, t, 1), 2, 3) end
        if corrected then value_now = ops.narrow(b, 2, t, 1) * (value_now - ops.matmul(key_now, state)) end
        state = state + ops.swapaxes(key_now, 2, 3) * value_now
        local seen = wide > count and ops.repeat_interleave(state, wide // count, 1) or state
        list[t + 1] = ops.matmul(ops.narrow(q, 2, t, 1), seen) * scale
      end
      local y = ops.transpose(ops.concat(list, 2), { 0, 2, 1, 3 })
      y = ops.reshape(y, { batch, length, -1 })
      return ops.cast(y, query.dtype), ops.cast(state, past and past.dtype or query.dtype)
    end
  end)

define.define("CausalConvWithState", "activation:s=none", 2, 4, function(a, node)
  local smooth = a.activation == "silu" or a.activation == "swish"
  if not smooth and a.activation ~= "none" then node.fail(("the activation '%s' is not known"):format(a.activation)) end
  return function(x, w, bias, past)
    local behind = w.shape[3] - 1
    local all
    if past then all = ops.concat({ past, x }, 2) else all = ops.pad(x, { behind, 0 }, "constant", 0) end
    local y = ops.conv1d(all, w, bias, 1, "valid", 0, 1, x.shape[2])
    if smooth then y = define.widened(y, ops.silu) end
    return y, ops.narrow(all, 2, all.shape[3] - behind, behind)
  end
end)
