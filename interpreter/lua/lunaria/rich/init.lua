-- How values look in a notebook when they do not say so themselves with a metamethod __mime: tensors, lists of records.
-- Called by the display functions with a value; gives a table of texts by type, or nothing for what is best as text.
local ms = require "lunaria"

return function(value)
  if ms.is_tensor(value) then
    return { ["text/html"] = require "lunaria.rich.tensor" (value) }
  elseif type(value) == "table" then
    local html = require "lunaria.rich.records" (value)
    return html and { ["text/html"] = html }
  end
end
