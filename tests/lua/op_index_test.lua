-- Operators with rules for indices: windows of their inputs, sums over points, edges, derivatives; against loops in Lua.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal, near = t.test, t.equal, t.near
local function fails(f, message) t.fails(message, f) end

local function random(...)
  return ops.uniform({ ... }, ms.tensor(-1.0), ms.tensor(1.0)):astype(ms.float64)
end

-- What the loops over all indices give. `sizes`: of the output's indices, then of those that are summed over; `at` gives
-- the value at a point.
local function by_loops(sizes, kept, at, start, join, finish)
  local values, shape, count = {}, {}, 1
  for k = 1, kept do
    shape[k] = sizes[k]
    count = count * sizes[k]
  end
  for i = 1, count do values[i] = start end
  local point = {}
  local function go(k, place)
    if k > #sizes then
      values[place + 1] = join(values[place + 1], at(table.unpack(point)))
      return
    end
    for i = 0, sizes[k] - 1 do
      point[k] = i
      go(k + 1, k <= kept and place * sizes[k] + i or place)
    end
  end
  go(1, 0)
  for i = 1, count do values[i] = finish and finish(values[i]) or values[i] end
  return ms.tensor(values, ms.float64):reshape(shape)
end
local function plus(a, b) return a + b end

local function numbers(x) return x:tolist() end

-- The same value compiled, mapped and in single precision; derivatives of two orders against differences.
local function holds(op, expected, args)
  near(op(table.unpack(args)), expected, 1e-12)
  local compiled = ms.jit(function(...) return op(...) end)
  for _ = 1, 3 do near(compiled(table.unpack(args)), expected, 1e-12) end
  local single = {}
  for i, a in ipairs(args) do single[i] = a:astype(ms.float32) end
  near(op(table.unpack(single)), expected, 1e-4)
  local batch = {}
  for i, a in ipairs(args) do batch[i] = ops.stack { a, a * 2 } end
  near(ms.vmap(op)(table.unpack(batch))[0], expected, 1e-12)
  local function squared(...) return ops.sum(op(...) ^ 2) end
  assert(ms.check_grad(squared, args) < 1e-5)
  local slope = ms.grad(squared)
  assert(ms.check_grad(function(...) return ops.sum(slope(...) ^ 2) end, args) < 1e-4)
end

test("a blurred picture", function()
  local blur = ms.define_op { name = "blur_of_test", inputs = { "x[i + p, j + q]", "w[p, q]" }, output = "i, j",
    reduce = "sum", expr = function(x, w) return x * w end }
  for _, size in ipairs { { 5, 6, 3, 2 }, { 4, 40, 3, 3 }, { 70, 21, 1, 4 } } do
    local h, w, p, q = table.unpack(size)
    local x, k = random(h, w), random(p, q)
    local a, b = numbers(x), numbers(k)
    local expected = by_loops({ h - p + 1, w - q + 1, p, q }, 2,
      function(i, j, m, n) return a[i + m + 1][j + n + 1] * b[m + 1][n + 1] end, 0, plus)
    if h * w < 100 then holds(blur, expected, { x, k }) else near(blur(x, k), expected, 1e-12) end
  end
  local x = random(3, 8, 9)
  local mean = ms.op { name = "mean_of_test", inputs = { "x[c, i + p, j + q]" }, output = "c, i, j", reduce = "mean",
    sizes = { p = 2, q = 3 }, expr = function(v) return v end }
  local a = numbers(x)
  holds(mean, by_loops({ 3, 7, 7, 2, 3 }, 3, function(c, i, j, m, n) return a[c + 1][i + m + 1][j + n + 1] end, 0, plus,
    function(s) return s / 6 end), { x })
end)

