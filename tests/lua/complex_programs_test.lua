-- 300 random programs on complex numbers: losses and gradients as jax gives them (tests/conformance/reference/complex_programs.py),
-- in the convention that a cotangent is dL/dx + i dL/dy.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local file <close> = assert(io.open "tests/data/complex_programs.json")
local cases = ms.json.decode(file:read "a")

local function complex(pairs) return ops.reshape(ops.view_as_complex(ms.tensor(pairs)), { 3, 3 }) end

local function worst(got, wanted)
  local scale = math.max(1, ops.abs(wanted):max():item())
  return ops.abs(got - wanted):max():item() / scale
end

t.test("losses and gradients of 300 programs are jax's, as near as the digits of complex64 allow", function()
  t.equal(#cases, 300)
  for i, case in ipairs(cases) do
    local make = assert(load("local ms, ops = ...\nreturn function(x, y, r)\n" .. case.program .. "\nend", "=program " .. i))
    local x, y, r = complex(case.x), complex(case.y), ms.tensor(case.r)
    local value, grads = ms.value_and_grad(make(ms, ops), { 0, 1, 2 })(x, y, r)
    local apart = math.max(worst(value, ms.tensor(case.value)), worst(grads[1], complex(case.dx)),
      worst(grads[2], complex(case.dy)), worst(grads[3], ms.tensor(case.dr)))
    if not (apart <= 1e-3) then error(("program %d differs by %g:\n%s"):format(i, apart, case.program)) end
    t.equal({ grads[1].dtype, grads[3].dtype }, { ms.complex64, ms.float32 })
  end
end)

t.test("numbers of Lua beside complex ones, questions, elements", function()
  local z = ops.complex(ms.tensor { 3.0, 0.0, -1.0 }, ms.tensor { 4.0, 0.0, 0.0 })
  t.equal(ops.abs(z):tolist(), { 5.0, 0.0, 1.0 })
  t.equal(ops.abs(z).dtype, ms.float32)
  t.equal((z * 2 + 1):tolist(), { { 7.0, 8.0 }, { 1.0, 0.0 }, { -1.0, 0.0 } })
  t.near(ops.view_as_real(1 / z[0]), ms.tensor { 0.12, -0.16 }, 1e-7)
  t.equal(ops.equal(z, z * 1):tolist(), { true, true, true })
  t.equal(ops.isnan(z / 0):tolist(), { true, true, true })
  t.equal(z:sqrt()[2]:item(), { 0.0, 1.0 })
  t.fails({ "less", "complex" }, ops.less, z, z)
  t.fails({ "amax", "complex" }, ops.amax, z)
end)

-- Where |z| has no derivative its gradient is 0; the slope of a holomorphic function is conjugated.
t.test("gradients at single points", function()
  local z = ops.complex(ms.tensor { 0.0, 3.0 }, ms.tensor { 0.0, 4.0 })
  t.near(ops.view_as_real(ms.grad(function(a) return ops.abs(a):sum() end)(z)), ms.tensor { { 0.0, 0.0 }, { 0.6, 0.8 } }, 1e-6)
  t.near(ops.view_as_real(ms.grad(function(a) return ops.real(a * a):sum() end)(z)), ms.tensor { { 0.0, 0.0 }, { 6.0, -8.0 } }, 1e-5)
  -- Of a real operand the real part.
  t.near(ms.grad(function(r) return ops.imag(z * r):sum() end)(ms.tensor(2.0)), ms.tensor(4.0), 1e-6)
  local twice = ms.grad(function(a) return ops.square(ops.abs(ms.grad(function(b) return ops.abs(b):sum() end)(a))):sum() end)
  t.near(ops.abs(twice(z[{ ms.slice(1, 2) }])), ms.tensor { 0.0 }, 1e-6)
end)

t.finish()
