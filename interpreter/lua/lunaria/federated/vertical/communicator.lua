-- ms.federated.VerticalFederatedCommunicator and VFLTrainer: tensors between parties, and the steps of training and evaluation.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local cut_layer = require "lunaria.federated.vertical.cut_layer"
local links = require "lunaria.federated.vertical.link"
local FLModel = require "lunaria.federated.vertical.model"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local communication = {}

local ServerConfig = class.define(nil, "ServerConfig", "server_name, server_address", [[A party and where it
listens. server_name: its name. server_address: "host:port".

  > ms.federated.ServerConfig("leader", "127.0.0.1:6666").server_name --> leader]])
communication.ServerConfig = ServerConfig

function ServerConfig:setup(a)
  if type(a.server_name) ~= "string" or a.server_name == "" then fail("ServerConfig", "server_name must be a text, got "
    .. describe(a.server_name)) end
  if type(a.server_address) ~= "string" then fail("ServerConfig", "server_address must be a text 'host:port', got "
    .. describe(a.server_address)) end
  self.server_name, self.server_address = a.server_name, a.server_address
end

local VerticalFederatedCommunicator = class.define(nil, "VerticalFederatedCommunicator",
  "http_server_config=nil, remote_server_config=nil, compress_configs=nil, key=nil, seconds=60, links=nil",
  [[The way of one party to others. http_server_config: ServerConfig of this party; remote_server_config: that of another one, or a list
  of them. key: the secret that both sides have, as for ms.federated.vertical.connect; seconds: its patience. links: links that are there
  already, as run_parties gives them, in the place of addresses. compress_configs: CompressConfig by the names of tensors
  (FLModel:get_compress_configs). What is sent goes by TCP, sealed; MindSpore's HTTP is not spoken.

  > a, b = ms.federated.vertical.pair("a", "b")
  > ms.federated.VerticalFederatedCommunicator({ links = { b = a } }):send_tensors("b", { x = ms.ones { 2 } })
  > ms.federated.VerticalFederatedCommunicator({ links = { a = b } }):receive("a").x.shape --> (2,)]])
VerticalFederatedCommunicator._called = "communicator"
communication.VerticalFederatedCommunicator = VerticalFederatedCommunicator

local function check_configs(configs)
  if type(configs) ~= "table" or getmetatable(configs) ~= nil then
    fail("VerticalFederatedCommunicator", "compress_configs must be a table of CompressConfig by name, got " .. describe(configs))
  end
  for name, config in pairs(configs) do
    if not class.is_a(config, cut_layer.CompressConfig) then
      fail("VerticalFederatedCommunicator", ("compress_configs['%s'] must be a CompressConfig, got %s"):format(tostring(name),
        describe(config)))
    end
  end
  return configs
end

function VerticalFederatedCommunicator:setup(a)
  local where = "VerticalFederatedCommunicator"
  self._configs = check_configs(a.compress_configs or {})
  if a.links ~= nil then
    if type(a.links) ~= "table" or next(a.links) == nil then fail(where, "links must be a table of links by name, got "
      .. describe(a.links)) end
    self._links = a.links
    return
  end
  local remote = a.remote_server_config
  if class.is_a(remote, ServerConfig) then remote = { remote } end
  if not class.is_a(a.http_server_config, ServerConfig) or type(remote) ~= "table" or #remote == 0 then
    fail(where, "needs http_server_config and remote_server_config, of ServerConfig, or links")
  end
  self._own, self._parties = a.http_server_config.server_name, { [a.http_server_config.server_name] = a.http_server_config.server_address }
  for _, config in ipairs(remote) do
    if not class.is_a(config, ServerConfig) then fail(where, "remote_server_config must be ServerConfig, got " .. describe(config)) end
    self._parties[config.server_name] = config.server_address
  end
  self._key, self._seconds = a.key, check.number_positive(where, "seconds", a.seconds)
end

--- Meets the other parties; each has to call it.
---     > (pcall(function() ms.federated.VerticalFederatedCommunicator({ links = {} }):launch() end)) --> false
function VerticalFederatedCommunicator:launch()
  if self._links then return end
  self._links = links.connect(self._own, self._parties, { key = self._key, seconds = self._seconds })
end

