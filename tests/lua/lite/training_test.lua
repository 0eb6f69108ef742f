-- Training by light files: losses, weights and predictions are those of the program itself.
-- Eager mode only: networks are recorded by graph mode in both.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local file, other = os.tmpname(), os.tmpname()
local cross_entropy = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
local labels = ms.tensor({ 1, 2, 3, 4, 5, 6, 7, 0 }, ms.int32)
local words = ms.tensor({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 1, 1, 1, 1 }, { 0, 9, 10, 2 }, { 1, 2, 3, 4 }, { 5, 6, 7, 8 },
  { 1, 1, 1, 1 }, { 0, 9, 10, 2 } }, ms.int32)

local function difference(a, b) return ops.amax(ops.abs(a - b)):item() / ops.amax(ops.abs(b)):item() end

-- The loss and the optimizer's step as the program itself does them.
local function own_step(net, loss_fn, optimizer, inputs)
  local count = #inputs
  local f = ms.value_and_grad(function(...)
    local all = { ... }
    return loss_fn(net(table.unpack(all, 1, count - 1)), all[count])
  end, nil, optimizer.parameters)
  return function()
    local loss, gradients = f(table.unpack(inputs))
    optimizer(ms.is_tensor(gradients) and { gradients } or gradients)
    return loss:item()
  end
end

local function converted(net, loss_fn, optimizer, inputs)
  ms.lite.convert_training(net, loss_fn, optimizer, { inputs = inputs, outputFile = file })
  return ms.lite.Trainer(file)
end

local Recurrent = nn.Cell:extend "Recurrent"
function Recurrent:init()
  self.lstm, self.head = nn.LSTM(5, 6, { batch_first = true }), nn.Dense(6, 10)
end
function Recurrent:construct(x) return self.head(ops.mean(self.lstm(x), 1)) end

