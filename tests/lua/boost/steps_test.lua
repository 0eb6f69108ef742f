-- Freezing, averages and fewer normalisations of ms.boost.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, boost = ms.nn, ms.ops, ms.boost

local function network()
  ms.set_seed(1)
  return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 4), nn.Tanh(), nn.Dense(4, 1))
end

local x, y = ms.randn { 8, 3 }, ms.randn { 8, 1 }

local function values(params)
  local list = {}
  for i, p in ipairs(params) do list[i] = p:copy() end
  return list
end

local function changed(params, before)
  local list = {}
  for i, p in ipairs(params) do list[i] = (p - before[i]):abs():max():item() > 0 end
  return list
end

t.test("groups of parameters are ends of the network", function()
  local f = boost.GradientFreeze(2, 0, 0.5, 10)
  -- A part has three parameters at least, and a bias stays with its weight.
  local groups = f:split_parameters_groups(network(), 2)
  t.equal({ #groups[1], #groups[2] }, { 6, 2 })
  t.equal(groups[2][1].name, "4.weight")
  groups = f:split_parameters_groups(dofile("notebooks/zoo/resnet.lua").resnet50(5, 8), 4)
  assert(#groups[1] > #groups[2] and #groups[2] > #groups[3] and #groups[3] > #groups[4])
  for _, group in ipairs(groups) do t.equal(group[#group].name, "fc.bias") end
end)

t.test("which group a step trains", function()
  local f = boost.GradientFreeze(2, 0, 0.5, 10)
  local list = f:generate_freeze_index_sequence(4, 0, 0.5, 9)
  t.equal({ table.unpack(list, 1, 9) }, { 0, 0, 0, 1, 2, 3, 0, 0, 0 })
  t.equal({ table.unpack(f:generate_freeze_index_sequence(1, 0, 0.5, 3), 1, 3) }, { 0, 0, 0 })
  ms.set_seed(3)
  list = f:generate_freeze_index_sequence(5, 1, 0.6, 2000)
  local counts = { [0] = 0, 0, 0, 0, 0 }
  for i = 1, 2000 do counts[list[i]] = counts[list[i]] + 1 end
  t.near(counts[0] / 2000, 0.6, 0.01)
  -- The first of the four is drawn four times as often as the last.
  for i = 1, 4 do t.near(counts[i] / 800, (5 - i) / 10, 0.06) end
  t.fails("freeze_strategy must be 0 or 1", f.generate_freeze_index_sequence, f, 2, 2, 0.5, 3)
  t.fails({ "GradientFreeze", "freeze_p" }, boost.GradientFreeze, 2, 0, 1.0, 10)
end)

for _, make in ipairs {
  function(params) return nn.SGD(params, 0.1) end, function(params) return nn.Momentum(params, 0.1, 0.9) end,
  function(params) return nn.Adam(params, 0.01) end, function(params) return nn.AdamWeightDecay(params, 0.01) end,
  function(params)
    local first, rest = { params[1], params[2] }, { params[3], params[4], params[5], params[6] }
    return nn.Adam({ { params = first, lr = 0.02 }, { params = rest } }, 0.01)
  end,
} do
  t.test("frozen parameters stay, and the others do what the optimizer does: " .. tostring(make(network():trainable_params())), function()
    local net = network()
    local params = net:trainable_params()
    local last, later = { params[5], params[6] }, { params[3], params[4], params[5], params[6] }
    local opt = boost.FreezeOpt(make(params), { params, later, last }, { 0, 2, 1, 0 })
    local step = boost.BoostTrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)
    local moved = {}
    for i = 1, 4 do
      local before = values(params)
      step(x, y)
      moved[i] = changed(params, before)
    end
    t.equal(moved, { { true, true, true, true, true, true }, { false, false, false, false, true, true },
      { false, false, true, true, true, true }, { true, true, true, true, true, true } })
    -- All in all steps is what the optimizer alone does.
    local one, other = network(), network()
    local a = boost.BoostTrainOneStepCell(nn.WithLossCell(one, nn.MSELoss()), boost.FreezeOpt(make(one:trainable_params())))
    local b = nn.TrainOneStepCell(nn.WithLossCell(other, nn.MSELoss()), make(other:trainable_params()))
    for _ = 1, 5 do t.near(a(x, y), b(x, y), 1e-6) end
    for i, p in ipairs(one:trainable_params()) do t.near(p, other:trainable_params()[i], 1e-6) end
  end)
end

t.test("freeze_cell, by hand and with accumulated gradients", function()
  local net = network()
  local params = net:trainable_params()
  local opt = boost.FreezeOpt(nn.SGD(params, 0.1), { params, { params[5], params[6] } }, { 0, 1 })
  local loss = nn.WithLossCell(net, nn.MSELoss())
  local cells = boost.freeze_cell(false, loss, opt, 1.0, nil, false)
  t.equal(#cells, 2)
  local before = values(params)
  cells[2](x, y)
  t.equal(changed(params, before), { false, false, false, false, true, true })
  before = values(params)
  local slow = boost.freeze_cell(false, loss, opt, 1.0, nil, true, nil, nil, 2)
  slow[1](x, y)
  t.equal(changed(params, before)[1], false)
  slow[1](x, y)
  t.equal(changed(params, before)[1], true)
  t.fails("there is one process", boost.freeze_cell, true, loss, opt, 1.0)
  t.fails("must be a FreezeOpt", boost.freeze_cell, false, loss, nn.SGD(params, 0.1), 1.0)
  t.fails({ "FreezeOpt", "train_strategy needs" }, boost.FreezeOpt, nn.SGD(params, 0.1), nil, { 0 })
  t.fails({ "FreezeOpt", "there are 1 groups" }, boost.FreezeOpt, nn.SGD(params, 0.1), { params }, { 1 })
  t.fails({ "FreezeOpt", "not the optimizer's" }, boost.FreezeOpt, nn.SGD(params, 0.1), { { ms.Parameter(ms.ones { 1 }, "w") } })
  t.fails({ "FreezeOpt", "LARS cannot" }, boost.FreezeOpt, nn.LARS(nn.Momentum(params, 0.1, 0.9)))
end)

t.test("the exponential average is the sum of its weights", function()
  local w = ms.Parameter(ms.tensor { 1.0, 2.0 }, "w")
  local ema, warm = boost.EMA({ w }, 0.8), boost.EMA({ w }, 0.8, true)
  local average, slow = 1.0, 1.0
  for i = 1, 5 do
    w:assign(ms.tensor { i * i + 0.0, 0.0 })
    ema:update()
    warm:update()
    average = 0.8 * average + 0.2 * i * i
    local decay = math.min(0.8, i / (9 + i))
    slow = decay * slow + (1 - decay) * i * i
  end
  t.near(ema.averages[1], { average, 2 * 0.8 ^ 5 }, 1e-5)
  t.near(warm.averages[1][0]:item(), slow, 1e-5)
  ema:swap()
  t.near(w, { average, 2 * 0.8 ^ 5 }, 1e-5)
  t.fails({ "EMA", "call swap()" }, ema.update, ema)
  ema:swap()
  t.near(w, { 25, 0 })
  local other = boost.EMA({ w }, 0.8)
  other:load_state_dict(ema:state_dict())
  t.near(other.averages[1], ema.averages[1])
  t.equal(other.count, 5)
  t.fails("no average of shape", other.load_state_dict, other, { count = 1 })
end)

t.test("averages as callbacks of a training", function()
  local net = nn.Dense(3, 1)
  local ema, swa = boost.EMA(net, 0.5), boost.SWA(net, 2, 2)
  local seen, average = {}, net.weight:copy()
  local Watch = ms.train.Callback:extend("Watch")
  function Watch:on_train_step_end() -- luacheck: ignore self
    average = 0.5 * average + 0.5 * net.weight
  end
  function Watch:on_train_epoch_end() seen[#seen + 1] = net.weight:copy() end -- luacheck: ignore self
  ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.1)):train(6, { { x, y }, { x + 1.0, y } }, { ema, swa, Watch() })
  t.near(ema.averages[1], average, 1e-5)
  t.equal(swa.count, 3)
  t.near(swa.averages[1], (seen[2] + seen[4] + seen[6]) / 3.0, 1e-5)
end)

t.test("normalisations get the mean of all batches", function()
  ms.set_seed(2)
  local net = nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4))
  local swa = boost.SWA(net)
  local batches = { { x, y }, { x * 2.0, y }, { x + 1.0, y } }
  net[1]:set_train()
  swa:update_bn(net, batches)
  local sum = ops.zeros { 4 }
  for _, batch in ipairs(batches) do sum = sum + ops.mean(net[1](batch[1]), 0) end
  t.near(net[2].moving_mean, sum / 3.0, 1e-5)
  t.equal({ net[2].momentum, net.training, net[1].training }, { 0.9, false, true })
  t.fails("a batch must be a tensor", swa.update_bn, swa, net, { 1 })
end)

t.test("bottlenecks keep their last normalisation", function()
  local resnet = dofile "notebooks/zoo/resnet.lua"
  local net = resnet.resnet50(5, 8, { 1, 2, 1, 1 })
  local blocks = {}
  local less = boost.LessBN(net, true, function(path)
    blocks[#blocks + 1] = path
    return path ~= "layer1.0"
  end)
  t.equal(less.removed, 8)
  t.equal(#blocks, 5)
  local block = net.layer2[1]
  t.equal({ tostring(block.bn1), tostring(block.bn2) }, { "Identity<>", "Identity<>" })
  assert(tostring(block.bn3):find "BatchNorm2d")
  assert(tostring(net.layer1[1].bn1):find "BatchNorm2d")
  assert(tostring(net.fc):find "CommonHeadLastFN")
  local names = {}
  for _, p in ipairs(net:trainable_params()) do names[p.name] = true end
  t.equal({ names["layer2.0.bn1.gamma"], names["layer2.0.bn3.gamma"], names["fc.multiplier"] }, { nil, true, true })
  local pictures, labels = ms.randn { 2, 3, 32, 32 }, ms.tensor({ 0, 1 }, ms.int64)
  local step = nn.TrainOneStepCell(nn.WithLossCell(less, nn.CrossEntropyLoss()), nn.Adam(net:trainable_params(), 1e-3))
  local first, last
  for _ = 1, 5 do
    last = step(pictures, labels):item()
    first = first or last
  end
  assert(last < first, ("the loss went from %g to %g"):format(first, last))
  t.equal(boost.LessBN(resnet.resnet18(5, 8)).removed, 0)
end)

t.test("the last layer gives cosines", function()
  local head = boost.CommonHeadLastFN(3, 2)
  local w = head.weight
  head.multiplier:assign(ms.tensor { 2.0 })
  head.bias:assign(ms.tensor { 0.0, 0.5 })
  local got = head(x):tolist()
  for i = 0, 7 do
    for k = 0, 1 do
      local cosine = ops.sum(x[i] * w[k]) / ops.sqrt(ops.sum(x[i] ^ 2) * ops.clamp(ops.sum(w[k] ^ 2), 1e-4))
      t.near(got[i + 1][k + 1], 2 * (cosine:item() + 0.5 * k), 1e-5)
    end
  end
end)

t.test("AutoBoost does what its level says", function()
  local net = network()
  local opt = nn.SGD(net:trainable_params(), 0.1)
  local same, other = boost.AutoBoost("O0"):network_auto_process_train(net, opt)
  assert(rawequal(same, net) and rawequal(other, opt))
  local config = { less_bn = { fn_flag = false }, grad_freeze = { param_groups = 3, freeze_type = 0, freeze_p = 0.5, total_steps = 10 } }
  local _, frozen = boost.AutoBoost("O1", config):network_auto_process_train(net, opt)
  t.equal({ #frozen.opts, frozen.train_strategy[3] }, { 3, 1 })
  t.equal(boost.AutoBoost({ level = "O1", boost_config_dict = config }).config.grad_freeze.param_groups, 3)
  config = { boost = { mode = "manual", grad_accumulation = true }, grad_accumulation = { grad_accumulation_step = 4 } }
  _, frozen = boost.AutoBoost("O1", config):network_auto_process_train(net, opt)
  t.equal(frozen.max_accumulation_step, 4)
  t.fails("no part 'les_bn'", boost.AutoBoost, "O1", { les_bn = {} })
  t.fails("level must be one of", boost.AutoBoost, "O3")
  t.fails("ms.boost.DimReduce", boost.AutoBoost, "O0", { boost = { mode = "manual", dim_reduce = true } })
end)

t.test("gradients are accumulated", function()
  local w = ms.Parameter(ms.tensor { 1.0 }, "w")
  local cell = boost.GradientAccumulation(2, nn.SGD({ w }, 0.5))
  t.equal(cell(3.0, { ms.tensor { 1.0 } }), 3.0)
  t.near(w, { 1 })
  cell(3.0, { ms.tensor { 3.0 } })
  t.near(w, { 0 })
end)

t.finish()
