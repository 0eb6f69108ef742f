-- ms.AutoParallel in one process, which simulates ranks.
-- Eager mode only: tensors on a mesh are computed operator by operator.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local x, y = ops.randn({ 8, 8 }, nil, 3), ops.randn({ 8, 4 }, nil, 4)

-- Two products, each with a strategy of its own.
local function products(first, second)
  local Net = nn.Cell:extend("DenseMatMulNet")
  function Net:init()
    self.first, self.second = ops.MatMul():shard(first), ops.MatMul():shard(second)
    self.w1, self.w2 = ms.Parameter(ops.randn({ 8, 16 }, nil, 1), "w1"), ms.Parameter(ops.randn({ 16, 4 }, nil, 2), "w2")
  end
  function Net:construct(v) return self.second(ops.relu(self.first(v, self.w1)), self.w2) end
  return Net()
end

local function losses(net)
  local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net:trainable_params(), 0.01))
  local list = {}
  for i = 1, 4 do list[i] = step(x, y):item() end
  return ms.tensor(list)
end

t.test("a network with strategies is trained on the ranks of a mesh", function()
  local alone = losses(products({ { 1, 1 }, { 1, 1 } }, { { 1, 1 }, { 1, 1 } }))
  ms.set_auto_parallel_context { device_num = 4 }
  for _, second in ipairs { { { 1, 1 }, { 1, 4 } }, { { 1, 4 }, { 4, 1 } }, { { 2, 2 }, { 2, 1 } } } do
    t.near(losses(ms.AutoParallel(products({ { 4, 1 }, { 1, 1 } }, second))), alone, 1e-4)
  end
  local net = ms.AutoParallel(products({ { 4, 1 }, { 1, 1 } }, { { 1, 1 }, { 1, 4 } }))
  t.near(losses(ms.AutoParallel(products({ { 1, 1 }, { 1, 1 } }, { { 1, 1 }, { 1, 1 } }))), alone, 1e-4)
  t.fails({ "hsdp: is not supported beside strategies of operators, which first has" }, net.hsdp, net)
  local other = ms.AutoParallel(nn.Dense(2, 1))
  t.fails({ "hsdp: divides parameters among processes" }, other.hsdp, other)
  ms.reset_auto_parallel_context()
end)

t.test("a network without strategies follows the settings of its methods", function()
  local net = ms.AutoParallel(nn.Dense(8, 4))
  net:dataset_strategy "full_batch"
  net:enable_gradients_mean()
  net:hsdp { optimizer_level = "level3", threshold = 1 }
  t.equal({ ms.get_auto_parallel_context "dataset_strategy", ms.get_auto_parallel_context "gradients_mean",
    ms.get_auto_parallel_context("parallel_optimizer_config").optimizer_level }, { "full_batch", true, "level3" })
  t.equal(losses(net).size, 4)
  t.fails({ "dataset_strategy must be 'data_parallel' or 'full_batch'" }, net.dataset_strategy, net, "half")
  t.fails({ "pipeline_stages is 2, which does not divide device_num, 1" }, net.pipeline, net, 2)
  t.fails({ "scheduler is 'gpipe', and the network's is none" }, net.pipeline, net, 1, nil, nil, "gpipe")
  t.fails({ "output_broadcast must be true" }, net.pipeline, net, 1, false)
  t.fails({ "transformer_opt is not supported" }, function() net:transformer_opt "x.json" end)
  t.fails({ "parallel_mode must be one of 'semi_auto'" }, ms.AutoParallel, nn.Dense(1, 1), "manual")
  t.fails({ "network must be a cell" }, ms.AutoParallel, ops.relu)
  ms.reset_auto_parallel_context()
  t.equal(ms.get_auto_parallel_context "parallel_mode", "stand_alone")
end)

t.test("reference trainings with laid-out batches have the losses of the reference", function()
  local pipe = assert(io.popen(("timeout -k 5 120 '%s' tests/conformance/training.lua tests/data/conformance --parallel auto --ranks 4 "
    .. "--run mlp.Adam,bnet.SGD,lenet.Momentum,gpt_mini.AdamW 2>&1 </dev/null"):format(arg[-1])))
  local said = pipe:read "a"
  assert(pipe:close() and said:find("4 passed, 0 failed", 1, true), said)
end)

t.finish()
