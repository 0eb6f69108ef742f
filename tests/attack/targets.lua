-- The functions that a program can call: every function of every module, every method of the values below, and the classes. Each is
-- { code = an expression that gives a function, calls = lists of arguments that are known to be good }.
local ms = require "lunaria"
local given = require "arguments".given

-- Left out: what ends the process or acts outside of it by design, and Lua's debug library, which can break Lua itself.
local LEFT_OUT = {
  ["os.exit"] = true, ["os.execute"] = true, ["os.remove"] = true, ["os.rename"] = true, ["io.popen"] = true, ["io.output"] = true,
  ["package.loadlib"] = true, ["os.setlocale"] = true, ["collectgarbage"] = true, ["rawset"] = true,
}

local MODULES = {
  "autodiff", "jit", "frontend", "rendering", "custom_ops", "registry", "profiling", "transforms", "graph", "nn", "mint", "plot",
  "rich", "image",
  "op", "profile", "summary", "data_sink", "progress", "widgets", "initializer", "common", "vmap", "lowered", "markup",
  "help.index", "help.search", "help.entries", "data", "dataset", "dataset.samplers", "dataset.sources", "train", "train.metrics",
  "train.batches", "train.not_finite", "train.training_state", "train.checkpoint", "amp", "experimental", "nn.schedule",
  "nn.lr_scheduler", "nn.arguments", "nn.class", "nn.around", "nn.copy", "parts", "set_parts", "adjoints", "captured", "notebook.comm",
  "dataset.vision", "dataset.transforms", "dataset.text", "dataset.audio", "vision", "text", "audio",
  "probability.distribution", "probability.continuous", "probability.discrete", "probability.bijector", "probability.bnn_layers",
  "probability.special", "boost.adasum", "boost.dim_reduce", "boost.freeze", "boost.average", "boost.less_bn", "boost.auto",
}

local RECEIVERS = {
  "ms.tensor({ 1.0, 2.0 })", "ms.float32", "ms.Parameter(ms.ones({ 2, 3 }), 'w')", "ms.nn.Dense(3, 2)", "ms.nn.LSTM(3, 2)",
  "ms.nn.BatchNorm1d(3)",
  "ms.nn.SequentialCell(ms.nn.Dense(3, 2), ms.nn.ReLU())", "ms.nn.CellList({ ms.nn.ReLU() })", "ms.nn.Conv2d(1, 2, 3)",
  "ms.nn.MultiheadAttention(4, 2)",
  "ms.nn.Adam({ ms.Parameter(ms.ones({ 2 }), 'w') }, 0.1)", "ms.mint.optim.SGD({ ms.Parameter(ms.ones({ 2 }), 'w') }, 0.1)",
  "ms.jit(function(x) return x * 2 end)", "ms.plot.line({ 1, 2, 3 })", "ms.slice(1, 2)", "ms.json.array({ 1 })", "'text'",
  "io.tmpfile()", "ms.nn.Dropout(0.5)",
  -- Data sets, their iterators and what reads them.
  "given.rows()", "given.rows():batch(2)", "given.rows():shuffle(3):repeat_(2)", "given.rows():map(function(x) return x end)",
  "given.rows():create_tuple_iterator()", "given.rows():create_dict_iterator()", "ms.dataset.GeneratorDataset({ 1, 2 }, { 'x' })",
  "ms.dataset.SequentialSampler()", "ms.dataset.RandomSampler()", "ms.dataset.DistributedSampler(2, 0)",
  "ms.dataset.WeightedRandomSampler({ 1, 2 }, 2)", "ms.dataset.SubsetSampler({ 0, 1 })", "ms.dataset.config",
  "require('lunaria.data').range(0, 5)",
  "ms.probability.distribution.Normal(0.0, 1.0)", "ms.probability.distribution.Gamma(2.0, 1.0)",
  "ms.probability.distribution.Categorical({ 0.5, 0.5 })", "ms.probability.distribution.Poisson(2.0)",
  "ms.probability.bijector.Softplus()(ms.probability.distribution.Uniform(0.0, 1.0))", "ms.probability.bijector.PowerTransform(0.5)",
  "ms.probability.bnn_layers.DenseReparam(3, 2)", "ms.boost.EMA(ms.nn.Dense(3, 2))", "ms.boost.SWA(ms.nn.Dense(3, 2))",
  "ms.boost.GradientFreeze(2, 0, 0.5, 10)", "ms.boost.AdaSum(2)", "ms.boost.FreezeOpt(given.optimizer())",
  -- Training: schedules, metrics, callbacks, the model.
  "ms.nn.CosineDecayLR(0.0, 0.1, 10)", "ms.nn.WarmUpLR(0.1, 10)", "ms.nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5)",
  "ms.experimental.optim.lr_scheduler.StepLR(given.optimizer(), 2)", "given.optimizer()",
  "ms.train.Accuracy()", "ms.train.MAE()", "ms.train.F1()", "ms.train.ConfusionMatrix(2)", "ms.train.ROC()", "ms.train.BleuScore()",
  "ms.train.Perplexity()", "ms.train.TopKCategoricalAccuracy(2)", "ms.train.Dice()", "ms.train.Recall()", "ms.train.Loss()",
  "ms.train.LossMonitor()", "ms.train.EarlyStopping()", "ms.train.ReduceLROnPlateau()", "ms.train.History()",
  "ms.train.CheckpointConfig()", "given.model()", "ms.nn.MSELoss()", "ms.nn.CrossEntropyLoss()", "ms.nn.GRUCell(3, 2)",
  "ms.nn.TransformerEncoderLayer(4, 2, 8)", "ms.nn.TrainOneStepCell(given.network(), given.optimizer())",
  "ms.amp.DynamicLossScaler(8, 2, 3)", "ms.nn.Cell", "ms.train.Metric", "ms.profile(function(x) return x end, 1.0)", "ms.nn", "ms.train",
}

