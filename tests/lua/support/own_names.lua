-- Documented examples write below /tmp, and below /no there is nothing. own_names(text) gives the example with a folder in their
-- place that this run has for itself, so that no other run's files and nothing else that a machine has is in the way.
local ms = require "lunaria"
local folder = ms.io.temporary()
os.remove(folder)
ms.io.make_folder(folder)
local remover = setmetatable({}, { __gc = function() os.execute("rm -rf '" .. folder .. "'") end })
return function(text)
  return remover and (text:gsub("/tmp%f[/\"]", folder):gsub("\"/no/", "\"" .. folder .. "/no/"))
end
