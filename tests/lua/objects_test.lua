-- The names of objects in messages: their class, wherever they are given to the wrong function.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local net = nn.Dense(2, 1)
local Metric = ms.train.Metric:extend("Mine")

local NAMES = {
  { net, "a cell (Dense)" },
  { nn.SGD(net:trainable_params(), 0.1), "an optimizer (SGD)" },
  { ms.Model(net), "an object (Model)" },
  { ms.train.History(), "a callback (History)" },
  { Metric(), "a metric (Mine)" },
  { ms.dataset.NumpySlicesDataset({ { 1, 2 } }, { "a" }), "a data set (NumpySlicesDataset)" },
  { ops.Softmax(-1), "a primitive (Softmax)" },
  { nn.Dense, "the class Dense" },
  { ms.slice(0, 1), "a slice" },
  { ms.float32, "the dtype float32" },
  { io.stdout, "a file" },
}

t.test("an object is named by its class, never by what Lua calls its type", function()
  for _, row in ipairs(NAMES) do
    local value, name = table.unpack(row)
    for _, f in ipairs {
      function() ops.relu(value) end,
      function() ops.add(ms.ones { 2 }, value) end,
      function() nn.Dense(value, 1) end,
      function() ms.set_seed(value) end,
      function() ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params())):train(value, {}) end,
    } do
      local message = t.fails("got " .. name, f)
      assert(not message:find "userdata", message)
    end
  end
end)

t.test("the functions of training name what they are given instead of a cell", function()
  local optimizer = nn.SGD(net:trainable_params(), 0.1)
  for _, row in ipairs { NAMES[4], NAMES[8], NAMES[10], NAMES[11] } do
    local value, name = table.unpack(row)
    t.fails("got " .. name, ms.amp.build_train_network, value, optimizer, nn.MSELoss())
    t.fails("got " .. name, ms.amp.build_train_network, net, value, nn.MSELoss())
    t.fails("got " .. name, ms.Model, value)
    t.fails("got " .. name, ms.save_checkpoint, value, "file")
    t.fails("got " .. name, ms.load_param_into_net, net, value)
  end
  t.fails("got a file", nn.SGD, io.stdout)
  t.fails("got the dtype float32", ms.grad, ms.float32)
  t.fails("got a file", ms.jit, io.stdout)
  t.fails("got a compiled function", ops.relu, ms.jit(ops.relu))
end)

t.finish()
