-- The look of values in a notebook that have no metamethod __mime: tensors, networks, lists of
-- records.
-- Called by the display functions with a value; gives a table of texts by type, or nothing for what is best as text.
local ms = require "lunaria"

return function(value)
  if ms.is_tensor(value) then
    return { ["text/html"] = require "lunaria.rich.tensor" (value) }
  elseif type(value) == "table" then
    -- Only where the library of networks is in use can a table be a cell.
    local cells = package.loaded["lunaria.nn.cell"]
    if cells and cells.is_cell(value) then
      return { ["text/html"] = getmetatable(ms.summary(value)).__mime(ms.summary(value))["text/html"] }
    end
    local html = require "lunaria.rich.records" (value)
    return html and { ["text/html"] = html }
  end
end