local function link_to(self, where, name)
  if not self._links then fail(where, "the communicator is not launched", "communicator:launch() meets the other parties") end
  return self._links[name] or fail(where, ("there is no party '%s'; there are: %s"):format(tostring(name),
    table.concat(links.sorted_names(self._links), ", ")))
end

--- The names of the other parties, in their order.
---     > link = ms.federated.vertical.pair("a", "b")
---     > ms.federated.VerticalFederatedCommunicator({ links = { b = link } }):parties()[1] --> b
function VerticalFederatedCommunicator:parties()
  return self._links and links.sorted_names(self._links) or fail("parties", "the communicator is not launched")
end

--- Sends tensors to a party, compressed where compress_configs says so. target_server_name: its name. tensor_dict: a table of tensors by
--- name.
---     > a, b = ms.federated.vertical.pair("a", "b")
---     > ms.federated.VerticalFederatedCommunicator({ links = { b = a } }):send_tensors("b", { x = ms.ones { 3 } })
---     > ms.federated.VerticalFederatedCommunicator({ links = { a = b } }):receive("a").x.shape --> (3,)
function VerticalFederatedCommunicator:send_tensors(target_server_name, tensor_dict)
  local link = link_to(self, "send_tensors", target_server_name)
  if type(tensor_dict) ~= "table" or getmetatable(tensor_dict) ~= nil then
    fail("send_tensors", "tensor_dict must be a table of tensors by name, got " .. describe(tensor_dict))
  end
  local values = {}
  for name, x in pairs(tensor_dict) do
    if type(name) ~= "string" or name:find "/" or not ms.is_tensor(x) then
      fail("send_tensors", ("tensor_dict must hold tensors by names without '/', got %s"):format(describe(x)))
    end
    cut_layer.put(values, name, x, self._configs[name])
  end
  link:send("tensors", values)
end

--- The tensors that a party sends next, by name. remote_server_name: its name.
---     > (pcall(function() ms.federated.VerticalFederatedCommunicator({ links = {} }):receive("a") end)) --> false
function VerticalFederatedCommunicator:receive(remote_server_name)
  local link = link_to(self, "receive", remote_server_name)
  return cut_layer.take(link, (link:receive "tensors"))
end

--- Bytes that were sent and received so far.
---     > link = ms.federated.vertical.pair("a", "b")
---     > ms.federated.VerticalFederatedCommunicator({ links = { b = link } }):traffic().sent --> 0
function VerticalFederatedCommunicator:traffic()
  local sent, received = 0, 0
  for _, link in pairs(self._links or {}) do sent, received = sent + link.sent, received + link.received end
  return { sent = sent, received = received }
end

--- Ends the connections.
---     > link = ms.federated.vertical.pair("a", "b")
---     > ms.federated.VerticalFederatedCommunicator({ links = { b = link } }):close()
function VerticalFederatedCommunicator:close()
  for _, link in pairs(self._links or {}) do link:close() end
end

local VFLTrainer = class.define(nil, "VFLTrainer", "fl_model, communicator, leader=\"leader\", followers=nil", [[The steps of one party,
in turn with the others. fl_model: this party's FLModel. communicator: its VerticalFederatedCommunicator. leader: the name of the leader,
for followers. followers: at the leader the names of the parties whose embeddings it takes, nil for all; each must send tensors of names
of its own. All parties go through the same rows in the same order, in batches of the same size, so many epochs.

  > half = ms.nn.Dense(2, 1)
  > spec = { inputs = { { name = "x" } }, outputs = { { name = "h", destination = "remote" } } }
  > model = ms.federated.FLModel { network = half, yaml_data = { role = "follower", model = { train_net = spec } } }
  > link = ms.federated.vertical.pair("follower", "leader")
  > ms.federated.VFLTrainer(model, ms.federated.VerticalFederatedCommunicator { links = { leader = link } }).role --> follower]])
communication.VFLTrainer = VFLTrainer

