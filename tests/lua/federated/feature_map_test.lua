-- Feature maps: order, vectors, what is aggregated, and what is refused. A tenth of a second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local FeatureMap, nn, ops = ms.federated.FeatureMap, ms.nn, ms.ops

local function network() return nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3), nn.Dense(3, 1)) end

t.test("features of a cell come in the order of its parameters and are copies", function()
  local net = network()
  local map, names = FeatureMap(net), {}
  for name in net:parameters_and_names() do names[#names + 1] = name end
  t.equal(map:names(), names)
  local before = map["0.weight"]:tolist()
  for _, p in net:parameters_and_names() do p:assign(ops.zeros_like(p + 0)) end
  t.equal(map["0.weight"]:tolist(), before)
  map:load_into(net)
  t.equal(FeatureMap(net)["0.weight"]:tolist(), before)
end)

t.test("tables are in alphabetical order, lists in theirs, whatever order they were filled in", function()
  local names = {}
  for i = 1, 50 do names[i] = ("f%02d"):format(i * 37 % 50) end
  local source, list = {}, {}
  for i, name in ipairs(names) do source[name], list[i] = ms.full({ 1 }, i * 1.0), { name, ms.full({ 1 }, i * 1.0) } end
  table.sort(names)
  t.equal(FeatureMap(source):names(), names)
  t.equal(FeatureMap(list):vector():tolist()[7], 7.0)
end)

t.test("bytes and back are the same map, to the bit", function()
  local map = FeatureMap { { "h", ms.randn({ 3, 2 }):astype(ms.float16) }, { "d", ms.randn({ 2 }):astype(ms.float64) },
    { "n", ms.tensor { 1, 2 } }, { "e", ms.zeros { 0, 4 } }, { "head.w", ms.tensor { 0.0, 0.1, 1e-40 } }, { "body.w", ms.ones { 2 } } }
  map = map:without({ "head" }):without({ "body" }, { frozen = true })
  local again = FeatureMap(map:bytes())
  for _, kind in ipairs { "all", "aggregated", "personal", "frozen" } do t.equal(again:names(kind), map:names(kind)) end
  for _, name in ipairs(map:names()) do t.equal({ again:get(name), again:get(name).dtype }, { map:get(name), map:get(name).dtype }) end
  t.equal(again:bytes() == map:bytes(), true)
  t.equal(FeatureMap(map:with({ ["head.w"] = ms.tensor { 0.0, 0.1, 2e-40 } })):bytes() == map:bytes(), false)
  for _, bytes in ipairs { "", "no map", map:bytes():sub(1, -2), map:bytes():sub(2) } do t.equal(pcall(FeatureMap, bytes), false) end
end)

t.test("a vector and back is the same, in each dtype", function()
  local map = FeatureMap { { "h", ms.randn({ 3, 2 }):astype(ms.float16) }, { "s", ms.tensor(2.5) }, { "n", ms.tensor { 1, 2 } },
    { "e", ms.zeros { 0, 4 } } }
  t.equal(map:names "personal", { "n" })
  local v = map:vector()
  t.equal({ v.dtype == ms.float32, v.shape[1] }, { true, 7 })
  local again = map:with_vector(v)
  for _, name in ipairs(map:names()) do t.equal(again:get(name), map:get(name)) end
  t.equal(FeatureMap({ a = ms.zeros({ 2 }, ms.float64), b = ms.ones { 2 } }):vector().dtype == ms.float64, true)
  t.equal(map:vector(ms.float64).dtype == ms.float64, true)
  t.equal(FeatureMap():vector().shape[1], 0)
end)

t.test("splitting is differentiated and mapped over rows", function()
  local map = FeatureMap { { "a", ms.zeros { 2, 2 } }, { "b", ms.zeros { 3 } } }
  local function f(v)
    local parts = map:split(v)
    return ops.sum(parts[1] * parts[1]) + ops.sum(parts[2] * 3.0)
  end
  local v = ms.randn { 7 }
  t.near(ms.grad(f)(v), { v[0]:item() * 2, v[1]:item() * 2, v[2]:item() * 2, v[3]:item() * 2, 3, 3, 3 })
  local rows = ms.randn { 4, 7 }
  local all = ms.vmap(f)(rows)
  for i = 0, 3 do t.near(all[i]:item(), f(rows[i]):item()) end
end)

t.test("parts are left out by the names of cells", function()
  local map = FeatureMap(network())
  local part = map:without { "1" }
  t.equal(part:names "personal", { "1.moving_mean", "1.moving_variance", "1.gamma", "1.beta" })
  t.equal(part:size(), 6 + 3 + 3 + 1)
  local frozen = map:without({ "0" }, { frozen = true })
  t.equal(frozen:names "frozen", { "0.weight", "0.bias" })
  -- A name is not the beginning of another one.
  local near = FeatureMap { ["fc1.w"] = ms.ones { 1 }, ["fc10.w"] = ms.ones { 1 } }
  t.equal(near:without({ "fc1" }):names "aggregated", { "fc10.w" })
  t.fails({ "without", "no feature is 'fc2'" }, near.without, near, { "fc2" })
end)

t.test("weights that cannot be used are refused by name", function()
  local map = FeatureMap { a = ms.ones { 2 }, b = ms.ones { 3, 1 } }
  local function refused(text, tensors)
    local got = map:refusal(tensors)
    assert(got and got:find(text, 1, true), ("%s: %s"):format(text, tostring(got)))
  end
  t.equal(map:refusal(FeatureMap(map)), nil)
  refused("must be a feature map", { a = 1 })
  refused("'b' is missing", FeatureMap { a = ms.ones { 2 } })
  refused("'a' has the shape (3,), and the model's (2,)", FeatureMap { a = ms.ones { 3 }, b = ms.ones { 3, 1 } })
  refused("'b' has the shape (1, 3)", FeatureMap { a = ms.ones { 2 }, b = ms.ones { 1, 3 } })
  refused("no feature 'c'", FeatureMap { a = ms.ones { 2 }, b = ms.ones { 3, 1 }, c = ms.ones { 1 } })
  refused("'a' is of Int32", FeatureMap { a = ms.tensor({ 1, 2 }, ms.int32), b = ms.ones { 3, 1 } })
  for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
    refused("'b' holds nan or infinity", map:with { b = ms.tensor { { 1.0 }, { bad }, { 2.0 } } })
  end
  refused("'b' holds 1e+12, above the limit of 1e+10", map:with { b = ms.tensor { { 1.0 }, { -1e12 }, { 2.0 } } })
  t.equal(map:refusal(map:with { a = ms.tensor { 1e12, 0.0 } }, { limit = 1e13 }), nil)
end)

t.test("another order and other dtypes are made those of the model", function()
  local map = FeatureMap { { "b", ms.zeros { 1 } }, { "a", ms.zeros { 2 } } }
  local other = map:conformed(FeatureMap { a = ms.tensor({ 1.0, 2.0 }, ms.float64), b = ms.tensor({ 3.0 }, ms.float64) })
  t.equal(other:vector():tolist(), { 3.0, 1.0, 2.0 })
  t.equal(other.a.dtype == ms.float32, true)
end)

t.test("mistakes say what to do", function()
  local map = FeatureMap { a = ms.ones { 2 } }
  t.fails({ "FeatureMap: 'b' cannot be assigned", "add_feature" }, function() map.b = ms.ones { 1 } end)
  t.fails({ "add_feature", "a feature 'a' already" }, map.add_feature, map, "a", ms.ones { 1 })
  t.fails({ "'n' is of Int", "require_aggr = false" }, map.add_feature, map, "n", ms.tensor { 1 }, { require_aggr = true })
  t.fails({ "no option 'aggr'", "require_aggr" }, map.add_feature, map, "n", ms.ones { 1 }, { aggr = true })
  t.fails({ "with", "there is no feature 'aa'", "did you mean 'a'" }, map.with, map, { aa = ms.ones { 2 } })
  t.fails({ "with", "shape (2,), got a tensor of shape (3,)" }, map.with, map, { a = ms.ones { 3 } })
  t.fails({ "split", "a vector of 2 numbers" }, map.split, map, ms.ones { 3 })
  t.fails({ "load_into", "no parameter 'a'" }, map.load_into, map, nn.Dense(1, 1))
  t.fails({ "FeatureMap", "element 1 of the list" }, FeatureMap, { ms.ones { 1 } })
  t.fails({ "FeatureMap", "a cell, a table" }, FeatureMap, 5)
end)

t.finish()