local cases = {
  ["momentum with Nesterov's step and weight decay"] = function()
    return nn.SequentialCell(nn.Dense(5, 7), nn.Tanh(), nn.Dense(7, 3)), nn.MSELoss(),
      function(w) return nn.SGD(w, 0.1, { momentum = 0.9, weight_decay = 0.01, nesterov = true }) end,
      { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  end,
  ["plain descent"] = function()
    return nn.SequentialCell(nn.Dense(5, 7), nn.GELU(), nn.Dense(7, 3)), nn.MSELoss(), function(w) return nn.SGD(w, 0.1) end,
      { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  end,
  ["AdamW and a layer norm"] = function()
    return nn.SequentialCell(nn.Dense(5, 7), nn.SiLU(), nn.LayerNorm { 7 }, nn.Dense(7, 3)), nn.MSELoss(),
      function(w) return nn.AdamW(w, 0.01) end, { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  end,
  ["decoupled decay"] = function()
    return nn.SequentialCell(nn.Dense(5, 7), nn.Sigmoid(), nn.Dense(7, 3)), nn.MSELoss(),
      function(w) return nn.AdamWeightDecay(w, 0.01, { weight_decay = 0.1 }) end, { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  end,
  ["convolutions with batch norms"] = function()
    return nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, { stride = 2, group = 8 }),
      nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(2, 2), nn.Flatten(), nn.Dense(32, 10)), cross_entropy,
      function(w) return nn.Momentum(w, 0.05, 0.9) end, { ops.randn { 8, 3, 8, 8 }, labels }
  end,
  ["a padded convolution and a global pool"] = function()
    return nn.SequentialCell(nn.Conv2d(3, 8, 3, { has_bias = true, stride = 2, pad_mode = "pad", padding = 1 }), nn.ReLU(),
      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(8, 10)), cross_entropy, function(w) return nn.Adam(w, 0.01) end,
      { ops.randn { 8, 3, 9, 9 }, labels }
  end,
  ["a transposed convolution"] = function()
    return nn.SequentialCell(nn.Conv2dTranspose(3, 4, 3, { stride = 2 }), nn.ReLU(), nn.Flatten(), nn.Dense(256, 10)), cross_entropy,
      function(w) return nn.SGD(w, 0.01) end, { ops.randn { 8, 3, 4, 4 }, labels }
  end,
  ["one axis, with a largest element"] = function()
    return nn.SequentialCell(nn.Conv1d(3, 8, 3), nn.ReLU(), nn.MaxPool1d(2, 2), nn.Flatten(), nn.Dense(32, 10)), cross_entropy,
      function(w) return nn.Adam(w, 0.01, { use_amsgrad = true }) end, { ops.randn { 8, 3, 8 }, labels }
  end,
  ["a transformer"] = function()
    return nn.SequentialCell(nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, { dropout = 0.0, batch_first = true }),
      nn.Flatten(), nn.Dense(32, 10)), cross_entropy, function(w) return nn.Adam(w, 0.01) end, { words, labels }
  end,
  ["a recurrent network"] = function()
    return Recurrent(), cross_entropy, function(w) return nn.Adam(w, 0.01) end, { ops.randn { 8, 4, 5 }, labels }
  end,
}
for name, make in pairs(cases) do
  t.test("six steps: " .. name, function()
    ms.set_seed(2)
    local net, loss_fn, optimizer_of, inputs = make()
    local optimizer = optimizer_of(net:trainable_params())
    local trainer = converted(net, loss_fn, optimizer, inputs)
    net:set_train(true)
    local step = own_step(net, loss_fn, optimizer, inputs)
    for i = 1, 6 do
      local got, wanted = trainer:step(table.unpack(inputs)), step()
      assert(math.abs(got - wanted) <= 2e-4 * math.max(1e-3, math.abs(wanted)), ("step %d: %g, not %g"):format(i, got, wanted))
    end
    net:set_train(false)
    local expected = net(inputs[1])
    assert(difference(trainer:predictor():predict(inputs[1]), expected) <= 2e-3)
    trainer:export(other)
    assert(difference(ms.lite.Model(other):predict(inputs[1]), expected) <= 2e-3)
    t.equal(trainer:steps(), 6)
  end)
end

local function small()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(5, 7), nn.ReLU(), nn.Dense(7, 3))
  return net, nn.MSELoss(), { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
end

t.test("converting leaves the network and the random numbers as they were", function()
  local net, loss_fn, inputs = small()
  local before, state = net:trainable_params()[1]:copy(), ms.get_rng_state()
  converted(net, loss_fn, nn.Adam(net:trainable_params(), 0.1), inputs)
  t.equal(difference(net:trainable_params()[1], before), 0.0)
  t.equal(ms.get_rng_state():tolist(), state:tolist())
end)

t.test("a saved training goes on with the same bits", function()
  local net, loss_fn, inputs = small()
  local trainer = converted(net, loss_fn, nn.Adam(net:trainable_params(), 0.1), inputs)
  for _ = 1, 3 do trainer:step(table.unpack(inputs)) end
  trainer:save(other)
  local again = ms.lite.Trainer(other)
  t.equal(again:steps(), 3)
  for _ = 1, 3 do t.equal(again:step(table.unpack(inputs)), trainer:step(table.unpack(inputs))) end
end)

t.test("a virtual batch is one step with the mean of its gradients", function()
  local net, loss_fn, inputs = small()
  local more = { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  local optimizer = nn.SGD(net:trainable_params(), 0.1)
  local trainer = converted(net, loss_fn, optimizer, inputs)
  trainer:set_virtual_batch(2)
  trainer:step(table.unpack(inputs))
  t.equal(trainer:steps(), 0)
  trainer:step(table.unpack(more))
  t.equal(trainer:steps(), 1)
  own_step(net, loss_fn, optimizer, { ops.concat { inputs[1], more[1] }, ops.concat { inputs[2], more[2] } })()
  assert(difference(trainer:predictor():predict(inputs[1]), net(inputs[1])) <= 1e-5)
end)

t.test("the learning rate counts from the next step on", function()
  local net, loss_fn, inputs = small()
  local trainer = converted(net, loss_fn, nn.SGD(net:trainable_params(), 0.1), inputs)
  assert(math.abs(trainer:learning_rate() - 0.1) < 1e-12)
  trainer:set_learning_rate(0)
  local first = trainer:step(table.unpack(inputs))
  t.equal(trainer:step(table.unpack(inputs)), first)
  t.equal(trainer:loss(table.unpack(inputs)), first)
end)

t.test("a batch whose gradients are not finite changes nothing under a loss scale", function()
  local net, loss_fn, inputs = small()
  local trainer = converted(net, loss_fn, nn.Adam(net:trainable_params(), 0.1), inputs)
  trainer:set_loss_scale(1024, 2)
  local before = trainer:loss(table.unpack(inputs))
  local _, left_out = trainer:step(inputs[1] * 1e30, inputs[2])
  assert(left_out)
  t.equal(trainer:steps(), 0)
  t.equal(trainer:loss_scale(), 512.0)
  t.equal(trainer:loss(table.unpack(inputs)), before)
  for _ = 1, 2 do assert(not select(2, trainer:step(table.unpack(inputs)))) end
  t.equal(trainer:loss_scale(), 1024.0)
end)

t.test("transfer: a backbone that stays, a head that is trained", function()
  ms.set_seed(4)
  local backbone = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten())
  local head = nn.SequentialCell(nn.Dense(144, 10))
  local x = ops.randn { 8, 1, 6, 6 }
  ms.lite.convert(backbone, { inputs = { x }, outputFile = other })
  local optimizer = nn.SGD(head:trainable_params(), 0.1)
  local trainer = converted(head, cross_entropy, optimizer, { backbone(x), labels }):set_backbone(ms.lite.Model(other))
  local step = own_step(head, cross_entropy, optimizer, { backbone(x), labels })
  for _ = 1, 3 do assert(math.abs(trainer:step(x, labels) - step()) < 1e-4) end
end)

t.test("dropout draws anew in each step and is not there in predictions", function()
  ms.set_seed(5)
  local net = nn.SequentialCell(nn.Dense(5, 400), nn.Dropout { p = 0.5 }, nn.Dense(400, 3))
  local inputs = { ops.randn { 4, 5 }, ops.randn { 4, 3 } }
  local trainer = converted(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.0), inputs)
  assert(trainer:step(table.unpack(inputs)) ~= trainer:step(table.unpack(inputs)))
  net:set_train(false)
  assert(difference(trainer:predictor():predict(inputs[1]), net(inputs[1])) <= 1e-5)
end)

