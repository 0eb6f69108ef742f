-- lunaria stubs DIR: annotations of everything that has a name, for editors.
local ms = require "lunaria"

local usage = [==[
usage: lunaria stubs DIR
Writes annotations of everything that has a name to DIR, for editors with lua-language-server (LuaLS) or EmmyLua: types, calls
with names of arguments, descriptions. The editor finds them by the setting Lua.workspace.library = { "DIR" }; of scripts
ms is a local, and in notebooks a global: Lua.diagnostics.globals = { "ms", "help", "display" }.]==]

local function fail(message) error("lunaria stubs: " .. message, 0) end

return function(folder, ...)
  if folder == nil or select("#", ...) > 0 then fail "a folder is expected\n  hint: lunaria stubs --help" end
  if folder == "--help" or folder == "-h" then return print(usage) end
  local count = 0
  for _, file in ipairs(require "lunaria.stubs.writer"()) do
    local path = folder .. "/" .. file.path
    ms.io.make_folder(path:match "^(.*)/")
    local out, problem = io.open(path, "wb")
    if not out then fail(problem) end
    local fine, said = out:write(file.text)
    if fine then fine, said = out:close() end
    if not fine then fail(("%s: %s"):format(path, said)) end
    count = count + 1
  end
  print(("%d files in %s; in the editor: Lua.workspace.library = { \"%s\" }"):format(count, folder, folder))
end
