-- ms.load of ONNX files: the model becomes a Lua function of its inputs, one statement for each node, which runs, compiles
-- and is differentiated like one that was written by hand.
--
-- Before anything runs, all operators, attributes, types and names are looked at; what is not known is told at once, with
-- its place. Functions of the model are put in place of their calls. Nodes whose inputs are known are computed once.
local files = require "lunaria.onnx_files"
local arguments = require "lunaria.nn.arguments"
local define = require "lunaria.onnx.define"
local inline = require "lunaria.onnx.inline"
local pair = require "lunaria.onnx.quantised_pairs"
local writer = require "lunaria.onnx.writer"

for _, family in ipairs {
  "elementwise", "shapes", "indexing", "reductions", "norms", "windows", "resize", "control", "recurrent", "quantised",
  "attention", "linear_attention", "losses", "signal", "learning", "boxes",
} do
  require("lunaria.onnx." .. family)
end

local operators = define.operators

-- The oldest and newest version of the operators that are known, by domain.
local versions = { [""] = { 1, 28 }, ["ai.onnx.ml"] = { 1, 5 }, ["ai.onnx.preview.training"] = { 1, 1 } }

local Check = {}
Check.__index = Check

function Check:say(node, text)
  if #self.problems < 50 then self.problems[#self.problems + 1] = node.place .. ": " .. text end
end

-- The attributes of a node as its operator has them.
function Check:attributes(node, row)
  local values = {}
  for name, attribute in pairs(node.attributes) do
    local known = row.attributes[name]
    if not known then
      self:say(node, ("the attribute '%s' is not known"):format(name))
    elseif attribute.kind ~= known.kind then
      self:say(node, ("the attribute '%s' is a %s, not a %s"):format(name, attribute.kind, known.kind))
    else
      values[name] = attribute.value
    end
  end
  for name, known in pairs(row.attributes) do
    if values[name] == nil then
      if known.required and not node.attributes[name] then self:say(node, ("the attribute '%s' is missing"):format(name)) end
      values[name] = known.default
    end
  end
  return values
end

function Check:type(place, what, type)
  while type and type.inner do type = type.inner end
  if type and type.kind == "tensor" and not type.known then
    self:say({ place = place }, ("%s has the type %s, which tensors do not have"):format(what, type.dtype))
  elseif type and (type.kind == "map" or type.kind == "sparse") then
    self:say({ place = place }, ("%s is a %s, which is not supported"):format(what, type.kind))
  end
end

-- A graph and what is in it; `known` are the names that can be seen from around it.
function Check:graph(graph, known, path)
  local names = setmetatable({}, { __index = known })
  local function add(name, what)
    if rawget(names, name) then self:say({ place = path }, ("%s '%s' has the name of another value"):format(what, name)) end
    names[name] = true
  end
  local fixed = {}
  for _, entry in ipairs(graph.initializers) do
    add(entry.name, "the initializer")
    fixed[entry.name] = true
  end
  for _, input in ipairs(graph.inputs) do
    if not fixed[input.name] then add(input.name, "the input") end
    self:type(path, "the input '" .. input.name .. "'", input.type)
  end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.inputs) do
      if name ~= "" and not names[name] then
        self:say(node, ("the input '%s' is made by no node before it"):format(name))
      end
    end
    local row = operators[node.domain .. ":" .. node.op]
    node.row = row
    if not row then
      self:say(node, "the operator is not known" .. (node.domain ~= "" and " (domain " .. node.domain .. ")" or ""))
    elseif #node.inputs < row.least or #node.inputs > row.most then
      self:say(node, ("has %d inputs, the operator %s"):format(#node.inputs,
        row.least == row.most and tostring(row.least) or ("%d to %d"):format(row.least, row.most)))
    else
      node.values = self:attributes(node, row)
    end
    for name, attribute in pairs(node.attributes) do
      if attribute.kind == "graph" then
        self:graph(attribute.value, names, ("%s, graph '%s'"):format(node.place, name))
      end
    end
    for _, name in ipairs(node.outputs) do
      if name ~= "" then add(name, node.place .. ": the output") end
    end
  end
  if #graph.outputs == 0 then self:say({ place = path }, "there are no outputs") end
  for _, output in ipairs(graph.outputs) do
    if not names[output.name] then self:say({ place = path }, ("the output '%s' is made by no node"):format(output.name)) end
    self:type(path, "the output '" .. output.name .. "'", output.type)
  end
end

local function check_versions(path, opsets)
  for domain, version in pairs(opsets) do
    if domain == "ai.onnx" then domain = "" end
    local range = versions[domain]
    if range and (version < range[1] or version > range[2]) then
      arguments.fail("load", ("%s: the operators have version %d%s; known are %d to %d"):format(path, version,
        domain == "" and "" or " of domain " .. domain, range[1], range[2]))
    end
  end
end

local function described(graph)
  local function list(values)
    local rows = {}
    for i, value in ipairs(values) do
      rows[i] = { name = value.name, dtype = value.type.dtype, shape = value.type.shape, type = value.type }
    end
    return rows
  end
  local fixed, inputs = {}, {}
  for _, entry in ipairs(graph.initializers) do fixed[entry.name] = true end
  for _, input in ipairs(graph.inputs) do
    if not fixed[input.name] then inputs[#inputs + 1] = input end
  end
  return { inputs = list(inputs), outputs = list(graph.outputs) }
end

-- The graph of the model in the file.
local function read(path)
  local model = files.read(path)
  check_versions(path, model.opsets)
  local graph = inline(model, function(message) arguments.fail("load", path .. ": " .. message) end)
  pair(graph)
  return graph
end

-- The function of a graph, its weights by name, and its inputs and outputs.
local function compile(graph, path)
  local check = setmetatable({ problems = {} }, Check)
  check:graph(graph, {}, "the graph")
  local problems = check.problems
  if #problems == 1 then arguments.fail("load", path .. ": " .. problems[1]) end
  if #problems > 1 then
    arguments.fail("load", ("%s: %d things are not understood:\n  %s"):format(path, #problems, table.concat(problems, "\n  ")))
  end
  local f, weights = writer(graph, path, function(message) arguments.fail("load", path .. ": " .. message) end)
  return f, weights, described(graph)
end

--- Called with the path of a model: its function, its weights by name, and its inputs and outputs:
--- { inputs = { { name, dtype, shape } ... }, outputs = ... }.
return setmetatable({ read = read, compile = compile }, { __call = function(_, path) return compile(read(path), path) end })
