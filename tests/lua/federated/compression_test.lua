-- Compression: what travels, what it is off by, what is made up for in the next round, and which of it secure sums can add up. Two seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, f64 = ms.ops, ms.float64
local compression, secure = ms.federated.compression, ms.federated.secure

local function fails(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(words, 1, true), tostring(message))
end

local function distance(a, b) return ops.max(ops.abs(a - b)):item() end

t.test("the published numbers of DIFF_SPARSE_QUANT", function()
  local q = compression.quantize(ms.tensor({ 0.03356021, -0.01842778, -0.009684053, 0.025363436, -0.027571501, 0.0077043395, 0.016391572,
    -0.03598478, -0.0009508357 }, f64))
  t.equal(table.concat(q.values:tolist(), " "), "127 -64 -32 97 -97 32 64 -128 0")
  t.near(ms.tensor(q.scale, f64), ms.tensor(0.000272725450980392, f64), 1e-15)
  t.equal(compression.sparse_places(99221, 0.08, 3).size, 7937)
end)

t.test("sparse updates are within half a step at their places, which differ from round to round", function()
  local codec = compression.DiffSparseQuant { rate = 0.25, seed = 11, block = 50 }
  local x, seen = ms.randn(1000), ops.zeros({ 1000 }, f64)
  for round = 1, 30 do
    local back, places = codec:decompress(codec:compress(x, round), 1000, round), codec:places(1000, round)
    assert(distance(back[places], x[places]:astype(f64)) < 0.02)
    assert(ops.sum(ops.not_equal(back, 0.0):astype(ms.int64)):item() <= 250)
    seen[places] = 1.0
  end
  assert(ops.sum(seen):item() > 990)
  local bytes = codec:compress(x, 1)
  assert(#bytes < 250 + 18 * 5 + 40)
  fails("instead of", codec.decompress, codec, bytes, 1000, 2)
  fails("corrupt", codec.decompress, codec, bytes:sub(1, 50), 1000, 1)
  fails("only numbers", codec.compress, codec, ms.tensor { 0 / 0 })
end)

t.test("what codecs with feedback leave out arrives later", function()
  for _, codec in ipairs { compression.TopK { rate = 0.1 }, compression.TopK { rate = 0.1, bits = 8 }, compression.Sign() } do
    local x, received = ms.randn(200):astype(f64), ops.zeros({ 200 }, f64)
    for _ = 1, 100 do received = received + codec:decompress(codec:compress(x), 200) end
    assert(distance(received / 100, x) < 0.9, tostring(codec))
    assert(distance(received + codec.residual, x * 100) < 1e-9)
  end
  local codec = compression.TopK()
  codec:compress(ms.randn(100))
  fails("200 elements", codec.compress, codec, ms.randn(200))
  fails("corrupt", codec.decompress, codec, "\8\1", 100)
  fails("which no vector has", compression.Sign().decompress, compression.Sign(), ("<d"):pack(0 / 0) .. "x", 8)
end)

-- A round of PowerSGD: all clients find the same matrix.
local function round(codecs, matrices)
  local left, right
  for i, codec in ipairs(codecs) do
    local p = codec:left(matrices[i])
    left = left and left + p or p
  end
  for _, codec in ipairs(codecs) do
    local q = codec:right(left / #codecs)
    right = right and right + q or q
  end
  local mean = codecs[1]:finish(right / #codecs)
  for i = 2, #codecs do t.equal(distance(mean, codecs[i]:finish(right / #codecs)), 0.0) end
  return mean
end

t.test("PowerSGD: matrices of the rank come back, of others the best part, over clients and rounds", function()
  local exact = ops.matmul(ms.randn(20, 2):astype(f64), ms.randn(2, 12):astype(f64))
  assert(distance(round({ compression.PowerSGD { rank = 2 } }, { exact }), exact) < 1e-9)
  local codecs, matrices, mean, received = {}, {}, ops.zeros({ 20, 12 }, f64), ops.zeros({ 20, 12 }, f64)
  for i = 1, 3 do
    codecs[i], matrices[i] = compression.PowerSGD { rank = 3, seed = 5 }, ms.randn(20, 12):astype(f64)
    mean = mean + matrices[i] / 3
  end
  for _ = 1, 60 do received = received + round(codecs, matrices) end
  assert(distance(received / 60, mean) < 0.3, distance(received / 60, mean))
  fails("left comes first", codecs[1].right, codecs[1], mean)
  fails("rank is 3", codecs[1].left, codecs[1], ms.ones { 2, 12 })
end)

t.test("sketches of sums are sums of sketches", function()
  local sketch = compression.CountSketch { columns = 300, seed = 4 }
  local x, y = ms.randn(5000) * 0.01, ms.randn(5000) * 0.01
  x[7], y[7], y[4000] = 3.0, 2.0, -4.0
  local cells = sketch:sketch(x) + sketch:sketch(y)
  assert(distance(cells, sketch:sketch(x:astype(f64) + y:astype(f64))) < 1e-5)
  local large = sketch:largest(cells, 5000, 2)
  assert(math.abs(large[7]:item() - 5) < 0.3 and math.abs(large[4000]:item() + 4) < 0.3)
  fails("rows must be odd", compression.CountSketch, { columns = 3, rows = 4 })
  fails("cells must be", sketch.estimate, sketch, x, 10)
end)

t.test("SignDS moves a model in the direction of the changes", function()
  local rule = compression.SignDS { size = 400, sign_k = 0.2, sign_eps = 20.0, sign_global_lr = 1.0 }
  local x, texts = ms.randn(400), {}
  for i = 1, 300 do texts[i] = rule:compress(x, { seed = i }) end
  local step = rule:aggregate(texts)
  assert(ops.sum(step * x):item() / math.sqrt(ops.sum(step * step):item() * ops.sum(x * x):item()) > 0.5)
  t.equal(rule:compress(x, { seed = 3 }), texts[3])
  fails("corrupt", rule.read, rule, "\8\1")
  fails("sign_k", compression.SignDS, { size = 100, sign_k = 0.5 })
end)

t.test("behind masks: common places and sketches; others are refused by name", function()
  local code = secure.FixedPoint { fraction_bits = 24, clip = 8, weight = 10, clients = 4 }
  local size, xs = 500, { ms.randn(500), ms.randn(500), ms.randn(500) }
  local mean = (xs[1] + xs[2] * 2 + xs[3] * 3):astype(f64) / 6
  for _, codec in ipairs { compression.DiffSparseQuant { rate = 0.3, seed = 2 }, compression.CountSketch { columns = 500 } } do
    local secured, vectors = compression.secured(codec, code), {}
    for i = 1, 3 do vectors[i] = secured:encode(xs[i] * 0.5, i, 9) end
    t.equal(vectors[1].size, secured:size(size))
    local result, weight = secured:decode(secure.sum(vectors, { threshold = 2, bits = code.bits }), size, 9)
    t.equal(weight, 6)
    if codec.places then
      local places = codec:places(size, 9)
      assert(distance(result[places], mean[places] * 0.5) < 1e-6)
    else
      assert(distance(result, codec:estimate(codec:sketch(mean * 0.5), size)) < 1e-5)
    end
  end
  for _, codec in ipairs { compression.TopK(), compression.Sign(), compression.SignDS(100), compression.PowerSGD() } do
    fails(getmetatable(codec)._name .. " cannot be combined with secure sums", compression.secured, codec, code)
  end
  fails("codec must be", compression.secured, 3, code)
end)

t.test("bits", function()
  local values = ms.tensor({ -8, 7, 0, -1, 3 }, ms.int32)
  t.equal(table.concat(compression.unpack_bits(compression.pack_bits(values, 4), 4, 5):tolist(), " "), "-8 7 0 -1 3")
  fails("does not fit into 3 bits", compression.pack_bits, values, 3)
  fails("do not have", compression.unpack_bits, "abc", 4, 9)
  fails("at most", compression.DiffSparseQuant, { rate = 1.5 })
end)

t.finish()
