-- ms.hint: the remedy of an error that a program has caught.
local hints = require "lunaria.help.hints"

-- A line of a file, or an empty text.
local function line_of(path, number)
  local file <close> = io.open(path, "r")
  for line in file and file:lines() or function() end do
    number = number - 1
    if number == 0 then return line end
  end
  return ""
end

local M = {}

--- The remedy of an error that pcall has caught, or nil where none is known: what a program that ends with the error shows behind
--- "hint:". The error itself stays the text that it is.
--- - problem (string): the message that pcall gave
---     > ok, problem = pcall(function() return ms.flaot16 end)
---     > ms.hint(problem) --> did you mean 'float16'?
function M.hint(problem)
  if type(problem) ~= "string" then return nil end
  local path, number = problem:match "^([^\n]-):(%d+): "
  local place = path and ("%s:%s"):format(path, number) or ""
  return hints(problem, path and line_of(path, tonumber(number)) or "", place, "", {}):match "\n  hint: ([^\n]*)"
end

return M
