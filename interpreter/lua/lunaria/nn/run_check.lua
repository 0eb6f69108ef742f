-- ms.run_check: whether an installation computes, in both modes.
local ms = require "lunaria"

local M = {}

--- Multiplies two matrices eagerly and compiled, takes a derivative, and prints that the installation is in order; what is wrong is an
--- error.
---     > ms.run_check()
function M.run_check()
  local a, b = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, ms.tensor { { 5.0, 6.0 }, { 7.0, 8.0 } }
  local function product(x) return ms.ops.sum(ms.ops.matmul(x, b)) end
  local compiled = ms.jit(product)
  for _ = 1, 3 do
    for _, f in ipairs { product, compiled } do
      local value = f(a):item()
      if value ~= 134.0 then error(("run_check: the sum of a product of matrices is %s, and must be 134"):format(value), 2) end
    end
  end
  local slope = ms.grad(product)(a):tolist()[1][2]
  if slope ~= 15.0 then error(("run_check: a derivative of a product of matrices is %s, and must be 15"):format(slope), 2) end
  print("Lunaria version: " .. ms.version)
  print(("The result of multiplication calculation is correct, Lunaria has been installed on platform [%s] successfully!"):format(
    ms.get_context "device_target"))
end

return M
