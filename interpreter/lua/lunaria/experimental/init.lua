-- ms.experimental: the optimizers with PyTorch's rules and the schedulers of their learning rates.
local optim = {}
for name, class in pairs(require "lunaria.nn.optim_torch") do optim[name] = class end
optim.Optimizer = require("lunaria.nn.optim").nn.Optimizer
optim.lr_scheduler = require "lunaria.nn.lr_scheduler"
for name, class in pairs(optim.lr_scheduler) do optim[name] = class end
return { optim = optim }
