-- What bench/ascend_validation.lua found for the model as it is: no figure is printed without it.
local parameters = require "lunaria.ascend.parameters"

local M = { version = "2", cases = 15, mean_error = 0.050, worst_error = 0.133 }

--- The line that goes with an estimate.
function M.text(estimate)
  local line = ("model %s, parameters of the chip %s"):format(parameters.version, estimate.chip.name)
  if estimate.measured or estimate.chip.name ~= "910" or M.version ~= parameters.version or not M.mean_error then
    return line .. ": not validated against published results"
  end
  return ("%s: mean error %.1f %%, worst %.1f %% on %d published results"):format(line, 100 * M.mean_error, 100 * M.worst_error, M.cases)
end

return M
