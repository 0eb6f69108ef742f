-- Integers without a sign, complex numbers of float64 and floats of 8 bits: arithmetic against integers of Lua, derivatives against
-- differences, what is refused, and what files keep.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- Both ways of running: as the mode has it, and compiled.
local function both(f, ...)
  local eager = f(...)
  t.equal(ms.jit(f)(...), eager)
  return eager
end

local function list(dtype, f, a, b)
  local out = {}
  for i = 1, #a do out[i] = f(a[i], b and b[i]) end
  return ms.tensor(out, ms[dtype])
end

local samples = {
  uint16 = { { 0, 1, 2, 255, 256, 32767, 32768, 65535, 4000, 65535 }, { 3, 65535, 7, 255, 2, 9, 32768, 65535, 17, 1 } },
  uint32 = { { 0, 1, 65535, 65536, 2147483647, 2147483648, 4294967295, 4294967295 }, { 5, 4294967295, 65535, 65536, 3, 2, 4294967295, 1 } },
}

for dtype, pair in pairs(samples) do
  local mask = dtype == "uint16" and 0xffff or 0xffffffff
  local a, b = ms.tensor(pair[1], ms[dtype]), ms.tensor(pair[2], ms[dtype])
  local function check(f, of_integers)
    local got = both(f, a, b)
    t.equal(got.dtype, ms[dtype])
    t.equal(got, list(dtype, function(x, y) return of_integers(x, y) & mask end, pair[1], pair[2]))
  end

  t.test(dtype .. " wraps around at its ends, and divides and compares without a sign", function()
    check(function(x, y) return x + y end, function(x, y) return x + y end)
    check(function(x, y) return x - y end, function(x, y) return x - y end)
    check(function(x, y) return x * y end, function(x, y) return x * y end)
    check(function(x, y) return ops.floor_divide(x, y) end, function(x, y) return x // y end)
    check(function(x, y) return ops.remainder(x, y) end, function(x, y) return x % y end)
    check(function(x, y) return ops.maximum(x, y) end, math.max)
    check(function(x, y) return ops.minimum(x, y) end, math.min)
    check(function(x, y) return ops.bitwise_xor(x, y) end, function(x, y) return x ~ y end)
    check(function(x) return ops.bitwise_right_shift(x, 3) end, function(x) return x >> 3 end)
    check(function(x) return ops.bitwise_left_shift(x, 3) end, function(x) return x << 3 end)
    check(function(x) return -x end, function(x) return -x end)
    check(function(x) return ops.abs(x) end, function(x) return x end)
    check(function(x) return ops.clamp(x, 3, 40000) end, function(x) return math.max(3, math.min(40000, x)) end)
    check(function(x) return ops.clamp(x, nil, 40000) end, function(x) return math.min(40000, x) end)
    check(function(x) return ops.clamp(x, 3) end, function(x) return math.max(3, x) end)
    local less = both(function(x, y) return ops.less(x, y) end, a, b)
    for i = 1, #pair[1] do t.equal(less[i - 1]:item(), pair[1][i] < pair[2][i]) end
  end)

  t.test(dtype .. " in sums, products, sorts, scatters and casts", function()
    local sum = 0
    for _, x in ipairs(pair[1]) do sum = sum + x end
    t.equal(both(function(x) return x:sum() end, a):item(), sum)
    t.equal(a:sum().dtype, ms.int64)
    t.near(both(function(x) return x:float():mean() end, a):item(), sum / #pair[1], sum * 1e-7)
    t.equal(a:max():item(), mask)
    local sorted = { table.unpack(pair[1]) }
    table.sort(sorted)
    t.equal(ops.sort(a):tolist(), sorted)
    t.equal(ops.cumsum(a, 0)[#sorted - 1]:item(), sum)
    t.equal(a:long():tolist(), pair[1])
    t.equal(a:double():tolist(), list("float64", function(x) return x end, pair[1]):tolist())
    t.equal(ms.tensor { -1, 70000 * 65537 }:astype(ms[dtype]):tolist(), { mask, 70000 * 65537 & mask })
    local product = ops.matmul(a:reshape { 2, -1 }, b:reshape { -1, 2 })
    local half, wanted = #pair[1] // 2, 0
    for i = 1, half do wanted = wanted + pair[1][i] * pair[2][2 * i - 1] end
    t.equal({ product.dtype, product[{ 0, 0 }]:item() }, { ms[dtype], wanted & mask })
    local added = ops.index_add(ops.zeros({ 2 }, ms[dtype]), ms.tensor { 1, 1 }, ms.tensor({ mask, 5 }, ms[dtype]), 0)
    t.equal(added:tolist(), { 0, 4 })
    t.equal(both(function(x) return ops.where(ops.greater(x, 300), x, x * 0) end, a).dtype, ms[dtype])
    t.equal(ops.gather(a, ms.tensor { 3, 0 }, 0):tolist(), { pair[1][4], pair[1][1] })
    t.equal(ops.flip(a, 0)[0]:item(), pair[1][#pair[1]])
    t.fails({ "floor_divide", "division by zero" }, ops.floor_divide, a, 0)
    t.fails({ "out of the range", dtype }, ms.tensor, { -1 }, ms[dtype])
  end)
end

-- An integer that Lua's integers do not hold becomes the nearest float; comparisons are exact whatever the types.
local function unsigned(...) return ms.tensor({ ... }, ms.int64):astype(ms.uint64) end

t.test("uint64 elements beyond 2^63 are the nearest float as values of the language", function()
  local a = unsigned(-1, math.mininteger, math.mininteger + 2048, math.maxinteger, 5)
  local wanted = { 18446744073709551615.0, 2.0 ^ 63, 2.0 ^ 63 + 2048, math.maxinteger, 5 }
  local function kinds(values)
    local all = {}
    for i, v in ipairs(values) do all[i] = math.type(v) end
    return all
  end
  local floats = { "float", "float", "float", "integer", "integer" }
  t.equal({ a:tolist(), kinds(a:tolist()) }, { wanted, floats })
  for i, v in ipairs(a:asnumpy()) do t.equal(v, wanted[i]) end
  local function items(x)
    local all = {}
    for i = 0, #x - 1 do all[i + 1] = x[i]:item() end
    return all
  end
  local compiled = ms.jit(items)
  for _ = 1, 3 do
    t.equal({ items(a), kinds(items(a)) }, { wanted, floats })
    t.equal({ compiled(a), kinds(compiled(a)) }, { wanted, floats })
    t.equal(compiled(unsigned(1, 2, 3, 4, 5)), { 1, 2, 3, 4, 5 })
  end
  -- One record for values of both kinds.
  local halved = ms.jit(function(x) return x:item() // 2 end)
  for _, x in ipairs { unsigned(7), unsigned(-1), unsigned(9), unsigned(math.mininteger) } do
    local value = halved(x)
    t.equal({ value, math.type(value) }, { x:item() // 2, math.type(x:item() // 2) })
  end
  t.equal(a:item(1), 2.0 ^ 63)
  assert(tostring(a):find("18446744073709551615", 1, true), tostring(a))
  t.equal(ms.grad(function(v) return v * (a[1]:item() / 2.0 ^ 63) end)(3.0), 1.0)
  t.equal(ms.tensor({ 2.0 ^ 63, 5 }, ms.uint64):tolist(), { 2.0 ^ 63, 5 })
  t.equal(ops.full({ 1 }, 2.0 ^ 63 + 4096, ms.uint64):tolist(), { 2.0 ^ 63 + 4096 })
  t.fails({ "out of the range of the integer type uint64" }, function() ms.tensor({ 2.0 ^ 64 }, ms.uint64) end)
  t.fails({ "out of the range of the integer type uint64" }, function() ms.tensor({ -1 }, ms.uint64) end)
  local base = os.tmpname()
  for _, kind in ipairs { ".npy", ".safetensors" } do
    local several = kind ~= ".npy"
    ms.save(base .. kind, several and { a = a } or a)
    local found = ms.load(base .. kind)
    t.equal((several and found.a or found):tolist(), wanted)
    os.remove(base .. kind)
  end
  os.remove(base)
end)

t.test("uint64 is compared exactly, with numbers and with tensors, by signs and by operators", function()
  local big, bigger = unsigned(math.mininteger + 1)[0], unsigned(math.mininteger + 2)[0]
  local least = ms.tensor(math.mininteger, ms.int64)
  local function by_signs(x, y, z)
    return { x > 5, 5 > x, x >= 2.0 ^ 63, x > 2.0 ^ 63, x < 2.0 ^ 63 + 2048, x > -1, x < y, y < x, x <= y, x == y, x == x + 0, z < x,
      x < z, x > math.huge, x < math.huge, x > 0 / 0 }
  end
  local wanted = { true, false, true, true, true, true, true, false, true, false, true, true, false, false, true, false }
  t.equal(by_signs(big, bigger, least), wanted)
  for _ = 1, 3 do t.equal(ms.jit(by_signs)(big, bigger, least), wanted) end
  t.equal(ms.tensor((1 << 53) + 1) > 2.0 ^ 53, true)
  t.equal(ms.tensor((1 << 53) + 1) == ms.tensor(2.0 ^ 53, ms.float64), false)
  -- Operators, with numbers of all kinds on both sides.
  local x = unsigned(-1, math.mininteger + 1, math.mininteger, math.maxinteger, 0)
  local function truths(mask) return mask:astype(ms.int32):tolist() end
  local numbers = { { 5, { 1, 1, 1, 1, 0 } }, { -1, { 1, 1, 1, 1, 1 } }, { 2.5, { 1, 1, 1, 1, 0 } }, { -0.5, { 1, 1, 1, 1, 1 } },
    { 2.0 ^ 63, { 1, 1, 0, 0, 0 } }, { math.maxinteger, { 1, 1, 1, 0, 0 } }, { 2.0 ^ 65, { 0, 0, 0, 0, 0 } },
    { math.huge, { 0, 0, 0, 0, 0 } },
    { math.mininteger, { 1, 1, 1, 1, 1 } } }
  for _, row in ipairs(numbers) do
    local n, greater = row[1], row[2]
    local function not_of(values)
      local all = {}
      for i, v in ipairs(values) do all[i] = 1 - v end
      return all
    end
    for name, f in pairs { right = function(v) return ops.greater(v, n) end, left = function(v) return ops.less(n, v) end } do
      t.equal({ name, n, truths(f(x)) }, { name, n, greater })
      t.equal({ name, n, truths(ms.jit(f)(x)) }, { name, n, greater })
      t.equal({ name, n, truths(ms.jit(function(v) return ops.logical_and(f(v), ops.equal(v, v)) end)(x)) }, { name, n, greater })
    end
    t.equal(truths(both(function(v) return ops.less_equal(v, n) end, x)), not_of(greater))
  end
  t.equal(truths(both(function(v) return ops.equal(v, 2.0 ^ 63) end, x)), { 0, 0, 1, 0, 0 })
  t.equal(truths(both(function(v) return ops.equal(v, -1) end, x)), { 0, 0, 0, 0, 0 })
end)

t.test("comparisons with numbers that a dtype of integers does not have are as exact", function()
  local function truths(mask) return mask:astype(ms.int32):tolist() end
  local small, long = ms.tensor({ 0, 44, 255 }, ms.uint8), ms.tensor({ 16777217, 16777216, (1 << 53) + 1 }, ms.int64)
  t.equal(truths(both(function(v) return ops.greater(v, -1) end, small)), { 1, 1, 1 })
  t.equal(truths(both(function(v) return ops.equal(v, 300) end, small)), { 0, 0, 0 })
  t.equal(truths(both(function(v) return ops.less(v, 300) end, small)), { 1, 1, 1 })
  t.equal(truths(both(function(v) return ops.equal(v, 44.0) end, small)), { 0, 1, 0 })
  t.equal(truths(both(function(v) return ops.greater(v, 16777216.5) end, long)), { 1, 0, 1 })
  t.equal(truths(both(function(v) return ops.greater(v, 2.0 ^ 53) end, long)), { 0, 0, 1 })
  t.equal(truths(both(function(v) return ops.not_equal(v, 16777217.0) end, long)), { 0, 1, 1 })
  t.equal(truths(ms.vmap(function(v) return ops.greater(v, -1) end)(small)), { 1, 1, 1 })
end)

t.test("uint64 numbers as operands, positions and attributes", function()
  local x = unsigned(math.mininteger, 3)
  t.equal(both(function(v) return v + math.maxinteger end, unsigned(1, 2)):tolist(), { 2.0 ^ 63, 2.0 ^ 63 })
  t.equal(both(function(v) return ops.bitwise_xor(v, -1) end, unsigned(0)):tolist(), { 2.0 ^ 64 })
  t.equal(both(function(v) return v - 1 end, x)[0] == ms.tensor(math.maxinteger):astype(ms.uint64), true)
  local row = ms.tensor { 1.0, 2.0, 3.0 }
  for _, f in ipairs { function(i) return ops.gather(row, i, 0) end, function(i) return row[i] end,
    function(i) return ops.index_select(row, 0, i) end } do
    t.near(f(unsigned(2, 0)), { 3, 1 }, 0)
    t.near(ms.jit(f)(unsigned(2, 0)), { 3, 1 }, 0)
    t.fails({ "out of range" }, function() f(unsigned(-1)) end)
    t.fails({ "out of range" }, function() ms.jit(f)(unsigned(-1)) end)
  end
  t.fails({ "size" }, function() ops.zeros(unsigned(-1)) end)
  t.fails({ "must be an integer" }, function() ops.softmax(row, unsigned(-1)[0]) end)
  local y = unsigned(1, 2)
  y[0] = 2.0 ^ 63 + 2048
  t.equal(y:tolist(), { 2.0 ^ 63 + 2048, 2 })
  y[1] = unsigned(-1)[0]
  t.equal(y:tolist(), { 2.0 ^ 63 + 2048, 2.0 ^ 64 })
end)

t.test("uint64: numbers beyond 2^63", function()
  local a = ms.tensor({ -1, math.mininteger, 5 }):astype(ms.uint64)
  t.equal(both(function(x) return x + 1 end, a):tolist(), { 0, 2.0 ^ 63, 6 })
  t.equal(both(function(x) return x * 3 end, a):tolist(), { 2.0 ^ 64, 2.0 ^ 63, 15 })
  t.equal(both(function(x) return ops.floor_divide(x, 10) end, a):tolist(), { 1844674407370955161, 922337203685477580, 0 })
  t.equal(both(function(x) return ops.greater(x, ops.full({}, 6, ms.uint64)) end, a):tolist(), { true, true, false })
  t.equal(both(function(x) return x:double() end, a):tolist(), { 2.0 ^ 64, 2.0 ^ 63, 5.0 })
  t.equal(ms.tensor({ 2.0 ^ 63, 2.0 ^ 65, -2.0 }, ms.float64):astype(ms.uint64):tolist(), { 2.0 ^ 63, 2.0 ^ 64, 2.0 ^ 64 })
  t.equal(ops.sort(a):tolist(), { 5, 2.0 ^ 63, 2.0 ^ 64 })
  t.equal(a:max():item(), 2.0 ^ 64)
  t.equal(a:sum().dtype, ms.uint64)
  t.equal(ops.bitwise_right_shift(a, 63):tolist(), { 1, 1, 0 })
  t.equal(tostring(a):match "value= *\n%[([^]]*)%]", "18446744073709551615,  9223372036854775808,                    5")
  t.equal(ops.clamp(a, nil, 7):tolist(), { 7, 7, 5 })
end)

t.test("limits that a dtype does not have limit nothing, or everything", function()
  for _, name in ipairs { "uint8", "int8", "int16", "uint16", "int32", "uint32", "uint64", "int64" } do
    local x = ms.tensor({ 1, 9, 3 }, ms[name])
    local f = function(v) return ops.clamp(v, -1), ops.clamp(v, -1 << 40, 1 << 40), ops.clamp(v, nil, 1 << 40) end
    for _, g in ipairs { f, ms.jit(f) } do
      for _ = 1, 3 do
        for k, y in ipairs { g(x) } do t.equal(y:tolist(), { 1, 9, 3 }, name .. " " .. k) end
      end
    end
  end
end)

t.test("what dtypes become beside each other", function()
  local function of(a, b) return tostring((ops.zeros({ 2 }, ms[a]) + ops.zeros({ 2 }, ms[b])).dtype) end
  for _, row in ipairs { { "uint16", "int16", "Int32" }, { "uint8", "uint32", "UInt32" }, { "uint32", "int32", "Int64" },
    { "uint64", "int32", "Float64" }, { "uint64", "uint16", "UInt64" }, { "int8", "uint16", "Int32" }, { "uint32", "float16", "Float16" },
    { "complex64", "float64", "Complex128" }, { "complex64", "float32", "Complex64" }, { "complex128", "int64", "Complex128" },
    { "bool", "uint16", "UInt16" }, { "int64", "uint16", "Int64" } } do
    t.equal(of(row[1], row[2]), row[3])
    t.equal(of(row[2], row[1]), row[3])
  end
  t.equal((ops.zeros({ 2 }, ms.uint16) + 1).dtype, ms.uint16)
  t.equal((ops.zeros({ 2 }, ms.uint16) + 1.5).dtype, ms.float32)
  t.equal(ops.exp(ops.zeros({ 2 }, ms.uint32)).dtype, ms.float32)
  t.equal((ops.zeros({ 2 }, ms.complex128) * 1.5).dtype, ms.complex128)
  t.equal(ops.abs(ops.zeros({ 2 }, ms.complex128)).dtype, ms.float64)
end)

t.test("floats of 8 bits are stored, moved and converted, and nothing is computed in them", function()
  for _, row in ipairs { { "float8_e4m3fn", { 1.0, 0.3125, -448.0, 2 ^ -9, 0.0 } },
    { "float8_e5m2", { 1.0, 0.3125, -49152.0, 2 ^ -16, 0.0 } } } do
    local dtype = ms[row[1]]
    local x = ms.tensor({ 1.01, 0.3, row[2][3] * 1.01, 2 ^ (row[1]:find "4m" and -9 or -16) * 1.2, -0.0 }, dtype)
    t.equal({ x.dtype, x.itemsize }, { dtype, 1 })
    t.equal(x:float():tolist(), row[2])
    t.equal(both(function(a) return ops.cast(a, ms.float32) * 2 end, x)[1]:item(), 0.625)
    t.equal(both(function(a) return ops.cast(ops.flip(a, 0):reshape { 5, 1 }, ms.float64)[4] end, x):item(), 1.0)
    t.equal(ops.concat({ x, x })[6]:float():item(), 0.3125)
    t.equal(x[{ ms.slice(1, 3) }]:half():tolist(), { row[2][2], row[2][3] })
    t.equal(ops.gather(x, ms.tensor { 2 }, 0):float():item(), row[2][3])
    t.equal(x:tolist()[2], 0.3125)
    for _, f in ipairs { function() return x + x end, function() return x * 2 end, function() return ops.exp(x) end,
      function() return x:sum() end, function() return ops.matmul(x, x) end, function() return ops.sort(x) end,
      function() return ops.less(x, x) end, function() return ops.softmax(x) end, function() return ops.maximum(x, x:float()) end } do
      t.fails({ row[1], "store" }, f)
    end
    t.fails({ row[1], "store" }, ms.jit(function(a) return a + a end), x)
  end
end)

t.test("complex128: functions to the last digits of float64", function()
  local z = ops.complex(ms.tensor({ 0.3, -1.2, 2.0 }, ms.float64), ms.tensor({ 0.7, 0.1, -0.5 }, ms.float64))
  t.equal({ z.dtype, z.itemsize }, { ms.complex128, 16 })
  local function near(a, b, tolerance) t.near(ops.abs(a - b):max():item(), 0.0, tolerance or 4e-16) end
  near(ops.exp(ops.log(z)), z, 1e-15)
  near(ops.square(ops.sqrt(z)), z, 1e-15)
  near(ops.sin(z) * ops.sin(z) + ops.cos(z) * ops.cos(z), ops.ones_like(z), 4e-15)
  near(z / z, ops.ones_like(z))
  near(ops.conj(z) * z, (ops.real(z) * ops.real(z) + ops.imag(z) * ops.imag(z)):astype(ms.complex128))
  near(z ^ 3, z * z * z, 4e-15)
  near(both(function(a) return ops.tanh(a) * 2 end, z), ops.sinh(z) / ops.cosh(z) * 2, 2e-15)
  t.equal(tostring(z):match "complex128" or tostring(z.dtype), "Complex128")
  near(z:reshape({ 3, 1 }):broadcast_to({ 3, 2 }):t()[1], z)
  near(ops.matmul(z:reshape { 1, 3 }, z:reshape { 3, 1 }):reshape {}, (z * z):sum())
  near(ops.cumsum(z, 0)[2], z:sum())
  near(ops.gather(z, ms.tensor { 2, 0 }, 0), ops.stack({ z[2], z[0] }))
  near(ops.where(ms.tensor { true, false, true }, z, z * 0), ops.stack({ z[0], z[0] * 0, z[2] }))
  near(z:astype(ms.complex64):astype(ms.complex128), z, 2e-7)
  t.equal(z:tolist()[2], { -1.2, 0.1 })
  t.equal(z[1] == ops.complex(ms.tensor(-1.2, ms.float64), ms.tensor(0.1, ms.float64)), true)
  local values = ops.eig(ms.tensor({ { 0.0, -1.0 }, { 1.0, 0.0 } }, ms.float64))
  t.equal(values.dtype, ms.complex128)
  t.near(ops.abs(values):tolist()[1], 1.0, 1e-15)
end)

t.test("Fourier transforms of float64 are right to 1e-15", function()
  for _, n in ipairs { 2, 3, 8, 13, 60, 64, 97, 128, 210, 1009 } do
    local re, im = {}, {}
    for i = 1, n do
      re[i] = math.sin(i * i * 0.7) / n
      im[i] = math.cos(i * 1.3 + i * i) / n
    end
    local z = ops.complex(ms.tensor(re, ms.float64), ms.tensor(im, ms.float64))
    local got, half = ops.fft(z), ops.rfft(ms.tensor(re, ms.float64))
    t.equal({ got.dtype, half.dtype }, { ms.complex128, ms.complex128 })
    for _, k in ipairs { 0, 1, n // 2, n // 3, n - 1 } do
      local a, b, real = 0, 0, { 0, 0 }
      for i = 1, n do
        local angle = -2 * math.pi * (k * (i - 1) % n) / n
        local c, s = math.cos(angle), math.sin(angle)
        a, b = a + re[i] * c - im[i] * s, b + re[i] * s + im[i] * c
        real = { real[1] + re[i] * c, real[2] + re[i] * s }
      end
      local v = got[k]:item()
      t.near(math.max(math.abs(v[1] - a), math.abs(v[2] - b)), 0, 1e-15)
      if k <= n // 2 then
        v = half[k]:item()
        t.near(math.max(math.abs(v[1] - real[1]), math.abs(v[2] - real[2])), 0, 1e-15)
      end
    end
    t.near(ops.abs(ops.ifft(got) - z):max():item(), 0, 1e-15)
    t.near(ops.abs(ops.irfft(half, n) - ms.tensor(re, ms.float64)):max():item(), 0, 1e-15)
  end
  local x = ms.tensor({ 1.0, 2.0, 0.5, -1.0 }, ms.float64)
  t.near(ms.grad(function(a) return ops.square(ops.abs(ops.fft(a))):sum() end)(x), x * 8, 1e-14)
end)

t.test("gradients of complex128 programs are the slopes along a direction", function()
  local file <close> = assert(io.open "tests/data/complex_programs.json")
  local function complex(pairs)
    return ops.reshape(ops.view_as_complex(ms.tensor(pairs, ms.float64)), { 3, 3 })
  end
  local function along(g, d) return ops.real(ops.conj(g) * d):sum():item() end
  local checked = 0
  for i, case in ipairs(ms.json.decode(file:read "a")) do
    local f = assert(load("local ms, ops = ...\nreturn function(x, y, r)\n" .. case.program .. "\nend", "=program " .. i))(ms, ops)
    local x, y, r = complex(case.x), complex(case.y), ms.tensor(case.r, ms.float64)
    local value, grads = ms.value_and_grad(f, { 0, 1, 2 })(x, y, r)
    t.equal({ value.dtype, grads[1].dtype, grads[3].dtype }, { ms.float64, ms.complex128, ms.float64 })
    t.near(value:item(), case.value, 1e-3 * math.max(1, math.abs(case.value)))
    local dx, dy, dr = ops.cos(x) * 0.5, y * x, ops.sin(r)
    local slope = along(grads[1], dx) + along(grads[2], dy) + (grads[3] * dr):sum():item()
    local function at(h) return f(x + dx * h, y + dy * h, r + dr * h):item() end
    local h = 1e-3
    local difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
    -- Where a fifth derivative is large the differences themselves are not exact.
    local finer = (8 * (at(h / 4) - at(-h / 4)) - (at(h / 2) - at(-h / 2))) / (3 * h)
    local doubt = math.abs(finer - difference)
    if doubt <= 1e-6 * math.max(1, math.abs(finer)) then
      checked = checked + 1
      if not (math.abs(slope - finer) <= doubt + 1e-7 * math.max(1, math.abs(finer))) then
        error(("program %d: slope %.12g, difference %.12g\n%s"):format(i, slope, finer, case.program))
      end
    end
  end
  assert(checked >= 270, checked .. " programs were checked")
end)

t.test("pairs of integers of 4 bits are stored, moved and converted, and nothing is computed in them", function()
  local x = ms.tensor({ 0x21, -1, 127, -128, 0 }, ms.qint4x2)
  t.equal({ x.dtype, x.itemsize, tostring(x.dtype) }, { ms.qint4x2, 1, "QInt4x2" })
  t.equal(x:astype(ms.int8):tolist(), { 33, -1, 127, -128, 0 })
  t.equal(ms.tensor({ 255, 16 }, ms.uint8):astype(ms.qint4x2):astype(ms.int32):tolist(), { -1, 16 })
  t.equal(ops.concat({ x, x:reshape(5) })[{ ms.slice(4, 7) }]:astype(ms.int64):tolist(), { 0, 33, -1 })
  t.equal(both(function(a) return ops.cast(ops.flip(a, 0), ms.int32) + 1 end, x)[0]:item(), 1)
  assert(tostring(x):find("[  33,   -1,  127, -128,    0]", 1, true), tostring(x))
  for _, f in ipairs { function() return x + x end, function() return ops.exp(x) end, function() return ops.matmul(x, x) end } do
    t.fails({ "qint4x2", "nothing is computed" }, f)
  end
  t.fails({ "qint4x2" }, function() ms.save_checkpoint({ x = x }, os.tmpname() .. ".safetensors") end)
end)

t.test("files keep these dtypes", function()
  local tensors = {}
  for _, dtype in ipairs { "uint16", "uint32", "uint64", "complex128", "float8_e4m3fn", "float8_e5m2" } do
    tensors[dtype] = ms.tensor { 1.0, 2.0, 0.0, 3.0 }:astype(ms[dtype])
  end
  local base = os.tmpname()
  for _, kind in ipairs { ".safetensors", ".ckpt" } do
    ms.save_checkpoint(tensors, base .. kind)
    local back = ms.load_checkpoint(base .. kind)
    for dtype, x in pairs(tensors) do
      t.equal({ back[dtype].dtype, back[dtype]:astype(ms.float32):tolist() }, { ms[dtype], x:astype(ms.float32):tolist() })
    end
    os.remove(base .. kind)
  end
  os.remove(base)
end)

t.finish()
