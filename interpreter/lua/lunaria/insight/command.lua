-- lunaria insight substructures GRAPH [--by operators|exact] [--json OUT]
local ms = require "lunaria"

local usage = [==[
usage: lunaria insight substructures GRAPH [options]
  GRAPH      a graph file: MindSpore's .pb, MindIR or ONNX
  --by B     what is equal: operators (types and places of inputs) or exact (attributes, dtypes and shapes too)
  --json F   write them to F: {"1": [[[node, ...], [[from, to], ...]], ...], ...}]==]

local function fail(message, ...) error("lunaria insight: " .. message:format(...) .. "\n  hint: lunaria insight --help", 0) end

local function write(path, text)
  local file, problem = io.open(path, "wb")
  if not file then fail("%s", problem) end
  local fine, said = file:write(text)
  if fine then fine, said = file:close() end
  if not fine then fail("%s: %s", path, said) end
end

local commands = {}

function commands.substructures(words)
  local graph, by, json
  local i = 1
  while i <= #words do
    local word = words[i]
    if word == "--by" or word == "--json" then
      i = i + 1
      local value = words[i] or fail("option %s needs an argument", word)
      if word == "--by" then by = value else json = value end
    elseif word:find "^%-" or graph then
      fail("'%s' is not understood", word)
    else
      graph = word
    end
    i = i + 1
  end
  if not graph then fail("the file of a graph is missing") end
  if by and by ~= "operators" and by ~= "exact" then fail("--by is operators or exact, got '%s'", by) end
  local found = ms.insight.substructures(graph, by)
  if json then write(json, found.json) end
  print(found)
end

return function(command, ...)
  if command == "--help" then
    print(usage)
  elseif commands[command] then
    commands[command]({ ... })
  else
    fail("%s; there is: substructures", command and ("there is no '%s'"):format(command) or "a command is missing")
  end
end
