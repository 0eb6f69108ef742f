-- A graph as functions of ms.insight take it: the path of a file, the text of a graph, or what ms.ir gives.
local arguments = require "lunaria.nn.arguments"

-- Path or text, and whether it is a text. where: the function.
return function(where, graph)
  local text = type(graph) == "table" and tostring(graph) or graph
  local is_text = type(text) == "string" and text:find "^graph [^\n]*\n" ~= nil
  if type(graph) ~= "string" and not is_text then
    arguments.fail(where, "graph must be the path of a file, the text of a graph, or what ms.ir gives, got " .. arguments.describe(graph))
  end
  return text, is_text
end
