-- Tensors are objects to Lua: keys of tables, equal to themselves alone. A differentiated function and what it hands out
-- or takes in have to do with the same objects.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local function V(...) return ms.tensor({ ... }, ms.float64) end
local function size(m)
  local n = 0
  for _ in pairs(m) do n = n + 1 end
  return n
end
-- Each test also with the function compiled.
local function test(name, body)
  t.test(name, function() body(ms.grad) end)
  t.test(name .. ", compiled", function() body(function(f) return ms.jit(ms.grad(f)) end) end)
end

test("an argument is the key that it was", function(grad)
  local x, counts = V(3, 4), {}
  local g = grad(function(v)
    counts[v] = (counts[v] or 0) + 1
    return ops.sum(v * v) * counts[v]
  end)
  for i = 1, 5 do
    t.equal(g(x):tolist(), { 6.0 * i, 8.0 * i })
    t.equal(counts[x], i)
    t.equal(size(counts), 1)
  end
end)
test("tensors from outside are the keys that they were", function(grad)
  local w, box, seen = V(1, 2), { v = V(2, 3) }, {}
  local function visit(v)
    local before = seen[v]
    seen[v] = (before or 0) + 1
    return before or 0
  end
  visit(w)
  local g = grad(function(x) return ops.sum(x * w * box.v) * (1 + visit(w) + visit(box.v)) end)
  for i = 1, 5 do
    t.equal(g(V(1, 1)):tolist(), { 2.0 * 2 * i, 6.0 * 2 * i })
    t.equal({ seen[w], seen[box.v], size(seen) }, { i + 1, i, 2 })
  end
end)
test("what a function made is found afterwards", function(grad)
  local kept = {}
  local g = grad(function(x)
    local y = x * 2
    kept[#kept + 1] = y
    kept[y] = #kept
    return ops.sum(y * kept[#kept])
  end)
  for i = 1, 5 do
    t.equal(g(V(i)):tolist(), { 8.0 * i })
    t.equal(kept[kept[i]], i)
    t.equal(size(kept), 2 * i)
  end
end)
test("what is handed out and in is one object", function(grad)
  local x, kept = V(1, 2), {}
  local g = grad(function(v)
    kept.again = kept.v == v and rawequal(kept.v, v)
    kept.v = v
    return ops.sum(v * v)
  end)
  for i = 1, 4 do
    g(x)
    t.equal({ rawequal(kept.v, x), kept.v == x, kept.again }, { true, true, i > 1 })
  end
  local _, _, aux = ms.value_and_grad(function(v) return ops.sum(v), v, x end, 0, nil, true)(x)
  t.equal(aux, nil)
  local out = ms.value_and_grad(function(v) return ops.sum(v), v, kept.v end, 0, nil, true)(x)
  t.equal({ rawequal(out[2], x), rawequal(out[3], x) }, { true, true })
end)
test("the keys of a table are gone through and taken out", function(grad)
  local a, b = V(1, 2), V(2, 3)
  local m = { [a] = 1, [b] = 2 }
  local g = grad(function(x)
    local sum = x * 0
    for k, v in pairs(m) do
      sum = sum + k * v * x
      m[k] = v + 1
    end
    m[x] = 7
    local found = m[x]
    m[x] = nil
    return ops.sum(sum) * found
  end)
  t.equal(g(V(1, 1)):tolist(), { 7.0 * 5, 7.0 * 8 })
  t.equal(g(V(1, 1)):tolist(), { 7.0 * 8, 7.0 * 13 })
  t.equal({ m[a], m[b], size(m) }, { 3, 4, 2 })
end)
t.test("a handle that was released is not given again", function()
  local kept
  local g = ms.grad(function(x)
    kept = x * 2
    return ops.sum(kept * kept)
  end)
  for i = 1, 20 do
    t.equal(g(V(i)):tolist(), { 8.0 * i })
    t.equal(kept:tolist(), { 2.0 * i })
    kept:release()
  end
end)
t.test("a gradient is no other name of what it equals", function()
  local w, x = V(1, 2), V(3, 4)
  local g = ms.grad(function(v) return ops.sum(v * w) end)(x)
  t.equal(rawequal(g, w), false)
  g:add_(1)
  g[0] = 9
  t.equal({ w:tolist(), g:tolist() }, { { 1.0, 2.0 }, { 9.0, 3.0 } })
end)
t.finish()
