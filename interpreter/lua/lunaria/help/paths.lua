-- Remedies for a path that leads to nothing: how far it leads, and what is called nearly so there.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local from_here = "the name counts from the folder that the program was started in; %pwd shows it"

local function parent_of(path)
  local parent = path:match "^(.+)/[^/]*$"
  return parent or path:find "^/" and "/" or "."
end

--- The remedy for a path that leads to nothing.
return function(path)
  path = path:gsub("/+$", "")
  local parent, missing = parent_of(path), path
  while ms.io.kind(parent) == nil and parent ~= "/" and parent ~= "." do parent, missing = parent_of(parent), parent end
  if missing ~= path then
    if ms.io.kind(parent) ~= "folder" then return from_here end
    return ("the folder %s is not there%s"):format(missing, path:find "^/" and "" or "; " .. from_here)
  end
  local names, name = ms.io.list_folder(parent) or {}, missing:match "[^/]*$"
  local stem = name:match "^(.-)%.?[^%.]*$"
  for _, other in ipairs(names) do
    local same_stem = stem ~= "" and other:match "^(.-)%.[^%.]*$" == stem
    if other:lower() == name:lower() or same_stem then return ("did you mean '%s'?"):format(other) end
  end
  local near = arguments.nearest(name, names)
  if near then return near end
  if not path:find "^/" then return from_here end
  if #names == 0 then return ("the folder %s is empty"):format(parent) end
  return ("the folder %s has %s%s"):format(parent, table.concat(names, ", ", 1, math.min(#names, 4)), #names > 4 and " ..." or "")
end
