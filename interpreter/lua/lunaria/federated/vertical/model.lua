-- ms.federated.FLModel: one party's half of a network that is split between parties.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local FLYamlData = require "lunaria.federated.vertical.yaml_data"
local cut_layer = require "lunaria.federated.vertical.cut_layer"
local links = require "lunaria.federated.vertical.link"
local make_pass = require "lunaria.federated.vertical.pass"
local parties = require "lunaria.federated.vertical.parties"
local privacy = require "lunaria.federated.vertical.privacy"

local fail, describe = arguments.fail, arguments.describe

local FLModel = class.define(nil, "FLModel",
  "role=nil, network=nil, train_network=nil, loss_fn=nil, optimizers=nil, metrics=nil, eval_network=nil, "
  .. "eval_indexes=nil, yaml_data=nil", [[One party's half of a network that is split: a follower computes embeddings of its columns,
  which the leader takes for its own half, which ends in the loss; the gradients by the embeddings go back. Both halves make the steps
  that the joined network would make, to the bit where nothing is compressed or made private.

yaml_data: FLYamlData or its table: what the network takes and gives, by name. role: "leader" or "follower", as yaml_data says it.
network: the cell; train_network: one for training, where that is another. loss_fn(output, label): then the last input of the leader's
train_net is the label, and the network takes the others. optimizers: optimizers of ms.nn or PartyOptimizers, else yaml_data.opts are
made; the gradients of an optimizer without more are those of the loss, which is the first output that stays, at a leader, and of all
remote outputs at a follower. metrics: names or a table, as ms.Model has them, of the leader. eval_network: a cell for eval_net;
eval_indexes: where loss, prediction and label are among its outputs, from 0, -1 for none; without it the metrics take the first output
and the input that eval_net.gt names.

Batches are tables of tensors by name. embedding_dp makes what a follower sends private, label_dp the labels that a leader trains with (each
pass over the data costs its eps again; ms.federated.LabelDP applied to the data once costs it once). A trusted enclave for the cut layer is
left out.

  > half = ms.nn.Dense(2, 3)
  > net = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
  > data = { role = "follower", model = { train_net = net } }
  > follower = ms.federated.FLModel { network = half, optimizers = ms.nn.SGD(half:trainable_params(), 0.1), yaml_data = data }
  > follower:forward_one_step({ x = ms.ones { 4, 2 } }).h.shape --> (4, 3)
  > sent, outputs = follower:backward_one_step { sens = { h = ms.ones { 4, 3 } } }]])
FLModel._called = "model"

-- Preparation. -----------------------------------------------------------------------------------------------------

