-- ms.mint: the optimizers with PyTorch's rules and names of arguments.
return { optim = require "lunaria.nn.optim_torch" }
