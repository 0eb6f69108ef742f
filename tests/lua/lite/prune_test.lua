-- Pruning and distillation as callbacks of a training.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local function zeros_of(p) return ops.sum(ops.cast(ops.equal(p, 0), ms.int64)):item() end

local batches = {}
for i = 1, 10 do
  local x = ops.randn { 32, 20 }
  batches[i] = { x, ops.cast(ops.greater(ops.sum(x, 1), 0), ms.int64) }
end

t.test("the smallest weights go to zero along the schedule and stay there", function()
  for schedule, half in pairs { linear = 0.4, cubic = 0.7, constant = 0.8 } do
    local net = nn.SequentialCell(nn.Dense(20, 40), nn.ReLU(), nn.Dense(40, 2))
    local prune = ms.lite.MagnitudePruning(net, { sparsity = 0.8, begin_step = 4, end_step = 14, schedule = schedule })
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01))
    local seen = {}
    local watch = ms.train.LambdaCallback { on_train_step_end = function(run)
      seen[run:original_args().cur_step_num] = prune:sparsity_of()
    end }
    model:train(3, batches, { callbacks = { prune, watch } })
    t.near({ seen[4], seen[10], seen[15], seen[30] }, { 0, half, 0.8, 0.8 }, 0.01)
    t.equal(zeros_of(net[1].weight), 640)
  end
end)

t.test("all weights together have one threshold", function()
  local net = nn.SequentialCell(nn.Dense(20, 40), nn.ReLU(), nn.Dense(40, 2))
  net[3].weight:set_data(net[3].weight * 100)
  local prune = ms.lite.MagnitudePruning(net, { sparsity = 0.5, scope = "global" })
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.0))
  model:train(1, { batches[1] }, { callbacks = prune })
  t.equal(zeros_of(net[1].weight) + zeros_of(net[3].weight), 440)
  assert(zeros_of(net[3].weight) < 5)
end)

local Residual = nn.Cell:extend("Residual")
function Residual:init()
  self.first, self.norm = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16)
  self.inner, self.inner_norm, self.back = nn.Conv2d(16, 24, 3, { stride = 2 }), nn.BatchNorm2d(24), nn.Conv2d(24, 16, 1)
  self.shortcut = nn.Conv2d(16, 16, 1, { stride = 2, has_bias = true })
  self.depthwise = nn.Conv2d(16, 16, 3, { group = 16 })
  self.hidden, self.last = nn.Dense(16 * 16, 30, { activation = "relu" }), nn.Dense(30, 5)
end
function Residual:construct(x)
  x = ops.relu(self.norm(self.first(x)))
  local y = self.back(ops.relu(self.inner_norm(self.inner(x))))
  x = self.depthwise(ops.relu(y + self.shortcut(x)))
  return self.last(self.hidden(ops.flatten(x)))
end

t.test("channels go with all that reads, adds or normalises them", function()
  local net = Residual():set_train(false)
  for _, cell in net:cells_and_names() do
    if cell.moving_mean then cell.moving_mean:set_data(ops.randn { cell.num_features } * 0.1) end
  end
  local x = ops.randn { 2, 3, 8, 8 }
  -- Channels that give nothing: the smaller network computes the same.
  local function silence(cells, channels)
    for _, cell in ipairs(cells) do
      for _, key in ipairs { "weight", "bias", "gamma", "beta" } do
        local p = rawget(cell, key)
        if p then
          local mask = ops.ones { p.shape[1] }
          for _, c in ipairs(channels) do mask[c] = 0.0 end
          local shape = { p.shape[1] }
          for i = 2, p.ndim do shape[i] = 1 end
          p:set_data(p * ops.reshape(mask, shape))
        end
      end
    end
  end
  silence({ net.first, net.norm }, { 0, 1, 4, 7, 9, 11, 12, 15 })
  silence({ net.inner, net.inner_norm }, { 0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23 })
  silence({ net.back, net.shortcut, net.depthwise }, { 1, 2, 3, 5, 8, 13, 14, 15 })
  silence({ net.hidden }, { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28 })
  local small = ms.lite.prune(net, 0.5, x)
  t.near(small(x), net(x), 1e-5)
  t.near(small(ops.narrow(x, 0, 0, 1)), ops.narrow(net(x), 0, 0, 1), 1e-5)
  t.equal({ small.first.out_channels, small.inner.in_channels, small.inner.out_channels, small.depthwise.group }, { 8, 8, 12, 8 })
  t.equal({ small.hidden.in_channels, small.hidden.out_channels, small.last.in_channels, small.last.out_channels }, { 128, 15, 15, 5 })
  t.equal(net.first.out_channels, 16)
  local model = ms.Model(small, nn.CrossEntropyLoss(), nn.Adam(small:trainable_params(), 0.01))
  model:train(2, { { x, ms.zeros({ 2 }, ms.int64) } })
  local kept = ms.lite.prune(net, { ratio = 0.5, inputs = x, skip = { "hidden" }, multiple = 5, criterion = "l1" })
  t.equal({ kept.hidden.out_channels, kept.first.out_channels, kept.inner.out_channels }, { 30, 10, 15 })
end)

