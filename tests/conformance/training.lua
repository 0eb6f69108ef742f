-- Repeats reference training runs: the loss of batch k is taken before update k and must be the reference's.
--   lunaria tests/conformance/training.lua DIR [--api ops,nn] [--run IDS] [--mode eager|graph] [--rules FILE.lua] [--parts N]
--     [--verbose]
--   lunaria launch -n N tests/conformance/training.lua DIR --parallel auto|data|level1|level2|level3|shards|pipeline [...]
-- Each run is done twice: with plain functions of a table of weights and the update rules as the file states them (ops), and
-- with cells and optimizers (nn). In graph mode most steps have to be compiled. Runs of what does not exist yet are counted as
-- waiting. --parts: one of so many parts of the runs, another each day. The last line is "N passed, N failed".
-- With --parallel the batches are divided among the ranks, and TrainOneStepCell trains (nn only): with whole parameters (data), with a
-- fixed number of 8 shards (shards), or with parameters and states divided among the ranks (level1 to level3; sharded: level2); or the
-- layers are divided (pipeline). auto: the cheapest strategies are searched for, and tensors laid out as they say; also on ranks that one
-- process simulates (--ranks).
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. here .. "../lua/?.lua;" .. package.path
local ms = require "lunaria"
local models = require "models"
local support = require "support"
local today = require "support.today"

local usage = "usage: lunaria training.lua DIR [--api ops,nn] [--run IDS] [--mode eager|graph] [--rules FILE] "
  .. "[--parallel KIND [--ranks N]] [--parts N] [--verbose]"
local folder, options = support.options(usage,
  { api = "", run = "", mode = "eager", rules = "", parallel = "", ranks = "", parts = "1", verbose = true })
-- The folder, or the file in it.
folder = folder:match "^(.*)/[^/]*%.json$" or folder
local promised = options.rules ~= "" and dofile(options.rules) or {}
if options.mode ~= "graph" and options.mode ~= "eager" then
  error("--mode must be eager or graph, got " .. options.mode, 0)
end

local parallel = options.parallel ~= "" and options.parallel
if parallel == "auto" then
  if options.ranks ~= "" then ms.set_auto_parallel_context { device_num = tonumber(options.ranks) } end
  ms.set_auto_parallel_context { parallel_mode = "auto_parallel", full_batch = true }
  options.api = "nn"
elseif parallel then
  local level = parallel == "sharded" and "level2" or parallel:match "^level[123]$"
  if not level and parallel ~= "data" and parallel ~= "shards" and parallel ~= "pipeline" then
    error("--parallel must be auto, data, shards, sharded, level1, level2, level3 or pipeline, got " .. parallel, 0)
  end
  ms.communication.init()
  if parallel ~= "pipeline" then ms.set_auto_parallel_context { parallel_mode = "data_parallel", gradients_mean = true, full_batch = true,
    logical_shards = parallel == "shards" and 8 or 0, enable_parallel_optimizer = level ~= nil,
    parallel_optimizer_config = { optimizer_level = level or "level1", parallel_optimizer_threshold = 0.25 } } end
  options.api = "nn"
end

local set = support.read_json(folder .. "/e2e.json")
local tensors = ms.load(folder .. "/" .. set.file)

