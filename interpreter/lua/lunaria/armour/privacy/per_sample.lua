-- Gradients of the losses of single samples, and weighted sums of these, by one forward and one backward pass over the batch.
--
-- The cells that own parameters are units: while a private pass runs, a unit's result goes through an identity whose derivative keeps the
-- cotangent that arrives there, and the unit's inputs are kept beside it. The backward pass computes these cotangents alone and no
-- gradient of a parameter. From inputs and cotangents a rule of the layer (layer_rules.lua) tells the norm of each sample's gradient, and
-- then the weighted sum ("book keeping", arXiv 2210.00038). A unit without a rule, as an LSTM or a cell of the user's, computes its own
-- per-sample gradients by vmap(grad) of itself. A network that does not fit (parameters used outside of their cell) is one unit by vmap.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local naming = require "lunaria.nn.naming"
local predicting = require "lunaria.nn.predicting"
local rules = require "lunaria.armour.privacy.layer_rules"

local ops, is_tensor = ms.ops, ms.is_tensor
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- What is recorded while a private pass runs: entries in order, and the tensor by which the pass is differentiated.
local tape

-- Forward: the value. Backward: keeps the cotangent in the entry.
local function keep_cotangent(entry, k, value, anchor)
  return ms.custom_vjp(function(v, _) return v end, function(_, a, _, cotangent)
    entry.cotangents[k] = cotangent
    return cotangent, ops.zeros_like(a)
  end)(value, anchor)
end

-- The floating tensors among results, also within tables, each through f(k, tensor).
local function each_tensor(value, f, count)
  if is_tensor(value) then
    if not value:is_floating_point() then return value, count end
    return f(count + 1, value), count + 1
  end
  if type(value) ~= "table" then return value, count end
  local list = {}
  for key, item in pairs(value) do list[key], count = each_tensor(item, f, count) end
  return list, count
end

local function tapped_results(entry, anchor, ...)
  local values, count = table.pack(...), 0
  for i = 1, values.n do
    values[i], count = each_tensor(values[i], function(k, x) return keep_cotangent(entry, k, x, anchor) end, count)
  end
  entry.count = count
  return table.unpack(values, 1, values.n)
end

