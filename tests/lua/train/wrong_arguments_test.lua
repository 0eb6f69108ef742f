-- Every function, class and method of everyday training with wrong arguments: what comes is a message that names a function and
-- begins with the line of the caller's file, never one from within the library. A third of the tests a day.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, train = ms.nn, ms.train

local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)

local graph_mode = ms.get_context("mode") == ms.GRAPH_MODE
local matrix = ms.ones { 2, 3 }
local function values()
  return { { "nil" }, { "3", 3 }, { "-1", -1 }, { "nan", 0 / 0 }, { "text", folder .. "/text" }, { "{}", {} }, { "true", true },
    { "function", function() end }, { "tensor", matrix }, { "cell", nn.ReLU() }, { "class", nn.Dense }, { "{tensor}", { ms.ones { 2 } } },
    { "{text}", { "a" } }, { "parameters", nn.Dense(2, 3):trainable_params() }, { "callback", train.LossMonitor() },
    { "{a = 1}", { a = 1 } }, { "2 rows", ms.tensor { { 1, 0, 1 }, { 0, 1, 1 } } }, { "scalar", ms.tensor(2.0) } }
end

local here = "^tests/lua/train/wrong_arguments_test%.lua:%d+: "
local within = { "attempt to", "lunaria:lunaria", "bad argument", "nil value", "stack overflow" }

local calls
local function call(title, f, ...)
  calls = calls + 1
  local ok, message = pcall(f, ...)
  if ok then return message end
  local first = tostring(message):match "^[^\n]*"
  local sound = first:find(here) ~= nil
  for _, words in ipairs(within) do sound = sound and not first:find(words, 1, true) end
  if not sound then error(("%s: %s"):format(title, first), 0) end
end

-- f with each of the values after some that are right.
local function after(title, f, ...)
  local right = { ... }
  for _, a in ipairs(values()) do
    for count = 1, #right do
      local list = table.move(right, 1, count, 1, {})
      list[count + 1] = a[2]
      call(("%s(%d right, %s)"):format(title, count, a[1]), f, table.unpack(list, 1, count + 1))
    end
  end
end

-- The same, and f with one and with two of the values.
local function try(title, f, ...)
  call(title .. "()", f)
  local all = values()
  for i, a in ipairs(all) do
    call(("%s(%s)"):format(title, a[1]), f, a[2])
    -- Compiling costs more than calling: there every fourth of the pairs.
    for k = graph_mode and 1 + i % 4 or 1, #all, graph_mode and 4 or 1 do
      local b = all[k]
      call(("%s(%s, %s)"):format(title, a[1], b[1]), f, a[2], b[2])
    end
  end
  after(title, f, ...)
end

