-- lunaria lite export --train and lunaria lite benchmark_train: files that train, and how fast they do.
local ms = require "lunaria"
local benchmark = require "lunaria.lite.benchmark"

local nn = ms.nn

local function failing(command)
  return function(message, ...)
    error("lunaria lite " .. command .. ": " .. message:format(...) .. "\n  hint: lunaria lite --help", 0)
  end
end

local export = {
  usage = [==[
usage: lunaria lite export --train MODEL -o FILE [options]  write a network with its loss and optimizer as a file that trains
  MODEL                   a .mindir file with the network's parameters
  --inputShape S          sizes of one batch: "32,1,28,28" (several inputs: "32,1,28,28;32,4")
  --labelShape S          sizes of its labels (default: the batch size alone)
  --loss L                softmax_cross_entropy of whole labels, or mse (softmax_cross_entropy)
  --optimizer O           sgd, momentum, adam or adamw (adam)
  --learningRate R        0.001; --momentum M: 0.9; --weightDecay W: 0]==],
}

local losses = {
  softmax_cross_entropy = function() return nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" } end,
  mse = function() return nn.MSELoss() end,
}
local optimizers = {
  sgd = function(w, o) return nn.SGD(w, o.learningRate, { weight_decay = o.weightDecay }) end,
  momentum = function(w, o) return nn.Momentum(w, o.learningRate, o.momentum, { weight_decay = o.weightDecay }) end,
  adam = function(w, o) return nn.Adam(w, o.learningRate, { weight_decay = o.weightDecay }) end,
  adamw = function(w, o) return nn.AdamW(w, o.learningRate, { weight_decay = o.weightDecay }) end,
}

local function shapes_of(text, fail)
  local shapes = {}
  for part in text:gmatch "[^;]+" do
    local shape = {}
    for size in part:gmatch "[^,]+" do
      shape[#shape + 1] = math.tointeger(tonumber(size)) or fail("'%s' is no size", size)
    end
    shapes[#shapes + 1] = shape
  end
  return shapes
end

function export.run(words, say)
  say = say or print
  local fail = failing "export"
  local out, rest = nil, {}
  local i = 1
  while i <= #words do
    if words[i] == "-o" then
      i = i + 1
      out = words[i] or fail "-o needs a path"
    else
      rest[#rest + 1] = words[i]
    end
    i = i + 1
  end
  local o = benchmark.parse(rest, { flags = { train = true }, texts = { inputShape = true, labelShape = true }, refused = {}, fail = fail,
    defaults = { loss = "softmax_cross_entropy", optimizer = "adam", learningRate = 1e-3, momentum = 0.9, weightDecay = 0.0 } })
  if not o.train then fail "--train is missing: lunaria lite convert writes files that predict" end
  if not out then fail "-o FILE is missing" end
  if not o.inputShape then fail "--inputShape is missing: the sizes of one batch" end
  local loss = losses[o.loss] or fail("there is no loss '%s'; there are: mse, softmax_cross_entropy", o.loss)
  local optimizer = optimizers[o.optimizer] or fail("there is no optimizer '%s'; there are: adam, adamw, momentum, sgd", o.optimizer)
  local network = nn.GraphCell(o.modelFile)
  local weights = network:trainable_params()
  if #weights == 0 then fail("%s has no parameters that are trained", o.modelFile) end
  local inputs = {}
  for k, shape in ipairs(shapes_of(o.inputShape, fail)) do inputs[k] = ms.ops.zeros(shape) end
  local batch = inputs[1].shape[1]
  local label = o.labelShape and shapes_of(o.labelShape, fail)[1] or { batch }
  inputs[#inputs + 1] = ms.ops.zeros(label):astype(o.loss == "mse" and ms.float32 or ms.int32)
  local report = ms.lite.convert_training(network, loss(), optimizer(weights, o), { inputs = inputs, outputFile = out })
  say(("%s: %d steps, %d variables, %d bytes of temporaries"):format(out, #report.steps, report.variables, report.arena))
end

local train = {
  usage = [==[
usage: lunaria lite benchmark_train MODEL [options]     train with a light file: time, memory, loss
  --modelFile FILE        the light file that trains, instead of MODEL
  --inDataFile F,...      one batch: .npy files in the order of the inputs, or .safetensors (by names) (default: random)
  --epochs N              steps on it (10); --warmUpLoopCount N: steps before, which count as well (3)
  --virtualBatch K        batches for each step of the optimizer (1); --learningRate R (that of the file)
  --lossScale S           factor of the loss (1)
  --bbModelFile FILE      a light model whose outputs are the first inputs of what is trained
  --exportFile FILE       write what training goes on from; --inferenceFile FILE: the network as it predicts
  --numThreads N          threads (2); --decryptKey K: of an encrypted model, in hexadecimal digits]==],
}

function train.run(words, say)
  say = say or print
  local fail = failing "benchmark_train"
  local o = benchmark.parse(words, { flags = {}, fail = fail,
    texts = { modelFile = true, inDataFile = true, bbModelFile = true, exportFile = true, inferenceFile = true, decryptKey = true },
    refused = { lossName = "a file has one loss, its first output", layerCheckSum = "sums of layers are not computed" },
    defaults = { epochs = 10, warmUpLoopCount = 3, virtualBatch = 1, learningRate = -1, lossScale = 1, numThreads = 2 } })
  if o.epochs < 1 then fail "--epochs is at least 1" end
  local options = { threads = math.tointeger(o.numThreads), decrypt_key = o.decryptKey }
  local trainer = ms.lite.Trainer(o.modelFile, options)
  local backbone = o.bbModelFile and ms.lite.Model(o.bbModelFile, { threads = options.threads })
  if backbone then trainer:set_backbone(backbone) end
  if o.virtualBatch ~= 1 then trainer:set_virtual_batch(math.tointeger(o.virtualBatch)) end
  if o.learningRate >= 0 then trainer:set_learning_rate(o.learningRate) end
  if o.lossScale ~= 1 then trainer:set_loss_scale(o.lossScale, 0) end
  local values = trainer:inputs()
  if backbone then
    local all = backbone:inputs()
    table.move(values, #backbone:outputs() + 1, #values, #all + 1, all)
    values = all
  end
  local inputs = o.inDataFile and benchmark.read(o.inDataFile, values, "input") or {}
  for i, v in ipairs(values) do inputs[i] = inputs[i] or benchmark.random(v) end
  local first
  for _ = 1, o.warmUpLoopCount do
    local before = trainer:step(table.unpack(inputs))
    first = first or before
  end
  local least, sum, loss = math.huge, 0, nil
  for _ = 1, o.epochs do
    local start = ms.clock()
    loss = trainer:step(table.unpack(inputs))
    local seconds = (ms.clock() - start) / 1e9
    first, least, sum = first or loss, math.min(least, seconds), sum + seconds
  end
  local memory = trainer:memory()
  say(("%d steps by %d threads: min %.4f ms, mean %.4f ms; loss %g at first, %g at the end"):format(o.epochs, o.numThreads, least * 1e3,
    sum / o.epochs * 1e3, first, loss))
  say(("memory: arena %d, scratch %d, own %d bytes"):format(memory.arena, memory.scratch, memory.own))
  if o.exportFile then trainer:save(o.exportFile) end
  if o.inferenceFile then trainer:export(o.inferenceFile) end
end

return { export = export, benchmark_train = train }
