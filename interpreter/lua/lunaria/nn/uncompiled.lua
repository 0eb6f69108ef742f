local ms = require "lunaria"

-- f(...) with operators that run one by one, whatever the mode is: what is compiled has none of its own. Afterwards the mode is as
-- before, also after an error.
return function(f, ...)
  local mode = ms.get_context "mode"
  ms.set_context { mode = ms.PYNATIVE_MODE }
  local results = table.pack(pcall(f, ...))
  ms.set_context { mode = mode }
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end
