-- Fuzz testing: seeds are mutated, and what brings out more of the network becomes a seed itself. A batch of mutants passes through the
-- network once: what it adds to the coverage and what the network predicts come from that pass.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local activations = require "lunaria.armour.activations"
local common = require "lunaria.armour.common"
local mutation = require "lunaria.armour.fuzz.mutation"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local report_methods = {}
report_methods.__index = report_methods

local function percent(value) return value and ("%.1f %%"):format(100 * value) or "-" end

--- What a report says, as a table in text: for each method how many mutants it made, how many of them were classified right, and what they
--- added to the coverage.
function report_methods.__tostring(report)
  local lines = { ("%-22s %7s %9s %8s"):format("method", "mutants", "accuracy", "coverage") }
  for _, row in ipairs(report.methods) do
    lines[#lines + 1] = ("%-22s %7d %9s %+8.4f"):format(row.method, row.mutants, percent(row.right / row.mutants), row.gain)
  end
  lines[#lines + 1] = ("accuracy %s, attack success %s, coverage %.4f (of the seeds %.4f)"):format(percent(report.Accuracy),
    percent(report.Attack_success_rate), report.Coverage_metrics, report.Initial_coverage)
  return table.concat(lines, "\n")
end

--- A plot of the coverage over the mutants, for a terminal, a notebook or a file.
function report_methods:plot()
  return ms.plot.line(self.history, { title = "coverage", x_label = "mutants" })
end

local Fuzzer = class.define(nil, "Fuzzer", "target_model, loss_fn=nil, bounds=nil, seed=nil",
  [[Searches for inputs that a network gets wrong (Xie et al., DeepHunter, 2019): seeds are mutated at random, and a mutant that adds to the
coverage becomes a seed. target_model: a cell or a ms.train.Model that gives logits (N, classes). loss_fn: what mutation by attacks makes
large; cross-entropy by default. bounds: the range of the inputs, { 0, 1 } by default. seed: of all that is drawn.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(64, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
  > fuzz = ms.armour.fuzz_testing
  > seeds = { { ms.ops.rand(1, 8, 8), 0 }, { ms.ops.rand(1, 8, 8), 1 } }
  > mutations = { { method = "UniformNoise", params = { factor = { 0.1, 0.2 } } } }
  > metric = fuzz.NeuronCoverage(net, { incremental = true })
  > samples = fuzz.Fuzzer(net, { seed = 1 }):fuzzing(mutations, seeds, metric, { max_iters = 2, mutate_num_per_seed = 3 })
  > #samples --> 6]])
Fuzzer._called = "fuzzer"

function Fuzzer:setup(a)
  local name = getmetatable(self)._name
  self._network = activations.network(name, a.target_model)
  self._lo, self._hi = common.bounds(name, a.bounds, { 0, 1 })
  if self._lo == nil or not math.type(self._lo) or not math.type(self._hi) then
    fail(name, "bounds must be two numbers, got " .. describe(a.bounds))
  end
  self._model = common.classifier(name, self._network, a.loss_fn)
  self._draws = common.generator(a.seed, name)
end

-- The seeds as { image =, label =, pixels_only = }.
local function seeds_of(self, where, initial_seeds)
  if type(initial_seeds) ~= "table" or getmetatable(initial_seeds) ~= nil or #initial_seeds == 0 then
    fail(where, "initial_seeds must be a list of { image, label }, got " .. describe(initial_seeds))
  end
  local seeds = {}
  for i, seed in ipairs(initial_seeds) do
    local image, label = nil, nil
    if type(seed) == "table" and getmetatable(seed) == nil then image, label = seed[1], seed[2] end
    if not ms.is_tensor(image) or label == nil then fail(where, ("seed %d must be { image, label }, got %s"):format(i, describe(seed))) end
    common.images(where, ops.expand_dims(image, 0), self._lo, self._hi)
    if math.type(label) then label = ms.tensor(label, ms.int32) end
    if not ms.is_tensor(label) then
      fail(where, ("the label of seed %d must be a class or a one-hot row, got %s"):format(i, describe(label)))
    end
    label = common.labels(where, ops.expand_dims(label, 0), 1)
    seeds[i] = { image = image, label = label:item(), pixels_only = false }
  end
  return seeds
end

-- What a batch of mutants adds to the coverage, one number for each, and what the network predicts, (n, classes).
local function gains_and_predictions(self, coverage, images)
  local gains, output = coverage:_add(images)
  if coverage._network ~= self._network or not ms.is_tensor(output) then
    output = common.predicting(self._network, self._network, images)
  end
  return gains, output
end

-- Mutants of a seed that are near enough to it, as seeds, and by which methods they were made. The seed itself where there are none.
local function mutants_of(self, mutate, seed, count)
  local list, methods = {}, {}
  for _ = 1, count do
    local image, method, pixels_only = mutate:once(seed)
    if mutate:is_valid(seed.image, image) then
      list[#list + 1] = { image = image, label = seed.label, pixels_only = pixels_only }
      methods[#methods + 1] = method
    end
  end
  if #list == 0 then return { seed }, { "none" } end
  return list, methods
end

local function stacked(list)
  local images = {}
  for i, mutant in ipairs(list) do images[i] = mutant.image end
  return ops.stack(images, 0)
end

local found_methods = {}
found_methods.__index = found_methods

local function new_found() return setmetatable({ samples = {}, labels = {}, predictions = {}, methods = {}, gains = {} }, found_methods) end

function found_methods:add(list, methods, output, gains)
  for i, mutant in ipairs(list) do
    local n = #self.samples + 1
    self.samples[n], self.labels[n], self.methods[n] = mutant.image, mutant.label, methods[i]
    self.predictions[n], self.gains[n] = output[i - 1], gains and gains[i] or 0
  end
end

-- The report on mutants. before: the coverage of the seeds; after: that of the mutants.
local function report_of(found, before, after)
  local report = setmetatable({ methods = {}, history = {}, Initial_coverage = before, Coverage_metrics = after }, report_methods)
  local rows, right_in_all, attacks, withstood, covered = {}, 0, 0, 0, before
  for i, method in ipairs(found.methods) do
    local row = rows[method]
    if not row then
      row = { method = method, mutants = 0, right = 0, gain = 0.0 }
      rows[method] = row
      table.insert(report.methods, row)
    end
    local is_right = ops.argmax(found.predictions[i], 0):item() == found.labels[i]
    row.mutants, row.gain = row.mutants + 1, row.gain + found.gains[i]
    covered = covered + found.gains[i]
    report.history[i] = covered
    if is_right then row.right, right_in_all = row.right + 1, right_in_all + 1 end
    if mutation.is_attack(method) then
      attacks = attacks + 1
      withstood = withstood + (is_right and 1 or 0)
    end
  end
  report.Accuracy = #found.methods > 0 and right_in_all / #found.methods or 0.0
  -- Without mutants by attacks there is no rate of their success.
  report.Attack_success_rate = attacks > 0 and 1 - withstood / attacks or nil
  return report
end

local signature = arguments.signature "mutate_config, initial_seeds, coverage, evaluate=true, max_iters=nil, mutate_num_per_seed=20"

local function bound(self, where, default_iters, ...)
  local a = arguments.bind(where, signature, ...)
  if type(a.coverage) ~= "table" or type(a.coverage.get_metrics) ~= "function" then
    fail(where, "coverage must be a coverage metric, as ms.armour.fuzz_testing.NeuronCoverage(net), got " .. describe(a.coverage))
  end
  a.evaluate = check.boolean(where, "evaluate", a.evaluate)
  a.max_iters = check.positive(where, "max_iters", a.max_iters or default_iters)
  a.mutate_num_per_seed = check.positive(where, "mutate_num_per_seed", a.mutate_num_per_seed)
  a.mutate = mutation.new(where, a.mutate_config, self._model, self._lo, self._hi, self._draws)
  a.seeds = seeds_of(self, where, a.initial_seeds)
  return a
end

--- Mutates seeds until none is left or max_iters have been: gives the mutants, a list of tensors; their true classes; what the network
--- predicts of each, a list of tensors (classes,); the methods that made them; and a report (nil with evaluate = false) with Accuracy,
--- Attack_success_rate (nil without attacks), Coverage_metrics, Initial_coverage, the rows `methods`, which tostring(report) shows as a
--- table, and report:plot(). mutate_config: a list of { method =, params = { name = list of values to draw from } }; methods are the
--- transforms of ms.armour.natural_robustness and the attacks FGSM, PGD and MDIIM. initial_seeds: a list of { image, label }. coverage: a
--- coverage metric. mutate_num_per_seed: mutants of a seed at once.
function Fuzzer:fuzzing(...)
  local where = "fuzzing"
  local a = bound(self, where, 10000, ...)
  if type(a.coverage._add) ~= "function" or a.coverage._events == nil then
    fail(where, "coverage must count events of single inputs, which " .. getmetatable(a.coverage)._name .. " doesn't",
      "SensitivityMaximizingFuzzer is made for it")
  end
  local before = a.coverage:get_metrics(stacked(a.seeds))
  -- A section of a unit more is little where there are many.
  local least = a.coverage.segmented_num and 0.1 / a.coverage.segmented_num or 0
  local seeds, found = a.seeds, new_found()
  for _ = 1, a.max_iters do
    if #seeds == 0 then break end
    local at = self._draws:integers({ 1 }, 0, #seeds):item() + 1
    local seed = table.remove(seeds, at)
    local list, methods = mutants_of(self, a.mutate, seed, a.mutate_num_per_seed)
    local gains, output = gains_and_predictions(self, a.coverage, stacked(list))
    found:add(list, methods, output, gains)
    for i, mutant in ipairs(list) do
      if gains[i] > least then seeds[#seeds + 1] = mutant end
    end
  end
  local report = a.evaluate and report_of(found, before, a.coverage:get_metrics(stacked(found:list()))) or nil
  return found.samples, found.labels, found.predictions, found.methods, report
end

function found_methods:list()
  local list = {}
  for i, image in ipairs(self.samples) do list[i] = { image = image } end
  return list
end

local SensitivityMaximizingFuzzer = class.define(Fuzzer, "SensitivityMaximizingFuzzer", "target_model, loss_fn=nil, bounds=nil, seed=nil",
  [[Searches for mutations of seeds that change what units give as much as can be (Huang et al., Themis, 2022): in each iteration all seeds
are mutated once, until the sensitivities of the units have converged. target_model, loss_fn,
bounds and seed are those of Fuzzer.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(64, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
  > fuzz = ms.armour.fuzz_testing
  > seeds = { { ms.ops.rand(1, 8, 8), 0 }, { ms.ops.rand(1, 8, 8), 1 } }
  > mutations = { { method = "UniformNoise", params = { factor = { 0.1 } } } }
  > metric = fuzz.SensitivityConvergenceCoverage(net, { n_iter = 20 })
  > samples = fuzz.SensitivityMaximizingFuzzer(net, { seed = 1 }):fuzzing(mutations, seeds, metric, { max_iters = 1 })
  > #samples --> 2]])

--- Mutates all seeds, max_iters times or until the coverage is 1. Arguments and results are those of Fuzzer's fuzzing; the coverage takes
--- clean inputs and mutated ones behind them, and the report is on the iteration with the most coverage.
function SensitivityMaximizingFuzzer:fuzzing(...)
  local a = bound(self, "fuzzing", 1000, ...)
  local clean = stacked(a.seeds)
  local function round()
    local list, methods = {}, {}
    for i, seed in ipairs(a.seeds) do
      local mutants, by = mutants_of(self, a.mutate, seed, 1)
      list[i], methods[i] = mutants[1], by[1]
    end
    local images = stacked(list)
    local found = new_found()
    found:add(list, methods, common.predicting(self._network, self._network, images))
    return found, a.coverage:get_metrics(ops.concat({ clean, images }, 0))
  end
  local all = new_found()
  local best, most, before
  for _ = 1, a.max_iters do
    local found, covered = round()
    for i, image in ipairs(found.samples) do
      all:add({ { image = image, label = found.labels[i] } }, { found.methods[i] }, ops.expand_dims(found.predictions[i], 0))
    end
    before = before or covered
    if most == nil or covered > most then best, most = found, covered end
    if most >= 1 then break end
  end
  local report = a.evaluate and report_of(best, before, most) or nil
  return all.samples, all.labels, all.predictions, all.methods, report
end

return { Fuzzer = Fuzzer, SensitivityMaximizingFuzzer = SensitivityMaximizingFuzzer }
