-- The training of one party: a client rule run on a cell and its data.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local predicting = require "lunaria.nn.predicting"
local source = require "lunaria.train.batches"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap
local rules = require "lunaria.federated.client_rules.rules"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local where = "client_rules.train"

local M = {}

--- A client rule: a table of the functions begin, step and finish, as the head of client_rules/rules.lua has them. rule: its name, or
--- such
--- a table.
---     > type(ms.federated.client_rules.find("prox").step) --> function
function M.find(rule)
  if type(rule) == "string" then
    local names = {}
    for name in pairs(rules) do names[#names + 1] = name end
    table.sort(names)
    local message = ("there is no client rule '%s'; there are: %s"):format(rule, table.concat(names, ", "))
    return rules[rule] or fail("client_rules.find", message, arguments.nearest(rule, names))
  end
  for _, name in ipairs { "begin", "step", "finish" } do
    if type(rule) ~= "table" or not arguments.is_callable(rule[name]) then
      fail("client_rules.find", "a client rule is a name, or a table with the functions begin, step and finish, got " .. describe(rule))
    end
  end
  return rule
end

-- The network and the function from a batch to its loss.
local function trainee(net, rule, settings)
  local network, loss = net, net
  if type(net) == "table" and getmetatable(net) == nil then
    network, loss = net.network, net.loss_fn
    if not rule.objective and not arguments.is_callable(loss) then
      fail(where, "net.loss_fn must be a callable of outputs and labels, got " .. describe(loss))
    end
  end
  if not cells.is_cell(network) then
    fail(where, "net must be a cell that gives the loss of a batch, or { network = cell, loss_fn = loss }, got " .. describe(net))
  end
  if rule.objective then return network, rule.objective(network, settings) end
  return network, rawequal(network, loss) and loss or ms.nn.WithLossCell(network, loss)
end

--- The rule of settings, after a look at these.
function M.check_settings(settings, state)
  if type(settings) ~= "table" then fail(where, "settings must be a table such as { lr = 0.1 }, got " .. describe(settings)) end
  if type(state) ~= "table" then fail(where, "state must be a table, got " .. describe(state)) end
  check.number_positive(where, "settings.lr", settings.lr)
  check.positive(where, "settings.epochs", settings.epochs or 1)
  if settings.steps ~= nil then check.positive(where, "settings.steps", settings.steps) end
  check.number_not_negative(where, "settings.weight_decay", settings.weight_decay or 0)
  check.rate(where, "settings.momentum", settings.momentum or 0)
  local rule = M.find(settings.rule or "sgd")
  for name, kind in pairs(rule.needs or {}) do
    local value = settings[name]
    if kind == "number" and not math.type(value) or kind == "tensor" and not ms.is_tensor(value) then
      fail(where, ("settings.%s must be a %s, got %s"):format(name, kind, describe(value)))
    end
  end
  return rule
end

local Layout = {}
Layout.__index = Layout

-- The parameters of a network that are trained, as one vector. form: a feature map of all its features, which says what is aggregated.
local function layout_of(network, form)
  local frozen, layout = {}, setmetatable({ names = {}, parameters = {}, dtype = ms.float32, form = form }, Layout)
  for _, name in ipairs(form:names("frozen")) do frozen[name] = true end
  for name, parameter in network:parameters_and_names() do
    if parameter.requires_grad and not frozen[name] then
      table.insert(layout.names, name)
      table.insert(layout.parameters, parameter)
      if parameter.dtype == ms.float64 then layout.dtype = ms.float64 end
    end
  end
  if #layout.parameters == 0 then fail(where, "the network has no parameters that are trained") end
  return layout
end

function Layout:flat(tensors)
  local list = {}
  for i, tensor in ipairs(tensors) do list[i] = tensor.dtype == self.dtype and tensor or tensor:astype(self.dtype) end
  return ms.boost.flat(list)
end

function Layout:read() return self:flat(self.parameters) end

function Layout:write(vector)
  local first = 0
  for _, parameter in ipairs(self.parameters) do
    local part = vector[{ ms.slice(first, first + parameter.size) }]:reshape(parameter.shape)
    parameter:assign(part.dtype == parameter.dtype and part or part:astype(parameter.dtype))
    first = first + parameter.size
  end
end

-- Whether what is trained is what is aggregated, in the same order.
function Layout:is_plain()
  local aggregated = self.form:names("aggregated")
  if #aggregated ~= #self.names then return false end
  for i, name in ipairs(aggregated) do
    if self.names[i] ~= name then return false end
  end
  return true
end

-- A vector of the aggregated features as one of the trained parameters; zeros for those that are not aggregated.
function Layout:from_aggregated(vector)
  if vector.ndim ~= 1 or vector.shape[1] ~= self.form:size() then
    fail(where, ("a vector of %d numbers is expected, got %s"):format(self.form:size(), describe(vector)))
  end
  if self:is_plain() then return vector end
  local _, named = self.form:split(vector)
  local list = {}
  for i, name in ipairs(self.names) do list[i] = named[name] or ops.zeros_like(self.parameters[i] + 0) end
  return self:flat(list)
end

-- The other way; zeros for aggregated features that are not trained.
function Layout:to_aggregated(vector)
  if self:is_plain() then return vector end
  local named, first, list = {}, 0, {}
  for i, name in ipairs(self.names) do
    named[name] = vector[{ ms.slice(first, first + self.parameters[i].size) }]
    first = first + self.parameters[i].size
  end
  for i, name in ipairs(self.form:names("aggregated")) do
    list[i] = named[name] or ops.zeros({ self.form:get(name).size }, self.dtype)
  end
  return self:flat(list)
end

-- Ones where the parameters of some names are.
function Layout:mask(names)
  local wanted, list = {}, {}
  for _, name in ipairs(names) do wanted[name] = true end
  for i, name in ipairs(self.names) do list[i] = ops.full({ self.parameters[i].size }, wanted[name] and 1.0 or 0.0) end
  return self:flat(list)
end

-- gradient(vector, batch...) -> loss, vector: the vector is written into the parameters.
local function gradient_of(layout, loss)
  local forward = ms.value_and_grad(function(...) return loss(...) end, nil, layout.parameters)
  if ms.get_context("mode") == ms.GRAPH_MODE then forward = ms.jit(forward) end
  return function(vector, ...)
    layout:write(vector)
    local value, gradients = forward(...)
    return value, layout:flat(gradients)
  end
end

local function size_of(batch) return ms.is_tensor(batch[1]) and batch[1].ndim > 0 and batch[1].shape[1] or 1 end

-- f(batch, epoch) for each batch of so many epochs, until it gives false.
local function each_batch(batches, epochs, f)
  for epoch = 1, epochs do
    local next_batch = batches.epoch()
    while true do
      local batch = table.pack(next_batch())
      if batch[1] == nil then break end
      if f(batch, epoch) == false then return end
    end
  end
end

-- The mean loss over the data, with the network as it predicts.
local function mean_loss(network, loss, batches)
  local _ <close> = setmetatable({}, { __close = predicting(network) })
  local sum, samples = 0.0, 0
  each_batch(batches, 1, function(batch)
    sum = sum + ops.mean(loss(table.unpack(batch, 1, batch.n))):item() * size_of(batch)
    samples = samples + size_of(batch)
  end)
  return sum / samples
end

-- The features that the party keeps.
local function personal_of(network, form)
  local kept, all = {}, FeatureMap(network)
  for _, name in ipairs(form:names("personal")) do kept[name] = all:get(name) end
  return kept
end

-- The feature map of a network with what is left out: a name may be missing where the party has another form of model.
local function form_of(network, settings)
  local form = FeatureMap(network)
  if settings.frozen and #settings.frozen > 0 then form = form:without(settings.frozen, { frozen = true }) end
  if settings.personal and #settings.personal > 0 then form = form:without(settings.personal) end
  return form
end

-- The settings as the rule sees them: vectors of aggregated features as vectors of what is trained.
local function seen_by(rule, settings, layout)
  local s = {}
  for key, value in pairs(settings) do s[key] = value end
  for _, name in ipairs(rule.vectors or {}) do s[name] = layout:from_aggregated(s[name]):astype(layout.dtype) end
  if (s.head_steps or 0) > 0 then s.head = layout:mask(s.personal or {}) end
  return s
end

local function difference(after, before)
  return after:with_vector(after:vector(ms.float64) - before:vector(ms.float64))
end

--- Trains a cell by a client rule and gives the update: { samples, weights, metrics, extra }. net: a cell that gives the loss of a
--- batch, or
--- { network = cell, loss_fn = loss }; it has the weights that training begins with, and has those of the update afterwards. data:
--- batches,
--- as for ms.Model:train. settings: what the strategy's configure gave: rule ("sgd"), lr, epochs (1), steps (at most so many), momentum,
--- weight_decay, and what the rule needs; personal and frozen, names of features that are not sent; sends ("weights" or "difference");
--- initial_loss (true: the metric of this name is the loss before training). state: a table that the party keeps from round to round,
--- which
--- is written to.
---     > net = ms.nn.Dense(1, 1)
---     > data = { { ms.ones { 2, 1 }, ms.ones { 2, 1 } } }
---     > update = ms.federated.client_rules.train({ network = net, loss_fn = ms.nn.MSELoss() }, data, { lr = 0.1 }, {})
---     > update.samples, update.metrics.steps --> 2	1
function M.train(net, data, settings, state)
  local rule = M.check_settings(settings, state)
  local network, loss = trainee(net, rule, settings)
  local form = form_of(network, settings)
  local layout = layout_of(network, form)
  if state.personal then FeatureMap(state.personal):load_into(network) end
  local s = seen_by(rule, settings, layout)
  local batches, most = source(where, data), settings.steps or math.huge
  local metrics = {}
  if settings.initial_loss then metrics.initial_loss = mean_loss(network, loss, batches) end
  local _ <close> = setmetatable({}, { __close = predicting(network) })
  network:set_train(true)
  local gradient, w0 = gradient_of(layout, loss), layout:read()
  local memory = state.rule or rule.initial and rule.initial(w0) or {}
  local carry, steps, samples, sum = rule.begin(w0, s, memory), 0, 0, 0.0
  each_batch(batches, settings.epochs or 1, function(batch, epoch)
    if steps >= most then return false end
    if epoch == 1 then samples = samples + size_of(batch) end
    local value
    carry, value = rule.step(carry, gradient, s, steps, table.unpack(batch, 1, batch.n))
    steps, sum = steps + 1, sum + ops.mean(value):item()
  end)
  if steps == 0 then fail(where, "the data give no batch") end
  local w, extra, told, kept = rule.finish(carry, w0, s, steps, memory)
  layout:write(w)
  for _, name in ipairs(rule.vectors or {}) do
    if extra[name] then extra[name] = layout:to_aggregated(extra[name]) end
  end
  for name, value in pairs(told) do metrics[name] = value end
  metrics.loss, metrics.steps = sum / steps, steps
  state.rule, state.personal = kept, personal_of(network, form)
  if next(state.personal) == nil then state.personal = nil end
  local after = form_of(network, settings)
  return { samples = samples, weights = settings.sends == "difference" and difference(after, form) or after, metrics = metrics,
    extra = extra }
end

--- Writes what a party keeps for itself into a network that has the common weights: Ditto's own weights, personal features. net: as for
--- train. settings, state: those of its training. Nothing happens before the party's first training.
---     > net, state = ms.nn.Dense(1, 1), {}
---     > settings = ms.federated.strategies.configure(ms.federated.strategies.Ditto { settings = { lr = 0.1 } }, { number = 1 })
---     > data = { { ms.ones { 2, 1 }, ms.ones { 2, 1 } } }
---     > _ = ms.federated.client_rules.train({ network = net, loss_fn = ms.nn.MSELoss() }, data, settings, state)
---     > ms.federated.client_rules.personalise(net, settings, state)
function M.personalise(net, settings, state)
  local network = type(net) == "table" and getmetatable(net) == nil and net.network or net
  if not cells.is_cell(network) then fail("client_rules.personalise", "net must be a cell, got " .. describe(net)) end
  if type(settings) ~= "table" or type(state) ~= "table" then
    fail("client_rules.personalise", "settings and state must be the tables that the party has trained with")
  end
  if state.personal then FeatureMap(state.personal):load_into(network) end
  if state.rule and state.rule.own then layout_of(network, form_of(network, settings)):write(state.rule.own) end
end

return M
