-- Calls of cells and primitives that have a derivative of their own.
local ms = require "lunaria"
local fail = require "lunaria.nn.arguments".fail

--- What object:construct(...) gives, with the derivative of its method bprop(self, inputs..., results..., cotangents...), which gives
--- one gradient for each input.
return function(object, name, ...)
  local inputs = select("#", ...)
  local function forward(...)
    return object:construct(...)
  end
  local function backward(...)
    local gradients = table.pack(object:bprop(...))
    for i = 1, inputs do
      if gradients[i] == nil then
        fail(name, ("bprop must give a gradient for each of the %d inputs: that of input %d is nil"):format(inputs, i))
      end
    end
    return table.unpack(gradients, 1, inputs)
  end
  return ms.custom_vjp(forward, backward)(...)
end