test("the edges", function()
  local same = ms.op { name = "same_of_test", inputs = { "x[i + p - 1]", "w[p]" }, output = "i", reduce = "sum",
    outside = 0, expr = function(x, w) return x * w end }
  local x, w = random(20), random(3)
  local a, b = numbers(x), numbers(w)
  local function at(i, p) return (a[i + p] or 0) * b[p + 1] end
  holds(same, by_loops({ 20, 3 }, 1, at, 0, plus), { x, w })
  -- Far enough apart that no step of a difference changes which one is the largest.
  x = ops.argsort(random(20)):astype(ms.float64) / 10
  a = numbers(x)
  local largest = ms.op { name = "largest_of_test", inputs = { "x[2*i + p - 1]" }, output = "i", reduce = "max",
    outside = -9, sizes = { p = 3 }, expr = function(v) return v end }
  local function read(i, p) return a[2 * i + p] or -9 end
  holds(largest, by_loops({ 10, 3 }, 1, read, -math.huge, math.max), { x })
end)

test("steps, gaps and indices that stand in several places", function()
  local strided = ms.op { name = "strided_of_test", inputs = { "x[2*i + 3*p + 1]", "w[p]" }, output = "i", reduce = "sum",
    expr = function(x, w) return math.sin(x) * w end }
  local x, w = random(24), random(4)
  local a, b = numbers(x), numbers(w)
  holds(strided, by_loops({ 7, 4 }, 1, function(i, p) return math.sin(a[2 * i + 3 * p + 2]) * b[p + 1] end, 0, plus), { x, w })
  local three = ms.op { name = "three_of_test", inputs = { "x[i + p + r]", "y[p]", "z[r, i]" }, output = "i, r",
    reduce = "sum", expr = function(v, y, z) return v * y + z * v end }
  local y, z = random(3), random(2, 5)
  local v = random(8)
  local va, ya, za = numbers(v), numbers(y), numbers(z)
  holds(three, by_loops({ 5, 2, 3 }, 2, function(i, r, p)
    return va[i + p + r + 1] * (ya[p + 1] + za[r + 1][i + 1])
  end, 0, plus), { v, y, z })
  local none = ms.op { name = "differences_of_test", inputs = { "x[i + 1]", "y[i]" }, output = "i",
    expr = function(p, q) return p - q end }
  local u = random(9)
  local ua = numbers(u)
  holds(none, by_loops({ 8 }, 1, function(i) return ua[i + 2] - ua[i + 1] end, 0, plus), { u, u["0:8"] })
  local row = ms.op { name = "row_of_test", inputs = { "x[1, i]" }, output = "i", expr = function(p) return p * p end }
  local m = random(3, 4)
  holds(row, m[1] * m[1], { m })
end)

test("scores as of attention", function()
  local scores = ms.op { name = "scores_of_test", inputs = { "q[b, i, k]", "w[b, j, k]" }, output = "b, i, j",
    reduce = "sum", expr = function(q, w) return q * w end }
  local distance = ms.op { name = "distance_of_index_test", inputs = { "q[i, k]", "w[j, k]" }, output = "i, j",
    reduce = "sum", expr = function(q, w) return (q - w) ^ 2 end }
  local nearest = ms.op { name = "nearest_of_test", inputs = { "q[i, k]", "w[j, k]" }, output = "i, j",
    reduce = "min", expr = function(q, w) return math.abs(q - w) end }
  local smooth = ms.op { name = "smooth_of_test", inputs = { "q[i, k]", "w[j, k]" }, output = "i, j",
    reduce = "max", expr = function(q, w) return q * w - q end }
  for _, size in ipairs { { 2, 3, 4, 5 }, { 1, 2, 20, 3 }, { 2, 3, 33, 40 }, { 1, 2, 70, 6 }, { 1, 1, 130, 300 } } do
    local b, i, j, k = table.unpack(size)
    local q, w = random(b, i, k), random(b, j, k)
    local expected = ops.matmul(q, w:transpose(0, 2, 1))
    near(scores(q, w), expected, 1e-10)
    near(scores(q:astype(ms.float32), w:astype(ms.float32)), expected, 1e-4)
    local q1, w1 = q[0], w[0]
    local difference = q1:reshape(i, 1, k) - w1:reshape(1, j, k)
    near(distance(q1, w1), ops.sum(difference ^ 2, 2), 1e-10)
    near(nearest(q1, w1), ops.amin(ops.abs(difference), 2), 1e-12)
    near(smooth(q1, w1), ops.amax(q1:reshape(i, 1, k) * w1:reshape(1, j, k) - q1:reshape(i, 1, k), 2), 1e-12)
    if i * j * k < 400 then holds(distance, ops.sum(difference ^ 2, 2), { q1, w1 }) end
    -- Within a graph of other operators, transposed operands too.
    local f = ms.jit(function(p, r) return ops.softmax(scores(p * 2, r) / 3, -1) end)
    for _ = 1, 3 do near(f(q, w), ops.softmax(expected * (2 / 3), -1), 1e-10) end
    local turned = ops.zeros({ b, k, j }, ms.float64) + w:transpose(0, 2, 1)
    near(scores(q, turned:transpose(0, 2, 1)), expected, 1e-10)
  end
end)

