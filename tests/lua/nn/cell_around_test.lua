-- Services around a cell's computation: hooks that see gradients, computing again, inputs that were told beforehand.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function network()
  ms.set_seed(4)
  return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))
end
local x = ms.tensor { { 0.5, -0.25, 1.0 }, { 0.1, 0.2, -0.3 } }

t.test("hooks see gradients and may replace them", function()
  local net = network()
  local f = function(a) return (net(a) ^ 2):sum() end
  local plain = ms.grad(f)(x)
  local seen = {}
  local handle = net[3]:register_backward_hook(function(cell, inputs, outputs)
    seen = { cell = cell, inputs = #inputs, outputs = outputs[1].shape, shape = inputs[1].shape }
  end)
  for _ = 1, 3 do t.near(ms.grad(f)(x), plain, 1e-6) end
  assert(rawequal(seen.cell, net[3]))
  t.equal({ seen.inputs, tostring(seen.shape), tostring(seen.outputs) }, { 1, "(2, 4)", "(2, 2)" })
  handle.remove()
  local double = net[2]:register_backward_hook(function(_, inputs) return { inputs[1] * 2 } end)
  for _ = 1, 3 do t.near(ms.grad(f)(x), plain * 2, 1e-6) end
  double.remove()
  local pre = net:register_backward_pre_hook(function(_, outputs) return outputs[1] * 3 end)
  for _ = 1, 3 do t.near(ms.grad(f)(x), plain * 3, 1e-6) end
  -- Both kinds: the hook gets the replaced gradients of the results.
  net:register_backward_hook(function(_, inputs, outputs) return inputs[1] + outputs[1]:sum() end)
  local results = net(x)
  for _ = 1, 3 do t.near(ms.grad(f)(x), plain * 3 + (results * 6):sum(), 1e-5) end
  pre.remove()
  t.fails({ "register_backward_hook", "hook_fn must be a function" }, net.register_backward_hook, net, 3)
end)

t.test("gradients of parameters pass hooks of cells behind them", function()
  local net = network()
  local params = net:trainable_params()
  local f = function() return net(x):sum() end
  local plain = ms.grad(f, nil, params)()
  net[3]:register_backward_hook(function(_, inputs) return inputs[1] * 10 end)
  local scaled = ms.grad(f, nil, params)()
  t.near(scaled[1], plain[1] * 10, 1e-5)
  t.near(scaled[3], plain[3], 1e-6)
end)

t.test("values that are computed again give the same gradients", function()
  local net = network()
  local params = net:trainable_params()
  local f = function(a) return (net(a) ^ 2):sum() end
  local of_x, of_params = ms.grad(f, 0, params)(x)
  assert(net:recompute() == net)
  local count = 0
  net[2]:register_forward_hook(function() count = count + 1 end)
  for _ = 1, 3 do
    local again_x, again_params = ms.grad(f, 0, params)(x)
    t.near(again_x, of_x, 1e-6)
    for i, g in ipairs(again_params) do t.near(g, of_params[i], 1e-6) end
  end
  assert(count > 0)
  -- Also where nothing but parameters is differentiated by.
  for i, g in ipairs(ms.grad(function() return f(x) end, nil, params)()) do t.near(g, of_params[i], 1e-6) end
  t.near(net(x), network()(x), 1e-6)
  net:recompute(false)
  t.near(ms.grad(f)(x), of_x, 1e-6)
  t.fails({ "recompute", "mode must be true or false" }, net.recompute, net, 3)
end)

t.test("inputs are those that were told", function()
  local net = nn.Dense(3, 2)
  assert(net:set_inputs({ shape = { -1, 3 }, dtype = ms.float32 }) == net)
  t.equal(tostring(net(x).shape), "(2, 2)")
  t.equal(tostring(net(ops.ones { 5, 3 }).shape), "(5, 2)")
  t.equal(net:get_inputs().shape, { -1, 3 })
  t.fails({ "Dense", "input 1 has shape (-1, 3)", "(2, 2, 3)" }, net, ops.ones { 2, 2, 3 })
  t.fails({ "Dense", "Float32", "Float64" }, net, ops.ones({ 2, 3 }, ms.float64))
  net:set_inputs(x)
  t.fails({ "Dense", "shape (2, 3)", "(5, 3)" }, net, ops.ones { 5, 3 })
  net:set_inputs()
  t.equal(tostring(net(ops.ones { 5, 3 }).shape), "(5, 2)")
  t.fails({ "set_inputs", "input 1 must be a tensor" }, net.set_inputs, net, 3)
end)

t.test("prefixes, strategies and wishes for gradients", function()
  local Wrapper = nn.Cell:extend("Wrapper")
  Wrapper.auto_prefix = false
  function Wrapper:init(net) self.net = net end
  local wrapped = Wrapper(nn.Dense(2, 2))
  t.equal(wrapped:trainable_params()[1].name, "weight")
  local net = nn.Dense(2, 2)
  t.equal(net.requires_grad, false)
  assert(net:set_grad() == net)
  t.equal(net.requires_grad, true)
  t.equal(net:set_grad(false).requires_grad, false)
  assert(net:shard { { 1, 1 } } == net)
  t.fails({ "shard: the strategy divides over 2 ranks, and there are 1" }, net.shard, net, { { 1, 2 } })
end)

t.test("a copy keeps hooks and what is computed again", function()
  local layer = nn.TransformerEncoderLayer(4, 2, 8, { dropout = 0.0 }):recompute()
  layer:register_backward_hook(function(_, inputs) return inputs[1] * 2 end)
  local encoder = nn.TransformerEncoder(layer, 2)
  local y = ops.ones { 3, 4 } * ms.tensor { 0.1, 0.4, -0.3, 0.2 }
  local f = function(a) return (encoder(a) * ms.tensor { 1.0, -2.0, 3.0, 0.5 }):sum() end
  local plain = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, { dropout = 0.0 }), 2)
  for i, p in ipairs(plain:get_parameters()) do p:assign(encoder:get_parameters()[i]) end
  local expected = ms.grad(function(a) return (plain(a) * ms.tensor { 1.0, -2.0, 3.0, 0.5 }):sum() end)(y) * 4
  t.near(ms.grad(f)(y), expected, 1e-4)
end)

t.test("what is computed again has the random numbers of the first time, and takes none from others", function()
  local drop = nn.Dropout { p = 0.5 }:set_train()
  local v = ops.arange(1, 65):float()
  local function cubes(a) return (drop(a) * a * a):sum() end
  local function run(recomputes)
    drop:recompute(recomputes)
    ms.set_seed(8)
    local f, list = ms.value_and_grad(ms.checkpoint(cubes), 0), {}
    local g = ms.value_and_grad(cubes, 0)
    for k = 1, 5 do
      local value, gradient = f(v)
      -- The value is a sum of m x^3, the gradient 3 m x^2, with the mask m.
      t.near((gradient * v):sum() / 3, value, 1e-6)
      value, gradient = g(v)
      t.near((gradient * v):sum() / 3, value, 1e-6)
      list[k] = value:item()
    end
    return list
  end
  t.equal(run(true), run(false))
end)

t.finish()
