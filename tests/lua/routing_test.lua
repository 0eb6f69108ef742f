-- Rows that go to experts and back, attention of programs that only predict, greedy decoding, means of segments: against
-- loops in Lua and against plain formulas.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal, near = t.test, t.equal, t.near
local function fails(f, message) t.fails(message, f) end
local function list(x) return x:tolist() end

test("rows come back from their experts", function()
  ms.set_seed(1)
  local tokens, probs = ops.randn { 6, 4 }, ops.uniform({ 6, 3 }, 0.0, 1.0)
  local experts = ops.randint(0, 5, { 6, 3 })
  local rows, places = ops.moe_token_permute(tokens, experts)
  local order, numbers = list(places), list(experts)
  local seen = {}
  for i, place in ipairs(order) do
    assert(seen[place] == nil and place >= 0 and place < 18)
    seen[place] = { numbers[(i - 1) // 3 + 1][(i - 1) % 3 + 1], i }
    near(rows[place], tokens[(i - 1) // 3], 0)
  end
  -- By experts, and where these are equal in the order that they had.
  for place = 1, 17 do
    local a, b = seen[place - 1], seen[place]
    assert(a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]))
  end
  near(ops.moe_token_unpermute(rows, places, probs), tokens * ops.sum(probs, 1, true), 1e-5)
  local function weighted(x, p) return ops.sum(ops.moe_token_unpermute((ops.moe_token_permute(x, experts)), places, p) ^ 2) end
  local function plain(x, p) return ops.sum((x * ops.sum(p, 1, true)) ^ 2) end
  local dx, dp = ms.grad(weighted, { 0, 1 })(tokens, probs)
  local ex, ep = ms.grad(plain, { 0, 1 })(tokens, probs)
  near(dx, ex, 1e-3)
  near(dp, ep, 1e-3)
  local few, all = ops.moe_token_permute(tokens, experts, 5)
  near(few, rows["0:5"], 0)
  near(ops.moe_token_permute(tokens, experts, -2), rows["0:16"], 0)
  local back = ops.moe_token_unpermute(few, all)
  for i, place in ipairs(order) do near(back[i - 1], place < 5 and rows[place] or ops.zeros { 4 }, 0) end
  fails(function() ops.moe_token_permute(tokens, experts["0:3"]) end, "moe_token_permute: indices has shape (3, 3)")
  fails(function() ops.moe_token_permute(tokens, experts, 5, true) end, "padded_mode is not supported")
  fails(function() ops.moe_token_unpermute(rows, places, probs["0:2"]) end, "probs has shape (2, 3) for 18 sorted_indices")
end)

local function attention(q, k, v, scale, hidden)
  local scores = ops.matmul(q, k:transpose(0, 1, 3, 2)) * scale
  if hidden then scores = ops.where(hidden, -1e30, scores) end
  return ops.matmul(ops.softmax(scores, -1), v)
end

test("attention of prompts and of one more query", function()
  local q, k, v = ops.randn { 2, 3, 4, 8 }, ops.randn { 2, 3, 6, 8 }, ops.randn { 2, 3, 6, 8 }
  local options = { num_heads = 3, input_layout = "BNSD", scale_value = 0.3 }
  local function with(more)
    local all = {}
    for key, value in pairs(options) do all[key] = value end
    for key, value in pairs(more or {}) do all[key] = value end
    return all
  end
  near(ops.prompt_flash_attention(q, k, v, with()), attention(q, k, v, 0.3), 1e-5)
  local hidden = ops.less(ops.randn { 4, 6 }, -0.5)
  near(ops.prompt_flash_attention(q, k, v, with { attn_mask = hidden, next_tokens = 100 }), attention(q, k, v, 0.3, hidden), 1e-5)
  local causal = ops.greater(ops.arange(6):reshape(1, 6), ops.arange(4):reshape(4, 1))
  near(ops.prompt_flash_attention(q, k, v, with { sparse_mode = 2 }), attention(q, k, v, 0.3, causal), 1e-5)
  -- With a mask the window of mode 0 counts: no key after the query's place.
  near(ops.prompt_flash_attention(q, k, v, with { attn_mask = hidden }),
    attention(q, k, v, 0.3, ops.logical_or(hidden, causal)), 1e-5)
  local short = ops.greater_equal(ops.arange(6):reshape(1, 1, 1, 6), ms.tensor({ 2, 5 }):reshape(2, 1, 1, 1))
  near(ops.prompt_flash_attention(q, k, v, with { actual_seq_lengths_kv = { 2, 5 } }), attention(q, k, v, 0.3, short), 1e-5)
  local one = q[{ ms.slice(), ms.slice(), ms.slice(0, 1) }]
  near(ops.incre_flash_attention(one, k, v, with { actual_seq_lengths = { 2, 5 } }), attention(one, k, v, 0.3, short), 1e-5)
  local mask = ops.less(ops.randn { 2, 6 }, -0.5)
  near(ops.incre_flash_attention(one, k, v, with { attn_mask = mask }), attention(one, k, v, 0.3, mask:reshape(2, 1, 1, 6)), 1e-5)
  -- Two heads of the query for each of the keys, all in the last axis.
  local flat = { ops.randn { 2, 1, 16 }, ops.randn { 2, 5, 8 }, ops.randn { 2, 5, 8 } }
  local expected = attention(flat[1]:reshape(2, 4, 1, 4), ops.repeat_interleave(flat[2]:reshape(2, 5, 2, 4):transpose(0, 2, 1, 3), 2, 1),
    ops.repeat_interleave(flat[3]:reshape(2, 5, 2, 4):transpose(0, 2, 1, 3), 2, 1), 1)
  near(ops.incre_flash_attention(flat[1], flat[2], flat[3], { num_heads = 4, num_key_value_heads = 2 }), expected:reshape(2, 1, 16), 1e-5)
  fails(function() ops.incre_flash_attention(flat[1], flat[2], flat[3], { num_heads = 4, num_key_value_heads = 3 }) end,
    "num_key_value_heads is 3, but key has 2 heads")
  fails(function() ops.prompt_flash_attention(q, k, v, with { quant_scale1 = ms.tensor(1.0) }) end, "quant_scale1 is not supported")
  fails(function() ops.incre_flash_attention(one, k, v, with { actual_seq_lengths = { 2, 5, 6 } }) end, "3 lengths for a batch of 2")
end)

test("greedy decoding", function()
  ms.set_seed(2)
  for _, merge in ipairs { true, false } do
    local x, lengths = ops.randn { 9, 4, 3 }, { 9, 0, 5, 7 }
    local best = list(ops.argmax(x, 2))
    local where, labels, longest, sums = {}, {}, 0, {}
    for b = 1, 4 do
      local last, count, sum = -1, 0, 0
      for step = 1, lengths[b] do
        local label = best[step][b]
        sum = sum - x:item(step - 1, b - 1, label)
        if label ~= 2 and not (merge and label == last) then
          where[#where + 1], labels[#labels + 1] = { b - 1, count }, label
          count = count + 1
        end
        last = label
      end
      longest = math.max(longest, count)
      sums[b] = { sum }
    end
    local indices, values, shape, probability = ops.ctc_greedy_decoder(x, ms.tensor(lengths), merge)
    equal({ list(indices), list(values), list(shape) }, { where, labels, { 4, longest } })
    near(probability, ms.tensor(sums), 1e-5)
  end
  fails(function() ops.ctc_greedy_decoder(ops.randn { 2, 3, 4 }, ms.tensor { 1 }) end, "a length for each of the 3 samples")
end)

test("means of segments", function()
  local x = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 }, { 5.0, 9.0 } }
  local ids, rows = ms.tensor { 0, 0, 2, 2, 2 }, ms.tensor { 2, 0, 1, 1, 0 }
  near(ops.sparse_segment_mean(x, rows, ids), ms.tensor { { 3.0, 5.5 }, { 0.0, 0.0 }, { 7 / 3, 10 / 3 } }, 1e-6)
  equal(ops.sparse_segment_mean(x, ops.zeros({ 0 }, ms.int64), ops.zeros({ 0 }, ms.int64)).shape[1], 0)
  local double = x:astype(ms.float64)
  assert(ms.check_grad(function(v) return ops.sum(ops.sparse_segment_mean(v, rows, ids) ^ 2) end, { double }) < 1e-6)
  fails(function() ops.sparse_segment_mean(x, ms.tensor { 3 }, ms.tensor { 0 }) end, "index 3 is out of range for 3 rows of x")
  fails(function() ops.sparse_segment_mean(x, ms.tensor { 0, 0 }, ms.tensor { 1, 0 }) end, "must not be negative and not fall")
  fails(function() ops.sparse_segment_mean(x, ms.tensor { 0 }, ms.tensor { 1 << 60 }) end, "sparse_segment_mean")
end)

t.finish()