test("what does not fit is refused", function()
  local function define(fields)
    fields.name = fields.name or "refused_of_index_test"
    fields.expr = fields.expr or function(v) return v end
    return ms.op(fields)
  end
  fails(function() define { inputs = { "x[i - p]" }, output = "i", reduce = "sum" } end, "counts index p down")
  fails(function() define { inputs = { "x[i + i]" }, output = "i" } end, "index i stands twice")
  fails(function() define { inputs = { "x[i, i]" }, output = "i" } end, "index i stands twice")
  fails(function() define { inputs = { "x[0*i]" }, output = "i" } end, "factor of index i")
  fails(function() define { inputs = { "x[i ** 2]" }, output = "i" } end, "is no index")
  fails(function() define { inputs = { "x[i +]" }, output = "i" } end, "is no index")
  fails(function() define { inputs = { "x[i, ]" }, output = "i" } end, "is no index")
  fails(function() define { inputs = { "x[i]" }, output = "i", sizes = { k = 2 } } end, "sizes names 'k'")
  fails(function() define { inputs = { "x[i]" }, output = "i", sizes = { i = 0 } } end, "size of index i")
  fails(function() define { inputs = { "x[i]" }, output = "i", sizes = { 3 } } end, "sizes names '1'")
  fails(function() define { inputs = { "x[i]" }, output = "i", outside = "zero" } end, "outside must be a number")
  fails(function() define { inputs = { "x[i + 99999999999999999999]" }, output = "i" } end, "too large")
  local window = define { inputs = { "x[i + p]" }, output = "i", reduce = "sum" }
  fails(function() window(ops.ones { 4 }) end, "nothing tells how many values index")
  local three = define { inputs = { "x[i + p]" }, output = "i", reduce = "sum", sizes = { p = 3 } }
  equal(three(ops.ones { 3 }).shape[1], 1)
  fails(function() three(ops.ones { 2 }) end, "axis 0 of x has 2 elements: too few for [i + p]")
  fails(function() three(ops.ones { 2, 2 }) end, "x has shape (2, 2) and the rule gives it 1 index")
  local ahead = define { inputs = { "x[i + 1]", "y[i]" }, output = "i", expr = function(p, q) return p + q end }
  fails(function() ahead(ops.ones { 4 }, ops.ones { 4 }) end, "[i + 1] goes from element 1 to 4 of axis 0 of x, which has 4")
  local behind = define { inputs = { "x[i - 1]", "y[i]" }, output = "i", expr = function(p, q) return p + q end }
  fails(function() behind(ops.ones { 4 }, ops.ones { 4 }) end, "goes from element -1 to 2")
  local given = define { inputs = { "x[i]" }, output = "i", sizes = { i = 3 } }
  fails(function() given(ops.ones { 4 }) end, "index i has 3 values in sizes and 4 in x")
end)

t.finish()
