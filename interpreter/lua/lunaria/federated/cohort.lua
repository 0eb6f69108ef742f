-- The trainings of many clients: side by side in one compiled step, by vmap over the clients, or one by one.
--
-- Clients of a group go through their batches together. A client with fewer steps than others of its group stands still for the rest, and a
-- batch that is not full is filled up with samples that count 0; so one compiled step does for all groups.
-- Each client's numbers are computed by loops of its own, whichever clients are beside it: groups of any size from 2 up and any number of
-- threads give the same bits, and where the network has dense layers alone so do clients that are trained one by one (group = 1).
-- Convolutions of one client are another kernel than those of several, which adds in another order.
local ms = require "lunaria"
local chances = require "lunaria.federated.chances"
local functional = require "lunaria.federated.functional"

local ops = ms.ops

local Cohort = {}
Cohort.__index = Cohort

-- The loss of a batch: the mean of the samples' losses, or of those that count.
local function mean_loss(losses, counts)
  if not counts then return ops.mean(losses) end
  return ops.sum(losses * counts) / ops.sum(counts)
end

-- gradient(w, x, y, counts) -> loss, gradient, both by w, a vector of all weights; and losses(w, x, y), one for each sample.
local function functions_of(network, map, loss)
  local parameters, names = {}, map:names "aggregated"
  local of_name = {}
  for name, parameter in network:parameters_and_names() do of_name[name] = parameter end
  for i, name in ipairs(names) do parameters[i] = of_name[name] end
  local with = functional.of("simulate", network, parameters)
  local forward = ms.value_and_grad(function(weights, x, y, counts)
    return mean_loss(loss(with(weights)(x), y), counts)
  end)
  local shapes, sizes = {}, {}
  for i, parameter in ipairs(parameters) do shapes[i], sizes[i] = parameter.shape, parameter.size end
  local function divided(w)
    local weights, first = {}, 0
    for i = 1, #shapes do
      weights[i] = ops.reshape(ops.narrow(w, 0, first, sizes[i]), shapes[i])
      first = first + sizes[i]
    end
    return weights
  end
  local function gradient(w, x, y, counts)
    local value, gradients = forward(divided(w), x, y, counts)
    local parts = {}
    for i = 1, #shapes do parts[i] = ops.reshape(gradients[i], { -1 }) end
    return value, ops.concat(parts, 0)
  end
  return gradient, function(w, x, y) return loss(with(divided(w))(x), y) end
end

-- The losses of a batch of all clients of a group, with weights that stay, each added up over its samples.
local function group_loss(losses, masked)
  local function one(w, x, y, counts)
    local list = losses(w, x, y)
    return ops.sum(counts and list * counts or list)
  end
  return ms.jit(ms.vmap(one, masked and { 0, 0, 0, 0 } or { 0, 0, 0 }))
end

-- A step of all clients of a group. rows: (clients, batch), numbers of samples; counts: (clients, batch) or nil; going: (clients) or nil,
-- whether a client still has batches.
local function group_step(rule, gradient, masked)
  local function one(carry, s, k, x, y, counts)
    return rule.step(carry, gradient, s, k, x, y, counts)
  end
  local axes = masked and { 0, false, false, 0, 0, 0 } or { 0, false, false, 0, 0 }
  local all = ms.vmap(one, axes)
  return ms.jit(function(carry, s, k, x, y, counts, going)
    if not masked then return all(carry, s, k, x, y) end
    local new, loss = all(carry, s, k, x, y, counts)
    for key, value in pairs(new) do
      local shape = { going.shape[1] }
      for i = 2, value.ndim do shape[i] = 1 end
      new[key] = ops.where(ops.reshape(going, shape), value, carry[key])
    end
    return new, ops.where(going, loss, ops.zeros_like(loss))
  end)
end

--- options: network, map (its feature map), loss, tensors (of all samples), rows (of each client an int64 tensor), batch_size (nil: all at
--- once), shuffle, seed, group (clients side by side).
function Cohort.new(options)
  local self = setmetatable({}, Cohort)
  for key, value in pairs(options) do self[key] = value end
  self.states, self.steps = {}, {}
  -- Whether some batch of some client is not full: then all are computed with counts.
  self.masked = false
  for _, rows in ipairs(self.rows) do
    local n, batch = rows.shape[1], self.batch_size
    if batch and n % batch ~= 0 or not batch and n ~= self.rows[1].shape[1] then self.masked = true end
  end
  if not self.batch_size then
    self.batch_size = 1
    for _, rows in ipairs(self.rows) do self.batch_size = math.max(self.batch_size, rows.shape[1]) end
  end
  self.gradient, self.losses = functions_of(self.network, self.map, self.loss)
  return self
