-- ms.nn: cells, layers, losses, optimizers.
local cells = require "lunaria.nn.cell"

local nn = { Cell = cells.Cell, get_activation = require("lunaria.nn.activation").get_activation }
for _, part in ipairs {
  require("lunaria.nn.activation").classes,
  require "lunaria.nn.basic",
  require "lunaria.nn.dropout",
  require "lunaria.nn.padding",
  require "lunaria.nn.picture",
  require "lunaria.nn.combined",
  require "lunaria.nn.derivative",
  require "lunaria.nn.container",
  require "lunaria.nn.conv",
  require "lunaria.nn.pool",
  require "lunaria.nn.norm",
  require "lunaria.nn.loss",
  require "lunaria.nn.loss_more",
  require "lunaria.nn.recurrent",
  require "lunaria.nn.transformer",
  require "lunaria.nn.transformer_layers",
  require "lunaria.nn.wrap",
  require "lunaria.nn.loss_scale",
  require("lunaria.nn.optim").nn,
  (require "lunaria.nn.optim_more"),
  require("lunaria.nn.optim_rare").classes,
  require "lunaria.nn.optim_lars",
  require "lunaria.nn.thor",
  require("lunaria.nn.schedule").classes,
  require("lunaria.nn.schedule").lists,
} do
  for name, class in pairs(part) do
    nn[name] = class
  end
end
require "lunaria.nn.optim_torch"
nn.optim = require("lunaria.nn.optim").mint

local arguments = require "lunaria.nn.arguments"

-- A name that does not exist is said at once, with what was meant.
return setmetatable(nn, {
  __index = function(_, name)
    -- Metrics have been part of nn once, and programs call them so.
    local metric = require("lunaria.train.metrics")[name]
    if metric ~= nil then
      rawset(nn, name, metric)
      return metric
    end
    local names = {}
    for known in pairs(nn) do
      names[#names + 1] = known
    end
    arguments.fail("ms.nn", ("there is no layer '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
  end,
})