-- name -> tensor, with a copy of the start values
local function weights_of(run)
  local weights, prefix = {}, run.model .. "."
  for name, tensor in pairs(tensors) do
    if name:sub(1, #prefix) == prefix then weights[name:sub(#prefix + 1)] = tensor end
  end
  return weights
end

-- Gives the new value of a parameter from its gradient; s is what is kept per parameter between the steps.
local rules = {}
function rules.SGD(h, p, g) return p - h.lr * g end
function rules.Momentum(h, p, g, s)
  s.v = s.v and h.momentum * s.v + g or g
  return p - h.lr * s.v
end
function rules.Adam(h, p, g, s)
  s.t = (s.t or 0) + 1
  s.m = h.beta1 * (s.m or 0) + (1 - h.beta1) * g
  s.v = h.beta2 * (s.v or 0) + (1 - h.beta2) * g * g
  local m, v = s.m / (1 - h.beta1 ^ s.t), s.v / (1 - h.beta2 ^ s.t)
  return p - h.lr * m / (ms.ops.sqrt(v) + h.eps)
end
function rules.AdamW(h, p, g, s) return rules.Adam(h, p * (1 - h.lr * h.weight_decay), g, s) end

-- Each gives step(x, y) -> loss before the update, loss(x, y), and the gradient's function.
local apis = {}

function apis.ops(run)
  local model, rule = models.functions[run.model], rules[run.optimizer]
  local weights, states = weights_of(run), {}
  -- In one order: that of pairs is another for each table, and so another case of a compiled step.
  local names = {}
  for name in pairs(weights) do names[#names + 1] = name end
  table.sort(names)
  local function loss(p, x, y) return models.loss(model(p, x, run), y) end
  local gradient = ms.value_and_grad(loss, 0)
  local function step(x, y)
    local value, grads = gradient(weights, x, y)
    local updated = {}
    for _, name in ipairs(names) do
      states[name] = states[name] or {}
      updated[name] = rule(run.hyper, weights[name], grads[name], states[name])
    end
    weights = updated
    return value
  end
  return step, function(x, y) return loss(weights, x, y) end, gradient
end

local optimizers = {}
function optimizers.SGD(params, h) return ms.nn.SGD(params, { learning_rate = h.lr }) end
function optimizers.Momentum(params, h) return ms.nn.Momentum(params, h.lr, h.momentum) end
function optimizers.Adam(params, h)
  return ms.mint.optim.Adam(params, { lr = h.lr, betas = { h.beta1, h.beta2 }, eps = h.eps })
end
function optimizers.AdamW(params, h)
  return ms.mint.optim.AdamW(params, { lr = h.lr, betas = { h.beta1, h.beta2 }, eps = h.eps, weight_decay = h.weight_decay })
end

-- A step that all ranks make together.
local function parallel_step(net, loss, optimizer)
  local WithLoss = ms.nn.Cell:extend("WithLoss")
  function WithLoss:init() self.network = net end
  WithLoss.auto_prefix = false
  function WithLoss:construct(x, y) return loss(x, y) end -- luacheck: ignore 212
  return ms.nn.TrainOneStepCell(WithLoss(), optimizer)
end

-- Statistics of a batch are those of all ranks, as the reference has them.
local synchronous = parallel and parallel ~= "pipeline" and parallel ~= "auto"
local layers = synchronous and setmetatable({ BatchNorm2d = ms.nn.SyncBatchNorm }, { __index = ms.nn }) or ms.nn

function apis.nn(run)
  local weights = weights_of(run)
  local net = models.cells[run.model](layers, weights, run)
  local params = net:trainable_params()
  for _, p in ipairs(params) do p:assign(weights[p.name] or error("the file has no weight " .. p.name, 0)) end
  net:set_train(true)
  if parallel == "pipeline" then
    local pipe, reason = require "chains"(net, run)
    if not pipe then return nil, reason end
    pipe:set_train(true)
    local step = ms.nn.TrainOneStepCell(pipe, optimizers[run.optimizer](pipe:trainable_params(), run.hyper))
    return step, pipe, step
  end
  local function loss(x, y) return models.loss(net(x), y) end
  local optimizer = optimizers[run.optimizer](params, run.hyper)
  if parallel then
    local step = parallel_step(net, loss, optimizer)
    return step, loss, step.value_and_gradients
  end
  local gradient = ms.value_and_grad(loss, nil, params)
  local function step(x, y)
    local value, grads = gradient(x, y)
    optimizer(grads)
    return value
  end
  return step, loss, gradient
end

local function missing(api, run)
  if parallel == "shards" and run.model == "bnet" then return "statistics of batches beside shards" end
  if not ms.value_and_grad then return "ms.value_and_grad" end
  if api == "nn" and not (ms.nn and ms.mint) then return "ms.nn" end
end

local function judge(run, api)
  local step, loss, gradient = apis[api](run)
  if not step then return nil, loss end
  local x, y = tensors[run.x], tensors[run.y]
  local function batch(k)
    local rows = ms.slice(k * run.batch, (k + 1) * run.batch)
    return x[{ rows }], y[{ rows }]
  end
  local function call(f, ...)
    if options.mode == "graph" then return support.in_graph_mode(f, ...) end
    return f(...)
  end
  local rtol = promised.runs and promised.runs[run.id] or promised.training or run.rtol
  local function near(got, expected) return math.abs(got - expected) <= rtol * math.abs(expected) end
  for k = 1, run.steps do
    local got = call(step, batch(k - 1)):item()
    if not near(got, run.loss_float32[k]) then return ("step %d: loss %.9g, expected %.9g"):format(k, got, run.loss_float32[k]) end
  end
  local last = call(loss, batch(0)):item()
  if not near(last, run.final_loss_on_batch0) then
    return ("after the run: loss %.9g, expected %.9g"):format(last, run.final_loss_on_batch0)
  end
  if options.mode == "graph" and not parallel then
    -- The gradient is compiled, or as a part of the step that calls it.
    local calls = 0
    for _, f in ipairs { step, gradient } do
      local known, report = pcall(ms.jit_report, f)
      calls = calls + (known and report.compiled_calls or 0)
    end
    if calls < run.steps / 2 then return ("only %d of %d steps are compiled"):format(calls, run.steps) end
  end
end

local parts, number = tonumber(options.parts), 0
local has_api, has_run = support.filter(options.api), support.filter(options.run)
local passed, failed, waiting = 0, 0, support.waiting_list()
for _, api in ipairs { "ops", "nn" } do
  for _, run in ipairs(set.runs) do
    local asked = has_api(api) and has_run(run.id)
    if asked then number = number + 1 end
    if asked and today.has(number, parts) then
      local reason = missing(api, run)
      local ran, wrong, lacking
      if not reason then ran, wrong, lacking = pcall(judge, run, api) end
      reason = reason or ran and lacking
      if reason then
        waiting:add(reason)
      elseif ran and not wrong then
        passed = passed + 1
        if options.verbose then print(("pass %s (%s)"):format(run.id, api)) end
      else
        failed = failed + 1
        print(("FAIL %s (%s): %s"):format(run.id, api, support.headline(wrong)))
      end
    end
  end
end
waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
