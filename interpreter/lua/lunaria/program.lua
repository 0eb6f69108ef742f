-- The program that liblunaria runs: the function of a saved program, compiled, and its inputs and outputs.
local ms = require "lunaria"

return function(path)
  local f, _, about = ms.load(path)
  if type(f) ~= "function" then
    error(("%s: is no program; .mindir and .onnx files hold programs"):format(path), 0)
  end
  return ms.jit(f), about
end
