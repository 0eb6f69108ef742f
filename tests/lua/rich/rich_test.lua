-- The display of values in a notebook.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local rich = require "lunaria.rich"

local function html(value) return rich(value)["text/html"] end
local function count(text, pattern)
  local n = 0
  for _ in text:gmatch(pattern) do n = n + 1 end
  return n
end

t.test("a small matrix is shown whole", function()
  local text = html(ms.tensor { { 1, 2 }, { 3, 4.5 } })
  assert(text:find("shape (2, 2) · Float32", 1, true), text)
  t.equal({ count(text, "<tr>"), count(text, "<td>") }, { 2, 4 })
  assert(text:find("<td>4.5000</td>", 1, true), text)
end)

t.test("large tensors are cut and summarised", function()
  local text = html(ops.ones { 1000, 1000 } * 2)
  t.equal({ count(text, "<tr>"), count(text, "<td>") }, { 13, 169 })
  assert(text:find("min 2 · mean 2 · max 2", 1, true), text)
  text = html(ops.zeros { 50, 2, 2 })
  assert(text:find("[0]", 1, true) and text:find("[2]", 1, true) and text:find("… 47 more", 1, true), text)
end)

t.test("every kind of tensor has a table", function()
  for _, x in ipairs {
    ms.tensor(3), ms.tensor { 1, 2 }, ms.tensor { true, false }, ops.zeros { 0, 3 }, ms.tensor { 0 / 0, math.huge },
    ops.ones({ 2, 2 }, ms.float16), ops.ones({ 1, 1, 1, 2 }, ms.int8), ms.Parameter(ops.ones { 2 }, "w"),
    ops.ones({ 2 }, ms.complex64),
  } do
    assert(html(x):find("shape", 1, true))
  end
  assert(html(ms.Parameter(ops.ones { 2 }, "w")):find("Parameter w", 1, true))
end)

t.test("lists of records are tables", function()
  local text = html { { name = "a<b", loss = 0.25 }, { name = "c" } }
  assert(text:find("<th>loss</th>", 1, true) and text:find("a&lt;b", 1, true) and text:find("0.25", 1, true), text)
  for _, value in ipairs { { 1, 2 }, {}, { { 1 } }, { { a = {} } }, { a = { b = 1 } } } do
    t.equal(rich(value), nil)
  end
  t.equal(rich(3), nil)
end)

t.test("networks are summarised", function()
  local net = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU(), nn.SequentialCell(nn.Dense(3, 2)))
  local summary = ms.summary(net, ops.ones { 5, 4 })
  local text = tostring(summary)
  assert(text:find("23 parameters", 1, true) and text:find("(5, 2)", 1, true) and text:find("2.0", 1, true), text)
  assert(getmetatable(summary).__mime(summary)["text/html"]:find("(5, 3)", 1, true))
  t.equal(net(ops.ones { 5, 4 }).shape, { 5, 2 })
  t.equal(rawget(net, "construct"), nil)
  net:set_train()
  net[3]:set_train(false)
  ms.summary(net, ops.ones { 5, 4 })
  t.equal({ net.training, net[1].training, net[3].training, net[3][1].training }, { true, true, false, false })
  net:trainable_params()[1].requires_grad = false
  assert(tostring(ms.summary(net)):find("23 parameters, 11 of them trained", 1, true), tostring(ms.summary(net)))
  t.fails({ "dense" }, ms.summary, net, ops.ones { 5, 5 })
  t.equal(rawget(net, "construct"), nil)
  t.fails({ "summary", "a network" }, ms.summary, 3)
end)

t.test("a network itself is shown with its layers", function()
  local text = html(nn.SequentialCell(nn.Dense(4, 3), nn.ReLU()))
  assert(text:find("15 parameters", 1, true) and text:find("ReLU", 1, true), text)
  t.equal(rich(nn.Dense), nil)
end)

t.test("graphs print as text and are drawn", function()
  local g = ms.ir(function(x, y)
    if x > y then return ms.ops.tanh(x) end
    return x:exp() * y
  end)
  assert(tostring(g):find("^graph ") and g:find("mul", 1, true) and #g == #tostring(g))
  local svg = getmetatable(g).__mime(g)["image/svg+xml"]
  for _, word in ipairs { "<svg", ">tanh<", ">exp<", ">mul<", ">return<", ">x<" } do
    assert(svg:find(word, 1, true), word)
  end
  assert(not svg:find("nan", 1, true))
  assert(ms.ir(ms.grad(function(x) return x * x end)):svg():find("closure", 1, true))
end)

t.test("a graph too large to look at stays text", function()
  local lines = {}
  for i = 1, 400 do lines[i] = ("x = x + %d"):format(i) end
  local f = assert(load("return function(x) " .. table.concat(lines, "\n") .. " return x end"))()
  t.equal(ms.ir(f):svg(), nil)
end)

t.finish()
