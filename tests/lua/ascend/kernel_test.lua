-- Tile programs on the simulated Ascend: what they compute, what they take, and what is found wrong with them.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, kernel = ms.ops, ms.ascend.kernel
local f16, f32 = ms.float16, ms.float32

local function half(...) return ms.randn({ ... }):astype(f16) end

local function add_program(p, x, y, z)
  local a, b, c = p:ub(f16, 1024), p:ub(f16, 1024), p:ub(f16, 1024)
  p:load(a, x)
  p:load(b, y)
  p:sync("MTE2", "V")
  p:vadd(c, a, b)
  p:sync("V", "MTE3")
  p:store(z, c)
end

t.test("a kernel gives numbers, cycles and the pipe that bounds it in one run", function()
  ms.set_seed(1)
  local x, y = half(1024), half(1024)
  local add = kernel("add", add_program)
  t.equal(add(x, y), x + y)
  local run = add:check(x, y)
  t.equal(#run.faults, 0)
  t.equal(run.cycles > 700 and run.cycles < 5000, true)
  t.equal(run.instructions.V, 3.0)
  t.equal(run:bound(), "MTE2")
  t.equal(tostring(run):find("bound by MTE2", 1, true) ~= nil, true)
  local events = ms.json.decode(run:timeline()).traceEvents
  local named, shown = {}, {}
  for _, e in ipairs(events) do
    if e.ph == "X" then shown[#shown + 1] = e elseif e.name == "thread_name" then named[e.tid] = e.args.name end
  end
  t.equal(#shown, 4)
  t.equal({ shown[3].name, named[shown[3].tid], named[shown[1].tid] }, { "vadd", "V", "MTE2" })
  t.equal(shown[3].args.place:match "kernel_test.lua:%d+$" ~= nil, true)
end)

t.test("pipes work beside each other: loads of the next part hide behind the arithmetic", function()
  local function program(slots)
    return function(p, x, y)
      local buffers, results = {}, {}
      for s = 0, slots - 1 do
        buffers[s], results[s] = p:ub(f16, 8192), p:ub(f16, 8192)
        p:set_flag("V", "MTE2", s)
        p:set_flag("MTE3", "V", s)
      end
      for i = 0, 15 do
        local s = i % slots
        p:wait_flag("V", "MTE2", s)
        p:load(buffers[s], x:at(i * 8192), { count = 8192 })
        p:sync("MTE2", "V", s)
        p:wait_flag("MTE3", "V", s)
        for _ = 1, 8 do p:vexp(results[s], buffers[s]) end
        p:set_flag("V", "MTE2", s)
        p:sync("V", "MTE3", s)
        p:store(y:at(i * 8192), results[s], { count = 8192 })
        p:set_flag("MTE3", "V", s)
      end
      for s = 0, slots - 1 do
        p:wait_flag("V", "MTE2", s)
        p:wait_flag("MTE3", "V", s)
      end
    end
  end
  local x = ops.zeros({ 16 * 8192 }, f16)
  local one, two = kernel("one", program(1)):check(x), kernel("two", program(2)):check(x)
  t.equal(#one.faults + #two.faults, 0)
  t.equal(two.cycles < 0.75 * one.cycles, true)
  t.equal(two.busy.V, one.busy.V)
end)

-- What a mix of instructions takes is what its busiest pipe takes, and the report names that pipe.
t.test("mixes of instructions are explained by the pipe that bounds them", function()
  local mixes = {
    V = function(p) local a = p:ub(f16, 8192) p:vdup(a, 1.0) for _ = 1, 200 do p:vexp(a, a) end end,
    MTE1 = function(p, x)
      local l1 = p:l1(f16, 32768)
      p:load(l1, x, { bursts = 16, burst = 2048, src_stride = 0 })
      p:sync("MTE2", "MTE1")
      for _ = 1, 60 do p:load2d(p:l0b(f16, 32768, 0), l1) end
    end,
    M = function(p, x)
      local a, b, c = p:l0a(f16, 4096), p:l0b(f16, 4096), p:l0c(f32, 4096)
      local l1 = p:l1(f16, 4096)
      p:load(l1, x, { bursts = 2, burst = 2048, src_stride = 0 })
      p:sync("MTE2", "MTE1")
      p:load2d(a, l1)
      p:load2d(b, l1)
      p:sync("MTE1", "M")
      for i = 1, 300 do p:mmad(c, a, b, 64, 64, 64, { init = i == 1 }) end
    end,
    MTE2 = function(p, x)
      local a = p:ub(f16, 32768)
      for _ = 1, 40 do p:load(a, x, { bursts = 16, burst = 2048, src_stride = 0 }) end
    end,
    MTE3 = function(p, x, y)
      local a = p:ub(f16, 2048)
      p:load(a, x)
      p:sync("MTE2", "MTE3")
      for _ = 1, 100 do p:store(y, a) end
    end,
    S = function(p) for _ = 1, 500 do p:scalar("add", 0, 0, 1.0) end end,
  }
  local main = { V = "200 vexp", MTE1 = "60 load2d", M = "300 mmad", MTE2 = "40 load", MTE3 = "100 store", S = "500 scalar_op" }
  for pipe, program in pairs(mixes) do
    local run = kernel("mix", program):check(half(2048))
    for _, f in ipairs(run.faults) do t.equal(f.kind, "unwritten") end
    t.equal({ pipe, run:bound() }, { pipe, pipe })
    local report = run:report()
    t.equal({ pipe, #report, report[1].pipe, report[1].instructions == run.instructions[pipe] }, { pipe, 6, pipe, true })
    t.equal({ pipe, report[1].mix:match "^%d+ [%w_]+" }, { pipe, main[pipe] })
    -- The scalar unit decodes nothing while it works itself.
    t.equal({ pipe, run.busy[pipe] > (pipe == "S" and 0.4 or 0.7) * (run.cycles - 1500) }, { pipe, true })
    t.equal(tostring(run):find("bound by " .. pipe, 1, true) ~= nil, true)
  end
end)

t.test("float16 saturates and says so, or keeps infinities", function()
  local function square(p, x, y)
    local a = p:ub(f16, 16)
    p:load(a, x)
    p:sync("MTE2", "V")
    p:vmul(a, a, a)
    p:sync("V", "MTE3")
    p:store(y, a)
  end
  local x = ms.tensor({ 1.0, 300.0, -300.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 }, f16)
  local run = kernel("square", square):check(x)
  t.equal(run.overflowed, true)
  t.equal(run.outputs[1][1]:item(), 65504.0)
  local free = kernel("square", { saturate = false }, square):check(x)
  t.equal(free.outputs[1][1]:item(), math.huge)
  t.equal(free.overflowed, true)
  t.equal(kernel("square", square):check(ops.ones({ 16 }, f16)).overflowed, false)
  local function difference(p, a, y)
    local u = p:ub(f16, 16)
    p:load(u, a)
    p:sync("MTE2", "V")
    p:vsub(u, u, u)
    p:sync("V", "MTE3")
    p:store(y, u)
  end
  local infinite = ops.full({ 16 }, math.huge, { dtype = f16 })
  t.equal(kernel("difference", difference)(infinite)[0]:item(), 0.0)
end)

-- A product of 32 x 64 by 64 x 16 with everything that such a program needs; `without` leaves one wait out.
local function product(without)
  return function(p, a, b, c)
    local function sync(from, to, id)
      if without ~= from .. to then p:sync(from, to, id) end
    end
    local l1a, l1b = p:l1(f16, 2048), p:l1(f16, 1024)
    local l0a, l0b, l0c, out = p:l0a(f16, 2048), p:l0b(f16, 1024), p:l0c(f32, 512), p:ub(f16, 512)
    p:load(l1a, a)
    p:load(l1b, b)
    sync("MTE2", "MTE1")
    for m = 0, 1 do p:load2d(l0a:at(m * 1024), l1a:at(m * 256), { count = 4, src_stride = 2 }) end
    p:load2d(l0b, l1b)
    sync("MTE1", "M")
    p:mmad(l0c, l0a, l0b, 32, 64, 16)
    sync("M", "V")
    p:drain(out, l0c)
    sync("V", "MTE3")
    p:store(c, out)
  end
end

local product_options = { outputs = function() return { shape = { 1, 32, 16 }, dtype = f16 } end }

t.test("the cube multiplies int8 and adds in int32, twice as many a cycle", function()
  ms.set_seed(7)
  local int8, int32 = ms.int8, ms.int32
  local function program(m, k, n)
    return ms.ascend.kernel("int8", { outputs = function() return { shape = { n // 16, m // 16, 16, 16 }, dtype = int32 } end },
      function(p, a, b, c)
        local l1a, l1b = p:l1(int8, m * k), p:l1(int8, k * n)
        local l0a, l0b, l0c, out = p:l0a(int8, m * k), p:l0b(int8, k * n), p:l0c(int32, m * n), p:ub(int32, m * n)
        p:load(l1a, a)
        p:load(l1b, b)
        p:sync("MTE2", "MTE1")
        p:load2d(l0a, l1a)
        p:load2d(l0b, l1b)
        p:sync("MTE1", "M")
        p:mmad(l0c, l0a, l0b, m, k, n)
        p:mmad(l0c, l0a, l0b, m, k, n, { init = false })
        p:sync("M", "V")
        p:drain(out, l0c)
        p:sync("V", "MTE3")
        p:store(c, out)
      end)
  end
  for _, s in ipairs { { 16, 32, 16 }, { 32, 96, 48 } } do
    local m, k, n = s[1], s[2], s[3]
    local a, b = ops.randint(-128, 128, { m, k }):astype(int8), ops.randint(-128, 128, { k, n }):astype(int8)
    -- Squares of 16 x 32 by rows of the left operand, and by columns of the right one.
    local left = ops.transpose(ops.reshape(a, { m // 16, 16, k // 32, 32 }), { 0, 2, 1, 3 }):contiguous()
    local right = ops.transpose(ops.reshape(b, { k // 32, 32, n // 16, 16 }), { 0, 2, 3, 1 }):contiguous()
    local run = program(m, k, n):check(left, right)
    t.equal(#run.faults, 0)
    local c = ops.reshape(ops.transpose(run.outputs[1], { 1, 2, 0, 3 }), { m, n })
    t.equal(c, (ops.matmul(a:astype(int32), b:astype(int32)) * 2):astype(int32))
    t.equal(run.busy.M, 2.0 * (m // 16) * (k // 32) * (n // 16))
  end
  t.fails({ "mmad multiplies float16 and adds in float32, or multiplies int8 and adds in int32" }, function()
    ms.ascend.kernel("mixed", function(p) p:mmad(p:l0c(int32, 256), p:l0a(int8, 512), p:l0b(f16, 256), 16, 32, 16) end):check(half(16))
  end)
end)

t.test("the cube multiplies float16 exactly and adds in float32", function()
  ms.set_seed(2)
  local a, b = half(32, 64), half(64, 16)
  local c = kernel("product", product_options, product())(ms.ascend.to_format(a, "FRACTAL_NZ"), ms.ascend.to_format(b, "FRACTAL_ZN"))
  local wanted = ops.matmul(a:astype(ms.float64), b:astype(ms.float64))
  t.near(ms.ascend.from_format(c, "FRACTAL_NZ", { 32, 16 }), wanted, 1e-3)
end)

t.test("formats go there and back", function()
  ms.set_seed(3)
  for format, shape in pairs { FRACTAL_NZ = { 20, 37 }, FRACTAL_ZN = { 20, 37 }, NC1HWC0 = { 2, 19, 5, 7 }, FRACTAL_Z = { 21, 18, 3,
    2 } } do
    local x = half(table.unpack(shape))
    local there = ms.ascend.to_format(x, format)
    t.equal(there.shape[#there.shape], 16)
    t.equal(ms.ascend.from_format(there, format, shape), x)
  end
end)

-- Seeded faults: { kind, program [, options [, inputs]] }.
local faults = {}
local function seed(kind, program, options, ...) faults[#faults + 1] = { kind, program, options or {}, { ... } } end

for _, pair in ipairs { "MTE2MTE1", "MTE1M", "MV", "VMTE3" } do
  seed("race", product(pair), product_options, half(4, 32, 16), half(4, 1, 16, 16))
end
-- Loops over the same buffers, in which one of four waits is missing.
for missing = 1, 4 do
  seed("race", function(p, x, y)
    local a, b = p:ub(f16, 128), p:ub(f16, 128)
    for i = 0, 3 do
      if i > 0 and missing ~= 1 then p:sync("V", "MTE2", 1) end
      p:load(a, x:at(i * 128), { count = 128 })
      if missing ~= 2 then p:sync("MTE2", "V", 0) end
      if i > 0 and missing ~= 3 then p:sync("MTE3", "V", 2) end
      p:vrelu(b, a)
      if missing ~= 4 then p:sync("V", "MTE3", 3) end
      p:store(y:at(i * 128), b, { count = 128 })
    end
  end, nil, half(512))
end
-- A flag between the wrong pipes orders nothing.
seed("race", function(p, x, y)
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "MTE3")
  p:vrelu(a, a)
  p:sync("V", "MTE3")
  p:store(y, a)
end)
-- A flag that is set too early.
seed("race", function(p, x, y)
  local a, b = p:ub(f16, 512), p:ub(f16, 512)
  p:load(a, x, { count = 512 })
  p:set_flag("MTE2", "V")
  p:load(b, x:at(512), { count = 512 })
  p:wait_flag("MTE2", "V")
  p:vadd(a, a, b)
  p:sync("V", "MTE3")
  p:store(y, a)
  p:store(y:at(512), a)
end)
seed("race", function(p, x, y) -- the barrier of another pipe
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:barrier "V"
  p:vrelu(a, a)
  p:barrier()
  p:store(y, a)
end)
seed("race", function(p, x, y) -- the scalar unit reads before the vector unit wrote
  local a = p:ub(f32, 1024)
  p:load(a:as(f16), x)
  p:sync("MTE2", "V")
  p:vdup(a, 2.0)
  p:scalar_load(0, a)
  p:vmuls(a, a, { register = 0 })
  p:sync("V", "MTE3")
  p:store(y, a:as(f16), { count = 1024 })
end)
seed("race", function(p, x, y) -- global memory, too
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "MTE3")
  p:store(y, a)
  p:load(a, y)
  p:sync("MTE2", "MTE3")
  p:store(y, a)
end)
seed("race", function(p, x, y) -- parts that overlap
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "V")
  p:vrelu(a, a)
  p:load(a:at(512), x, { count = 16 })
  p:sync("MTE2", "MTE3")
  p:sync("V", "MTE3")
  p:store(y, a)
end)

local function uses(f) -- a program that stores something, with a part of its own
  return function(p, x, y)
    local a = p:ub(f16, 1024)
    p:load(a, x)
    p:sync("MTE2", "V")
    f(p, a, x, y)
    p:sync("V", "MTE3")
    p:store(y, a)
  end
end

seed("overflow", uses(function(p, a) p:vrelu(a:at(1000), a, { count = 200000 }) end))
seed("overflow", uses(function(p, a) p:ub(f16, 200000) p:vrelu(a, a) end))
seed("overflow", uses(function(p) p:l1(f16, 600000) end))
seed("overflow", uses(function(p) p:l0a(f16, 40000) end))
seed("overflow", uses(function(p) p:l0b(f16, 40000) end))
seed("overflow", uses(function(p) p:l0c(f32, 70000) end))
seed("overflow", uses(function(p, a, x) p:load(p:ub(f16, 2048), x, { count = 1040 }) p:sync("MTE2", "V", 2) end))
seed("overflow", uses(function(p, a, x) p:load(p:ub(f16, 64), x:at(-16), { count = 64 }) p:sync("MTE2", "V", 2) end))
seed("overflow", uses(function(p, a, _, y) p:sync("V", "MTE3", 4) p:store(y:at(1024), a, { count = 16 }) end))
seed("overflow", uses(function(p, a) p:vrelu(a, a, { repeats = 2, lanes = 128, a_stride = 200000 }) end))
seed("overflow", uses(function(p) p:load2d(p:l0a(f16, 256):at(32768), p:l1(f16, 256), { count = 1 }) end))

seed("misaligned", uses(function(p, a) p:vrelu(a, a:at(8), { count = 128 }) end))
seed("misaligned", uses(function(p, a) p:vrelu(a:at(1), a, { count = 128 }) end))
seed("misaligned", uses(function(p, _, x) p:load(p:ub(f16, 64), x, { count = 10 }) p:sync("MTE2", "V", 2) end))
seed("misaligned", uses(function(p, _, x) p:load(p:ub(f16, 64):at(4), x, { count = 16 }) p:sync("MTE2", "V", 2) end))
seed("misaligned", uses(function(p, a, x) p:load(p:l1(f16, 256), x, { count = 256 }) p:sync("MTE2", "MTE1") p:load2d(p:l0a(f16,
  512):at(16), p:l1(f16, 256, 0)) end))
seed("misaligned", uses(function(p, _, x) p:load(p:ub(f16, 512), x, { bursts = 4, burst = 16, dst_stride = 20 }) p:sync("MTE2", "V", 2)
  end))
seed("misaligned", uses(function(p, a) p:vadd(a, a, a:at(24), { count = 64 }) end))

seed("uninitialised", uses(function(p, a) p:vadd(a, a, p:ub(f16, 1024)) end))
seed("uninitialised", uses(function(p, a) local b = p:ub(f16, 1024) p:vrelu(b, a, { count = 1000 }) p:vrelu(a, b) end))
seed("uninitialised", uses(function(p) p:load2d(p:l0a(f16, 256), p:l1(f16, 256)) end))
seed("uninitialised", uses(function(p) p:mmad(p:l0c(f32, 256), p:l0a(f16, 256), p:l0b(f16, 256), 16, 16, 16) end))
seed("uninitialised", uses(function(p) p:drain(p:ub(f16, 256), p:l0c(f32, 256)) end))
seed("uninitialised", uses(function(p, _, _, y) p:load(p:ub(f16, 64), y, { count = 64 }) p:sync("MTE2", "MTE3", 2) end))
seed("uninitialised", uses(function(p, a) p:vsel(a, p:ub(ms.uint8, 128), a, a) end))
seed("uninitialised", uses(function(p, a) p:vaxpy(p:ub(f16, 1024), a, 2.0) end))
seed("uninitialised", uses(function(p) p:scalar_load(0, p:ub(f32, 8)) end))
seed("uninitialised", function(p, a, b, c) -- adds to a result that nothing began
  local l1a, l1b = p:l1(f16, 256), p:l1(f16, 256)
  local l0a, l0b, l0c, out = p:l0a(f16, 256), p:l0b(f16, 256), p:l0c(f32, 256), p:ub(f16, 256)
  p:load(l1a, a, { count = 256 })
  p:load(l1b, b, { count = 256 })
  p:sync("MTE2", "MTE1")
  p:load2d(l0a, l1a)
  p:load2d(l0b, l1b)
  p:sync("MTE1", "M")
  p:mmad(l0c, l0a, l0b, 16, 16, 16, { init = false })
  p:sync("M", "V")
  p:drain(out, l0c)
  p:sync("V", "MTE3")
  p:store(c, out, { count = 256 })
end, nil, half(1024), half(1024))

seed("flag", uses(function(p) p:set_flag("V", "MTE2", 1) p:set_flag("V", "MTE2", 1) p:wait_flag("V", "MTE2", 1) p:wait_flag("V",
  "MTE2", 1) end))
seed("flag", uses(function(p) p:set_flag("V", "MTE2", 1) end))
seed("deadlock", uses(function(p) p:wait_flag("MTE2", "V", 5) end))
seed("deadlock", uses(function(p, a) p:wait_flag("MTE2", "V", 5) p:barrier() p:vrelu(a, a) end))
seed("deadlock", uses(function(p) p:wait_flag("V", "S", 0) p:set_flag("V", "S", 0) end))
seed("deadlock", uses(function(p, a) p:wait_flag("MTE3", "V", 0) for _ = 1, 60 do p:vrelu(a, a) end p:set_flag("MTE3", "V", 0) end))

seed("illegal", uses(function(p, a) p:vdiv(a, a, a) end))
seed("illegal", uses(function(p, a) p:vsqrt(a, a) end))
seed("illegal", uses(function(p, a) p:vrelu(a, a, { repeats = 1, lanes = 129 }) end))
seed("illegal", uses(function(p, a) p:vrelu(a, a, { repeats = 300, lanes = 16, dst_stride = 0, a_stride = 0 }) end))
seed("illegal", uses(function(p) p:load2d(p:l0a(f16, 256), p:l1(f16, 256), { count = 0 }) end))
seed("unwritten", function(p, x, y)
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "MTE3")
  p:store(y, a, { count = 512 })
end)
local function all_blocks(p, x, y)
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "MTE3")
  p:store(y, a)
end
seed("cores", all_blocks, { blocks = 2 })
seed("cores", function(p, x, y) -- parts that are not multiples of 32 bytes
  local a = p:ub(f16, 1024)
  p:load(a, x)
  p:sync("MTE2", "MTE3")
  p:store(y:at(p.block * 504), a, { count = 512 })
end, { blocks = 2 })

-- Addresses that the scalar unit reads.
local function by_number(without)
  return function(p, x, index, y)
    local function sync(from, to, id)
      if without ~= from .. to then p:sync(from, to, id) end
    end
    local list, row = p:ub(ms.int32, 8), p:ub(f16, 16)
    p:load(list, index)
    sync("MTE2", "S", 0)
    p:scalar_load(0, list:at(2))
    sync("MTE3", "MTE2", 1)
    p:load(row, x, { count = 16, register = 0, stride = 16 })
    sync("MTE2", "MTE3", 2)
    p:store(y, row)
    p:store(y:at(16), row, { register = 0, stride = 8 })
    p:load(list, index) -- the scalar unit hands out instructions when it is done with those before
    p:barrier()
  end
end
local by_number_options = { outputs = function() return { shape = { 64 }, dtype = f16 } end }
local numbers_of_rows = ms.tensor({ 0, 0, 4, 0, 0, 0, 0, 0 }, ms.int32)
for _, pair in ipairs { "MTE2S", "MTE2MTE3" } do
  seed("race", by_number(pair), by_number_options, half(8, 16), numbers_of_rows)
end
seed("overflow", by_number(), by_number_options, half(4, 16), numbers_of_rows)
seed("overflow", by_number(), by_number_options, half(8, 16), numbers_of_rows - 9)
seed("illegal", uses(function(p, _, x) -- a window that is larger than the picture
  local image = p:l1(f16, 256)
  p:load(image, x, { count = 256 })
  p:sync("MTE2", "MTE1")
  p:load3d(p:l0a(f16, 256), image, { height = 4, width = 4, channels = 1, kernel = { 5, 1 }, rows = 1, steps = 1 })
end))
seed("illegal", uses(function(p, _, x)
  local image = p:l1(f16, 256)
  p:load(image, x, { count = 256 })
  p:sync("MTE2", "MTE1")
  p:load3d(p:l0a(f16, 256), image, { height = 0, width = 4, channels = 1, kernel = { 1, 1 }, rows = 1, steps = 1 })
end))

t.test("addresses of moves may come from scalar registers", function()
  local x = half(8, 16)
  local run = kernel("rows", by_number_options, by_number()):check(x, numbers_of_rows)
  local kinds = {}
  for _, f in ipairs(run.faults) do kinds[#kinds + 1] = f.kind end
  t.equal(kinds, { "unwritten" }) -- 32 of 64 elements
  t.equal(run.outputs[1][{ ms.slice(0, 16) }], x[4])
  t.equal(run.outputs[1][{ ms.slice(48, 64) }], x[4])
end)

t.test("every seeded fault is found, with the kernel, the instruction and the line", function()
  t.equal(#faults >= 40, true)
  for i, row in ipairs(faults) do
    local inputs = #row[4] > 0 and row[4] or { half(1024) }
    local run = kernel("seeded " .. i, row[3], row[2]):check(table.unpack(inputs))
    local found, kinds = nil, {}
    for _, f in ipairs(run.faults) do
      kinds[#kinds + 1] = f.kind
      if f.kind == row[1] then found = found or f end
    end
    if not found then error(("fault %d: %s was not found, but %s"):format(i, row[1], table.concat(kinds, ", "))) end
    if found.kind ~= "unwritten" and found.text:find "bytes are taken" == nil and not found.place:match "kernel_test.lua:%d+$" then
      error(("fault %d has no line: '%s'"):format(i, found.place))
    end
  end
end)

t.test("a call of a faulty kernel is an error with the line", function()
  local bad = kernel("bad", function(p, x, y)
    local a = p:ub(f16, 1024)
    p:load(a, x)
    p:vrelu(a, a)
    p:sync("V", "MTE3")
    p:store(y, a)
  end)
  t.fails({ "race in kernel bad, block 0, instruction 1: vrelu: reads bytes 0 to 2048 of UB that MTE2 writes" }, bad, half(1024))
end)

t.test("buffers know what they are and what is noted of them", function()
  kernel("buffers", function(p, x, y)
    local a = p:ub(f16, 100)
    t.equal({ a.count, a.dtype, a.width, a.address, a.space, a.shape }, { 100, "float16", 2, 0, "UB", nil })
    t.equal(tostring(p:ub(f32, 8)), "float32[8] of UB at byte 224")
    local part = a:at(32)
    t.equal({ part.count, part.address, a:at(32, 4).count, part:as(f32).count, part:as(f32).dtype }, { 68, 64, 4, 34, "float32" })
    t.equal({ x.shape, x.space, x:at(8).shape, y.shape }, { { 4, 16 }, "GM", { 4, 16 }, { 4, 16 } })
    x.note = "mine"
    a.note = "too"
    t.equal({ x.note, x:at(1).note, a.note, y.note }, { "mine", "mine", "too", nil })
    t.fails({ "buffers hold float16, float32, int32", "not float64" }, function() a:as(ms.float64) end)
    t.equal(pcall(setmetatable, a, {}), false)
  end):check(half(4, 16))
end)

t.test("what is no buffer, or lies elsewhere, is told by instruction and operand", function()
  local function wrong(parts, f)
    table.insert(parts, 1, "ascend.kernel")
    t.fails(parts, function() kernel("wrong", f):check(half(16)) end)
  end
  wrong({ "dst of vrelu must be a buffer or a tensor of the kernel, got nil" }, function(p) p:vrelu() end)
  wrong({ "b of vadd must be a buffer", "got nil" }, function(p) local a = p:ub(f16, 16) p:vadd(a, a) end)
  wrong({ "a of vrelu must be a buffer", "got number" }, function(p) p:vrelu(p:ub(f16, 16), 3) end)
  wrong({ "the source of load must be a buffer", "got table" }, function(p) p:load(p:ub(f16, 16), {}) end)
  wrong({ "a of mmad must be a buffer" }, function(p) p:mmad(p:l0c(f32, 256), 1, p:l0b(f16, 256), 16, 16, 16) end)
  wrong({ "operand 2 of vadd must be in UB" }, function(p, x) local a = p:ub(f16, 16) p:vadd(a, x, a) end)
  wrong({ "load moves from a tensor of the kernel to a buffer" }, function(p) local a = p:ub(f16, 16) p:load(a, a) end)
  wrong({ "store moves from UB to a tensor" }, function(p, x) p:store(x, x) end)
  wrong({ "copy has no way from UB to L0A" }, function(p) p:copy(p:l0a(f16, 256), p:ub(f16, 256)) end)
  wrong({ "load2d moves from L1 to L0A or L0B" }, function(p) p:load2d(p:ub(f16, 256), p:l1(f16, 256)) end)
  wrong({ "mmad needs c in L0C" }, function(p) p:mmad(p:ub(f32, 256), p:l0a(f16, 256), p:l0b(f16, 256), 16, 16, 16) end)
  wrong({ "a stride of 8 bytes is no multiple of 32" }, function(p)
    local a = p:ub(f16, 64)
    p:vrelu(a, a, { repeats = 2, lanes = 4 })
  end)
  wrong({ "vmuls: a number or { register = n } is expected, got" }, function(p) local a = p:ub(f16, 64) p:vmuls(a, a, "x") end)
  wrong({ "flags have numbers from 0 to 15, got", "16" }, function(p) p:sync("V", "MTE3", 16) end)
  wrong({ "dst of load2d must be a buffer", "got nil" }, function(p) p:load2d() end)
  wrong({ "a of drain must be a buffer" }, function(p) p:drain(p:ub(f16, 256)) end)
  wrong({ "load3d takes a table with height", "there is no height" }, function(p) p:load3d(p:l0a(f16, 256), p:l1(f16, 256)) end)
  wrong({ "there is no channels" }, function(p) p:load3d(p:l0a(f16, 256), p:l1(f16, 256), { height = 4, width = 4 }) end)
  wrong({ "a of scalar_load must be a buffer" }, function(p) p:scalar_load(0) end)
  wrong({ "c, a and b of mmad", "must be a buffer" }, function(p) p:mmad() end)
  wrong({ "an integer is expected, got 2.5" }, function(p, x) p:load(p:ub(f16, 64), x, { count = 2.5 }) end)
  wrong({ "an integer is expected, got nothing" }, function(_, x) x:at() end)
  wrong({ "a move has at most 65535 bursts, got 1000000" }, function(p, x) p:load(p:ub(f16, 64), x, { bursts = 1000000 }) end)
  wrong({ "copy takes no register" }, function(p) local a = p:ub(f16, 16) p:copy(a, a, { register = 0 }) end)
  wrong({ "a number from 0 to 31 is expected, got 40" }, function(p, x) p:load(p:ub(f16, 16), x, { register = 40 }) end)
  wrong({ "an integer is expected, got many" }, function(p, x) p:load(p:ub(f16, 16), x, { count = "many" }) end)
  wrong({ "a number from -1 to 31 is expected, got 32" }, function(p) p:scalar_load(32, p:ub(f32, 8)) end)
  wrong({ "scalar knows add, sub", "not nil" }, function(p) p:scalar() end)
end)

t.test("an instruction of many repeats is as many instructions of one, also where they touch each other", function()
  ms.set_seed(11)
  local x = half(4096)
  for seed_number = 1, 300 do
    math.randomseed(seed_number)
    local name = ({ "vadd", "vmax", "vmla", "vrelu", "vadds", "vaxpy", "vdup", "vconv" })[seed_number % 8 + 1]
    local lanes, repeats = ({ 16, 64, 128, 48 })[math.random(4)], math.random(2, 20)
    if name == "vconv" then lanes = math.min(lanes, 64) end
    local function place() return { at = math.random(0, 16) * 16, stride = ({ lanes, lanes, lanes, 0, 16, 128, 144 })[math.random(7)] } end
    local d, a, b = place(), place(), place()
    if math.random(3) == 1 then d = a end
    -- Both programs work on the same 4,096 elements; a program that converts writes float32 behind them.
    local function program(split)
      return kernel("repeats", function(p, input, output)
        local all = p:ub(f16, 4096)
        p:load(all, input)
        p:sync("MTE2", "V")
        local function step(r, o)
          local to, from, second = all:at(d.at + r * d.stride), all:at(a.at + r * a.stride), all:at(b.at + r * b.stride)
          if name == "vconv" then to = all:as(f32):at(d.at // 2 + r * d.stride) end
          if name == "vadd" or name == "vmax" or name == "vmla" then return p[name](p, to, from, second, o) end
          if name == "vrelu" or name == "vconv" then return p[name](p, to, from, o) end
          if name == "vdup" then return p:vdup(to, 2.0, o) end
          return p[name](p, to, from, 0.5, o)
        end
        if split then
          for r = 0, repeats - 1 do step(r, { repeats = 1, lanes = lanes }) end
        else
          step(0, { repeats = repeats, lanes = lanes, dst_stride = d.stride, a_stride = name == "vdup" and d.stride or a.stride,
            b_stride = b.stride })
        end
        p:sync("V", "MTE3")
        p:store(output, all)
      end)
    end
    local one, many = program(false):check(x), program(true):check(x)
    t.equal({ seed_number, #one.faults, #many.faults }, { seed_number, 0, 0 })
    if not ms.ops.all(ms.ops.equal(one.outputs[1], many.outputs[1])):item() then
      local both_nan = ms.ops.logical_and(ms.ops.isnan(one.outputs[1]), ms.ops.isnan(many.outputs[1]))
      local same = ms.ops.logical_or(ms.ops.equal(one.outputs[1], many.outputs[1]), both_nan)
      t.equal({ seed_number, name, ms.ops.all(same):item() }, { seed_number, name, true })
    end
  end
end)

t.test("wrong arguments are told", function()
  t.fails({ "ascend.kernel", "name must be a string" }, kernel, 1)
  t.fails({ "a function that writes the program is expected" }, kernel, "k", {})
  t.fails({ "there is no option 'block'" }, kernel, "k", { block = 1 }, all_blocks)
  for _, count in ipairs { 1e9, 0, 70000, "x" } do
    local k = kernel("k", { blocks = function() return count end }, all_blocks)
    t.fails({ "blocks must give an integer from 1 to 65535, got" }, k, half(16))
  end
  t.fails({ "outputs must give { shape =, dtype = }" }, kernel("k", { outputs = function() return 3 end }, all_blocks), half(16))
  t.fails({ "ascend.kernel: without options.outputs the result is like the first input" }, kernel("k", function() end))
  t.fails({ "there is no 'x910'; there are: 310, 910, 910B" }, kernel, "k", { chip = "x910" }, all_blocks)
  t.fails({ "there is no parameter 'cors'", "cores" }, kernel, "k", { chip = { cors = 3 } }, all_blocks)
  t.fails({ "argument 1 must be a tensor" }, kernel("k", all_blocks), 3)
  t.fails({ "there is no pipe 'X'" }, kernel("k", function(p) p:sync("X", "V") end), half(16))
  t.fails({ "kernels work on float16" }, kernel("k", all_blocks), ops.zeros({ 4 }, ms.float64))
  t.fails({ "there is no format 'ND'" }, ms.ascend.to_format, half(2, 2), "ND")
end)

t.finish()
