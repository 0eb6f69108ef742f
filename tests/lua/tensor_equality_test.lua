-- The operator == between tensors compares the value of single elements; rawequal asks for identity. The same in every mode.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, tensor = ms.ops, ms.tensor

local function complex(a, b) return ops.view_as_complex(tensor { a, b }) end

local function both(f)
  return { f, ms.jit(f) }
end

t.test("tensors of one element compare by value", function()
  for _, equal in ipairs(both(function(a, b) return a == b, a ~= b end)) do
    for _ = 1, 4 do
      t.equal({ equal(tensor(1.0), tensor(1.0)) }, { true, false })
      t.equal({ equal(tensor(1.0), tensor(2.0)) }, { false, true })
      t.equal({ equal(tensor(1), tensor(1.0)) }, { true, false })
      t.equal({ equal(tensor(true), tensor(1)) }, { true, false })
      t.equal({ equal(tensor { 3.0 }, tensor { { 3.0 } }) }, { true, false })
      t.equal({ equal(tensor(1 << 53), tensor((1 << 53) + 1)) }, { false, true })
      t.equal({ equal(tensor(0 / 0), tensor(0 / 0)) }, { false, true })
      t.equal({ equal(complex(1.0, 2.0), complex(1.0, 2.0)) }, { true, false })
      t.equal({ equal(complex(1.0, 2.0), tensor(1.0)) }, { false, true })
      t.equal({ equal(ms.Parameter(tensor(2.0), "w"), tensor(2.0)) }, { true, false })
    end
  end
end)

t.test("larger ones are an error that names ops.equal", function()
  for _, equal in ipairs(both(function(a, b) return a == b end)) do
    for _ = 1, 3 do
      t.fails({ "==: is a yes-or-no question, and this tensor has shape (2", "ops.equal(a, b)", "rawequal" },
        equal, ms.ones { 2 }, ms.ones { 2 })
      t.fails("shape (2, 3)", equal, tensor(1.0), ms.ones { 2, 3 })
      t.fails("shape (0", equal, tensor(1.0), ms.ones { 0 })
    end
  end
end)

t.test("the same tensor is equal to itself, whatever its size", function()
  for _, equal in ipairs(both(function(a) return a == a, a ~= a end)) do
    for _ = 1, 3 do
      t.equal({ equal(ms.ones { 2, 3 }) }, { true, false })
      t.equal({ equal(tensor(0 / 0)) }, { true, false })
    end
  end
end)

t.test("anything that is no tensor is never equal to one", function()
  for _, equal in ipairs(both(function(a, b) return a == b, b == a end)) do
    for _, other in ipairs { 1.0, 1, "1", true, { 1.0 }, ms.float32, io.stdout, print } do
      t.equal({ equal(tensor(1.0), other) }, { false, false })
      t.equal({ equal(ms.ones { 2 }, other) }, { false, false })
    end
    t.equal({ equal(tensor(1.0), nil) }, { false, false })
  end
end)

t.test("rawequal asks for identity", function()
  for _, same in ipairs(both(function(a, b) return rawequal(a, b) end)) do
    local x = ms.ones { 2 }
    t.equal(same(x, x), true)
    t.equal(same(tensor(1.0), tensor(1.0)), false)
  end
end)

t.test("a compiled branch follows the values of later calls", function()
  local f = ms.jit(function(a, b)
    if a == b then return a * 10 end
    return a - b
  end)
  for i = 1, 20 do
    local a, b = tensor(i % 3 + 0.0), tensor(i % 2 + 0.0)
    t.equal(f(a, b):item(), i % 3 == i % 2 and i % 3 * 10.0 or i % 3 - i % 2 + 0.0)
  end
  local x = tensor(2.0)
  t.equal(f(x, x):item(), 20.0)
  t.equal(f(x, tensor(3.0)):item(), -1.0)
  t.equal(f(x, tensor(2.0)):item(), 20.0)
end)

t.test("a derivative is one of the branch that is taken", function()
  local function f(x, y)
    if x * 2 == y then return x * x * x end
    return x
  end
  local second = ms.grad(ms.grad(f))
  for _, g in ipairs(both(ms.grad(f))) do
    for _ = 1, 3 do
      t.equal(g(tensor(2.0), tensor(4.0)):item(), 12.0)
      t.equal(g(tensor(2.0), tensor(5.0)):item(), 1.0)
    end
  end
  t.equal(second(tensor(2.0), tensor(4.0)):item(), 12.0)
end)

t.test("within vmap samples are compared one by one", function()
  local function f(a, b)
    if a == b then return a * 100 end
    return b
  end
  for _, g in ipairs(both(ms.vmap(f))) do
    t.equal(g(tensor { 1.0, 2.0, 3.0 }, tensor { 1.0, 5.0, 3.0 }):tolist(), { 100.0, 5.0, 300.0 })
  end
end)

t.test("a saved program compares the values that it is given", function()
  local file = os.tmpname()
  os.remove(file)
  ms.export(function(a, b)
    if a == b then return a * 10 end
    return b
  end, tensor(1.0), tensor(2.0), { file_name = file })
  local f = ms.load(file .. ".mindir")
  t.equal(f(tensor(1.0), tensor(2.0)):item(), 2.0)
  t.equal(f(tensor(2.0), tensor(2.0)):item(), 20.0)
  os.remove(file .. ".mindir")
end)

t.test("the harness tells tensors apart that differ in dtype, shape or an element", function()
  local x = tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }
  for _, same in ipairs { t.equal, t.near } do
    same(x, x * 1)
    same(tensor { 0 / 0 }, tensor { 0 / 0 })
    for _, other in ipairs { x * 2, x:t(), x:reshape(4), tensor { { 1.0, 2.0 }, { 3.0, 4.5 } } } do
      assert(not pcall(same, x, other) and not pcall(same, other, x))
    end
  end
  t.equal(tensor { 0.0 }, tensor { -0.0 })
  assert(not pcall(t.equal, x, x:astype(ms.float64)))
end)

t.finish()
