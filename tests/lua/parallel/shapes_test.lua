-- Networks without elements: made, counted, planned and estimated at any size; computing with them is an error. Below a second.
-- Eager mode only: what has no elements is not computed with, so that nothing is compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function elements(net)
  local n = 0
  for _, p in ipairs(net:get_parameters()) do
    local count = 1
    for axis = 1, #p.shape do count = count * p.shape[axis] end
    n = n + count
  end
  return n
end

-- 80 GB of float32, more than any machine that tests run on may use.
local function large() return nn.SequentialCell(nn.Dense(100000, 100000), nn.ReLU(), nn.Dense(100000, 100000, { has_bias = false })) end

t.test("a network that is larger than memory is made, counted and printed", function()
  local net = ms.no_init_parameters(large)
  t.equal(elements(net), 2 * 10000000000 + 100000)
  t.equal(#net:trainable_params(), 3)
  t.equal(net[1].weight.device, "Shapes")
  t.equal(net[1].weight.name, "0.weight")
  t.equal(tostring(net):find("Dense", 1, true) ~= nil, true)
end)

t.test("arguments go on, results come back, and new tensors are as before", function()
  local net, width = ms.no_init_parameters(function(w) return nn.Dense(w, 1), w end, 5)
  t.equal(width, 5)
  t.equal(net.weight.shape[2], 5)
  t.equal(ops.ones({ 2 }).device, "CPU")
  t.fails({ "stop here" }, ms.no_init_parameters, function() error "stop here" end)
  t.equal(ops.ones({ 2 }):sum():item(), 2)
  t.fails({ "make must be a function", "ms.no_init_parameters(function()" }, ms.no_init_parameters, net)
end)

t.test("computing, reading and writing are errors that say why", function()
  local net = ms.no_init_parameters(function() return nn.Dense(3, 2) end)
  t.fails({ "has a shape and no elements", "ms.load_param_into_net" }, function() return net.weight + net.weight end)
  t.fails({ "has a shape and no elements" }, net, ops.ones { 4, 3 })
  t.fails({ "has a shape and no elements" }, function() return net.weight:tolist() end)
  t.fails({ "has a shape and no elements" }, function() net.weight:assign(ops.ones { 2, 3 }) end)
  t.fails({ "has a shape and no elements" }, ms.save_checkpoint, net, os.tmpname())
  -- There are no values to decide by.
  t.fails({ "has a shape and no elements" }, ms.no_init_parameters, function() return ops.ones({ 1 }):item() end)
end)

t.test("a checkpoint gives the parameters their values", function()
  local full = nn.Dense(3, 2)
  local net = ms.no_init_parameters(function() return nn.Dense(3, 2) end)
  ms.load_param_into_net(net, { weight = full.weight, bias = full.bias })
  t.equal(net.weight.device, "CPU")
  t.equal(net.weight.name, "weight")
  local x = ops.randn { 4, 3 }
  t.near(net(x), full(x), 0)
  t.equal(ms.is_parameter(net.weight), true)
end)

t.test("estimates and plans take such networks, and leave them as they are", function()
  local net = ms.no_init_parameters(large)
  local o = { inputs = function(n) return ops.zeros { n, 100000 } end, batch = 8, check_memory = false, optimizer = "sgd" }
  local e = ms.ascend.estimate(net, o)
  t.equal(e.parameters, elements(net))
  t.equal(net[1].weight.device, "Shapes")
  local small = ms.no_init_parameters(function() return nn.Dense(64, 8) end)
  local values = nn.Dense(64, 8)
  local function seconds(cell)
    return ms.ascend.estimate(cell, { inputs = function(n) return ops.zeros { n, 64 } end, batch = 8 }).step
  end
  t.near(seconds(small), seconds(values), 0)
  local plan = ms.ascend.estimate(net, { inputs = o.inputs, devices = 64, global_batch = 64, mesh = "auto", optimizer = "sgd" })
  t.equal(#plan >= 1, true)
  t.equal(plan[1].parameters["0.weight"] ~= nil, true)
  t.equal(net[1].weight.device, "Shapes")
end)

t.finish()