function VFLTrainer:setup(a)
  local where = "VFLTrainer"
  if not class.is_a(a.fl_model, FLModel) then fail(where, "fl_model must be an FLModel, got " .. describe(a.fl_model)) end
  if not class.is_a(a.communicator, VerticalFederatedCommunicator) then
    fail(where, "communicator must be a VerticalFederatedCommunicator, got " .. describe(a.communicator))
  end
  if a.followers ~= nil and (type(a.followers) ~= "table" or #a.followers == 0) then
    fail(where, "followers must be a list of names, got " .. describe(a.followers))
  end
  self.model, self.communicator, self.role, self._leader, self._followers = a.fl_model, a.communicator, a.fl_model.role, a.leader,
    a.followers
  -- What this party's half says of compression holds for what it sends.
  for name, config in pairs(self.model:get_compress_configs()) do
    if self.communicator._configs[name] == nil then self.communicator._configs[name] = config end
  end
end

-- The batches of an epoch, tables by name: of a data set, a list, or a function that gives them.
local function batches_of(where, data)
  if type(data) == "function" then return data() end
  if type(data) == "table" and (type(data.create_dict_iterator) == "function") then
    local rows = data:create_dict_iterator { num_epochs = 1 }
    return function() return (rows()) end
  end
  if type(data) == "table" and getmetatable(data) == nil then
    local at = 0
    return function()
      at = at + 1
      return data[at]
    end
  end
  return fail(where, "data must be a data set, a list of batches by name, or a function that gives them, got " .. describe(data))
end

local function sent_outputs(model, outputs, net)
  local sent = {}
  for _, item in ipairs(net.outputs) do
    if item.destination == "remote" then sent[item.name] = outputs[item.name] end
  end
  return sent
end

-- The tensors of all followers by name, and the sender of each.
local function gathered(self, where)
  local all, from = {}, {}
  for _, name in ipairs(self._followers or self.communicator:parties()) do
    for tensor, value in pairs(self.communicator:receive(name)) do
      if from[tensor] then
        fail(where, ("'%s' and '%s' both send a tensor '%s'"):format(from[tensor], name, tensor),
          "give the outputs of followers names that differ")
      end
      all[tensor], from[tensor] = value, name
    end
  end
  return all, from
end

local function leader_step(self, batch)
  local remote, from = gathered(self, "train")
  local scaled, outputs = self.model:backward_one_step(batch, remote)
  local back = {}
  for _, name in ipairs(self._followers or self.communicator:parties()) do back[name] = {} end
  for tensor, d in pairs(scaled) do
    local name = from[tensor] or fail("train", ("no follower has sent '%s'"):format(tensor))
    back[name][tensor] = d
  end
  for name, tensors in pairs(back) do self.communicator:send_tensors(name, tensors) end
  return outputs
end

local function follower_step(self, batch)
  local outputs = self.model:forward_one_step(batch)
  self.communicator:send_tensors(self._leader, sent_outputs(self.model, outputs, self.model.yaml_data.train_net))
  self.model:backward_one_step(batch, nil, self.communicator:receive(self._leader))
  return outputs
end

--- Trains for so many epochs. data: a data set, a list of batches (tables of tensors by name), or a function that gives a function of the
--- next batch. on_step(outputs, step): called behind each step with the outputs of train_net by name, at the leader the loss among them.
--- Gives the outputs of the last step.
---     > (pcall(function() ms.federated.VFLTrainer({}, {}):train(1, {}) end)) --> false
function VFLTrainer:train(epochs, data, on_step)
  on_step = arguments.named("train", { "on_step" }, on_step)
  epochs = check.positive("train", "epochs", epochs)
  local step = self.role == "leader" and leader_step or follower_step
  return links.guarded(self.communicator._links, function()
    local count, last = 0, nil
    for _ = 1, epochs do
      for batch in batches_of("train", data) do
        last = step(self, batch)
        count = count + 1
        if on_step then on_step(last, count) end
      end
    end
    if count == 0 then fail("train", "there is no batch") end
    return last
  end)
end

--- Goes through data once without training; gives the metrics by name, at the leader.
---     > (pcall(function() ms.federated.VFLTrainer({}, {}):eval({}) end)) --> false
function VFLTrainer:eval(data)
  return links.guarded(self.communicator._links, function()
    local net = self.model.yaml_data.eval_net or self.model.yaml_data.train_net
    for batch in batches_of("eval", data) do
      if self.role == "leader" then
        self.model:eval_one_step(batch, (gathered(self, "eval")))
      else
        self.communicator:send_tensors(self._leader, sent_outputs(self.model, self.model:eval_one_step(batch), net))
      end
    end
    return self.role == "leader" and self.model:metrics() or nil
  end)
end

return communication