-- construct of a unit.
local function run_unit(unit, original, cell, ...)
  local now = tape
  if not now or not now.of[unit] then return original(cell, ...) end
  local entry = { unit = unit, inputs = table.pack(...), cotangents = {} }
  now[#now + 1] = entry
  local rule = unit.rule
  if rule then
    return rule.run(cell, function(y)
      entry.count = 1
      return keep_cotangent(entry, 1, y, now.anchor)
    end, ...)
  end
  -- Cells within the unit are part of it.
  tape = nil
  local results = table.pack(original(cell, ...))
  tape = now
  return tapped_results(entry, now.anchor, table.unpack(results, 1, results.n))
end

-- The unit of a cell; made once, so that several users of a network share it.
local units = setmetatable({}, { __mode = "k" })

local function unit_of(cell, axis)
  local unit = units[cell]
  if unit then return unit end
  unit = { axis = axis, rule = rules.of(cell), name = getmetatable(cell)._name }
  units[cell] = unit
  local original = cell.construct
  unit.original = original
  -- The cell is not kept alive by its unit.
  rawset(cell, "construct", function(self, ...) return run_unit(unit, original, self, ...) end)
  return unit
end

local function owns_parameters(cell)
  for _, field in ipairs(naming.of.fields(cell)) do
    if field.parameter and field.value.requires_grad then return true end
  end
  return false
end

local function refuse_mixing(where, name, cell)
  local kind = getmetatable(cell)._name
  local of_batch = cell.use_batch_statistics
  if of_batch == nil then of_batch = cell.training end
  if kind:find "^BatchNorm" or kind == "SyncBatchNorm" then
    if of_batch then
      fail(where, ("%s is an nn.%s, whose result for a sample depends on the others of its batch"):format(
        name == "" and "the network" or "the layer " .. name, kind), "use nn.GroupNorm, or use_batch_statistics = false")
    end
  end
end

-- The units of a network with the axis of their samples.
local function find_units(where, network)
  local list, seen = {}, {}
  local function visit(cell, axis)
    if seen[cell] then return end
    seen[cell] = true
    if cell.batch_first ~= nil then axis = cell.batch_first and 0 or 1 end
    if owns_parameters(cell) then
      list[#list + 1] = { cell = cell, unit = unit_of(cell, axis) }
      return
    end
    for _, part in ipairs(cell:cells()) do visit(part, axis) end
  end
  for name, cell in network:cells_and_names() do refuse_mixing(where, name, cell) end
  visit(network, 0)
  return list
end

local function to_front(x, axis) return axis == 0 and x or ops.moveaxis(x, axis, 0) end

-- The gradients of a unit's parameters for each sample, by running the unit again under vmap.
local function gradients_again(cell, entry, n)
  local unit, parameters = entry.unit, cell:trainable_params()
  if cell.training and math.type(cell.dropout) and cell.dropout > 0 then
    fail("PerSampleGradients", ("nn.%s drops out by chance and is computed again for its gradients"):format(unit.name),
      "make it with dropout = 0, or use mode = \"vmap\"")
  end
  local inputs, mapped, places = entry.inputs, {}, {}
  for i = 1, inputs.n do
    local x = inputs[i]
    -- States of recurrent layers have their samples on axis 1 whatever batch_first says.
    local axis = unit.axis
    if is_tensor(x) and x.ndim > axis and x.shape[axis + 1] ~= n and x.ndim > 1 and x.shape[2] == n then axis = 1 end
    if is_tensor(x) and x.ndim > axis and x.shape[axis + 1] == n then
      mapped[#mapped + 1] = to_front(x, axis)
      places[#mapped] = { input = i, axis = axis }
    end
  end
  for k = 1, entry.count do
    local d = entry.cotangents[k]
    if d ~= nil then
      local axis = unit.axis
      if d.shape[axis + 1] ~= n and d.ndim > 1 and d.shape[2] == n then axis = 1 end
      mapped[#mapped + 1] = to_front(d, axis)
      places[#mapped] = { result = k, axis = axis }
    end
  end
  local function of_sample(...)
    local given, call, cotangents = { ... }, table.pack(table.unpack(inputs, 1, inputs.n)), {}
    for k, place in ipairs(places) do
      local x = ops.expand_dims(given[k], place.axis)
      if place.input then call[place.input] = x else cotangents[place.result] = x end
    end
    local gradients = ms.grad(function()
      local total, count = 0.0, 0
      local outputs = table.pack(unit.original(cell, table.unpack(call, 1, call.n)))
      for i = 1, outputs.n do
        local _
        _, count = each_tensor(outputs[i], function(k, y)
          if cotangents[k] ~= nil then total = total + ops.sum(y * cotangents[k]) end
          return y
        end, count)
      end
      return total
    end, nil, parameters)()
    return table.unpack(gradients)
  end
  local results = { ms.vmap(of_sample)(table.unpack(mapped)) }
  local parts = {}
  for i, parameter in ipairs(parameters) do parts[i] = rules.materialised(parameter, results[i]) end
  return parts
end

-- Several parts of one parameter, of a cell that is called twice: a sample's gradient is their sum.
local function joined(parameter, parts)
  local each = parts[1].each()
  for i = 2, #parts do each = each + parts[i].each() end
  return rules.materialised(parameter, each)
end

local PerSampleGradients = class.define(nil, "PerSampleGradients", "network, loss_fn=nil, mode=\"auto\", loss_reduction=nil",
  [[The gradients of a network's trainable parameters for each sample of a batch by itself, their norms, and weighted sums of them.

network: a cell. loss_fn(network(inputs), labels): a loss cell of ms.nn, or a function that gives one number for each sample; without it
the network gives the losses. mode: "ghost" computes norms and weighted sums without the gradients themselves, layer by layer, "vmap"
makes all of them (n times the memory of the parameters), "auto" is ghost where a first look at two samples shows that it
fits the network, else vmap. loss_reduction: "mean" or "sum", what a function of the user's makes of the samples where it gives one number.

Layers whose result for a sample depends on the others of its batch, as batch normalisation in training, are an error.

  > net = ms.nn.Dense(3, 2)
  > each = ms.armour.privacy.diff_privacy.PerSampleGradients(net, ms.nn.CrossEntropyLoss())
  > each:norms(ms.ones { 4, 3 }, ms.tensor { 0, 1, 1, 0 }).shape --> (4,)]])

-- A loss cell of the library gives one number a sample; the user's own cell stays as it is.
local function unreduced(loss_fn)
  if not cells.is_cell(loss_fn) or loss_fn.reduction == nil or loss_fn.reduction == "none" then return loss_fn, loss_fn and "mean" end
  local copy = {}
  for key, value in next, loss_fn do copy[key] = value end
  rawset(copy, "reduction", "none")
  return setmetatable(copy, getmetatable(loss_fn)), loss_fn.reduction
end

function PerSampleGradients:setup(a)
  local name = "PerSampleGradients"
  if not cells.is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
  if a.loss_fn ~= nil and not arguments.is_callable(a.loss_fn) then
    fail(name, "loss_fn must be a cell or a function, got " .. describe(a.loss_fn))
  end
  self.network, self.parameters = a.network, a.network:trainable_params()
  if #self.parameters == 0 then fail(name, describe(a.network) .. " has no parameters that are trained") end
  local own
  self.loss_fn, own = unreduced(a.loss_fn)
  self.loss_reduction = a.loss_reduction ~= nil and check.choice(name, "loss_reduction", a.loss_reduction, { "mean", "sum" }) or own
  self.is_told = a.loss_reduction ~= nil
  if self.is_told and not rawequal(self.loss_fn, a.loss_fn) and a.loss_reduction ~= own then
    fail(name, ("loss_reduction is '%s', and the reduction of loss_fn is '%s'"):format(a.loss_reduction, own), "leave loss_reduction out")
  end
  self.asked = check.choice(name, "mode", a.mode, { "auto", "ghost", "vmap" })
  self.mode = self.asked == "vmap" and "vmap" or nil
  self.units = find_units(name, a.network)
  self.of, self.place_of = {}, {}
  for i, parameter in ipairs(self.parameters) do self.place_of[parameter] = i end
  for _, item in ipairs(self.units) do self.of[item.unit] = item.cell end
end

local function count_of(where, first)
  if not is_tensor(first) or first.ndim == 0 then
    fail(where, "the first input must be a tensor with the samples on its first axis, got " .. describe(first))
  end
  return first.shape[1]
end

-- The losses (n), each of which counts in full, from what network and loss_fn gave; the sum alone where there is but that.
function PerSampleGradients:_losses(n, ...)
  local loss
  if self.loss_fn then
    local inputs = select("#", ...)
    local label = select(inputs, ...)
    loss = self.loss_fn(self.network(table.unpack({ ... }, 1, inputs - 1)), label)
  else
    loss = self.network(...)
  end
  if not is_tensor(loss) then fail("PerSampleGradients", "the loss must be a tensor, got " .. describe(loss)) end
  if loss.ndim > 0 and loss.size % n == 0 then
    local each = loss
    if loss.size > n then
      each = ops.reshape(loss, { n, loss.size // n })
      each = self.loss_reduction == "sum" and ops.sum(each, 1) or ops.mean(each, 1)
    elseif loss.ndim > 1 then
      each = ops.reshape(loss, { n })
    end
    return ops.sum(each), each
  end
  if loss.size ~= 1 then
    fail("PerSampleGradients", ("the loss has shape %s for %d samples: it must be one number for each"):format(tostring(loss.shape), n))
  end
  if not self.is_told and n > 1 then
    fail("PerSampleGradients", "the loss is one number for the whole batch",
      "let loss_fn give one number for each sample, or say what it makes of them: loss_reduction = \"mean\" or \"sum\"")
  end
  local total = ops.reshape(loss, {})
  if self.loss_reduction == "mean" then total = total * n end
  return total
end

-- Ghost: the parts of all parameters in their order, and the losses.
function PerSampleGradients:_ghost(n, ...)
  local inputs = table.pack(...)
  local entries = { of = self.of }
  local value = ms.value_and_grad(function(anchor)
    entries.anchor = anchor
    tape = entries
    local total, losses = self:_losses(n, table.unpack(inputs, 1, inputs.n))
    tape = nil
    return total, losses == nil and total / n or losses
  end, 0, nil, true)(ops.zeros({}, self.parameters[1].dtype):to(self.parameters[1].device))
  local losses = value[2]
  local found = {}
  for i = 1, #entries do
    local entry = entries[i]
    local unit, cell = entry.unit, self.of[entry.unit]
    local parts
    if entry.count == 0 or next(entry.cotangents) == nil then
      parts = {}
    elseif unit.rule then
      parts = unit.rule.parts(cell, to_front(entry.inputs[1], unit.axis), to_front(entry.cotangents[1], unit.axis))
    else
      parts = gradients_again(cell, entry, n)
    end
    -- What a compiled step keeps in tables stays until it is taken out.
    entry.inputs, entry.cotangents = nil, nil
    for k = 1, #parts do
      local place = self.place_of[parts[k].parameter]
      local list = found[place] or {}
      found[place] = list
      list[#list + 1] = parts[k]
    end
  end
  local parts = {}
  for i, parameter in ipairs(self.parameters) do
    local list = found[i]
    if not list then
      parts[i] = rules.materialised(parameter, ops.zeros({ n, table.unpack(parameter.shape) }, parameter.dtype):to(parameter.device))
    else
      parts[i] = #list == 1 and list[1] or joined(parameter, list)
    end
  end
  return parts, losses
end

-- One by one under vmap: works for any network, and takes n times the memory of the parameters.
function PerSampleGradients:_by_vmap(_, ...)
  local function of_sample(...)
    local call = table.pack(...)
    for i = 1, call.n do
      if is_tensor(call[i]) then call[i] = ops.expand_dims(call[i], 0) end
    end
    local loss, gradients = ms.value_and_grad(function()
      return (self:_losses(1, table.unpack(call, 1, call.n)))
    end, nil, self.parameters)()
    return loss, table.unpack(gradients)
  end
  local results = { ms.vmap(of_sample)(...) }
  local parts = {}
  for i, parameter in ipairs(self.parameters) do parts[i] = rules.materialised(parameter, results[i + 1]) end
  return parts, results[1]
end

--- The parts of all trainable parameters in their order, and the losses (n): of each parameter norm2 (n), sum(weights) and each().
function PerSampleGradients:parts(...)
  local n = count_of("PerSampleGradients", (...))
  if n == 0 then fail("PerSampleGradients", "the batch is empty") end
  if not self.mode then self:_choose(...) end
  if self.mode == "vmap" then return self:_by_vmap(n, ...) end
  return self:_ghost(n, ...)
end

local function slice_of(x, n, from, to)
  if is_tensor(x) and x.ndim > 0 and x.shape[1] == n then return x[{ ms.slice(from, to) }] end
  return x
end

local tolerances = { [tostring(ms.float64)] = 1e-8, [tostring(ms.float32)] = 2e-3 }

-- What the norms and the sums of at most two samples differ from those of the samples by themselves: a text, nil where they do not.
function PerSampleGradients:_difference(n, ...)
  local inputs, few = table.pack(...), math.min(n, 2)
  local together, alone = {}, {}
  for i = 1, inputs.n do together[i] = slice_of(inputs[i], n, 0, few) end
  local parts = self:_ghost(few, table.unpack(together, 1, inputs.n))
  for k = 1, few do
    local call = {}
    for i = 1, inputs.n do call[i] = slice_of(inputs[i], n, k - 1, k) end
    alone[k] = ms.grad(function() return (self:_losses(1, table.unpack(call, 1, inputs.n))) end, nil, self.parameters)()
  end
  for i, parameter in ipairs(self.parameters) do
    local tolerance = tolerances[tostring(parameter.dtype)] or 0.1
    local norms, whole, size = parts[i].norm2:astype(ms.float64):tolist(), nil, 0.0
    for k = 1, few do
      local g = alone[k][i]:astype(ms.float64)
      local own = ops.sum(g * g):item()
      whole, size = whole and whole + g or g, size + own
      if not (math.abs(norms[k] - own) <= tolerance * own + 1e-12) then return parameter.name end
    end
    local sum = parts[i].sum(ops.ones({ few }, parameter.dtype):to(parameter.device)):astype(ms.float64)
    if not (ops.max(ops.abs(sum - whole)):item() <= tolerance * math.sqrt(size) + 1e-12) then return parameter.name end
  end
end

-- Whether the ghost's rules fit the network is seen on two samples, with what is drawn by chance switched off.
function PerSampleGradients:_choose(...)
  local inputs, n = table.pack(...), (...).shape[1]
  local restore = predicting(self.network)
  local guard <close> = setmetatable({}, { __close = function() tape = nil restore() end }) -- luacheck: ignore 211
  local fine, different = pcall(self._difference, self, n, table.unpack(inputs, 1, inputs.n))
  if fine and different == nil then self.mode = "ghost" return end
  if self.asked == "auto" then self.mode = "vmap" return end
  if not fine then error(different, 0) end
  fail("PerSampleGradients", ("the gradient of %s for a sample by itself is another one than within a batch"):format(different),
    "a parameter that is used outside of its cell, or a layer that mixes samples; mode = \"vmap\" computes sample by sample")
end

--- The norms of the samples' gradients, over all parameters: a tensor (n).
---     > net = ms.nn.Dense(3, 2)
---     > each = ms.armour.privacy.diff_privacy.PerSampleGradients(net, ms.nn.CrossEntropyLoss())
---     > each:norms(ms.zeros { 4, 3 }, ms.tensor { 0, 1, 1, 0 }).shape --> (4,)
function PerSampleGradients:norms(...)
  local parts = self:parts(...)
  local total = parts[1].norm2
  for i = 2, #parts do total = total + parts[i].norm2 end
  return ops.sqrt(total)
end

--- The gradients themselves: a list with a tensor (n, shape of the parameter...) for each parameter, and the losses (n).
---     > net = ms.nn.Dense(3, 2)
---     > each = ms.armour.privacy.diff_privacy.PerSampleGradients(net, ms.nn.CrossEntropyLoss())
---     > each:gradients(ms.zeros { 4, 3 }, ms.tensor { 0, 1, 1, 0 })[1].shape --> (4, 2, 3)
function PerSampleGradients:gradients(...)
  local parts, losses = self:parts(...)
  local list = {}
  for i = 1, #parts do list[i] = parts[i].each() end
  return list, losses
end

--- The gradients summed over the samples with a weight for each, a list with one tensor for each parameter, and the losses (n).
--- weights: a tensor (n).
---     > net = ms.nn.Dense(3, 2)
---     > each = ms.armour.privacy.diff_privacy.PerSampleGradients(net, ms.nn.CrossEntropyLoss())
---     > each:weighted_sum(ms.ones { 2 }, ms.zeros { 2, 3 }, ms.tensor { 0, 1 })[1].shape --> (2, 3)
function PerSampleGradients:weighted_sum(weights, ...)
  local parts, losses = self:parts(...)
  local list = {}
  for i = 1, #parts do list[i] = parts[i].sum(weights) end
  return list, losses
end

return { PerSampleGradients = PerSampleGradients, count_of = count_of }