local function names_of(list, field, value)
  local names = {}
  for _, item in ipairs(list) do
    if field == nil or (item[field] or "local") == value then names[#names + 1] = item.name end
  end
  return names
end

local function pattern_of(words) return "^" .. words:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*") .. "$" end

local function chosen_parameters(network, wanted)
  local all = network:trainable_params()
  if wanted == nil then return all end
  local chosen, used = {}, {}
  for _, entry in ipairs(wanted) do
    local words = type(entry) == "table" and entry.name or entry
    if type(words) ~= "string" then fail("FLModel", "opts.params must be names of parameters, got " .. describe(entry)) end
    local found = false
    for _, p in ipairs(all) do
      if p.name:find(pattern_of(words)) then
        found = true
        if not used[p] then used[p], chosen[#chosen + 1] = true, p end
      end
    end
    if not found then
      local names = {}
      for i, p in ipairs(all) do names[i] = p.name end
      fail("FLModel", ("opts.params has '%s', which no parameter is called; there are: %s"):format(words, table.concat(names, ", ")),
        arguments.nearest(words, names))
    end
  end
  return chosen
end

-- The derivatives that an optimizer steps along where nothing else is said.
local function default_operations(self)
  if self.role == "leader" then
    local own = names_of(self._train.outputs, "destination", "local")
    if #own == 0 then fail("FLModel", "a leader's train_net has no output that stays: the loss") end
    return { parties.PartyGradOperation(own[1]) }
  end
  local operations = {}
  for i, name in ipairs(names_of(self._train.outputs, "destination", "remote")) do operations[i] = parties.PartyGradOperation(name) end
  if #operations == 0 then fail("FLModel", "a follower's train_net has no remote output") end
  return operations
end

local function made_optimizer(self, opt)
  local type_name = opt.type
  local make = type_name and ms.nn[type_name]
  local parameters = chosen_parameters(self._module, opt.params)
  local optimizer = make(parameters, opt.hyper_parameters or {})
  if not cells.is_cell(optimizer) or not optimizer.parameters then fail("FLModel", ("ms.nn.%s is no optimizer"):format(type_name)) end
  local operations = {}
  for i, grad in ipairs(opt.grads or {}) do
    if not grad.output or not grad.output.name then fail("FLModel", ("opts.grads[%d] names no output"):format(i)) end
    operations[i] = parties.PartyGradOperation(grad.output.name, grad.sens)
  end
  if #operations == 0 then operations = default_operations(self) end
  return parties.PartyOptimizer(optimizer, operations)
end

local function is_optimizer(value) return cells.is_cell(value) and value.parameters ~= nil end

local function party_optimizers(self, given)
  local list = {}
  if given == nil then
    for i, opt in ipairs(self.yaml_data.opts) do list[i] = made_optimizer(self, opt) end
    return list
  end
  if is_optimizer(given) or class.is_a(given, parties.PartyOptimizer) then given = { given } end
  if type(given) ~= "table" or getmetatable(given) ~= nil then
    fail("FLModel", "optimizers must be an optimizer or a list of them, got " .. describe(given))
  end
  for i, optimizer in ipairs(given) do
    if is_optimizer(optimizer) then
      list[i] = parties.PartyOptimizer(optimizer, default_operations(self))
    elseif class.is_a(optimizer, parties.PartyOptimizer) then
      list[i] = optimizer
    else
      fail("FLModel", ("optimizers[%d] must be an optimizer, got %s"):format(i, describe(optimizer)))
    end
  end
  return list
end

local function party_scalers(self)
  local list = {}
  if self.yaml_data.grad_scalers == nil then
    local remote = names_of(self._train.inputs, "source", "remote")
    if self.role == "leader" and #remote > 0 then
      list[1] = parties.PartyGradScaler(remote, default_operations(self)[1].output)
    end
    return list
  end
  for i, scaler in ipairs(self.yaml_data.grad_scalers) do
    if not scaler.output or not scaler.output.name then fail("FLModel", ("grad_scalers[%d] names no output"):format(i)) end
    list[i] = parties.PartyGradScaler(names_of(scaler.inputs or {}), scaler.output.name, scaler.sens)
  end
  return list
end

-- The function of training: inputs in their order to outputs in theirs.
local function training_function(self, a)
  local network = a.train_network or a.network
  if not cells.is_cell(network) then fail("FLModel", "network must be a cell, got " .. describe(network)) end
  if a.loss_fn == nil then return network, network end
  if not arguments.is_callable(a.loss_fn) then fail("FLModel", "loss_fn must be a cell or a function, got " .. describe(a.loss_fn)) end
  local loss_fn, count = a.loss_fn, #self._train.inputs
  if count < 2 then fail("FLModel", "with a loss_fn the last input of train_net is the label, and there is one input only") end
  local function with_loss(...)
    local inputs = { ... }
    local label = inputs[count]
    return loss_fn(network(table.unpack(inputs, 1, count - 1)), label)
  end
  return with_loss, network
end

-- Places of inputs whose gradients are sent, from 0.
local function wanted_positions(self)
  local at, wanted, list = {}, {}, {}
  for i, item in ipairs(self._train.inputs) do at[item.name] = i - 1 end
  for _, scaler in ipairs(self._scalers) do
    self:output_index(scaler.operation.output)
    for _, name in ipairs(scaler.inputs) do
      local place = at[name] or fail("FLModel", ("grad_scalers speak of an input '%s', which train_net does not have"):format(name),
        arguments.nearest(name, names_of(self._train.inputs)))
      if not wanted[place] then wanted[place], list[#list + 1] = true, place end
    end
  end
  table.sort(list)
  self._place_of = {}
  for i, place in ipairs(list) do self._place_of[self._train.inputs[place + 1].name] = i end
  return list
end

local function set_up_privacy(self)
  local config = self.yaml_data.privacy
  if config.label_dp then
    if self.role ~= "leader" then fail("FLModel", "privacy.label_dp is of the leader, which has the labels") end
    self._label_dp = privacy.LabelDP { eps = config.label_dp.eps, classes = config.label_dp.classes }
    local own = names_of(self._train.inputs, "source", "local")
    self._label = self.yaml_data.eval_net and self.yaml_data.eval_net.gt or own[#own]
  end
  if config.embedding_dp then
    if self.role ~= "follower" then fail("FLModel", "privacy.embedding_dp is of a follower, which sends embeddings") end
    self._embedding_dp = privacy.EmbeddingDP { eps = config.embedding_dp.eps }
  end
end

function FLModel:setup(a)
  if a.yaml_data == nil then fail("FLModel", "yaml_data is missing: it says what the network takes and gives") end
  self.yaml_data = class.is_a(a.yaml_data, FLYamlData) and a.yaml_data or FLYamlData(a.yaml_data)
  self.role = self.yaml_data.role
  if a.role ~= nil and a.role ~= self.role then
    fail("FLModel", ("role is %s, and yaml_data is of a %s"):format(describe(a.role), self.role))
  end
  self._train = self.yaml_data.train_net
  self._output_at = {}
  for i, item in ipairs(self._train.outputs) do self._output_at[item.name] = i end
  local f
  f, self._module = training_function(self, a)
  self.network = a.network or self._module
  self._optimizers, self._scalers = party_optimizers(self, a.optimizers), party_scalers(self)
  for _, optimizer in ipairs(self._optimizers) do
    for _, operation in ipairs(optimizer.grads) do self:output_index(operation.output) end
  end
  local operations = {}
  for _, optimizer in ipairs(self._optimizers) do operations[#operations + 1] = optimizer.grads end
  for _, scaler in ipairs(self._scalers) do operations[#operations + 1] = { scaler.operation } end
  self._constants = parties.constants(operations, self)
  self._weights = self._module:trainable_params()
  self._pass = make_pass(f, self._weights, wanted_positions(self), self._module)
  set_up_privacy(self)
  self.eval_network = a.eval_network
  if a.eval_network ~= nil and not arguments.is_callable(a.eval_network) then
    fail("FLModel", "eval_network must be a cell, got " .. describe(a.eval_network))
  end
  if a.eval_indexes ~= nil and (type(a.eval_indexes) ~= "table" or #a.eval_indexes ~= 3) then
    fail("FLModel", "eval_indexes must be a list of three integers, got " .. describe(a.eval_indexes))
  end
  self.eval_indexes = a.eval_indexes
  self.metric_fns = a.metrics ~= nil and require "lunaria.train.metrics".get_metrics(a.metrics) or {}
end

function FLModel:__tostring() return ("FLModel<%s>"):format(self.role) end

--- The place of an output of train_net among its outputs, from 1; an error where there is none of that name.
---     > net = ms.nn.Dense(2, 3)
---     > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
---     > model = ms.federated.FLModel { network = net, yaml_data = { role = "follower", model = { train_net = spec } } }
---     > model:output_index "h" --> 1
function FLModel:output_index(name)
  return self._output_at[name] or fail("FLModel", ("there is no output '%s' in train_net; there are: %s"):format(tostring(name),
    table.concat(names_of(self._train.outputs), ", ")), arguments.nearest(tostring(name), names_of(self._train.outputs)))
end

--- Whether an output of train_net goes to another party.
---     > net = ms.nn.Dense(2, 3)
---     > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
---     > model = ms.federated.FLModel { network = net, yaml_data = { role = "follower", model = { train_net = spec } } }
---     > model:is_remote_output "h" --> true
function FLModel:is_remote_output(name) return self._train.outputs[self:output_index(name)].destination == "remote" end

-- Steps. -----------------------------------------------------------------------------------------------------------

-- The inputs of a net in their order, from the batches of this and of other parties.
local function inputs_of(self, where, net, own, remote)
  local list = {}
  for i, item in ipairs(net.inputs) do
    local is_remote = item.source == "remote"
    local batch = is_remote and remote or own
    local value = type(batch) == "table" and batch[item.name] or nil
    if not ms.is_tensor(value) then
      fail(where, ("%s has no tensor '%s', which the network takes, but %s"):format(is_remote and "remote_data_batch" or "local_data_batch",
        item.name, describe(value)))
    end
    if self._label_dp and item.name == self._label and where ~= "eval_one_step" then value = self._label_dp(value) end
    list[i] = value
  end
  return list
end

local function by_name(net, values)
  local named = {}
  for i, item in ipairs(net.outputs) do named[item.name] = values[i] end
  return named
end

local function batches(where, first, names, own, remote, sens)
  -- Batches are tables by name, as those of options are.
  if own == nil and remote == nil and sens == nil and type(first) == "table" then
    for key, value in pairs(first) do
      local known = false
      for _, name in ipairs(names) do known = known or name == key end
      if not known or ms.is_tensor(value) then return first end
    end
    return first.local_data_batch, first.remote_data_batch, first.sens
  end
  if first ~= nil and type(first) ~= "table" then fail(where, "local_data_batch must be a table of tensors by name, got "
    .. describe(first)) end
  return first, remote, sens
end

-- numbers: what outputs are multiplied by whose gradients are wanted too; nil: none are yet.
local function forward(self, where, own, remote, numbers)
  self._module:set_train()
  local inputs = inputs_of(self, where, self._train, own, remote)
  local outputs, of_inputs, of_weights
  if numbers then outputs, of_inputs, of_weights = self._pass:step(inputs, numbers, #self._train.outputs) end
  outputs = outputs or self._pass:forward(inputs)
  if outputs.n ~= #self._train.outputs then
    fail(where, ("the network gives %d outputs, train_net names %d"):format(outputs.n, #self._train.outputs))
  end
  self._step = { own = own, remote = remote, outputs = outputs, gradients = of_weights and { of_inputs = of_inputs,
    of_weights = of_weights } }
  return outputs
end

--- The forward pass of a step: the outputs by name. local_data_batch, remote_data_batch: tables of tensors by name, of this party and of
--- the others. With embedding_dp the remote outputs are private ones.
---     > half = ms.nn.Dense(2, 3)
---     > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
---     > model = ms.federated.FLModel { network = half, yaml_data = { role = "follower", model = { train_net = spec } } }
---     > model:forward_one_step({ x = ms.ones { 4, 2 } }).h.shape --> (4, 3)
function FLModel:forward_one_step(local_data_batch, remote_data_batch)
  local where = "forward_one_step"
  local own, remote = batches(where, local_data_batch, { "local_data_batch", "remote_data_batch" }, nil, remote_data_batch)
  local named = by_name(self._train, links.outside(forward, self, where, own, remote))
  if self._embedding_dp then
    for _, item in ipairs(self._train.outputs) do
      if item.destination == "remote" then named[item.name] = self._embedding_dp(named[item.name]) end
    end
  end
  return named
end

local function same_cotangents(a, b)
  for key, value in pairs(a) do
    if b[key] == nil or not (rawequal(a[key], b[key]) or value.ndim == 0 and b[key].ndim == 0
      and value:item() == b[key]:item()) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

-- The gradients for some derivatives, each computed once.
local function gradients(self, done, operations, sens)
  if self._step.gradients then return self._step.gradients end
  local wanted = parties.cotangents(operations, self, self._step.outputs, sens)
  for _, other in ipairs(done) do
    if same_cotangents(wanted, other.wanted) then return other end
  end
  local of_inputs, of_weights = self._pass:backward(wanted)
  local made = { wanted = wanted, of_inputs = of_inputs, of_weights = of_weights }
  done[#done + 1] = made
  return made
end

local function backward(self, where, own, remote, sens)
  local step = self._step
  if not step or own ~= nil and not rawequal(step.own, own) or remote ~= nil and not rawequal(step.remote, remote) then
    if own == nil and remote == nil then fail(where, "there was no forward_one_step before, and there is no batch") end
    forward(self, where, own, remote, self._constants)
    step = self._step
  end
  local done, scaled = {}, {}
  for _, scaler in ipairs(self._scalers) do
    local found = gradients(self, done, { scaler.operation }, sens)
    for _, name in ipairs(scaler.inputs) do
      local d = found.of_inputs[self._place_of[name]]
      scaled[name] = scaled[name] and scaled[name] + d or d
    end
  end
  local steps = {}
  for i, optimizer in ipairs(self._optimizers) do
    local found = gradients(self, done, optimizer.grads, sens)
    local of, list = {}, {}
    for k, w in ipairs(self._weights) do of[w] = found.of_weights[k] end
    for k, p in ipairs(optimizer.optimizer.parameters) do
      list[k] = of[p] or fail(where, ("the optimizer has the parameter '%s', which the network does not train"):format(p.name))
    end
    steps[i] = list
  end
  -- All gradients are those of the weights before the step.
  for i, optimizer in ipairs(self._optimizers) do optimizer.optimizer(steps[i]) end
  self._step, self._pass.kept = nil, nil
  return scaled, by_name(self._train, step.outputs)
end

--- The backward pass of a step: gradients, and a step of each optimizer. Gives the gradients that go to other parties, by the names of
--- the inputs that came from them, and the outputs by name, the loss among them. local_data_batch, remote_data_batch: as in
--- forward_one_step, whose pass of the same batch is not made again. sens: at a follower the gradients that the leader has sent, by the
--- names of the outputs.
---     > half = ms.nn.Dense(3, 1)
---     > spec = { inputs = { { name = "h", source = "remote" }, { name = "y" } }, outputs = { { name = "loss" } } }
---     > data, sgd = { role = "leader", model = { train_net = spec } }, ms.nn.SGD(half:trainable_params(), 0.1)
---     > leader = ms.federated.FLModel { network = half, loss_fn = ms.nn.MSELoss(), optimizers = sgd, yaml_data = data }
---     > leader:backward_one_step({ y = ms.ones { 4, 1 } }, { h = ms.ones { 4, 3 } }).h.shape --> (4, 3)
function FLModel:backward_one_step(local_data_batch, remote_data_batch, sens)
  local where = "backward_one_step"
  if arguments.is_options(remote_data_batch) and sens == nil and remote_data_batch.sens ~= nil
    and not ms.is_tensor(remote_data_batch.sens) then
    remote_data_batch, sens = remote_data_batch.remote_data_batch, remote_data_batch.sens
  end
  local own, remote
  own, remote, sens = batches(where, local_data_batch, { "local_data_batch", "remote_data_batch", "sens" }, nil, remote_data_batch, sens)
  return links.outside(backward, self, where, own, remote, sens)
end

--- Asks the network for evaluation, or the one that is trained, as it predicts: its outputs by name. At a leader the metrics take them
--- up. local_data_batch, remote_data_batch: tables of tensors by name, as in forward_one_step.
---     > half = ms.nn.Dense(2, 3)
---     > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
---     > model = ms.federated.FLModel { network = half, yaml_data = { role = "follower", model = { train_net = spec, eval_net = spec } } }
---     > model:eval_one_step({ x = ms.ones { 4, 2 } }).h.shape --> (4, 3)
function FLModel:eval_one_step(local_data_batch, remote_data_batch)
  local where = "eval_one_step"
  local own, remote = batches(where, local_data_batch, { "local_data_batch", "remote_data_batch" }, nil, remote_data_batch)
  local net = self.yaml_data.eval_net or self._train
  local network = self.eval_network or (self.yaml_data.eval_net and self.network or nil)
  if network == nil then fail(where, "there is no eval_net in yaml_data",
    "name the inputs and outputs of the network for evaluation there") end
  local inputs = inputs_of(self, where, net, own, remote)
  local predicting = require "lunaria.explain.common".predicting
  local outputs = table.pack(links.outside(predicting, network, network, table.unpack(inputs, 1, #inputs)))
  if outputs.n ~= #net.outputs then fail(where, ("the network gives %d outputs, eval_net names %d"):format(outputs.n, #net.outputs)) end
  local named = by_name(net, outputs)
  if self._embedding_dp then
    for _, item in ipairs(net.outputs) do
      if item.destination == "remote" then named[item.name] = self._embedding_dp(named[item.name]) end
    end
  end
  self:_take_up(net, outputs, own)
  return named
end

function FLModel:_take_up(net, outputs, own)
  if next(self.metric_fns) == nil then return end
  local prediction, label = outputs[1], net.gt and own[net.gt]
  local at = self.eval_indexes
  if at then
    for _, metric in pairs(self.metric_fns) do
      if class.is_a(metric, ms.train.Loss) and at[1] >= 0 then metric:update(outputs[at[1] + 1]) end
    end
    prediction, label = outputs[at[2] + 1], at[3] >= 0 and outputs[at[3] + 1] or label
  end
  if label == nil then fail("eval_one_step", "metrics need labels: eval_net.gt must name the input that is the label, or eval_indexes") end
  for _, metric in pairs(self.metric_fns) do
    if not class.is_a(metric, ms.train.Loss) then metric:update(prediction, label) end
  end
end

--- What the metrics say of the batches since the last call, a table by name; they begin anew.
---     > half = ms.nn.Dense(2, 2)
---     > spec = { inputs = { { name = "x" }, { name = "y" } }, outputs = { { name = "loss" } } }
---     > eval = { inputs = { { name = "x" } }, outputs = { { name = "logits" } }, gt = "y" }
---     > data, loss_fn = { role = "leader", model = { train_net = spec, eval_net = eval } }, ms.nn.CrossEntropyLoss()
---     > model = ms.federated.FLModel { network = half, loss_fn = loss_fn, metrics = { "accuracy" }, yaml_data = data }
---     > seen = model:eval_one_step({ x = ms.ones { 4, 2 }, y = ms.zeros({ 4 }, ms.int32) })
---     > model:metrics().accuracy >= 0.0 --> true
function FLModel:metrics()
  local values = {}
  for name, metric in pairs(self.metric_fns) do
    values[name] = metric:eval()
    metric:clear()
  end
  return values
end

--- How what this party sends is compressed: a table of ms.federated.CompressConfig by the names of remote outputs that are.
---     > half = ms.nn.Dense(2, 3)
---     > sent = { name = "h", destination = "remote", compress_type = "bit_pack", bit_num = 4 }
---     > spec = { inputs = { { name = "x" } }, outputs = { sent } }
---     > model = ms.federated.FLModel { network = half, yaml_data = { role = "follower", model = { train_net = spec } } }
---     > model:get_compress_configs().h.bit_num --> 4
function FLModel:get_compress_configs()
  local configs = {}
  local function add(item, is_sent)
    if is_sent and (item.compress_type or "no_compress") ~= "no_compress" then
      configs[item.name] = cut_layer.CompressConfig(item.compress_type, item.bit_num or 8)
    end
  end
  for _, item in ipairs(self._train.outputs) do add(item, item.destination == "remote") end
  -- Gradients go back under the names of the inputs.
  for _, item in ipairs(self._train.inputs) do add(item, item.source == "remote") end
  return configs
end

--- Writes the weights of the network to a checkpoint file.
---     > net = ms.nn.Dense(2, 3)
---     > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
---     > model = ms.federated.FLModel { network = net, yaml_data = { role = "follower", model = { train_net = spec } } }
---     > model:save_ckpt "/tmp/lunaria_half.ckpt"
---     > model:load_ckpt "/tmp/lunaria_half.ckpt"
---     > (os.remove "/tmp/lunaria_half.ckpt") --> true
function FLModel:save_ckpt(path)
  path = arguments.named("save_ckpt", { "path" }, path)
  ms.save_checkpoint(self._module, path or self.yaml_data.ckpt_path or fail("save_ckpt", "there is no path"))
end

--- Reads the weights of the network from a checkpoint file.
---     > (pcall(ms.federated.FLModel.load_ckpt, { yaml_data = {} })) --> false
function FLModel:load_ckpt(path)
  path = arguments.named("load_ckpt", { "path" }, path)
  ms.load_checkpoint(path or self.yaml_data.ckpt_path or fail("load_ckpt", "there is no path"), self._module)
end

return FLModel
