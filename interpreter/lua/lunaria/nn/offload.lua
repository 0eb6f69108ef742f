-- Cell:offload: what a cell keeps for its backward pass, or an optimizer from step to step, waits in host memory.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local autodiff = require "lunaria.autodiff"
local devices = require "lunaria.devices"

local ops = ms.ops

local M = {}

-- run(...) for a backward pass that gets what it needs from host memory. parameters: those that it is differentiated by.
local function through_host(run, parameters, ...)
  local given = table.pack(...)
  local count, inputs, kept = #parameters, given.n, nil
  local function forward(...)
    local values, wanted = table.pack(...), {}
    for i = 1, inputs do
      local x = values[count + i]
      if ms.is_tensor(x) and x:is_floating_point() then wanted[i - 1] = true end
    end
    local results = table.pack(autodiff.vjp(run, wanted, parameters, table.unpack(values, count + 1, values.n)))
    kept = { pull = results[1], context = results[2], swapped = autodiff.swap_out(results[1], results[2]) }
    return table.unpack(results, 3, results.n)
  end
  local function back(...)
    local values = table.pack(...)
    local results = (values.n - count - inputs) // 2
    autodiff.swap_back(kept.swapped)
    local of_inputs = table.pack(kept.pull(table.unpack(values, count + inputs + results + 1, values.n)))
    autodiff.swap_away(kept.swapped)
    local list = {}
    for i, parameter in ipairs(parameters) do
      list[i] = autodiff.cotangent(kept.context, parameter, 0) or ops.zeros_like(parameter)
    end
    for i = 1, inputs do
      local x = values[count + i]
      list[count + i] = of_inputs[i] or (ms.is_tensor(x) and ops.zeros_like(x)) or nil
    end
    return table.unpack(list, 1, count + inputs)
  end
  local all = table.move(parameters, 1, count, 1, {})
  table.move(given, 1, inputs, count + 1, all)
  return ms.custom_vjp(forward, back)(table.unpack(all, 1, count + inputs))
end

-- A step of an optimizer whose states are on the device of the parameters while it lasts. places: by state, its device.
local function with_states(optimizer, construct, places, ...)
  for _, state in optimizer:parameters_and_names() do
    if places[state] then devices.move(state, places[state]) end
  end
  local result = construct(optimizer, ...)
  M.send_states(optimizer, places)
  return result
end

-- The states of an optimizer go to host memory; those that were elsewhere are noted with their places.
function M.send_states(optimizer, places)
  for _, state in optimizer:parameters_and_names() do
    if state.device ~= "CPU" then
      places[state] = state.device
      devices.move(state, "CPU")
    end
  end
end

--- Cell:offload. Parameters stay where they are; less memory of the device is taken, and the time of two copies.
function M.set(self, mode)
  mode = arguments.named("offload", { "mode" }, mode)
  if mode == nil then mode = true end
  arguments.check.boolean("offload", "mode", mode)
  local own = rawget(self, "_construct")
  if mode == (own ~= nil) then return self end
  if not mode then
    for state, place in pairs(own.places) do devices.move(state, place) end
    rawset(self, "construct", own.given)
    rawset(self, "_construct", nil)
    rawset(self, "_uncompiled", own.uncompiled)
    return self
  end
  local places = setmetatable({}, { __mode = "k" })
  rawset(self, "_construct", { given = rawget(self, "construct"), uncompiled = rawget(self, "_uncompiled"), places = places })
  rawset(self, "_uncompiled", true)
  local construct = self.construct
  if type(self.param_groups) == "table" then
    M.send_states(self, places)
    rawset(self, "construct", function(optimizer, ...) return with_states(optimizer, construct, places, ...) end)
    return self
  end
  rawset(self, "construct", function(cell, ...)
    if not self.training then return construct(cell, ...) end
    return through_host(function(...) return construct(cell, ...) end, self:trainable_params(), ...)
  end)
  return self
end

return M
