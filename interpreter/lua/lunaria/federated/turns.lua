-- The trainings of many clients one after the other, on the network itself, as each client would do it: for networks with state (running
-- means of normalisations, dropout) and with features that each client keeps for itself. What Cohort:train does, by client_rules.train.
local ms = require "lunaria"
local chances = require "lunaria.federated.chances"
local client_rules = require "lunaria.federated.client_rules"

local ops = ms.ops

local Turns = {}
Turns.__index = Turns

--- options: as those of Cohort.new.
function Turns.new(options)
  local self = setmetatable({ states = {} }, Turns)
  for key, value in pairs(options) do self[key] = value end
  return self
end

-- A client's batches in the order in which it goes through them.
function Turns:batches(client, round, epochs)
  local rows, list = self.rows[client], {}
  local n = rows.shape[1]
  local batch = self.batch_size or n
  for epoch = 1, epochs do
    local order = rows
    if self.shuffle then
      order = ops.index_select(rows, 0, chances.of(self.seed, "batches", round, client * 4096 + epoch):permutation(n))
    end
    for from = 0, n - 1, batch do
      local some = order[{ ms.slice(from, math.min(n, from + batch)) }]
      list[#list + 1] = { ops.index_select(self.tensors[1], 0, some), ops.index_select(self.tensors[2], 0, some) }
    end
  end
  return list
end

--- As Cohort:train.
function Turns:train(jobs, rule, settings, round, initial_loss, each)
  local network, loss = self.network, self.loss
  local trained = { network = network, loss_fn = function(outputs, labels) return ops.mean(loss(outputs, labels)) end }
  local own = {}
  for key, value in pairs(settings) do own[key] = value end
  own.rule, own.epochs, own.sends, own.initial_loss = rule, 1, nil, initial_loss
  -- All train before the first is handed on: that one may look at the network.
  local done = {}
  for i, job in ipairs(jobs) do
    -- What the client keeps is in its state.
    self.map:with_vector(job.start):load_into(network)
    own.steps = job.most
    self.states[job.client] = self.states[job.client] or {}
    -- What the client draws is its own.
    local update = chances.with_seed(chances.key(self.seed, "training", round, job.client) >> 31, function()
      return client_rules.train(trained, self:batches(job.client, round, job.epochs), own, self.states[job.client])
    end)
    local shared = {}
    for _, name in ipairs(self.map:names "aggregated") do shared[name] = update.weights:get(name) end
    done[i] = { self.map:with(shared):vector(), update.extra, update.metrics }
  end
  for i, job in ipairs(jobs) do each(job, table.unpack(done[i])) end
end

return Turns
