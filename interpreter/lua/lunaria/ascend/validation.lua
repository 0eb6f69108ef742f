-- The errors that bench/ascend_validation.lua measured for the present model: every printed figure comes with them.
local parameters = require "lunaria.ascend.parameters"

-- The errors of the set, of the device alone and with the host's pipeline of pictures, and the largest of published results outside of it.
local M = { version = "3", cases = 17, device_mean_error = 0.079, device_worst_error = 0.330, mean_error = 0.079, worst_error = 0.330,
  outside_error = 0.753 }

-- The networks of the set; what is printed for others says how wrong the model was for others.
local families = { "^resnet", "^se_resnet", "^vit", "^inception", "^bert" }

local function is_of_the_set(name)
  for _, family in ipairs(families) do
    if name:match(family) then return true end
  end
  return false
end

-- Why no published result speaks for an estimate: nothing, where one does.
local function outside(estimate)
  local o = estimate.options
  if M.version ~= parameters.version then return "the validation is of model " .. M.version end
  if estimate.measured then return "published are steps of whole networks" end
  if estimate.chip.changed or estimate.chip.name ~= "910" then return "published are steps of the 910" end
  if estimate.cluster.changed then return "published are steps on the cluster atlas" end
  if o.sink == "host" then return "published are steps of sunk graphs" end
  if not o.train then return "published are steps of training" end
  if o.dtype == "float32" then return "published are steps with float16" end
end

--- The line that goes with an estimate.
function M.text(estimate)
  local line = ("model %s, parameters of the chip %s"):format(parameters.version, estimate.chip.name)
  local reason = outside(estimate)
  if reason then return line .. ": not validated against published results (" .. reason .. ")" end
  local function errors(mean, worst) return ("%.1f %%, worst %.1f %%"):format(100 * mean, 100 * worst) end
  line = ("%s: mean error %s (of the device alone %s) on %d published results of ResNet, ViT, Inception and BERT"):format(line,
    errors(M.mean_error, M.worst_error), errors(M.device_mean_error, M.device_worst_error), M.cases)
  if is_of_the_set(estimate.network) then return line end
  return ("%s; of other networks up to %.0f %%"):format(line, 100 * M.outside_error)
end

return M
