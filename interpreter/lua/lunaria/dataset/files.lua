-- What sources of known data sets ask of the file system; errors begin with the source's name.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe
local files = {}

--- A folder or file that was given as an argument, without slashes at its end.
function files.folder_of(where, what, value)
  if type(value) ~= "string" or value == "" then fail(where, ("%s must be a path, got %s"):format(what, describe(value))) end
  return (value:gsub("(.)/+$", "%1"))
end

--- The names in a folder, in their order.
function files.list_folder(where, path)
  local names = ms.io.list_folder(path) or fail(where, ("there is no folder %s"):format(path))
  table.sort(names)
  return names
end

--- All that a file holds.
function files.text_of(where, path)
  local file, problem = io.open(path, "rb")
  if not file then fail(where, "cannot be read: " .. problem) end
  local text = file:read "a"
  file:close()
  if not text then fail(where, path .. " is no file") end
  return text
end

return files
