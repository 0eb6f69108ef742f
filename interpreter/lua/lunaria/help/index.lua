-- The descriptions of functions without a comment of their own, which C++ or a row of a table makes, by the function:
-- { name =, list = "(a, b)", doc = }.
local ms = require "lunaria"
local registry = require "lunaria.registry"
local filled, rows = require "lunaria.help.filled", require("lunaria.numpy.rows").of
local known = setmetatable({}, { __index = function(_, f)
  local row = rows[f]
  if row then row.doc = row.doc or filled(row.text) .. row.examples end
  return row
end })

-- Of several names of one function that of a text that tells more than the other name.
local function add(f, row)
  local other = rawget(known, f)
  if not other or other.doc:find "^The same as" or not row.doc:find "^The same as" and row.name < other.name then known[f] = row end
end

local function value_of(name)
  local value = _G
  if name:find "^ms%." then value, name = ms, name:sub(4) elseif name:find "^x:" then value, name = ms.tensor(0.0), name:sub(3) end
  for part in name:gmatch "[^.]+" do value = value and value[part] end
  return value
end

for name, row in pairs(require "lunaria.help.descriptions") do
  local f = not name:find "^%l:" and value_of(name) or name:find "^x:" and value_of(name)
  if type(f) == "function" then add(f, row) end
end
require "lunaria.transforms"
for name, f in pairs(require("lunaria.autodiff").declared) do
  local listing = registry.listing(f)
  add(ms[name], { name = "ms." .. name, list = listing.signature:match "^function(%b())", doc = listing.doc, text = listing.text })
end
return known
