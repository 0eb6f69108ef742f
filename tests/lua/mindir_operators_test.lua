-- Exported networks in MindSpore's operators: the file names its primitives, and gives the same bits here as what was exported.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local path = os.tmpname()
os.remove(path)
path = path .. ".mindir"
local function content()
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end
local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(part, 1, true), tostring(message))
end
local function same(a, b)
  t.equal({ tostring(b.dtype), tostring(b.shape) }, { tostring(a.dtype), tostring(a.shape) })
  assert(ops.logical_or(ops.equal(a, b), ops.not_equal(a, a)):all():item(), "the bits differ")
end
local function exported(f, form, ...)
  local given = { ... }
  given[#given + 1] = { file_name = path, form = form }
  ms.export(f, table.unpack(given))
  return content(), (ms.load(path))
end

t.test("every operator with a rule is written by MindSpore's name and comes back", function()
  local list = dofile "tests/lua/support/mindspore_operators.lua"
  assert(#list > 130)
  for _, case in ipairs(list) do
    for _, form in ipairs { "mindspore", "lunaria" } do
      local text, f = exported(case.f, form, table.unpack(case.inputs))
      assert((text:find("ops.", 1, true) ~= nil) == (form == "lunaria"), case.text)
      if form == "mindspore" then
        for primitive in case.primitives:gmatch "%S+" do assert(text:find(primitive, 1, true), case.text .. " has no " .. primitive) end
      end
      local expected, found = { case.f(table.unpack(case.inputs)) }, { f(table.unpack(case.inputs)) }
      t.equal(#found, #expected)
      for i, y in ipairs(expected) do same(y, found[i]) end
    end
  end
end)

t.test("what MindSpore does not have is told, or written in our own form", function()
  local x = ops.randn { 3, 4 }
  local function angles(v) return ops.digamma(v) + ops.relu(v) end
  fails("MindSpore has no operators for ops.digamma", exported, angles, "mindspore", x)
  local text, f = exported(angles, nil, x)
  assert(text:find("ops.digamma", 1, true))
  same(angles(x), f(x))
  fails("what depends on the elements", exported, function(v) if v:sum() > 0 then return v end return #v:tolist() * v end, "mindspore", x)
  fails("form must be 'mindspore' or 'lunaria', got 'onnx'", exported, angles, "onnx", x)
end)

t.test("branches and loops are written as graphs that MindSpore has, and come back", function()
  for _, case in ipairs(dofile "tests/lua/support/mindspore_programs.lua") do
    local text, f = exported(case.f, "mindspore", table.unpack(case.inputs[1]))
    assert(text:find("Switch", 1, true) and not text:find("ops.", 1, true), case.name)
    exported(f, "mindspore", table.unpack(case.inputs[1]))
    local again = ms.load(path)
    for _, inputs in ipairs(case.inputs) do
      local expected = { case.f(table.unpack(inputs)) }
      for _, g in ipairs { f, again, ms.jit(f) } do
        local found = { g(table.unpack(inputs)) }
        t.equal(#found, #expected)
        for i, y in ipairs(expected) do same(y, found[i]) end
      end
    end
  end
end)

t.test("values of other types in the ways of a branch are left in our own form", function()
  local x = ops.randn { 3, 4 }
  local function rows(v) if v:sum() > 0 then v = v["0:1"] end return v * 2 end
  fails("what depends on the elements", exported, rows, "mindspore", x)
  local text, f = exported(rows, nil, x)
  assert(not text:find("Switch", 1, true))
  same(rows(-x), f(-x))
  same(rows(x), f(x))
end)

t.test("programs for inputs of any size stay so; for MindSpore the sizes of the example are fixed", function()
  local function halves(v) return ops.reshape(v, { v.shape[1] * 2, -1 }) * 2 end
  local function by_text(v) return ops.reshape(v:at(":", 0), { v:sizes(0), 1 }) end
  local function by_slice(v) return ops.reshape(v[{ ms.slice(nil, nil), 0 }], { v:sizes(0), 1 }) end
  local x, longer = ops.randn { 3, 4 }, ops.randn { 5, 6 }
  for _, reshaped in ipairs { halves, by_text, by_slice } do
    local text, f = exported(reshaped, nil, x)
    assert(not text:find("REF::Reshape", 1, true))
    same(reshaped(longer), f(longer))
    text, f = exported(reshaped, "mindspore", x)
    assert(text:find("REF::Reshape", 1, true))
    same(reshaped(x), f(x))
  end
end)

t.test("what a nested rule stands for is only taken for it where the program has called it", function()
  local function by_hand(v) return v * (ops.erf(v / 1.4142135623730951) + 1.0) * 0.5, ops.maximum(v * 3, v) end
  local x = ops.randn { 50 }
  local _, f = exported(by_hand, "mindspore", x)
  local a, b = f(x)
  local c, d = by_hand(x)
  same(c, a)
  same(d, b)
end)

t.test("a function that calls a loaded network is exported with what that computes", function()
  local x = ops.randn { 3, 4 }
  local function branch(v) if v:sum() > 0 then return ops.sin(v) end return ops.cos(v) end
  for _, inner in ipairs { ops.sin, branch } do
    for _, form in ipairs { "mindspore", "lunaria" } do
      exported(inner, form, x)
      local loaded = ms.load(path)
      local function outer(v) return loaded(v) * 2 + v end
      local _, f = exported(outer, nil, x)
      same(outer(x * 3), f(x * 3))
      same(outer(-x), f(-x))
      same(ms.vmap(outer)(x), ops.stack { outer(x[0]), outer(x[1]), outer(x[2]) })
    end
  end
end)

t.test("weights, names and places are kept, and a derivative can be taken", function()
  local net = ms.nn.SequentialCell { ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3) }
  local x = ops.randn { 5, 4 }
  exported(net, "mindspore", x)
  local f, weights = ms.load(path)
  local names = {}
  for name in pairs(weights) do names[#names + 1] = name end
  table.sort(names)
  t.equal(names, { "0.bias", "0.weight", "2.bias", "2.weight" })
  same(ms.grad(function(v) return net(v):sum() end)(x), ms.grad(function(v) return f(v):sum() end)(x))
end)

os.remove(path)
t.finish()
