-- ONNX's attention and what belongs to it.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

local function heads(x, count)
  if x.ndim == 4 then return x end
  return ops.transpose(ops.reshape(x, { x.shape[1], x.shape[2], count, x.shape[3] // count }), { 0, 2, 1, 3 })
end

-- How far queries look: which of the keys each may see, from the place of the first query on. The place is a number or a
-- tensor with one for each item of the batch.
local function distances(queries, keys, offset)
  local i = ops.reshape(ops.arange(queries, nil, 1, ms.int64), { queries, 1 })
  local j = ops.reshape(ops.arange(keys, nil, 1, ms.int64), { 1, keys })
  if ms.is_tensor(offset) then i = ops.add(i, ops.reshape(offset, { -1, 1, 1, 1 })) else i = ops.add(i, offset) end
  return ops.sub(i, j)
end

local function as_bias(allowed, dtype)
  local zero = ops.zeros({}, dtype)
  return ops.where(allowed, zero, ops.full({}, -math.huge, dtype))
end

-- What is added to the scores, or nil.
local function bias_of(a, q, keys, mask, past, lengths)
  local dtype, queries, bias = q.dtype, q.shape[3], nil
  if mask then
    if mask.dtype == ms.bool_ then mask = as_bias(mask, dtype) end
    local short = keys - mask.shape[mask.ndim]
    bias = short > 0 and ops.pad(mask, { 0, short }, "constant", -math.huge) or mask
  end
  local function join(more) bias = bias and bias + more or more end
  local offset = past and past.shape[3] or 0
  if lengths and not past then offset = ops.sub(ops.reshape(ops.cast(lengths, ms.int64), { -1 }), queries) end
  local distance
  if a.is_causal ~= 0 then
    distance = distances(queries, keys, offset)
    join(as_bias(ops.greater_equal(distance, 0), dtype))
  end
  if a.left_window_size >= 0 or a.right_window_size >= 0 then
    distance = distance or distances(queries, keys, offset)
    if a.left_window_size >= 0 then join(as_bias(ops.less_equal(distance, a.left_window_size), dtype)) end
    if a.right_window_size >= 0 then join(as_bias(ops.greater_equal(distance, -a.right_window_size), dtype)) end
  end
  if lengths then
    local at = ops.reshape(ops.arange(keys, nil, 1, ms.int64), { 1, 1, 1, keys })
    join(as_bias(ops.less(at, ops.reshape(ops.cast(lengths, ms.int64), { -1, 1, 1, 1 })), dtype))
  end
  return bias
end

-- Softmax where rows that may see nothing are zeros.
local function masked_softmax(scores, bias, dtype)
  local wide = dtype and ops.cast(scores, dtype) or scores
  local p
  if wide.dtype == ms.float16 then
    local e = ops.exp(wide - ops.amax(wide, { -1 }, true))
    p = e / ops.reduce_sum(e, { -1 }, true)
  else
    p = ops.softmax(wide, -1)
  end
  if bias then
    local closed = ops.equal(ops.amax(bias, { -1 }, true), -math.huge)
    p = ops.where(closed, ops.zeros_like(p), p)
  end
  return p
end

define.define("Attention",
  "is_causal:i=0 kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i=0 scale:f softcap:f=0 softmax_precision:i "
  .. "left_window_size:i=-1 right_window_size:i=-1", 3, 7, function(a, node)
    local precise = a.softmax_precision and define.dtype(node, a.softmax_precision)
    local mode = a.qk_matmul_output_mode
    return function(q, k, v, mask, past_key, past_value, lengths)
      local flat = q.ndim == 3
      if flat and not (a.q_num_heads and a.kv_num_heads) then
        error("Attention: inputs of 3 axes need q_num_heads and kv_num_heads", 0)
      end
      q, k, v = heads(q, a.q_num_heads), heads(k, a.kv_num_heads), heads(v, a.kv_num_heads)
      if past_key then k, v = ops.concat({ past_key, k }, 2), ops.concat({ past_value, v }, 2) end
      local present_key, present_value = k, v
      local each = q.shape[2] // k.shape[2]
      if each > 1 then k, v = ops.repeat_interleave(k, each, 1), ops.repeat_interleave(v, each, 1) end
      local root = ms.tensor(math.sqrt(a.scale or 1 / math.sqrt(q.shape[4])), q.dtype)
      local raw = ops.matmul(q * root, ops.swapaxes(k, -1, -2) * root)
      local capped = a.softcap > 0 and ops.tanh(raw / a.softcap) * a.softcap or raw
      local bias = bias_of(a, q, k.shape[3], mask, past_key, lengths)
      local scores = bias and capped + bias or capped
      local p = masked_softmax(scores, bias, precise)
      local seen = mode == 3 and p or mode == 2 and scores or capped
      if p.dtype ~= v.dtype then p = ops.cast(p, v.dtype) end
      local y = ops.matmul(p, v)
      if flat then y = ops.reshape(ops.transpose(y, { 0, 2, 1, 3 }), { y.shape[1], y.shape[3], -1 }) end
      return y, present_key, present_value, seen.dtype == q.dtype and seen or ops.cast(seen, q.dtype)
    end
  end)

define.define("RotaryEmbedding", "interleaved:i=0 num_heads:i rotary_embedding_dim:i=0", 3, 4, function(a)
  return function(x, cosines, sines, positions)
    local flat = x.ndim == 3
    local y
    if flat then
      if not a.num_heads then error("RotaryEmbedding: inputs of 3 axes need num_heads", 0) end
      y = ops.reshape(x, { x.shape[1], x.shape[2], a.num_heads, x.shape[3] // a.num_heads })
    else
      y = ops.transpose(x, { 0, 2, 1, 3 })
    end
    local size = y.shape[4]
    local turned = a.rotary_embedding_dim > 0 and a.rotary_embedding_dim or size
    local rest = turned < size and ops.narrow(y, 3, turned, size - turned)
    local part = rest and ops.narrow(y, 3, 0, turned) or y
    local half = turned // 2
    if positions then
      cosines, sines = ops.gather(cosines, positions, 0), ops.gather(sines, positions, 0)
    end
    cosines, sines = ops.expand_dims(ops.narrow(cosines, -1, 0, half), 2), ops.expand_dims(ops.narrow(sines, -1, 0, half), 2)
    local even, odd
    if a.interleaved ~= 0 then
      local pairs_of = ops.reshape(part, { part.shape[1], part.shape[2], part.shape[3], half, 2 })
      even, odd = ops.squeeze(ops.narrow(pairs_of, 4, 0, 1), { 4 }), ops.squeeze(ops.narrow(pairs_of, 4, 1, 1), { 4 })
    else
      even, odd = ops.narrow(part, 3, 0, half), ops.narrow(part, 3, half, half)
    end
    local p, q = even * cosines - odd * sines, even * sines + odd * cosines
    if a.interleaved ~= 0 then
      part = ops.reshape(ops.stack({ p, q }, -1), define.sizes(part))
    else
      part = ops.concat({ p, q }, 3)
    end
    y = rest and ops.concat({ part, rest }, 3) or part
    if flat then return ops.reshape(y, define.sizes(x)) end
    return ops.transpose(y, { 0, 2, 1, 3 })
  end
end)
