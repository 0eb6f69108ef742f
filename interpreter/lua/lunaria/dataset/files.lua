-- The questions that sources of known data sets ask of the file system; errors begin with the source's name.
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

--- All that a file holds, at most 2 GiB; a folder, a pipe or a device is an error.
function files.text_of(where, path, what)
  if type(path) ~= "string" then fail(where, ("%s must be the path of a file, got %s"):format(what or "the file", describe(path))) end
  local text, problem = ms.io._read(path, (1 << 31) - 1)
  return text or fail(where, problem)
end

return files
