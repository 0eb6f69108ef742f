-- Rows of data sets as tensors, for attacks that look at all of them at once.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local batches = require "lunaria.train.batches"

local rows = {}

--- Inputs (n, ...) and labels of { inputs, labels }, or of a data set whose batches are such.
function rows.pair(where, data)
  if type(data) == "table" and getmetatable(data) == nil and #data == 2 and ms.is_tensor(data[1]) then return data[1], data[2] end
  local inputs, labels = {}, {}
  for x, y in batches(where, data).epoch() do
    if not ms.is_tensor(x) or not ms.is_tensor(y) then
      local described = arguments.describe(x) .. " and " .. arguments.describe(y)
      arguments.fail(where, "batches must be tensors of inputs and labels, got " .. described)
    end
    inputs[#inputs + 1], labels[#labels + 1] = x, y
  end
  if #inputs == 0 then arguments.fail(where, "the data set has no batches") end
  return ms.ops.concat(inputs, 0), ms.ops.concat(labels, 0)
end

--- The same with labels as class numbers.
function rows.labelled(where, data)
  local x, y = rows.pair(where, data)
  armour.images(where, x)
  return x, armour.labels(where, y, x.shape[1])
end

return rows
