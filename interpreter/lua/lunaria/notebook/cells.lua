-- The code cells of a notebook's file: { text =, may_fail = }, ... may_fail: the cell has the tag "raises-exception". Called with the
-- path and a function that raises an error.

-- A text, or the list of its lines.
local function joined(source)
  if type(source) == "string" then return source end
  if type(source) ~= "table" then return nil end
  for i = 1, #source do
    if type(source[i]) ~= "string" then return nil end
  end
  return table.concat(source)
end

local function field(value, ...)
  for _, name in ipairs { ... } do
    value = type(value) == "table" and value[name] or nil
  end
  return value
end

local function may_fail(cell)
  local tags = field(cell, "metadata", "tags")
  for _, tag in ipairs(type(tags) == "table" and tags or {}) do
    if tag == "raises-exception" then return true end
  end
  return false
end

return function(path, fail)
  local ms = require "lunaria"
  local text, problem = ms.io._read(path, (1 << 31) - 1)
  if not text then fail(problem) end
  local function broken(reason) fail(("%s: this is no notebook: %s"):format(path, reason)) end
  local ok, notebook = pcall(ms.json.decode, text)
  if not ok then
    broken(tostring(notebook))
  elseif field(notebook, "worksheets") then
    fail(path .. ": this notebook has format 3, which is too old\n  hint: jupyter nbconvert --to notebook --inplace renews it")
  elseif type(field(notebook, "cells")) ~= "table" then
    broken("it has no list of cells")
  end
  local language = field(notebook, "metadata", "language_info", "name") or field(notebook, "metadata", "kernelspec", "language")
  if type(language) == "string" and language:lower() ~= "lua" then
    fail(("%s: this notebook's language is %s, not lua"):format(path, language))
  end
  local cells = {}
  for i, cell in ipairs(notebook.cells) do
    local source = joined(field(cell, "source"))
    if type(field(cell, "cell_type")) ~= "string" then
      broken(("cell %d has no cell_type"):format(i))
    elseif not source then
      broken(("the source of cell %d is neither a text nor a list of texts"):format(i))
    elseif cell.cell_type == "code" then
      cells[#cells + 1] = { text = source, may_fail = may_fail(cell) }
    end
  end
  return cells
end
