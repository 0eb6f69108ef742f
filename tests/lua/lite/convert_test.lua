-- Conversion of networks to light models. Eager mode only: a conversion records the network itself.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local ops, nn = ms.ops, ms.nn

t.test("a network becomes a light model whose report tells steps, costs and lines", function()
  local net = nn.SequentialCell { nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3) }
  local path = os.tmpname()
  local made = ms.lite.convert(net, { inputs = { ops.zeros { 2, 4 } }, outputFile = path })
  local nodes = 0
  for _, step in ipairs(made.steps) do nodes = nodes + step.nodes end
  t.equal(nodes, 3)
  assert(made.weights >= 4 * (4 * 8 + 8 + 8 * 3 + 3))
  assert(made.text:find("MFLOP", 1, true) and made.arena > 0)
  local file <close> = io.open(path, "rb")
  t.equal(file:read(12), "lunaria lite")
  os.remove(path)
end)

t.test("what is not supported is an error", function()
  local net = nn.Dense(4, 8)
  local inputs = { ops.zeros { 2, 4 } }
  t.fails("optimize = none is not supported", ms.lite.convert, net, { inputs = inputs, optimize = "none" })
  t.fails("device is not supported", ms.lite.convert, net, { inputs = inputs, device = "Ascend" })
  t.fails("there is no option 'speed'", ms.lite.convert, net, { inputs = inputs, speed = 2 })
  t.fails("example inputs are missing", ms.lite.convert, net)
  t.fails("depends on the elements of its operands", ms.lite.convert,
    function(x) return ops.argwhere(x) end, { inputs = inputs })
  t.fails("decides by elements", ms.lite.convert, function(x)
    if x:sum():item() > 0 then return x end
    return x * 2
  end, { inputs = inputs })
end)

t.finish()
