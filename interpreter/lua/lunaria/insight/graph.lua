-- ms.insight.graph: a graph looked at: its views, searches in it, ways through it, and what differs from another.
local ms = require "lunaria"
local core = require "lunaria.insight_graph_core"
local arguments = require "lunaria.nn.arguments"
local given = require "lunaria.insight.given"

local fail, describe = arguments.fail, arguments.describe

local Graph = {}
Graph.__index = Graph
Graph.__name = "graph"

local view_options = { by = "string", hide = "string", open = "string", dark = "boolean", overlay = "table", before = "table" }

local function checked(where, options)
  if options ~= nil and type(options) ~= "table" then fail(where, "options are a table, got " .. describe(options)) end
  local parameters = {}
  for name, value in pairs(options or {}) do
    local kind = view_options[name]
    if not kind then
      fail(where, ("there is no option '%s'; there are: by, hide, open, dark, overlay, before"):format(tostring(name)))
    end
    if type(value) ~= kind then fail(where, ("%s is a %s, got %s"):format(name, kind, describe(value))) end
    if name == "dark" then
      parameters.dark = value and "1" or nil
    elseif kind == "string" then
      parameters[name] = value
    end
  end
  return parameters
end

local function ask(graph, path, parameters) return ms.json.decode(core.answer(graph._page, path, parameters or {})) end

-- The number of a node that is given by its name or its number.
local function number_of(graph, where, node)
  if math.type(node) == "integer" then return node end
  if type(node) ~= "string" then fail(where, "a node is given by its name or its number, got " .. describe(node)) end
  return core.number_of(graph._page, node) or fail(where, ("there is no node '%s'"):format(node))
end

local function names_of(nodes)
  local names = {}
  for i, node in ipairs(nodes) do names[i] = node.name end
  return names
end

function Graph:__tostring()
  local about = self.about
  local lines = { ("graph %s: %d operators, %d given values"):format(about.name, about.operators, about.nodes - about.operators) }
  local marks = {}
  for _, name in ipairs { "gradients", "optimizer", "plumbing", "constants", "parameters", "inputs" } do
    if about.marks[name] > 0 then marks[#marks + 1] = ("%d %s"):format(about.marks[name], name) end
  end
  if #marks > 0 then lines[#lines + 1] = "  " .. table.concat(marks, ", ") end
  local parts = self:parts()
  if parts.repaired > 0 then
    lines[#lines + 1] = ("  the file gives %d operators the scope of an equal part elsewhere; they are shown in their own")
      :format(parts.repaired)
  end
  for i = 1, math.min(#parts.parts, 8) do
    local part = parts.parts[i]
    lines[#lines + 1] = ("  equal: %d x %d nodes, %s"):format(part.instances, part.nodes, part.label)
  end
  return table.concat(lines, "\n")
end

-- The equal parts with their gains.
function Graph:parts() return ask(self, "parts") end

-- Nodes whose name, type or scope has the text.
function Graph:search(text, limit)
  if type(text) ~= "string" then fail("search", "text must be a string, got " .. describe(text)) end
  return ask(self, "names", { q = text, limit = tostring(limit or 100) }).nodes
end

-- All that is known of a node.
function Graph:node(node) return ask(self, ("nodes/%d"):format(number_of(self, "node", node))) end

local function reach(self, where, node, way)
  local number = tostring(number_of(self, where, node))
  return names_of(ask(self, "reach", { node = number, way = way, by = "none", open = "" }).nodes)
end

-- The names of the nearest hundred nodes on which a node depends, or that depend on it.
function Graph:upstream(node) return reach(self, "upstream", node, "up") end
function Graph:downstream(node) return reach(self, "downstream", node, "down") end

-- The names of the nodes on the shortest way from one to another.
function Graph:route(from, to)
  local ends = { from = tostring(number_of(self, "route", from)), to = tostring(number_of(self, "route", to)) }
  return names_of(ask(self, "route", ends).nodes)
end

-- The picture as SVG.
function Graph:svg(options)
  local parameters = checked("svg", options)
  options = options or {}
  for name, value in pairs(options.overlay or {}) do
    if type(name) ~= "string" or type(value) ~= "number" then fail("svg", "overlay has a number for each name of a node") end
  end
  local before = options.before
  if before and getmetatable(before) ~= Graph then fail("svg", "before is a graph of ms.insight.graph, got " .. describe(before)) end
  return core.picture(self._page, parameters, options.overlay, before and before._page)
end

-- The whole graph as JSON.
function Graph:json() return core.answer(self._page, "json", {}) end

local Difference = {}
Difference.__index = Difference
Difference.__name = "difference"

function Difference:__tostring()
  local lines = { ("%d operators are the same, %d removed, %d added, %d changed")
    :format(self.same, #self.removed, #self.added, #self.changed) }
  local function node_text(node) return ("%s %s"):format(node.type, node.name) end
  for _, node in ipairs(self.removed) do lines[#lines + 1] = "  - " .. node_text(node) end
  for _, node in ipairs(self.added) do lines[#lines + 1] = "  + " .. node_text(node) end
  for _, change in ipairs(self.changed) do
    lines[#lines + 1] = "  ~ " .. node_text(change.after)
    for _, value in ipairs(change.values) do
      lines[#lines + 1] = ("      %s: %s -> %s"):format(value.name, value.before, value.after)
    end
  end
  return table.concat(lines, "\n")
end

-- What is different in another graph.
function Graph:diff(other)
  if getmetatable(other) ~= Graph then fail("diff", "the other graph is one of ms.insight.graph, got " .. describe(other)) end
  local text = core.difference(self._page, other._page)
  local found = setmetatable(ms.json.decode(text), Difference)
  found.json = text
  return found
end

-- A notebook shows the picture.
function Graph:__mime() return { ["image/svg+xml"] = self:svg(), ["text/plain"] = tostring(self) } end

--- A graph looked at. graph: the path of a file (MindSpore's pb files, MindIR, ONNX, events with a graph), the text of a stage
--- (f:lower(x):ir("step")), or what ms.ir gives. It prints as a summary; g:search(text), g:node(name) (attributes, inputs, users, line),
--- g:upstream(name), g:downstream(name), g:route(from, to), g:parts(), g:json(); g:diff(other) gives what is removed, added and changed.
--- g:svg { by = "scopes", "file" (scopes as the file has them), "parts" or "none", open = "auto", "all" or numbers of groups, dark = true,
--- hide = "gradients,optimizer,plumbing,constants,parameters,inputs", overlay = { name = number }, before = another graph } draws it.
--- name: what it is called where it has no name of its own.
---     > g = ms.insight.graph(ms.ir(function(x) return ms.ops.tanh(ms.ops.sin(x)) end))
---     > g:search("tanh")[1].type, #g:upstream(g:search("tanh")[1].name), g:svg():match "^<svg" --> tanh	2	<svg
local function look(graph, name)
  name = arguments.named("graph", { "name" }, name)
  local text, is_text = given("graph", graph)
  if name ~= nil and type(name) ~= "string" then fail("graph", "name must be a string, got " .. describe(name)) end
  name = name or is_text and text:match "^graph ([^(%s]*)" or text:match "[^/]*$"
  local page = core.graph(text, is_text, name)
  return setmetatable({ _page = page, about = ms.json.decode(core.answer(page, "", {})) }, Graph)
end

return { graph = look }
