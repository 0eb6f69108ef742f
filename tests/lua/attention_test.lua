-- Attention in blocks against its formula, at sizes where several blocks and threads take part.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function formula(q, k, v, scale, causal, shift)
  local scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) * scale
  if causal then
    scores = scores + ops.triu(ops.ones({ q.shape[3], k.shape[3] }), 1 + shift) * -1e9
  end
  return ops.matmul(ops.softmax(scores, -1), v)
end

t.test("values and gradients follow the formula", function()
  ms.set_seed(1)
  for _, case in ipairs { { 128, 128, true, 0 }, { 200, 130, false, 0 }, { 70, 150, true, 80 }, { 1, 300, false, 0 } } do
    local queries, keys, causal, shift = table.unpack(case)
    local q, k, v = ops.randn({ 4, 4, queries, 16 }), ops.randn({ 4, 4, keys, 16 }), ops.randn({ 4, 4, keys, 24 })
    local w = ops.randn({ 4, 4, queries, 24 })
    t.near(ops.attention(q, k, v, 0.3, causal, shift), formula(q, k, v, 0.3, causal, shift), 1e-4)
    local function fused(a, b, c) return ops.sum(ops.attention(a, b, c, 0.3, causal, shift) * w) end
    local function plain(a, b, c) return ops.sum(formula(a, b, c, 0.3, causal, shift) * w) end
    local got, wanted = ms.grad(fused, { 0, 1, 2 })(q, k, v), ms.grad(plain, { 0, 1, 2 })(q, k, v)
    for i = 1, 3 do t.near(got[i], wanted[i], 2e-3) end
  end
end)

t.test("second derivatives go through what it is made of", function()
  local x = ops.randn({ 1, 1, 3, 2 })
  local function twice(f)
    return ms.grad(function(a) return ops.sum(ops.square(ms.grad(f)(a))) end)(x)
  end
  local got = twice(function(a) return ops.sum(ops.square(ops.attention(a, a, a, 0.7, true))) end)
  local wanted = twice(function(a) return ops.sum(ops.square(formula(a, a, a, 0.7, true, 0))) end)
  t.near(got, wanted, 1e-3)
end)

t.test("long sequences are attended to tile by tile of keys", function()
  ms.set_seed(3)
  for _, case in ipairs { { 40, 1000, false, 0 }, { 700, 700, true, 0 }, { 33, 600, true, 500 }, { 9, 520, true, -3 } } do
    local queries, keys, causal, shift = table.unpack(case)
    for _, dtype in ipairs { ms.float32, ms.float64 } do
      local function draw(...) return ops.randn({ ... }):astype(dtype) end
      -- Scores that grow along the keys: the largest is another in every tile.
      local k = draw(1, 2, keys, 7) + ops.arange(keys):reshape({ 1, 1, keys, 1 }):astype(dtype) * 0.01
      local q, v = draw(1, 2, queries, 7) + 1, draw(1, 2, keys, 19)
      local wanted = formula(q, k, v, 0.4, causal, shift)
      local got = ops.attention(q, k, v, 0.4, causal, shift)
      local blind = causal and math.max(-shift, 0) or 0
      if blind > 0 then
        t.near(got[("..., :%d, :"):format(blind)], ops.zeros({ 1, 2, blind, 19 }), 0)
        got, wanted = got[("..., %d:, :"):format(blind)], wanted[("..., %d:, :"):format(blind)]
      end
      t.near(got, wanted, dtype == ms.float32 and 1e-4 or 1e-10)
    end
  end
end)

