-- ms.mint: the optimizers with PyTorch's rules and names of arguments, and ranks by PyTorch's names.
return setmetatable({ optim = require "lunaria.nn.optim_torch" }, { __index = function(self, name)
  if name ~= "distributed" then return nil end
  self.distributed = require "lunaria.mint.distributed"
  return self.distributed
end })
