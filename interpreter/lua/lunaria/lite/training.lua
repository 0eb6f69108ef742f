-- Training on the device: networks with loss and optimizer as light files, and the trainer that runs them.
local ms = require "lunaria"
local convert_core = require "lunaria.lite_core"
local found_names = require "lunaria.found_names"
local core = require "lunaria.lite_model_core"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local predicting = require "lunaria.nn.predicting"
local light = require "lunaria.lite.model"

local M = {}
local describe = arguments.describe

-- What found_names gives for a call, with the tensors that are found noted by their names.
local function noted(found, f, inputs, parameters)
  local find = found_names(f, inputs, parameters)
  return function(kind, object, key)
    local name, value = find(kind, object, key)
    if kind ~= "argument" and ms.is_tensor(value) then found[name] = value end
    return name, value
  end
end

-- The numbers of an optimizer's rule, as the light runtime's trainer takes them.
local rules = {
  SGD = function(o) return { optimizer = "momentum", momentum = o.momentum, dampening = o.dampening, nesterov = o.nesterov and 1 or 0 } end,
  Adam = function(o)
    local torch = o.amsgrad ~= nil
    return { optimizer = "adam", beta1 = o.beta1, beta2 = o.beta2, eps = o.eps, scales_eps = torch and 1 or 0,
      nesterov = o.use_nesterov and 1 or 0 }
  end,
  AdamW = function(o)
    return { optimizer = "adam", beta1 = o.beta1, beta2 = o.beta2, eps = o.eps, scales_eps = 1, decoupled = 1 }
  end,
  AdamWeightDecay = function(o)
    return { optimizer = "adam", beta1 = o.beta1, beta2 = o.beta2, eps = o.eps, bias_correction = 0, decoupled = 1 }
  end,
}
rules.Momentum = rules.SGD

local function rule_of(optimizer, fail)
  local name = cells.is_cell(optimizer) and getmetatable(optimizer)._name
  if not rules[name] or not optimizer.param_groups then
    fail("optimizer must be an nn.SGD, Momentum, Adam, AdamW or AdamWeightDecay, got " .. describe(optimizer))
  end
  local group = optimizer.param_groups[1]
  if #optimizer.param_groups > 1 or group.centralized or optimizer.maximize then
    fail("parameters in groups, centralized gradients and maximize are not written to light files")
  end
  if optimizer.loss_scale and optimizer.loss_scale ~= 1 then
    fail "the loss scale belongs to the trainer: Trainer:set_loss_scale"
  end
  local rate = group.lr or optimizer.learning_rate
  local decay = group.weight_decay or optimizer.weight_decay
  if not math.type(rate) or not math.type(decay) then
    fail("learning rate and weight decay must be numbers: the trainer sets the rate as it goes, Trainer:set_learning_rate")
  end
  local rule = rules[name](optimizer)
  rule.learning_rate, rule.weight_decay = rate, decay
  if group.decayed then
    rule.decayed = {}
    for i, decays in ipairs(group.decayed) do rule.decayed[i] = decays and 1 or 0 end
  end
  return rule, group
end

-- The function with the record of a call; what its calls change is brought back.
local function recorded(f, inputs, parameters)
  local before, random = {}, ms.get_rng_state()
  for _, parameter in ipairs(parameters) do before[parameter] = parameter:copy() end
  local compiled = ms.jit(f)
  for _ = 1, 3 do compiled(table.unpack(inputs)) end
  for parameter, value in pairs(before) do parameter:assign(value) end
  ms.set_rng_state(random)
  return compiled
end

-- The variables of the optimizer, which begin with zeros: of each weight, and the number of steps.
local function add_states(made, group)
  for i, weight in ipairs(group.params) do
    local lists = { moment1 = group.moments or group.accumulators or {}, moment2 = group.squares or {}, most = group.maxima or {} }
    for prefix, list in pairs(lists) do
      if list[i] then convert_core.add_variable(made, prefix .. ":" .. weight.name, "float32", { table.unpack(weight.shape) }) end
    end
  end
  convert_core.add_variable(made, "steps", "int64", {})
end