t.test("attention that is written out gives the same compiled", function()
  ms.set_seed(4)
  local function written(q, k, v) return ops.matmul(ops.softmax(ops.matmul(q, ops.swapaxes(k, -1, -2)) / 2.5, -1), v) end
  for _, shapes in ipairs { { { 2, 3, 40, 8 }, { 2, 3, 300, 8 }, { 2, 3, 300, 5 } }, { { 4, 20, 8 }, { 4, 30, 8 }, { 4, 30, 7 } },
    { { 2, 1, 20, 8 }, { 2, 3, 30, 8 }, { 2, 3, 30, 8 } }, { { 1, 2, 4, 8 }, { 1, 2, 30, 8 }, { 1, 2, 30, 8 } } } do
    local inputs = {}
    for i, shape in ipairs(shapes) do inputs[i] = ops.randn(shape) end
    local wanted, compiled = written(table.unpack(inputs)), ms.jit(written)
    for _ = 1, 3 do t.near(compiled(table.unpack(inputs)), wanted, 1e-5) end
    local whole = inputs[1].shape[2] == inputs[2].shape[2] or #inputs[1].shape == 3
    local tiled = whole and inputs[1].shape[#inputs[1].shape - 1] >= 8
    t.equal(compiled:kernels():find("attention", 1, true) ~= nil, tiled)
    local function loss(...) return ops.sum(ops.square(written(...))) end
    local slopes, plain = ms.jit(ms.grad(loss, { 0, 1, 2 })), ms.grad(loss, { 0, 1, 2 })(table.unpack(inputs))
    for _ = 1, 3 do
      local got = slopes(table.unpack(inputs))
      for i = 1, 3 do t.near(got[i], plain[i], 1e-4) end
    end
  end
end)

t.test("scores without a largest spoil their own queries only", function()
  local q, k = ops.ones({ 1, 1, 20, 2 }), ops.ones({ 1, 1, 300, 2 })
  local v = ops.ones({ 1, 1, 300, 3 }) * 2
  q[{ 0, 0, 5, 0 }] = 0 / 0
  q[{ 0, 0, 6 }] = ms.tensor { -math.huge, -math.huge }
  q[{ 0, 0, 7 }] = ms.tensor { math.huge, math.huge }
  local got = ops.attention(q, k, v, 1.0, false, 0)
  for i = 0, 19 do
    local row = got[{ 0, 0, i }]:tolist()
    for _, x in ipairs(row) do assert((x ~= x) == (i >= 5 and i <= 7), ("query %d: %s"):format(i, x)) end
    if i < 5 or i > 7 then t.near(got[{ 0, 0, i }], ops.ones({ 3 }) * 2, 1e-5) end
  end
end)

t.test("strided heads, empty sizes and queries that see no key", function()
  ms.set_seed(2)
  local whole = ops.randn({ 2, 5, 3, 4, 6 })
  local parts = ops.transpose(whole, { 2, 0, 3, 1, 4 })
  local q, k, v = parts[0], parts[1], parts[2]
  assert(not q:is_contiguous())
  t.near(ops.attention(q, k, v, 0.5, true), formula(q, k, v, 0.5, true, 0), 1e-5)
  t.equal(ops.attention(q, k, v, 0.5, true, -2)[{ 0, 0, 1 }]:tolist(), { 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 })
  local nothing = ops.attention(ops.ones({ 1, 1, 2, 3 }), ops.ones({ 1, 1, 0, 3 }), ops.ones({ 1, 1, 0, 2 }))
  t.equal(nothing:tolist(), { { { { 0.0, 0.0 }, { 0.0, 0.0 } } } })
  t.equal(ops.attention(ops.ones({ 1, 1, 0, 3 }), ops.ones({ 1, 1, 4, 3 }), ops.ones({ 1, 1, 4, 2 })).shape, { 1, 1, 0, 2 })
  local d = ops.ones({ 1, 1, 2, 0 })
  t.equal(ops.attention(d, d, ops.ones({ 1, 1, 2, 2 }) * 3):tolist(), { { { { 3.0, 3.0 }, { 3.0, 3.0 } } } })
  local _, _, dv = ops.attention_grad(ops.ones({ 1, 1, 2, 2 }), d, d, ops.ones({ 1, 1, 2, 2 }), 1.0, false, 0)
  t.equal(dv:tolist(), { { { { 1.0, 1.0 }, { 1.0, 1.0 } } } })
  t.fails({ "attention", "(1, 1, 2, 3)", "(1, 1, 4, 5)" },
    ops.attention, ops.ones({ 1, 1, 2, 3 }), ops.ones({ 1, 1, 4, 5 }), ops.ones({ 1, 1, 4, 2 }))
end)

t.finish()
