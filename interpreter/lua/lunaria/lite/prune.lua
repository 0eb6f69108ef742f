-- Pruning: weights that go to zero while a network is trained, channels that go out of it, and the smaller network that is left.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callback = require "lunaria.train.callback"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local copy = require "lunaria.nn.copy"
local graph = require "lunaria.lite.prune_graph"
local layers_of = require "lunaria.lite.quantise_layers"
local predicting = require "lunaria.nn.predicting"
local uncompiled = require "lunaria.nn.uncompiled"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local Callback = callback.Callback

local M = {}

local function check_network(where, network)
  if not cells.is_cell(network) then fail(where, "network must be a cell, got " .. describe(network)) end
  return network
end

local function names_in(where, list)
  local found = {}
  if type(list) ~= "table" then fail(where, "skip must be a list of names, got " .. describe(list)) end
  for _, name in ipairs(list) do found[name] = true end
  return found
end

-- Layers that are to be pruned, with their names.
local function layers(where, network, skip)
  local list, known = {}, {}
  for name, cell in network:cells_and_names() do
    local kind = layers_of.kind_of(cell)
    if kind and not kind.is_table then
      known[name] = true
      if not skip[name] then list[#list + 1] = { cell = cell, name = name } end
    end
  end
  for name in pairs(skip) do
    if not known[name] then fail(where, ("skip: no layer has the name '%s'"):format(tostring(name))) end
  end
  if #list == 0 then fail(where, "the network has no dense layer or convolution to prune") end
  return list
end

-- The share that is to be zero in a step: 0 before `begin`, all of it from `finish` on.
local function share_at(self, step)
  if step < self.begin_step then return 0 end
  if step >= self.end_step then return self.ratio end
  local done = (step - self.begin_step) / (self.end_step - self.begin_step)
  if self.schedule == "linear" then return self.ratio * done end
  if self.schedule == "constant" then return self.ratio end
  return self.ratio * (1 - (1 - done) ^ 3)
end

local schedule_text = "begin_step=0, end_step=0, frequency=1, schedule=\"cubic\""

local function set_schedule(self, name, a)
  self.begin_step, self.end_step = check.not_negative(name, "begin_step", a.begin_step), check.not_negative(name, "end_step", a.end_step)
  if self.end_step < self.begin_step then fail(name, ("end_step (%d) is before begin_step (%d)"):format(self.end_step, self.begin_step)) end
  self.frequency = check.positive(name, "frequency", a.frequency)
  self.schedule = check.choice(name, "schedule", a.schedule, { "cubic", "linear", "constant" })
end

local function ratio_of(name, what, value)
  if type(value) ~= "number" or value < 0 or value >= 1 then
    fail(name, ("%s must be a number from 0 to less than 1, got %s"):format(what, describe(value)))
  end
  return value
end

-- Whether the masks are made anew behind a step.
local function is_due(self, step)
  if step < self.begin_step or step > self.end_step and self.is_complete then return false end
  self.is_complete = step >= self.end_step
  return self.is_complete or (step - self.begin_step) % self.frequency == 0
end

local function refuse_sink(name, run)
  if run:original_args().dataset_sink_mode then fail(name, "works between steps: dataset_sink_mode must be false") end
end

local MagnitudePruning = class.define(Callback, "MagnitudePruning",
  "network, sparsity, scope=\"layer\", skip={}, " .. schedule_text,
  [[A callback of Model.train that sets the smallest weights of dense layers and convolutions to zero and keeps them there.

sparsity: which share of the weights. scope: "layer" (the share of each) or "global" (of all together, so that some lose more).
skip: names of layers that stay as they are. The share grows from begin_step to end_step, every frequency steps, along
schedule: "cubic" (fast at first; Zhu and Gupta 2017), "linear" or "constant". The numbers of steps count over all epochs.

  > net = ms.nn.Dense(8, 4)
  > prune = ms.lite.MagnitudePruning(net, 0.5)
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.1))
  > model:train(1, { { ms.ops.randn { 2, 8 }, ms.zeros { 2, 4 } } }, { callbacks = prune })
  > prune:sparsity_of() --> 0.5]])
