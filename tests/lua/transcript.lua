-- Lines as at the prompt: transcript.new() gives run(code), which gives what the code prints and shows, as text.
local ms = require "lunaria"
local transcript = {}

local before = {}
for name in pairs(_G) do before[name] = true end

--- What earlier lines defined is forgotten.
function transcript.new()
  for name in pairs(_G) do
    if not before[name] then rawset(_G, name, nil) end
  end
  rawset(_G, "ms", ms)
  rawset(_G, "display", ms.display)
  return function(code)
    local lines, print = {}, print
    -- luacheck: push ignore 122
    _G.print = function(...)
      local texts = table.pack(...)
      for i = 1, texts.n do texts[i] = tostring(texts[i]) end
      lines[#lines + 1] = table.concat(texts, "\t")
    end
    local f = load("return " .. code, "=transcript") or assert(load(code, "=transcript"))
    local results = table.pack(pcall(f))
    _G.print = print
    -- luacheck: pop
    if not results[1] or (results.n > 1 and results[2] ~= nil) then
      local texts = {}
      for i = 2, results.n do texts[#texts + 1] = tostring(results[i]) end
      lines[#lines + 1] = table.concat(texts, " ")
    end
    return table.concat(lines, "\n"), results[1]
  end
end

return transcript
