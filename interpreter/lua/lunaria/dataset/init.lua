-- ms.dataset: data sets, samplers, and what is set for all of them.
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.dataset.dataset"

local dataset = { Dataset = base.class, config = require "lunaria.dataset.config" }
local parts = {
  (require "lunaria.dataset.operations"), (require "lunaria.dataset.sources"), (require "lunaria.dataset.more_sources"),
    (require "lunaria.dataset.text_sources"),
  require("lunaria.dataset.samplers").classes, (require "lunaria.dataset.description"), (require "lunaria.dataset.callbacks"),
  (require "lunaria.dataset.poisson"),
}
for _, part in ipairs(parts) do
  for name, value in pairs(part) do dataset[name] = value end
end

--- Rows of datasets, a list, side by side, as long as all have one: the columns of all of them, whose names must differ.
---     > x = ms.dataset.NumpySlicesDataset({ x = { 1, 2 } }, { shuffle = false })
---     > y = ms.dataset.NumpySlicesDataset({ y = { 3, 4 } }, { shuffle = false })
---     > ms.dataset.zip({ x, y }):create_dict_iterator()().y:item() --> 3
function dataset.zip(datasets) return base.new(data.zip(base.nodes_of("zip", nil, datasets))) end

-- Modules of transforms, which are loaded when they are first used.
local modules = { vision = true, text = true, audio = true, transforms = true }

return setmetatable(dataset, {
  __index = function(_, name)
    if modules[name] then
      rawset(dataset, name, require("lunaria.dataset." .. name))
      return dataset[name]
    end
    local names = {}
    for known in pairs(dataset) do names[#names + 1] = known end
    arguments.fail("ms.dataset", ("there is no name '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
  end,
})