t.test("train() goes through epochs and ends where it is told", function()
  local net, loss_fn, inputs = small()
  local trainer = converted(net, loss_fn, nn.Adam(net:trainable_params(), 0.05), inputs)
  local first, seen = trainer:loss(table.unpack(inputs)), {}
  local mean = trainer:train(10, function()
    local left = 4
    return function()
      left = left - 1
      if left >= 0 then return table.unpack(inputs) end
    end
  end, function(epoch, loss)
    seen[epoch] = loss
    return epoch < 5
  end)
  t.equal(#seen, 5)
  t.equal(trainer:steps(), 20)
  assert(mean < first / 2)
end)

t.test("commands write a file that trains, and run it", function()
  ms.set_seed(6)
  local mindir, predicts = os.tmpname() .. ".mindir", os.tmpname()
  local net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(144, 10))
  ms.export(net, ops.zeros { 8, 1, 6, 6 }, { file_name = mindir, file_format = "MINDIR" })
  local commands, said = require "lunaria.lite.training_command", {}
  local function say(line) said[#said + 1] = line end
  commands.export.run({ "--train", mindir, "-o", file, "--inputShape", "8,1,6,6", "--optimizer=momentum", "--learningRate", "0.1" }, say)
  commands.benchmark_train.run({ file, "--epochs=20", "--exportFile=" .. other, "--inferenceFile", predicts, "--virtualBatch", "1" }, say)
  assert(said[1]:find("3 variables", 1, true), said[1])
  local first, last = said[2]:match "loss (%S+) at first, (%S+) at the end"
  assert(tonumber(last) < tonumber(first), said[2])
  t.equal(ms.lite.Trainer(other):steps(), 23)
  t.equal(tostring(ms.lite.Model(predicts):predict(ops.zeros { 8, 1, 6, 6 }).shape), "(8, 10)")
  local command = require "lunaria.lite.command"
  t.fails({ "--train is missing" }, command, "export", mindir, "-o", file)
  t.fails({ "no optimizer 'lamb'" }, command, "export", "--train", mindir, "-o", file, "--inputShape=8,1,6,6", "--optimizer=lamb")
  t.fails({ "one loss" }, command, "benchmark_train", file, "--lossName", "x")
  os.remove(mindir)
  os.remove(predicts)
end)

t.test("errors", function()
  local net, loss_fn, inputs = small()
  local optimizer = nn.SGD(net:trainable_params(), 0.1)
  local convert = ms.lite.convert_training
  t.fails({ "network must be a cell" }, convert, function() end, loss_fn, optimizer, { inputs = inputs })
  t.fails({ "optimizer must be" }, convert, net, loss_fn, nn.Lamb(net:trainable_params(), 0.1), { inputs = inputs })
  t.fails({ "numbers: the trainer sets" }, convert, net, loss_fn, nn.SGD(net:trainable_params(), { 0.1, 0.2 }), { inputs = inputs })
  t.fails({ "inputs are missing" }, convert, net, loss_fn, optimizer)
  t.fails({ "no option 'output'" }, convert, net, loss_fn, optimizer, { inputs = inputs, output = file })
  ms.lite.convert(net, { inputs = { inputs[1] }, outputFile = other })
  t.fails({ "none that trains" }, ms.lite.Trainer, other)
  local trainer = converted(net, loss_fn, optimizer, inputs)
  t.fails({ "the model takes float32" }, function() trainer:step(ops.ones { 2, 5 }, inputs[2]) end)
  t.fails({ "must not be negative" }, function() trainer:set_learning_rate(-1) end)
  t.fails({ "a backbone is" }, function() trainer:set_backbone(net) end)
end)

os.remove(file)
os.remove(other)
t.finish()