end

-- How many batches a client has in an epoch.
function Cohort:batches(client) return (self.rows[client].shape[1] + self.batch_size - 1) // self.batch_size end

-- The numbers of the samples of a client's batches in the order in which it goes through them: (steps, batch), and how many of each batch
-- count. steps: how many are wanted; beyond the client's own there are its first samples again, which do not count.
function Cohort:order(client, round, epochs)
  local rows, batch = self.rows[client], self.batch_size
  local n, parts = rows.shape[1], {}
  local full = self:batches(client) * batch
  for epoch = 1, epochs do
    local mine = rows
    if self.shuffle then
      local order = chances.of(self.seed, "batches", round, client * 4096 + epoch):permutation(n)
      mine = ops.index_select(rows, 0, order)
    end
    if full > n then
      -- Filled up with the first of its samples, as often as it takes.
      mine = ops.index_select(mine, 0, ops.arange(full) % n)
    end
    parts[epoch] = mine
  end
  return ops.reshape(#parts == 1 and parts[1] or ops.concat(parts, 0), { -1, batch })
end

local function counts_of(n, batch, batches)
  local counts = ops.less(ops.arange(batch * batches), n):astype(ms.float32)
  return ops.reshape(counts, { batches, batch })
end

-- States of clients as one table of tensors with a row for each; nil where they do not have the same fields.
local function stacked(list)
  local first, out = list[1], {}
  for key in pairs(first) do
    local column = {}
    for i, state in ipairs(list) do column[i] = state[key] end
    out[key] = ops.stack(column, 0)
  end
  return out
end

local function row_of(tensors, i)
  local out = {}
  for key, value in pairs(tensors) do out[key] = ms.is_tensor(value) and value.ndim > 0 and value[i] or value end
  return out
end

local function form_of(state)
  local names = {}
  for key in pairs(state) do names[#names + 1] = key end
  table.sort(names)
  return table.concat(names, " ")
end

-- The jobs in groups of clients whose states have the same fields, longest first, so that those of a group have about as many steps.
local function grouped(self, jobs, rule)
  local order = table.move(jobs, 1, #jobs, 1, {})
  for _, job in ipairs(order) do
    job.state = self.states[job.client] or rule.initial and rule.initial(job.start) or {}
    job.form = form_of(job.state)
    job.steps = math.min(self:batches(job.client) * job.epochs, job.most or math.huge)
  end
  table.sort(order, function(a, b)
    if a.form ~= b.form then return a.form < b.form end
    if a.steps ~= b.steps then return a.steps > b.steps end
    return a.client < b.client
  end)
  local groups = {}
  for _, job in ipairs(order) do
    local last = groups[#groups]
    if not last or #last == self.group or last[1].form ~= job.form then
      last = {}
      groups[#groups + 1] = last
    end
    last[#last + 1] = job
  end
  -- A client that is left alone goes beside a copy of itself.
  for _, group in ipairs(groups) do
    group.count = #group
    if #group == 1 and self.group > 1 then group[2] = group[1] end
  end
  return groups
end

local function step_for(self, rule)
  local step = self.steps[rule]
  if not step then
    step = group_step(rule, self.gradient, self.masked)
    self.steps[rule] = step
  end
  return step
end

-- Trains a group; gives weights (clients, size), mean losses, extras by name (clients, ...), metrics of each client.
function Cohort:train_group(group, rule, settings, round, initial_loss)
  local count, batch, longest = #group, self.batch_size, group[1].steps
  local orders, counts, lengths = {}, {}, {}
  for i, job in ipairs(group) do
    local order = self:order(job.client, round, job.epochs)
    local own = order.shape[1]
    if own > longest then
      order = order[{ ms.slice(0, longest) }]
    elseif own < longest then
      order = ops.concat({ order, ops.broadcast_to(order[{ ms.slice(0, 1) }], { longest - own, batch }) }, 0)
    end
    orders[i], lengths[i] = order, job.steps
    if self.masked then
      local batches = self:batches(job.client)
      local of_epoch = counts_of(self.rows[job.client].shape[1], batch, batches)
      counts[i] = ops.index_select(of_epoch, 0, ops.arange(longest) % batches)
    end
  end
  -- (steps, clients * batch), so that a step's rows lie together.
  local rows = ops.reshape(ops.transpose(ops.stack(orders, 0), { 1, 0, 2 }), { longest, -1 }):contiguous()
  local weighing = self.masked and ops.transpose(ops.stack(counts, 0), { 1, 0, 2 }):contiguous()
  local ends = self.masked and ms.tensor(lengths, ms.int64)
  local starts, states = {}, {}
  for i, job in ipairs(group) do starts[i], states[i] = job.start, job.state end
  local w0, state = ops.stack(starts, 0), stacked(states)
  local has_state = next(state) ~= nil
  local carry = has_state and ms.vmap(function(w, own) return rule.begin(w, settings, own) end)(w0, state)
    or ms.vmap(function(w) return rule.begin(w, settings, {}) end)(w0)
  local step, sum = step_for(self, rule), nil
  local shapes = {}
  for k, x in ipairs(self.tensors) do
    shapes[k] = { count, batch }
    for axis = 2, x.ndim do shapes[k][axis + 1] = x.shape[axis] end
  end
  local function inputs(k)
    local x, y = ops.index_select(self.tensors[1], 0, rows[k]), ops.index_select(self.tensors[2], 0, rows[k])
    return ops.reshape(x, shapes[1]), ops.reshape(y, shapes[2])
  end
  local initial = initial_loss and self:initial_losses(group, w0, inputs, weighing)
  for k = 0, longest - 1 do
    local x, y = inputs(k)
    local loss
    if self.masked then
      carry, loss = step(carry, settings, k, x, y, weighing[k], ops.greater(ends, k))
    else
      carry, loss = step(carry, settings, k, x, y)
    end
    sum = sum and sum + loss or loss
  end
  return { carry = carry, w0 = w0, losses = sum, initial = initial }
end

-- The mean losses of the clients before they train, over their first epoch.
function Cohort:initial_losses(group, w0, inputs, weighing)
  self.loss_step = self.loss_step or group_loss(self.losses, self.masked)
  local sum, list = nil, {}
  for k = 0, group[1].steps - 1 do
    local x, y = inputs(k)
    local losses = self.masked and self.loss_step(w0, x, y, weighing[k]) or self.loss_step(w0, x, y)
    -- A client with fewer batches has seen all of its samples.
    local own = {}
    for i, job in ipairs(group) do own[i] = k < self:batches(job.client) and 1.0 or 0.0 end
    losses = ops.where(ops.greater(ms.tensor(own), 0.5), losses, ops.zeros_like(losses))
    sum = sum and sum + losses or losses
  end
  for i, value in ipairs(sum:tolist()) do list[i] = value / self.rows[group[i].client].shape[1] end
  return list
end

--- Trains clients. jobs: a list of { client, start (a vector), epochs, most (nil, or at most so many steps) }; rule: a client rule;
--- settings: what it knows; round: its number; initial_loss: whether metrics have the loss before the training. Calls each(job, w, loss,
--- extra, metrics) for the jobs in their order.
function Cohort:train(jobs, rule, settings, round, initial_loss, each)
  local done = {}
  for _, group in ipairs(grouped(self, jobs, rule)) do
    local run = self:train_group(group, rule, settings, round, initial_loss)
    local losses = run.losses:tolist()
    for i = 1, group.count do
      local job = group[i]
      local carry = row_of(run.carry, i - 1)
      local w, extra, metrics, state = rule.finish(carry, run.w0[i - 1], settings, job.steps, job.state)
      self.states[job.client] = next(state) ~= nil and state or nil
      metrics.loss, metrics.steps = losses[i] / job.steps, job.steps
      metrics.initial_loss = run.initial and run.initial[i]
      done[job] = { w, extra, metrics }
    end
  end
  for _, job in ipairs(jobs) do each(job, table.unpack(done[job])) end
end

return Cohort
