-- ms.train: metrics, Model, callbacks.
local train = {}
for _, part in ipairs { (require "lunaria.train.metrics"), require("lunaria.train.callbacks").classes,
  require("lunaria.train.saving_callbacks"), (require "lunaria.train.summary_record") } do
  for name, value in pairs(part) do train[name] = value end
end
train.Model = require "lunaria.train.model"

local arguments = require "lunaria.nn.arguments"

return setmetatable(train, {
  __index = function(_, name)
    local names = {}
    for known in pairs(train) do names[#names + 1] = known end
    arguments.fail("ms.train", ("there is no name '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
  end,
})