local function sorted(t)
  local names = {}
  for name in pairs(t) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local list, known = {}, {}

local function add(code, f, calls)
  if LEFT_OUT[code] then return end
  local metatable = type(f) == "table" and getmetatable(f)
  if type(f) ~= "function" and not (type(metatable) == "table" and metatable.__call) then return end
  if known[code] then return end
  known[code] = true
  list[#list + 1] = { code = code, calls = calls or {} }
end

-- The parts of a text between commas that are in no brackets or strings.
local function split(text)
  local parts, depth, start, quote = {}, 0, 1, nil
  for i = 1, #text do
    local c = text:sub(i, i)
    if quote then
      if c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      quote = c
    elseif c:find("[%(%[{]") then
      depth = depth + 1
    elseif c:find("[%)%]}]") then
      depth = depth - 1
    elseif c == "," and depth == 0 then
      parts[#parts + 1] = text:sub(start, i - 1)
      start = i + 1
    end
  end
  if text:find("%S", start) then parts[#parts + 1] = text:sub(start) end
  return parts
end

local DTYPES = {
  f16 = "float16", bf16 = "bfloat16", f32 = "float32", f64 = "float64", i8 = "int8", i16 = "int16", i32 = "int32", i64 = "int64",
  u8 = "uint8",
  bool = "bool", c64 = "complex64",
}

-- A sample of an operator's entry (core/ops/sample.h) as arguments.
local function of_sample(text)
  local arguments, named = {}, {}
  for _, part in ipairs(split(text)) do
    part = part:gsub("(%w+)(%b[])(:?%b())", function(dtype, shape, range)
      if not DTYPES[dtype] then return nil end
      local low = range:match("%((%-?[%d.]+)") or "1"
      return ("ms.full({%s}, %s, ms.%s)"):format(shape:sub(2, -2), low, DTYPES[dtype])
    end)
    part = part:gsub("(%w+)(%b[])", function(dtype, shape)
      return DTYPES[dtype] and ("ms.ones({%s}, ms.%s)"):format(shape:sub(2, -2), DTYPES[dtype])
    end)
    if part:find("^%s*[%a_]+=") then
      named[#named + 1] = part
    else
      arguments[#arguments + 1] = part
    end
  end
  if #named > 0 then arguments[#arguments + 1] = "{" .. table.concat(named, ",") .. "}" end
  for _, argument in ipairs(arguments) do
    if not load("return " .. argument) then return nil end
  end
  return arguments
end

local function add_operators()
  for _, entry in ipairs(require("lunaria.registry").entries()) do
    local calls = {}
    for _, sample in ipairs(entry.samples) do
      calls[#calls + 1] = of_sample(sample)
    end
    local names = {}
    for i, parameter in ipairs(entry.parameters) do
      names[i] = parameter.name:match("^[^/]*")
    end
    calls.names = names
    add("ms.ops." .. entry.name, ms.ops[entry.name], calls)
    if entry.method then
      add(("function(x, ...) return x:%s(...) end"):format(entry.name), print, calls)
    end
  end
end

-- Calls that are good, of functions whose entries have no samples.
local GOOD = {}
for _, text in ipairs {
  "ms.tensor({ 1, 2 }, ms.float32)", "ms.slice(0, 4, 2)", "ms.set_context({ mode = ms.PYNATIVE_MODE })", "ms.set_seed(1)",
  "ms.Parameter(ms.ones({ 2 }), 'w', true)", "ms.save(ms.ones({ 2 }), 'saved')", "ms.load('file')", "ms.json.decode('[1]')",
  "ms.json.encode({ 1, 2 })", "ms.grad(function(x) return x:sum() end, 0)", "ms.value_and_grad(function(x) return x:sum() end, 0)",
  "ms.vjp(function(x) return x * x end, ms.ones({ 2 }))", "ms.jvp(function(x) return x * x end, ms.ones({ 2 }), ms.ones({ 2 }))",
  "ms.vmap(function(x) return x end, 0, 0)", "ms.jit(function(x) return x end, { fullgraph = true })",
  "ms.check_grad(function(x) return x:sum() end, ms.ones({ 2 }))", "ms.custom_vjp(function(x) return x end, function(x) return x end)",
  "ms.export(function(x) return x * 2 end, ms.ones({ 2 }), { file_name = 'exported' })", "ms.checkpoint(function(x) return x end)",
  "ms.op('mine', function(x) return x * x end)", "ms.data_sink(function(x) return x end, { ms.ones({ 2 }) })",
  "ms.nn.Conv2d(1, 2, 3, 1, 'same')", "ms.nn.Conv1d(1, 2, 3)", "ms.nn.Conv2dTranspose(1, 2, 3)", "ms.nn.GRU(3, 2, 1)",
  "ms.nn.RNN(3, 2, 1)", "ms.nn.Embedding(5, 3)", "ms.nn.LayerNorm({ 3 })", "ms.nn.GroupNorm(2, 4)", "ms.nn.MaxPool2d(2, 2)",
  "ms.nn.AdaptiveAvgPool2d({ 1, 1 })", "ms.nn.Pad({ { 1, 1 } })", "ms.nn.TransformerEncoderLayer(4, 2, 8)", "ms.plot.line({ 1, 2 })",
  "ms.plot.hist({ 1, 2, 3 }, 2)", "ms.plot.image(ms.ones({ 3, 3 }))", "ms.plot.scatter({ 1, 2 }, { 3, 4 })", "ms.progress({ 1, 2 })",
  "ms.io.read_npy('file')", "ms.io.write_npy('written', ms.ones({ 2 }))", "ms.image.resize(ms.ones({ 3, 4, 4 }), { 2, 2 })",
  "ms.initializer('normal', { 2, 3 }, ms.float32)", "ms.summary(ms.nn.Dense(2, 3))", "string.find('abc', 'b', 1, true)",
  "string.gsub('abc', '(b)', '%1%1')", "string.format('%5.2f', 1.5)", "string.rep('x', 3, ',')", "string.pack('i4', 1)",
  "table.concat({ 1, 2 }, ',', 1, 2)", "table.unpack({ 1, 2 }, 1, 2)", "table.move({ 1, 2 }, 1, 2, 3)", "table.sort({ 2, 1 })",
  "ms.dataset.NumpySlicesDataset({ ms.ones({ 3, 2 }) }, { column_names = { 'x' } })", "ms.dataset.zip({ given.rows(), given.rows() })",
  "ms.train.rearrange_inputs(1, 2)", "ms.train.auc({ 0.0, 1.0 }, { 0.0, 1.0 })", "ms.train.get_metrics({ 'accuracy' })",
  "ms.nn.cosine_decay_lr(0.01, 0.1, 6, 2, 3)", "ms.nn.piecewise_constant_lr({ 2, 5 }, { 0.1, 0.05 })",
  "ms.nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5)", "ms.nn.warmup_lr(0.1, 6, 2, 2)",
  "ms.save_checkpoint(given.network(), 'net.ckpt')", "ms.load_checkpoint('net.ckpt')", "ms.Model(given.network(), ms.nn.MSELoss())",
  "ms.amp.all_finite({ ms.ones({ 2 }) })", "ms.amp.auto_mixed_precision(given.network(), 'O2')",
  "table.insert({ 1 }, 1, 2)", "table.remove({ 1 }, 1)", "utf8.char(65)", "utf8.codepoint('abc', 1, 2)",
  table.unpack(RECEIVERS),
} do
  local path, arguments = text:match("^([%a_][%w_.]*)%((.*)%)$")
  if path then
    GOOD[path] = GOOD[path] or {}
    table.insert(GOOD[path], split(arguments))
  end
end

local function add_table(code, t, depth)
  if depth > 2 or type(t) ~= "table" then return end
  for _, name in ipairs(sorted(t)) do
    local value = t[name]
    local path = name:find("^[%a_][%w_]*$") and code .. "." .. name or ("%s[%q]"):format(code, name)
    add(path, value, GOOD[path])
    if type(value) == "table" and value ~= ms and value ~= _G and not path:find("package") then add_table(path, value, depth + 1) end
  end
end

local function add_methods()
  for _, receiver in ipairs(RECEIVERS) do
    local value = assert(load("local ms, given = ... return " .. receiver))(ms, given)
    local ok = true
    local names, seen = {}, {}
    local t = ok and (type(value) == "table" and value or (getmetatable(value) or {}).__index)
    while type(t) == "table" and not seen[t] do
      seen[t] = true
      for name, f in next, t do
        if type(name) == "string" and type(f) == "function" then names[name] = true end
      end
      t = (getmetatable(t) or {}).__index
    end
    if receiver:find("^ms%.tensor") then
      for name in pairs(require "lunaria.help.descriptions") do
        if name:find "^x:" then names[name:sub(3)] = true end
      end
    end
    for _, name in ipairs(sorted(names)) do
      if name:find("^[%a_][%w_]*$") and not LEFT_OUT[name] then
        add(("function(...) local o = %s return o.%s(o, ...) end"):format(receiver, name), print)
      end
    end
    -- What Lua calls itself, called with anything.
    local metatable = getmetatable(value)
    for _, name in ipairs(type(metatable) == "table" and sorted(metatable) or {}) do
      if type(metatable[name]) == "function" and name:find "^__" then
        add(("function(...) local o = %s return getmetatable(o)[%q](o, ...) end"):format(receiver, name), print)
        add(("function(...) local o = %s return getmetatable(o)[%q](...) end"):format(receiver, name), print)
      end
    end
    for _, use in ipairs { "o[...]", "o(...)", "o == ...", "o .. ...", "o + ...", "o < ...", "#o", "-o", "tostring(o)", "ms.display(o)" } do
      add(("function(...) local o = %s return %s end"):format(receiver, use), print)
    end
    add(("function(k, v) local o = %s o[k] = v return o end"):format(receiver), print)
  end
end

for _, name in ipairs(MODULES) do
  local ok, module = pcall(require, "lunaria." .. name)
  if ok then add_table(("require(%q)"):format("lunaria." .. name), module, 1) end
end
add_operators()
add_table("ms", ms, 0)
add_methods()
for _, name in ipairs {
  "load", "pcall", "xpcall", "select", "tonumber", "tostring", "print", "require", "dofile", "loadfile", "assert", "error", "ipairs",
  "pairs", "next", "rawequal", "rawget", "rawlen", "setmetatable", "getmetatable", "type", "warn",
} do
  add(name, _G[name])
end
for _, library in ipairs { "string", "table", "math", "utf8", "coroutine", "io", "os" } do
  add_table(library, _G[library], 2)
end
return list
