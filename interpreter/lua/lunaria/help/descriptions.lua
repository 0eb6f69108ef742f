-- The texts of help/ms.lua, help/tensor.lua and help/lua.lua as a table of rows by name: { name =, list = "(a, b)" or nil, doc = with its
-- parameters and examples, kind =, source = }.
local filled = require "lunaria.help.filled"
local rows = {}

local function read(text)
  local row, kind, source
  for line in text:gmatch "([^\n]*)\n" do
    local name, list, doc = line:match "^([%w_%.:]+)(%b()): ?(.*)$"
    if not name then name, doc = line:match "^([%w_%.]+:?[%w_]*): ?(.*)$" end
    if line:find "^    " then
      row.examples = row.examples .. "\n" .. line
    elseif line:find "^  %- " then
      row.parameters = row.parameters .. "\n" .. line
    elseif line:find "^  " then
      row.doc = row.doc .. line:sub(2)
    elseif line:find "^%[" then
      kind, source = line:match "^%[(%l+) ?(.-)%]$"
    elseif name then
      row = { name = name, list = list, doc = doc, examples = "", parameters = "", kind = kind, source = source ~= "" and source or nil }
      rows[name] = row
    end
  end
end

for _, file in ipairs { "ms", "tensor", "lua" } do read(require("lunaria.help." .. file)) end
for _, row in pairs(rows) do row.doc = filled(row.doc) .. row.parameters .. row.examples end
return rows
