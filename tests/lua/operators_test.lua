-- Calling operators: arguments by position and name, operator signs, results, messages.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local T, o = ms.tensor, ms.ops

local x = T { { 1.0, 2.0 }, { 3.0, 4.0 } }

t.test("signs of the language", function()
  t.equal((x + x):tolist(), { { 2, 4 }, { 6, 8 } })
  t.equal((x - 1):tolist(), { { 0, 1 }, { 2, 3 } })
  t.equal((1 - x):tolist(), { { 0, -1 }, { -2, -3 } })
  t.equal((x * 2):tolist(), { { 2, 4 }, { 6, 8 } })
  t.equal((12 / x):tolist(), { { 12, 6 }, { 4, 3 } })
  t.equal((x ^ 2):tolist(), { { 1, 4 }, { 9, 16 } })
  t.equal((x // 2):tolist(), { { 0, 1 }, { 1, 2 } })
  t.equal((T { -7, 7 } % 3):tolist(), { 2, 1 })
  t.equal((-x):tolist(), { { -1, -2 }, { -3, -4 } })
  t.equal((T { 6, 5 } & 3):tolist(), { 2, 1 })
  t.equal((T { 6, 5 } | 1):tolist(), { 7, 5 })
  t.equal((T { 6, 5 } ~ 1):tolist(), { 7, 4 })
  t.equal((~T { 0, 5 }):tolist(), { -1, -6 })
  t.equal((T { true, false } & T { true, true }):tolist(), { true, false })
  t.equal((~T { true, false }):tolist(), { false, true })
end)

-- In every way to run it.
local function fails_everywhere(text, f, ...)
  t.fails(text, f, ...)
  t.fails(text, ms.grad(f), ...)
  t.fails(text, ms.grad(function(a, ...) return ms.grad(f)(a, ...):sum() end), ...)
  local compiled = ms.jit(f)
  for _ = 1, 3 do t.fails(text, compiled, ...) end
end

t.test("operators that are made of others speak for themselves", function()
  local w = T { { 1.0, 2.0 }, { 3.0, 4.0 } }
  local function embed(weight, rows) return o.embedding(rows, weight * 2):sum() end
  fails_everywhere("embedding: index 5 is out of range", embed, w, T { 0, 5 })
  local compiled, slope = ms.jit(embed), ms.jit(ms.grad(embed))
  for _ = 1, 4 do
    compiled(w, T { 0, 1 })
    slope(w, T { 0, 1 })
  end
  t.fails("embedding: index 5 is out of range", compiled, w, T { 0, 5 })
  t.fails("embedding: index 5 is out of range", slope, w, T { 0, 5 })
  t.fails("embedding: index 5 is out of range", ms.vmap(embed, { 0, false }), o.stack { w, w }, T { 0, 5 })
  fails_everywhere("mse_loss: shapes (2, 2) and (3) do not broadcast", o.mse_loss, w, T { 1.0, 2.0, 3.0 })
  fails_everywhere("cross_entropy: label 7 at position 1 is out of range", o.cross_entropy, w, T { 0, 7 })
  fails_everywhere("addmv: vec must have 1 axes", function(m) return o.addmv(T { 1.0, 2.0 }, m, m):sum() end, w)
end)

t.test("samplers refuse parameters that no distribution has", function()
  for _ = 1, 2 do
    local draw = ms.jit(function(p) return o.poisson({ 2 }, p * 1) + o.gamma({ 2 }, o.abs(p) + 1) end)
    for _ = 1, 3 do draw(T { 1.0, 2.0 }) end
    t.fails("poisson: mean must not be negative, got -2 (element 1)", draw, T { 1.0, -2.0 })
  end
  t.fails("gamma: alpha must not be negative, got -1", o.gamma, { 2 }, -1)
  t.fails("gamma: alpha must not be negative, got -0.5 (element 2)", o.gamma, { 2 }, T { 1.0, 0.0, -0.5 })
  t.fails("gamma: beta must be positive, got -3", o.gamma, { 2 }, 1, -3)
  t.fails("gamma: beta must be positive, got 0", o.gamma, { 2 }, 1, T { 1.0, 0.0 })
  t.fails("random_gamma: alpha must not be negative", o.random_gamma, { 2 }, T { -1.0 })
  t.fails("random_poisson: rate must not be negative", o.random_poisson, { 2 }, T { -1.0 })
  t.equal(o.gamma({ 2 }, 0.0):tolist(), { 0, 0 })
  t.equal(o.poisson({ 2 }, 0.0):tolist(), { 0, 0 })
end)

t.test("limits beyond the range of the dtype limit nothing, or everything", function()
  local bytes = T({ 0, 1, 3, 200 }, { dtype = "uint8" })
  t.equal(o.clamp(bytes, -1, 2):tolist(), { 0, 1, 2, 2 })
  t.equal(o.clamp(bytes, -5):tolist(), { 0, 1, 3, 200 })
  t.equal(o.clamp(bytes, nil, 300):tolist(), { 0, 1, 3, 200 })
  t.equal(o.clamp(bytes, nil, -1):tolist(), { 0, 0, 0, 0 })
  t.equal(o.clamp(bytes, 300):tolist(), { 255, 255, 255, 255 })
end)

t.test("a single value is reduced along its only element", function()
  local one = T(3.5)
  for _, axis in ipairs { 0, -1 } do
    t.equal(o.sum(one, axis):item(), 3.5)
    t.equal(o.mean(one, { axis }):item(), 3.5)
    t.equal(#o.reduce_max(one, { axis = axis, keep_dims = true }).shape, 0)
  end
  t.fails("axis 1", function() return o.mean(one, 1) end)
end)

t.test("neighbours are those that numpy and torch give", function()
  local inf = math.huge
  local from = { 0, 0, 1, 1, -1, -1, 65504, 3, 0.1, inf, -inf, 6e-8 }
  local to = { 1, -1, 2, 0, 0, -2, 1e9, 3, 5, 0, 0, 0 }
  local expected = {
    float16 = { 0x1p-24, -0x1p-24, 0x1.004p+0, 0x1.ffcp-1, -0x1.ffcp-1, -0x1.004p+0, inf, 3, 0x1.99cp-4, 65504, -65504, 0 },
    bfloat16 = { 0x1p-133, -0x1p-133, 0x1.02p+0, 0x1.fep-1, -0x1.fep-1, -0x1.02p+0, 0x1.02p+16, 3, 0x1.9cp-4, 0x1.fep+127,
      -0x1.fep+127, 0x1p-24 },
    float32 = { 0x1p-149, -0x1p-149, 0x1.000002p+0, 0x1.fffffep-1, -0x1.fffffep-1, -0x1.000002p+0, 0x1.ffc002p+15, 3,
      0x1.99999cp-4, 0x1.fffffep+127, -0x1.fffffep+127, 0x1.01b2bp-24 },
    float64 = { 0x1p-1074, -0x1p-1074, 0x1.0000000000001p+0, 0x1.fffffffffffffp-1, -0x1.fffffffffffffp-1, -0x1.0000000000001p+0,
      0x1.ffc0000000001p+15, 3, 0x1.999999999999bp-4, 0x1.fffffffffffffp+1023, -0x1.fffffffffffffp+1023, 0x1.01b2b29a4692ap-24 },
  }
  for dtype, numbers in pairs(expected) do
    local y = o.nextafter(T(from, ms[dtype]), T(to, ms[dtype]))
    t.equal(y.dtype, ms[dtype])
    for i, number in ipairs(numbers) do
      local got = y[i - 1]:item()
      if got ~= number then error(("%s: %a towards %a is %a, not %a"):format(dtype, from[i], to[i], got, number)) end
    end
  end
  local zero = o.nextafter(T { 0.0 }, -0.0):item()
  assert(zero == 0 and 1 / zero < 0)
  for _, pair in ipairs { { 0 / 0, 1 }, { 1, 0 / 0 } } do
    local y = o.nextafter(T { pair[1] }, pair[2]):item()
    assert(y ~= y)
  end
  local across = o.nextafter(T { { 1.0 }, { 2.0 } }, T { 0.0, 1.0, 3.0 })
  t.equal(across.shape, { 2, 3 })
  for i = 0, 1 do
    for j, other in ipairs { 0.0, 1.0, 3.0 } do
      assert(across[{ i, j - 1 }]:item() == o.nextafter(T { i + 1.0 }, other):item())
    end
  end
  t.equal(o.nextafter(ms.ops.zeros { 0, 3 }, 1).shape, { 0, 3 })
  t.equal(o.nextafter(T { 1, 2 }, 5).dtype, ms.float32)
end)

t.test("comparison signs are for single elements", function()
  assert(T(1.0) < 2 and 0 < T(1.0) and T(1) <= T(1.0) and not (T { 3 } < 3))
  assert(T(math.maxinteger - 1) < math.maxinteger)
  t.fails({ "(2, 2)", "ops.less(" }, function() return x < 2 end)
  t.fails({ "ops.less_equal" }, function() return 2 >= x end)
  t.fails("string", function() return T(1) < "a" end)
  assert(x == x and not rawequal(x, x:copy()))
  t.fails({ "(2, 2)", "ops.equal(", "rawequal" }, function() return x == x:copy() end)
end)

t.test("joining with .. and calling are errors with advice", function()
  t.fails({ "..", "tostring" }, function() return "a" .. x end)
  t.fails("brackets", function() return x(0) end)
end)

t.test("methods are the operators", function()
  t.equal(x:sum():item(), 10)
  t.equal(x:add(x):tolist(), (x + x):tolist())
  t.equal(x:reshape(4):tolist(), { 1, 2, 3, 4 })
  t.equal(x:reshape(2, -1, 1).shape, x:reshape({ 2, -1, 1 }).shape)
  t.equal(x:view(1, 4):tolist(), { { 1, 2, 3, 4 } })
end)

t.test("arguments go by position, in a trailing table, or all by name", function()
  local expected = o.softmax(x, 0)
  t.equal(o.softmax(x, { axis = 0 }), expected)
  t.equal(o.softmax { input = x, axis = 0 }, expected)
  t.equal(o.softmax(x, { dim = 0 }), expected)
  t.equal(x:softmax { axis = 0 }, expected)
  t.equal(o.softmax(x, 0.0), expected)
  t.equal(o.arange { start = 0, stop = 6, step = 2 }:tolist(), { 0, 2, 4 })
  t.equal(o.arange { start = 0, ["end"] = 3 }:tolist(), { 0, 1, 2 })
  t.equal(o.relu(x, {}), x)
end)

t.test("sizes may be spelled out", function()
  t.equal(o.zeros(2, 3).shape, o.zeros({ 2, 3 }).shape)
  t.equal(o.ones(2, 2, ms.int32).dtype, ms.int32)
  t.equal(o.full({ 2 }, 3):tolist(), { 3, 3 })
  t.equal(ms.random.randn(2, 3, { seed = 1 }).shape, o.zeros(2, 3).shape)
end)

t.test("lists of tensors are tables or spelled out", function()
  local a, b = T { 1, 2 }, T { 3, 4 }
  t.equal(o.stack({ a, b }):tolist(), { { 1, 2 }, { 3, 4 } })
  t.equal(o.concat({ a, b }, 0):tolist(), { 1, 2, 3, 4 })
  t.equal(o.einsum("i,i->", T { 1.0, 2.0 }, T { 3.0, 4.0 }):item(), 11)
end)

t.test("several results are several values", function()
  local values, indices = o.topk(T { 3.0, 1.0, 2.0 }, 2)
  t.equal({ values:tolist(), indices:tolist() }, { { 3, 2 }, { 0, 2 } })
  local first, second = o.split(T { 1, 2, 3, 4 }, 2)
  t.equal({ first:tolist(), second:tolist() }, { { 1, 2 }, { 3, 4 } })
  t.equal(select("#", T({ 1, 2, 3 }):unbind()), 3)
end)

t.test("wrong names, counts and kinds are errors that help", function()
  t.fails({ "softmax", "axs", "did you mean 'axis'" }, o.softmax, x, { axs = 1 })
  t.fails({ "twice", "axis" }, o.softmax, x, 0, { axis = 1 })
  t.fails({ "missing argument 1", "input" }, o.softmax)
  t.fails({ "missing argument 2", "other" }, o.add, x)
  t.fails({ "at most 1", "3" }, o.relu, x, 1, 2)
  t.fails({ "axis", "integer", "1.5" }, o.softmax, x, 1.5)
  t.fails({ "axis", "integer", "'one'" }, o.softmax, x, "one")
  t.fails({ "other", "empty table", "ms.tensor{" }, o.add, x, {})
  t.fails({ "nil" }, o.add, nil, nil)
  t.fails({ "reduction", "\"mean\"", "did you mean 'mean'" }, o.mse_loss, x, x, { reduction = "men" })
  t.fails({ "function" }, o.add, x, print)
end)

t.test("messages start with the user's file and line", function()
  local message = t.fails("matmul", function() return o.matmul(x, T { 1.0, 2.0, 3.0 }) end)
  assert(message:match("^tests/lua/operators_test.lua:%d+: matmul: "), message)
  assert(message:find("\n  hint: ", 1, true), message)
end)

t.test("numbers stay what they are until they meet a tensor", function()
  t.equal((T { 1, 2 } + 1).dtype, ms.int64)
  t.equal((T { 1, 2 } + 1.5).dtype, ms.float32)
  t.equal((T({ 1 }, ms.float16) * 2.5).dtype, ms.float16)
end)

t.test("assignment changes the variable that it names", function()
  local v = T { 1.0, 2.0 }
  local view = v[0]
  assert(o.assign(v, T { 5.0, 6.0 }) == v)
  t.equal(v:tolist(), { 5, 6 })
  t.equal(view:item(), 1)
  o.assign_add(v, 1)
  t.equal(v:tolist(), { 6, 7 })
end)

t.test("a NaN has no sign, however it was made", function()
  for _, dtype in ipairs { ms.float16, ms.bfloat16, ms.float32, ms.float64 } do
    for _, nan in ipairs { 0 / 0, -(0 / 0) } do
      for _, size in ipairs { 1, 21 } do
        local nans = o.full({ size }, nan, dtype)
        local function signs(v) return o.signbit(v):any():item(), o.signbit(-v):any():item(), o.copysign(o.ones_like(v), v):sum():item() end
        local compiled = ms.jit(signs)
        for _ = 1, 3 do t.equal({ compiled(nans) }, { false, false, size }) end
        t.equal({ signs(nans) }, { false, false, size })
      end
    end
  end
end)

t.test("what is complex already is not viewed as complex", function()
  local pairs_of_complex = o.fft(T { { 1.0, 2.0 }, { 3.0, 4.0 } })
  t.fails({ "view_as_complex", "real", "complex64" }, o.view_as_complex, pairs_of_complex)
  local real = o.view_as_real(pairs_of_complex)
  t.equal(o.view_as_real(o.view_as_complex(real)):tolist(), real:tolist())
end)

t.test("sorting no elements takes no time, however many lines there are", function()
  local empty = ms.zeros({ 0, 1 << 62 }, ms.float32)
  t.equal(o.msort(empty).shape[2], 1 << 62)
  t.equal(o.sort(empty, 0).shape[1], 0)
  t.equal(o.topk(empty, 0, 0).shape[1], 0)
end)

t.finish()
