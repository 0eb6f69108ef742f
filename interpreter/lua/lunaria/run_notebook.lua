-- Runs the code cells of a Jupyter notebook in order. A cell is named by its file and its number among the code cells,
-- as a kernel that was just started counts them: lesson.ipynb[3]. As in Jupyter, a cell with the tag "raises-exception"
-- may end in an error and does not stop those after it. Called with the session and the tools of commands.lua.
return function(tools)
  local session = tools.session
  return function(path, debug)
    for i, cell in ipairs(require "lunaria.notebook.cells"(path, tools.fail)) do
      if cell.text:find("%S") and not session.notebook_cell(cell.text, ("@%s[%d]"):format(path, i), cell.may_fail, debug) then
        return
      end
      debug = debug and not cell.text:find("%S")
    end
  end
end