local function sorted(list)
  local names = {}
  for name in pairs(list) do if type(name) == "string" then names[#names + 1] = name end end
  table.sort(names)
  return names
end

local function is_class(value) return type(value) == "table" and rawget(value, "_is_class") end

t.each_day(3)
local distributions = nn.probability
local tables = {
  nn = nn, train = train, amp = ms.amp, boost = ms.boost, ["experimental.optim"] = ms.experimental.optim, ["mint.optim"] = ms.mint.optim,
  initializer = ms.common.initializer, distribution = distributions.distribution, bijector = distributions.bijector,
  bnn_layers = distributions.bnn_layers,
}
for _, title in ipairs(sorted(tables)) do
  local list = tables[title]
  t.test("functions and classes of " .. title, function()
    calls = 0
    for _, name in ipairs(sorted(list)) do
      local value = list[name]
      if type(value) == "function" or is_class(value) then
        -- From here, so that the message names this file.
        try(title .. "." .. name, function(...) return (value(...)) end, nn.Dense(2, 3))
        after(title .. "." .. name, function(...) return (value(...)) end, nn.Dense(2, 3):trainable_params(), 0.1)
      end
    end
    assert(calls > 100, calls)
  end)
end

t.test("checkpoints, parameters and models", function()
  calls = 0
  for _, name in ipairs { "save_checkpoint", "load_checkpoint", "load_param_into_net", "load", "ckpt_to_safetensors",
    "safetensors_to_ckpt", "load_checkpoint_async", "export", "Model", "Parameter" } do
    try(name, function(...) return (ms[name](...)) end, nn.Dense(3, 3), folder .. "/file")
  end
  assert(calls > 1000, calls)
end)

-- What is called first with what it needs, as a list of makers; then every method.
local function optimizer(net) return nn.Adam(net:trainable_params()) end
local net = nn.Dense(3, 3)
local model = function() return ms.Model(net, nn.MSELoss(), optimizer(net), { metrics = { "mae" } }) end
local objects = {
  Dense = function() return nn.Dense(3, 2) end,
  SequentialCell = function() return nn.SequentialCell(nn.Dense(3, 2), nn.ReLU()) end,
  CellList = function() return nn.CellList { nn.Dense(3, 2) } end,
  CellDict = function() return nn.CellDict { a = nn.Dense(3, 2) } end,
  Adam = function() return optimizer(nn.Dense(3, 2)) end,
  LARS = function() return nn.LARS(nn.Momentum(nn.Dense(3, 2):trainable_params(), 0.1, 0.9)) end,
  thor = function() return nn.thor(nn.Dense(3, 2), 0.1, 0.03, 0.9) end,
  CosineDecayLR = function() return nn.CosineDecayLR(0.01, 0.1, 10) end,
  StepLR = function()
    return ms.experimental.optim.lr_scheduler.StepLR(ms.experimental.optim.SGD(net:get_parameters(), { lr = 0.1 }), 2)
  end,
  CrossEntropyLoss = function() return nn.CrossEntropyLoss() end, MSELoss = function() return nn.MSELoss() end,
  CTCLoss = function() return nn.CTCLoss() end, LSTM = function() return nn.LSTM(3, 2) end,
  TrainOneStepCell = function() return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer(net)) end,
  ForwardValueAndGrad = function() return nn.ForwardValueAndGrad(net) end,
  Transformer = function() return nn.Transformer(6, 2, 1, 1, 5) end,
  DynamicLossScaler = function() return ms.amp.DynamicLossScaler(8.0, 2, 10) end,
  DynamicLossScaleManager = function() return ms.amp.DynamicLossScaleManager() end,
  SummaryRecord = function() return train.SummaryRecord(folder .. "/events") end,
  Model = model,
  Normal = function() return distributions.distribution.Normal(0.0, 1.0) end,
  Categorical = function() return distributions.distribution.Categorical(ms.tensor { 0.5, 0.5 }) end,
  ScalarAffine = function() return distributions.bijector.ScalarAffine(2.0, 1.0) end,
}
for _, name in ipairs { "Accuracy", "F1", "Loss", "MAE", "MSE", "Precision", "Recall", "BleuScore", "ConfusionMatrix", "CosineSimilarity",
  "Dice", "Perplexity", "ROC", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy" } do
  objects[name] = function() return name == "ConfusionMatrix" and train[name](2) or train[name]() end
end

-- Not tried: what classes override, which the library calls with what it has checked.
local left_out = { init = true, extend = true, setup = true, construct = true, bprop = true, update = true }

for _, title in ipairs(sorted(objects)) do
  t.test("methods of " .. title, function()
    calls = 0
    local methods, object = {}, objects[title]()
    local class = getmetatable(object)
    while type(class) == "table" do
      for name, value in pairs(class) do
        if type(name) == "string" and type(value) == "function" and not name:find "^_" then methods[name] = value end
      end
      class = getmetatable(class) and getmetatable(class).__index
      if type(class) ~= "table" then break end
    end
    for _, name in ipairs(sorted(methods)) do
      if not left_out[name] then
        object = objects[title]()
        try(title .. ":" .. name, function(...) return (object[name](object, ...)) end)
      end
    end
    object = objects[title]()
    local meta = getmetatable(object)
    if meta.__call then try(title .. "<>", function(...) return (object(...)) end, matrix) end
    assert(calls > 100, calls)
  end)
end

os.execute(("rm -rf '%s'"):format(folder))
t.finish()
