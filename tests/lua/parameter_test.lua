-- Parameters: tensors with a name that keep their identity when they are written to.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

t.test("a parameter has name, requires_grad and the methods of tensors", function()
  local p = ms.Parameter(ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, { name = "fc.weight" })
  t.equal(p.name, "fc.weight")
  t.equal(p.requires_grad, true)
  t.equal(p.shape, { 2, 2 })
  t.equal(p:sum():item(), 10.0)
  t.equal(tostring(p), "Parameter (name=fc.weight, shape=(2, 2), dtype=Float32, requires_grad=true)")
  p.name, p.requires_grad = "w", false
  t.equal(tostring(p), "Parameter (name=w, shape=(2, 2), dtype=Float32, requires_grad=false)")
  t.equal(ms.Parameter(ms.tensor { 1.0 }, "bias", false).requires_grad, false)
  t.equal(ms.Parameter(ms.tensor { 1.0 }, "bias").name, "bias")
  t.equal(ms.Parameter({ 1.0, 2.0 }).name, "Parameter")
  t.equal(ms.Parameter(2.5):item(), 2.5)
end)

t.test("a parameter shares nothing with the tensor it was made of", function()
  local x = ms.tensor { 1.0, 2.0 }
  local p = ms.Parameter(x, { name = "p" })
  x[0] = 5
  t.equal(p:tolist(), { 1.0, 2.0 })
  p[1] = 7
  t.equal(x:tolist(), { 5.0, 2.0 })
end)

t.test("every write keeps the parameter a parameter", function()
  local p = ms.Parameter(ms.tensor { 1.0, 2.0 }, { name = "p" })
  local same = p
  local writes = {
    function() p:assign(ms.tensor { 3.0, 4.0 }) end,
    function() ms.ops.assign(p, ms.tensor { 4.0, 4.0 }) end,
    function() ms.ops.assign_add(p, 1) end,
    function() p:set_data(ms.tensor { 5.0, 6.0 }) end,
    function() p[0] = 1 end,
    function() p:add_(1) end,
    function() p:mul_(2) end,
    function() p:fill_(3) end,
    function() p:copy_(ms.tensor { 1.0, 1.0 }) end,
    function() p:zero_() end,
    function() p:uniform_() end,
    function() p:set_dtype(ms.float64) end,
  }
  local before = tostring(p:tolist())
  for i, write in ipairs(writes) do
    write()
    assert(ms.is_parameter(p) and p.name == "p", "write " .. i)
    t.equal(same:tolist(), p:tolist())
  end
  assert(before ~= nil and p.dtype == ms.float64)
end)

t.test("results of operators and copies are plain tensors", function()
  local p = ms.Parameter(ms.tensor { 1.0, 2.0 }, { name = "p" })
  for _, x in ipairs { p + 1, p:copy(), p:reshape(2), p:value(), p.data, p:astype("float32"), p["0:1"], ms.ops.relu(p) } do
    assert(not ms.is_parameter(x), tostring(x))
  end
  local kept = p:value()
  p:assign(ms.tensor { 9.0, 9.0 })
  t.equal(kept:tolist(), { 1.0, 2.0 })
  assert(ms.is_parameter(ms.ops.assign(p, 0)))
end)

t.test("a list of parameters is checked", function()
  local p, q = ms.Parameter({ 1.0 }, "p"), ms.Parameter({ 2.0 }, "q")
  local list = ms.ParameterTuple { p, q }
  t.equal(#list, 2)
  assert(rawequal(list[1], p) and rawequal(list[2], q))
  t.fails({ "ParameterTuple", "element 2", "a tensor of shape (1)" }, ms.ParameterTuple, { p, ms.tensor { 1.0 } })
  t.fails({ "ParameterTuple", "nothing" }, ms.ParameterTuple)
end)

t.test("what is wrong with a parameter is said", function()
  t.fails({ "Parameter", "missing" }, ms.Parameter)
  t.fails({ "Parameter", "nname", "did you mean 'name'?" }, ms.Parameter, ms.tensor { 1.0 }, { nname = "x" })
  t.fails({ "name must be a string", "3" }, ms.Parameter, ms.tensor { 1.0 }, 3)
  local p = ms.Parameter({ 1.0 }, "p")
  t.fails({ "requires_grad must be true or false" }, function() p.requires_grad = 1 end)
  t.fails({ "name must be a string" }, function() p.name = {} end)
  t.fails({ "the field 'colour'" }, function() p.colour = 1 end)
  t.fails({ "no field or method 'requires_grad'" }, function() return ms.tensor { 1.0 }.requires_grad end)
end)

t.finish()