M.MagnitudePruning = MagnitudePruning

function MagnitudePruning:setup(a)
  local name = "MagnitudePruning"
  self.ratio = ratio_of(name, "sparsity", a.sparsity)
  self.scope = check.choice(name, "scope", a.scope, { "layer", "global" })
  self.layers = layers(name, check_network(name, a.network), names_in(name, a.skip))
  set_schedule(self, name, a)
  self.masks = {}
end

-- The largest of the magnitudes that go, and below 0 where none do.
local function threshold(magnitudes, share)
  local count = math.floor(magnitudes.size * share + 0.5)
  if count == 0 then return -1.0 end
  return (ops.sort(magnitudes))[count - 1]:item()
end

local function magnitude_masks(self, share)
  local function magnitude(layer) return ops.abs(ops.reshape(layer.cell.weight, { -1 })) end
  local bound
  if self.scope == "global" then
    local all = {}
    for i, layer in ipairs(self.layers) do all[i] = magnitude(layer) end
    bound = threshold(ops.concat(all, 0), share)
  end
  for _, layer in ipairs(self.layers) do
    local limit = bound or threshold(magnitude(layer), share)
    self.masks[layer] = ops.cast(ops.greater(ops.abs(layer.cell.weight), limit), layer.cell.weight.dtype)
  end
end

--- Sets the weights that have gone to zero, as behind each step. share: that share of the weights goes first.
---     > net = ms.nn.Dense(4, 4)
---     > ms.lite.MagnitudePruning(net, 0.25):apply(0.25)
---     > ms.ops.sum(ms.ops.equal(net.weight, 0)):item() --> 4
function MagnitudePruning:apply(share)
  share = arguments.named("apply", { "share" }, share)
  if share ~= nil then magnitude_masks(self, ratio_of("apply", "share", share)) end
  for layer, mask in pairs(self.masks) do layer.cell.weight:set_data(layer.cell.weight * mask) end
end

function MagnitudePruning:on_train_begin(run) refuse_sink("MagnitudePruning", run) end
function MagnitudePruning:on_train_step_end(run)
  local step = run:original_args().cur_step_num - 1
  self:apply(is_due(self, step) and share_at(self, step) or nil)
end

--- The share of zeros among the weights.
---     > net = ms.nn.Dense(4, 4)
---     > prune = ms.lite.MagnitudePruning(net, 0.25)
---     > prune:apply(0.25)
---     > prune:sparsity_of() --> 0.25
function MagnitudePruning:sparsity_of()
  local zeros, all = 0, 0
  for _, layer in ipairs(self.layers) do
    zeros = zeros + ops.sum(ops.cast(ops.equal(layer.cell.weight, 0), ms.int64)):item()
    all = all + layer.cell.weight.size
  end
  return zeros / all
end

