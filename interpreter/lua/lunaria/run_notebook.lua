-- Runs the code cells of a Jupyter notebook in order. A cell is named by its file and its number among the code cells,
-- as a kernel that was just started counts them: lesson.ipynb[3]. As in Jupyter, a cell with the tag "raises-exception"
-- may end in an error and does not stop those after it. Called with the session and the tools of commands.lua.
return function(tools)
  local session, fail = tools.session, tools.fail

  -- A text, or the list of its lines.
  local function joined(source)
    if type(source) == "string" then
      return source
    elseif type(source) ~= "table" then
      return nil
    end
    for i = 1, #source do
      if type(source[i]) ~= "string" then
        return nil
      end
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
      if tag == "raises-exception" then
        return true
      end
    end
    return false
  end

  -- The code cells of a file: {text =, may_fail =}, ...
  local function read(path)
    local text, problem = require("lunaria").io._read(path, (1 << 31) - 1)
    if not text then
      fail(problem)
    end
    local function broken(reason)
      fail(("%s: this is no notebook: %s"):format(path, reason))
    end
    local ok, notebook = pcall(require("lunaria").json.decode, text)
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

  return function(path, debug)
    for i, cell in ipairs(read(path)) do
      if cell.text:find("%S") and not session.notebook_cell(cell.text, ("@%s[%d]"):format(path, i), cell.may_fail, debug) then
        return
      end
      debug = debug and not cell.text:find("%S")
    end
  end
end
