-- Networks whose parameters have shapes and no elements (core/run/shapes_device.h).
local arguments = require "lunaria.nn.arguments"
local devices = require "lunaria.devices"

local M = {}

--- What make(...) gives, whose tensors have dtypes and shapes but no elements: a network that is larger than the machine's memory, for
--- plans, estimates (ms.ascend.estimate) and counts. Computing with it is an error until ms.load_param_into_net has given its parameters
--- values. make: a function; it is called with the further arguments.
---     > net = ms.no_init_parameters(function() return ms.nn.Dense(100000, 1000000) end)
---     > net.weight.shape --> (1000000, 100000)
---     > net.weight.device --> Shapes
function M.no_init_parameters(make, ...)
  if type(make) ~= "function" then
    arguments.fail("no_init_parameters", "make must be a function that makes a network, got " .. arguments.describe(make),
      "ms.no_init_parameters(function() return Net() end)")
  end
  return devices.without_elements(make, ...)
end

return M