--- Writes a network with its loss and optimizer as a light file that trains: forward and backward pass as one plan, the weights as
--- variables, and beside them the network as it predicts. network: a cell; loss_fn(outputs ..., labels) gives a scalar; optimizer: an
--- nn.SGD, Momentum, Adam, AdamW or AdamWeightDecay, which begins from its first step. Parameters that it does not have stay as
--- they are. Options: inputs, examples of one batch, the labels last; labels, how many of them (1); outputFile; names of the inputs;
--- encryptKey. Gives a report as ms.lite.convert does. ms.lite.Trainer and the C interface run the file.
---     > net = ms.nn.Dense(2, 3)
---     > optimizer = ms.nn.SGD(net:trainable_params(), 0.1)
---     > ms.lite.convert_training(net, ms.nn.MSELoss(), optimizer, { inputs = { ms.zeros { 4, 2 }, ms.zeros { 4, 3 } } }).variables --> 2
function M.convert_training(network, loss_fn, optimizer, options)
  local function fail(message, ...) arguments.fail("lite.convert_training", message:format(...)) end
  if not cells.is_cell(network) then fail("network must be a cell, got %s", describe(network)) end
  if not arguments.is_callable(loss_fn) then fail("loss_fn must be a function or a cell, got %s", describe(loss_fn)) end
  local rule, group = rule_of(optimizer, fail)
  options = options or {}
  local known = { inputs = true, labels = true, outputFile = true, names = true, encryptKey = true }
  for name in pairs(options) do
    if not known[name] then fail("there is no option '%s'", tostring(name)) end
  end
  local inputs, labels = options.inputs, options.labels or 1
  if type(inputs) ~= "table" or #inputs <= labels then
    fail("example inputs are missing: { inputs = { x, labels } }, of the batch that the file is for")
  end
  local first = #inputs - labels
  local parameters, names_of = network:get_parameters(), {}
  for _, parameter in ipairs(parameters) do
    if names_of[parameter.name] then fail("two parameters have the name '%s', by which a light file tells them apart", parameter.name) end
    names_of[parameter.name] = true
  end

  -- The step: loss, gradients, and what the network itself changes.
  local function forward(...)
    local all = { ... }
    local sens = all[#inputs + 1]
    local results = table.pack(network(table.unpack(all, 1, first)))
    for i = 1, labels do results[results.n + i] = all[first + i] end
    local loss = loss_fn(table.unpack(results, 1, results.n + labels))
    return loss * sens, loss
  end
  local differentiated = ms.value_and_grad(forward, nil, group.params, { has_aux = true })
  local function step(...)
    local values, gradients = differentiated(...)
    if ms.is_tensor(gradients) then gradients = { gradients } end
    return values[2], table.unpack(gradients)
  end
  local given = table.move(inputs, 1, #inputs, 1, {})
  given[#given + 1] = ms.tensor(1.0)
  local back = predicting(network)
  local fine, made, found, report = pcall(function()
    network:set_train(true)
    local outputs, names = { "loss" }, table.move(options.names or {}, 1, #inputs, 1, {})
    for i, weight in ipairs(group.params) do outputs[i + 1] = "gradient:" .. weight.name end
    for i = 1, #inputs do names[i] = names[i] or "input" .. i - 1 end
    names[#inputs + 1] = "sens"
    rule.converted_from = "a network in memory"
    local tensors, others = {}, {}
    local model = convert_core.step(recorded(step, given, parameters), noted(tensors, step, given, names_of), tensors,
      { inputs = names, outputs = outputs, properties = rule })
    network:set_train(false)
    local function predict(...) return network(...) end
    local seen = table.move(inputs, 1, first, 1, {})
    convert_core.embed(model, "predict", convert_core.step(recorded(predict, seen, parameters), noted(others, predict, seen, names_of),
      others, { inputs = table.move(names, 1, first, 1, {}), outputs = {}, properties = {} }))
    add_states(model, group)
    return model, tensors, convert_core.report(model)
  end)
  back()
  if not fine then error(made, 0) end
  if options.outputFile then convert_core.write(made, options.outputFile, nil, options.encryptKey) end
  report.variables = 0
  for _, value in pairs(found) do
    if ms.is_parameter(value) then report.variables = report.variables + 1 end
  end
  return report
end

--- A light file that ms.lite.convert_training wrote, ready to train. threads and decrypt_key are those of ms.lite.Model.
---
--- step(x, labels) does forward and backward for one batch and lets the optimizer change the weights; it gives the loss, and second
--- whether the batch was left out, since a gradient was not finite under a loss scale.
local Trainer = {}
Trainer.__index = Trainer
Trainer.__name = "lite.Trainer"

local function build(path, options)
  local made = light._build(path, options)
  core.train(made._model)
  return setmetatable({ _model = made._model, _count = made._count - 1 }, Trainer)
end

--- The inputs in their order: tables with name, dtype and shape.
function Trainer:inputs()
  local inputs = core.about(self._model).inputs
  inputs[#inputs] = nil
  return inputs
end

local function given(self, ...)
  local backbone = self._backbone
  if not backbone then return { ... } end
  local all, count = { ... }, #backbone:inputs()
  local list = table.pack(backbone:predict(table.unpack(all, 1, count)))
  return table.move(all, count + 1, #all, list.n + 1, list)
end

--- One batch: the loss before the step, and whether the batch was left out.
function Trainer:step(...) return core.step(self._model, given(self, ...)) end

--- The loss of a batch; nothing changes.
function Trainer:loss(...) return (core.loss(self._model, given(self, ...))) end

--- Trains for some epochs: batches(epoch) gives an iterator over the arguments of step; after each epoch after(epoch, mean loss) is
--- called where it is given, and ends the training by false. Gives the mean loss of the last epoch.
function Trainer:train(epochs, batches, after)
  local mean = 0
  for epoch = 1, epochs do
    local sum, count = 0, 0
    local iterate, state, at = batches(epoch)
    while true do
      local items = table.pack(iterate(state, at))
      at = items[1]
      if at == nil then break end
      sum, count = sum + self:step(table.unpack(items, 1, items.n)), count + 1
    end
    mean = sum / math.max(count, 1)
    if after and after(epoch, mean) == false then break end
  end
  return mean
end

--- Sets the learning rate from the next step on.
function Trainer:set_learning_rate(rate)
  arguments.check.number_not_negative("lite.Trainer", "rate", rate)
  core.rate(self._model, rate)
  return self
end

--- The learning rate of the next step.
function Trainer:learning_rate() return core.rate(self._model) end

--- Lets the optimizer step once for so many batches, with the mean of their gradients.
function Trainer:set_virtual_batch(batches)
  core.virtual_batch(self._model, arguments.check.positive("lite.Trainer", "batches", batches))
  return self
end

--- Multiplies the loss, and divides the gradients again. With patience the scale is halved when a gradient is not finite, and doubled
--- after so many batches without (0: it stays).
function Trainer:set_loss_scale(scale, patience)
  scale = arguments.check.number("lite.Trainer", "scale", scale)
  if not (scale > 0 and scale <= 2 ^ 24) then arguments.fail("lite.Trainer", "scale is from 0 to 2^24") end
  core.scale(self._model, scale, patience or 1000)
  return self
end

--- The loss scale of the next batch.
function Trainer:loss_scale() return core.scale(self._model) end

--- The number of the optimizer's steps, with those before the file was saved.
function Trainer:steps() return core.steps_done(self._model) end

--- Transfer learning: a light model whose outputs are the first inputs of what is trained; it stays as it is.
function Trainer:set_backbone(model)
  if getmetatable(model) ~= light._methods then
    arguments.fail("lite.Trainer", "a backbone is a ms.lite.Model, got " .. describe(model))
  end
  self._backbone = model
  return self
end

--- The network as it predicts with the present weights: a ms.lite.Model; ask again after further steps.
function Trainer:predictor()
  local model = light._wrap(core.predictor(self._model))
  model._trainer = self
  return model
end

--- Writes what training goes on from: a file for ms.lite.Trainer, complete under its name or not there.
function Trainer:save(path)
  core.save(self._model, path)
  return self
end

--- Writes the network as it predicts: a file for ms.lite.Model.
function Trainer:export(path)
  core.export(self._model, path)
  return self
end

--- Bytes of temporaries (arena), of kernels' scratch memory, and of weights, states and results.
function Trainer:memory() return core.memory(self._model) end

function Trainer:__tostring()
  return ("lite.Trainer(%d inputs, step %d)"):format(self._count, self:steps())
end

M.Trainer = setmetatable({ _methods = Trainer }, { __call = function(_, ...) return build(...) end, __index = Trainer })

return M