t.test("by what the loss would change, while training", function()
  for _, criterion in ipairs { "taylor", "l2" } do
    local net = nn.SequentialCell(nn.Dense(20, 40), nn.ReLU(), nn.Dense(40, 16), nn.ReLU(), nn.Dense(16, 2))
    local prune = ms.lite.ChannelPruning(net, { ratio = 0.5, criterion = criterion, begin_step = 5, end_step = 25, frequency = 5 })
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.02), { "accuracy" })
    model:train(6, batches, { callbacks = prune })
    local small = prune:shrink()
    t.equal({ small[1].out_channels, small[3].out_channels, small[5].in_channels }, { 20, 8, 8 })
    t.near(small(batches[1][1]), net(batches[1][1]), 1e-5)
    assert(model:eval(batches).accuracy > 0.9, criterion)
  end
end)

t.test("channels of a network with batch statistics and dropout go while it is trained as it would be without", function()
  for _, criterion in ipairs { "taylor", "l2" } do
    local function trained(ratio)
      ms.set_seed(3)
      local net = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout { p = 0.5 }, nn.Flatten(),
        nn.Dense(160, 2))
      local prune = ratio and ms.lite.ChannelPruning(net, { ratio = ratio, criterion = criterion })
      local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.02))
      model:train(1, { { ops.reshape(batches[1][1], { 32, 1, 5, 4 }), batches[1][2] } }, { callbacks = prune })
      return net, prune
    end
    local alone, net = trained(), trained(0.0)
    t.equal(net[2].moving_variance, alone[2].moving_variance)
    t.equal(net[6].weight, alone[6].weight)
    local half, prune = trained(0.5)
    local x = ops.randn { 2, 1, 5, 4 }
    local small = prune:shrink():set_train(false)
    t.equal({ small[1].out_channels, small[2].num_features, small[6].in_channels }, { 4, 4, 80 })
    t.near(small(x), half:set_train(false)(x), 1e-5)
  end
end)

t.test("a teacher trains on as before, also the parts of it that predict, and after a training that failed", function()
  local teacher = nn.SequentialCell(nn.Dense(20, 4), nn.BatchNorm1d(4), nn.Dense(4, 2)):set_train()
  teacher[2]:set_train(false)
  local net = nn.Dense(20, 2)
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1))
  local distillation = ms.lite.Distillation(teacher)
  local fails = ms.train.LambdaCallback { on_train_step_begin = function() error "no further" end }
  t.fails({ "no further" }, model.train, model, 1, batches, { callbacks = { distillation, fails } })
  model:train(1, batches, { callbacks = distillation })
  t.equal({ teacher.training, teacher[1].training, teacher[2].training }, { true, true, false })
end)

t.test("a network learns from a teacher alone", function()
  local teacher = nn.SequentialCell(nn.Dense(20, 64), nn.ReLU(), nn.Dense(64, 2))
  ms.Model(teacher, nn.CrossEntropyLoss(), nn.Adam(teacher:trainable_params(), 0.01)):train(10, batches)
  local wrong = {}
  for i, batch in ipairs(batches) do wrong[i] = { batch[1], 1 - batch[2] } end
  for _, kind in ipairs { "logits", "mse" } do
    local net = nn.SequentialCell(nn.Dense(20, 16), nn.ReLU(), nn.Dense(16, 2))
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01), { "accuracy" })
    model:train(15, wrong, { callbacks = ms.lite.Distillation(teacher, { alpha = 1.0, kind = kind }) })
    assert(model:eval(batches).accuracy > 0.9, kind)
    -- The loss is the model's own again.
    model:train(15, wrong)
    assert(model:eval(batches).accuracy < 0.5, kind)
  end
end)

t.test("mistakes are told", function()
  local net = nn.Dense(20, 2)
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1))
  t.fails({ "no layer's channels can go" }, ms.lite.prune, net, 0.5, batches[1][1])
  t.fails({ "ratio", "less than 1, got 1" }, ms.lite.prune, net, 1.0, batches[1][1])
  t.fails({ "loss_fn and label are for the criterion 'taylor'" }, ms.lite.prune, net, { ratio = 0.5, inputs = batches[1][1], label = 1 })
  t.fails({ "end_step (1) is before begin_step (5)" }, ms.lite.MagnitudePruning, net, { sparsity = 0.5, begin_step = 5, end_step = 1 })
  t.fails({ "skip", "'nothing'" }, ms.lite.MagnitudePruning, net, { sparsity = 0.5, skip = { "nothing" } })
  t.fails({ "dataset_sink_mode must be false" }, model.train, model, 1, batches,
    { callbacks = ms.lite.MagnitudePruning(net, 0.5), dataset_sink_mode = true })
  t.fails({ "teacher must be a network" }, ms.lite.Distillation, 3)
end)

t.finish()