-- First-order change of the loss without a channel (Molchanov et al. 2017): the sum of weight times gradient over its row, squared.
local function taylor_scores(network, loss_fn, batch, sets)
  local parameters, place = {}, {}
  for _, set in ipairs(sets) do
    for _, member in ipairs(set.producers) do
      if not place[member.cell] then
        parameters[#parameters + 1] = member.cell.weight
        place[member.cell] = #parameters
      end
    end
  end
  local inputs = table.move(batch, 1, #batch - 1, 1, {})
  local function forward() return loss_fn(network(table.unpack(inputs)), batch[#batch]) end
  local _, grads = ms.value_and_grad(forward, nil, parameters)()
  local scores = {}
  for i, p in ipairs(parameters) do
    local rows = ops.reshape(p * grads[i], { p.shape[1], -1 })
    local sums = ops.sum(rows, 1)
    scores[p] = sums * sums
  end
  return scores
end

local function score_of(set, criterion, taylor)
  return graph.importance(set, function(weight)
    return taylor and taylor[weight] or graph.row_norm(weight, criterion)
  end)
end

local function sets_of(where, network, inputs, skip)
  local sets = graph.channel_sets(network, inputs)
  if not sets then fail(where, "the network decides by its tensors' elements, so that its channels cannot be followed") end
  local wanted, skipped = {}, {}
  for name, cell in network:cells_and_names() do skipped[cell] = skip[name] end
  for _, set in ipairs(sets) do
    local is_skipped = false
    for _, member in ipairs(set.producers) do is_skipped = is_skipped or skipped[member.cell] end
    if not is_skipped then wanted[#wanted + 1] = set end
  end
  if #wanted == 0 then fail(where, "no layer's channels can go: they are results, or reach what cannot be followed") end
  return wanted
end

local function kept_count(size, share, multiple)
  local count = math.max(1, math.floor(size * (1 - share) + 0.5))
  return math.min(size, (count + multiple - 1) // multiple * multiple)
end

local ChannelPruning = class.define(Callback, "ChannelPruning",
  "network, ratio, criterion=\"l2\", skip={}, multiple=1, " .. schedule_text,
  [[A callback of Model.train that sets whole channels of a network to zero, more and more of them; shrink() then gives the smaller
network. Channels that a sum joins go together.

ratio: which share of the channels of each layer. criterion: "l2" or "l1" (the norm of the channel's weights) or "taylor" (what the
loss would change by). skip: names of layers that stay as they are. multiple: so many channels, or a multiple, stay.
begin_step, end_step, frequency, schedule: as in MagnitudePruning.

  > net = ms.nn.SequentialCell(ms.nn.Dense(8, 16), ms.nn.ReLU(), ms.nn.Dense(16, 4))
  > prune = ms.lite.ChannelPruning(net, 0.5)
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.1))
  > model:train(1, { { ms.ops.randn { 2, 8 }, ms.zeros { 2, 4 } } }, { callbacks = prune })
  > prune:shrink()[1] --> Dense<input_channels=8, output_channels=8, has_bias=true>]])
M.ChannelPruning = ChannelPruning

function ChannelPruning:setup(a)
  local name = "ChannelPruning"
  self.network, self.ratio = check_network(name, a.network), ratio_of(name, "ratio", a.ratio)
  self.criterion = check.choice(name, "criterion", a.criterion, { "l1", "l2", "taylor" })
  self.skip, self.multiple = names_in(name, a.skip), check.positive(name, "multiple", a.multiple)
  set_schedule(self, name, a)
  self.masks = {}
end

function ChannelPruning:on_train_begin(run)
  refuse_sink("ChannelPruning", run)
  if self.criterion == "taylor" and run:original_args().loss_fn == nil then
    fail("ChannelPruning", "criterion 'taylor' needs the model's loss_fn")
  end
end

local function channel_masks(self, args, share)
  local batch = args.train_dataset_element
  self.inputs = self.inputs or table.move(batch, 1, math.max(1, #batch - 1), 1, {})
  -- As the network predicts: the training's random numbers and statistics stay what they are.
  local restore = predicting(self.network)
  local ok, taylor = pcall(uncompiled, function()
    self.sets = self.sets or sets_of("ChannelPruning", self.network, self.inputs, self.skip)
    return self.criterion == "taylor" and taylor_scores(self.network, args.loss_fn, batch, self.sets) or nil
  end)
  restore()
  if not ok then error(taylor, 0) end
  for _, set in ipairs(self.sets) do
    local score = score_of(set, self.criterion, taylor)
    -- Channels that are zero already stay so.
    if self.masks[set] then score = ops.where(ops.equal(self.masks[set], 0), -1.0, score) end
    local channels = graph.most_important(score, kept_count(set.size, share, self.multiple))
    local mask = {}
    for i = 1, set.size do mask[i] = 0.0 end
    for _, c in ipairs(channels) do mask[c + 1] = 1.0 end
    self.masks[set] = ms.tensor(mask, ms.float32)
  end
end

local function masked(cell, key, mask)
  local p = rawget(cell, key)
  if not ms.is_parameter(p) then return end
  local shape = { mask.size }
  for i = 2, p.ndim do shape[i] = 1 end
  p:set_data(p * ops.cast(ops.reshape(mask, shape), p.dtype))
end

--- Sets the channels that have gone to zero, as behind each step.
function ChannelPruning:apply()
  for set, mask in pairs(self.masks) do
    for _, member in ipairs(set.producers) do
      masked(member.cell, "weight", mask)
      masked(member.cell, "bias", mask)
    end
    for _, member in ipairs(set.normalisations) do
      masked(member.cell, "gamma", mask)
      masked(member.cell, "beta", mask)
    end
  end
end

function ChannelPruning:on_train_step_begin(run)
  local args = run:original_args()
  self.is_due = is_due(self, args.cur_step_num - 1)
  if self.is_due then channel_masks(self, args, share_at(self, args.cur_step_num - 1)) end
end
function ChannelPruning:on_train_step_end() self:apply() end

--- The network without the channels that are zero, as a new one.
function ChannelPruning:shrink()
  if not self.sets then fail("shrink", "nothing was pruned: the model was not trained with this callback") end
  local small = copy(self.network)
  local sets = sets_of("shrink", small, self.inputs, self.skip)
  for i, set in ipairs(sets) do
    local mask, channels = self.masks[self.sets[i]]:tolist(), {}
    for c, kept in ipairs(mask) do
      if kept > 0 then channels[#channels + 1] = c - 1 end
    end
    graph.keep_channels(set, channels)
  end
  return small
end

local prune_signature = arguments.signature(
  "network, ratio, inputs, criterion=\"l2\", loss_fn=nil, label=nil, skip={}, multiple=1")

--- A smaller copy of a network: a share of the channels of its dense layers and convolutions, the least important ones, goes, with all
--- that reads or normalises them. Channels that a sum joins go together; those of the results stay. Train it for a while after that.
---
--- ratio: the share. inputs: a tensor, or a list of them, that the network is followed with. criterion: "l2" or "l1" (the norm of the
--- channel's weights) or "taylor" (what the loss would change by, for which loss_fn and label of the inputs are needed). skip: names
--- of layers whose channels stay. multiple: so many channels, or a multiple, stay.
---     > net = ms.nn.SequentialCell(ms.nn.Conv2d(1, 8, 3), ms.nn.ReLU(), ms.nn.Flatten(), ms.nn.Dense(8 * 16, 4))
---     > ms.lite.prune(net, 0.5, ms.zeros { 1, 1, 4, 4 })[4] --> Dense<input_channels=64, output_channels=4, has_bias=true>
function M.prune(...)
  local where = "prune"
  local a = arguments.bind(where, prune_signature, ...)
  check_network(where, a.network)
  local ratio = ratio_of(where, "ratio", a.ratio)
  local criterion = check.choice(where, "criterion", a.criterion, { "l1", "l2", "taylor" })
  local inputs = ms.is_tensor(a.inputs) and { a.inputs } or a.inputs
  if type(inputs) ~= "table" or not ms.is_tensor(inputs[1]) then
    fail(where, "inputs must be a tensor or a list of tensors, got " .. describe(a.inputs))
  end
  if criterion == "taylor" and (a.loss_fn == nil or a.label == nil) then
    fail(where, "criterion 'taylor' needs loss_fn and label")
  elseif criterion ~= "taylor" and (a.loss_fn ~= nil or a.label ~= nil) then
    fail(where, ("loss_fn and label are for the criterion 'taylor', not '%s'"):format(criterion))
  end
  local multiple = check.positive(where, "multiple", a.multiple)
  local small = copy(a.network):set_train(false)
  local sets = sets_of(where, small, inputs, names_in(where, a.skip))
  local taylor
  if criterion == "taylor" then
    local batch = table.move(inputs, 1, #inputs, 1, {})
    batch[#batch + 1] = a.label
    taylor = taylor_scores(small, a.loss_fn, batch, sets)
  end
  local kept = {}
  for i, set in ipairs(sets) do
    kept[i] = graph.most_important(score_of(set, criterion, taylor), kept_count(set.size, ratio, multiple))
  end
  for i, set in ipairs(sets) do graph.keep_channels(set, kept[i]) end
  return small
end

return M
