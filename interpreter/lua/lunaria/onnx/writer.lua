-- The text of a model's function, and the function that it compiles to.
--
-- Each node is one statement, which calls the node's own function. Values live in local variables, which are used again
-- once a value is no longer needed; values that graphs inside of nodes use have variables of their own. Weights are read
-- from a table, so that they are parameters for derivatives and for graph mode.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local define = require "lunaria.onnx.define"

local most_locals = 150 -- Lua has 200 for a function
local most_folded = 1 << 18

-- Nodes that are not computed beforehand: what they give may be large, or differs from call to call.
local not_folded = {}
for name in ([[ConstantOfShape Expand Tile Range Pad OneHot EyeLike Resize Upsample RandomNormal RandomNormalLike RandomUniform
  RandomUniformLike Bernoulli Multinomial Dropout HannWindow HammingWindow BlackmanWindow MelWeightMatrix SequenceEmpty
  Optional]]):gmatch "%S+" do
  not_folded[name] = true
end

local Writer = {}
Writer.__index = Writer

-- The names that a graph uses of those around it.
local function free_names(graph, found)
  local own = {}
  for _, entry in ipairs(graph.initializers) do own[entry.name] = true end
  for _, input in ipairs(graph.inputs) do own[input.name] = true end
  local function use(name)
    if name ~= "" and not own[name] then found[name] = true end
  end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.inputs) do use(name) end
    for _, attribute in pairs(node.attributes) do
      if attribute.kind == "graph" then
        local inner = {}
        free_names(attribute.value, inner)
        for name in pairs(inner) do use(name) end
      end
    end
    for _, name in ipairs(node.outputs) do own[name] = true end
  end
  for _, output in ipairs(graph.outputs) do use(output.name) end
  return found
end

-- For the values of a graph: the last node that needs each (one more than there are for results), and which of them graphs
-- inside of nodes need. Nodes that nothing needs have no uses.
local function uses_of(graph)
  local last, captured, inner = {}, {}, {}
  for _, output in ipairs(graph.outputs) do last[output.name] = #graph.nodes + 1 end
  for i = #graph.nodes, 1, -1 do
    local node = graph.nodes[i]
    local needed = false
    for _, name in ipairs(node.outputs) do needed = needed or last[name] ~= nil end
    if needed then
      inner[i] = {}
      for _, attribute in pairs(node.attributes) do
        if attribute.kind == "graph" then free_names(attribute.value, inner[i]) end
      end
      for name in pairs(inner[i]) do captured[name], last[name] = true, last[name] or i end
      for _, name in ipairs(node.inputs) do last[name] = last[name] or i end
    end
  end
  return last, captured
end

function Writer:constant(tensor)
  self.constants[#self.constants + 1] = tensor
  return ("c[%d]"):format(#self.constants)
end

function Writer:line(text)
  self.lines[#self.lines + 1] = ("  "):rep(self.depth) .. text
end

-- A place for a value in the function that is being written.
function Writer:place(body, own)
  if own and body.count < most_locals then
    body.count = body.count + 1
    self.next = self.next + 1
    return ("k%d"):format(self.next), true
  end
  if own then
    body.spilled = body.spilled + 1
    return ("t%d[%d]"):format(body.id, body.spilled)
  end
  local free = table.remove(body.free)
  if free then return free end
  if body.count >= most_locals then
    body.spilled = body.spilled + 1
    return ("t%d[%d]"):format(body.id, body.spilled)
  end
  body.count, body.slots = body.count + 1, body.slots + 1
  return ("v%d_%d"):format(body.id, body.slots)
end

-- The tensors that a node comes to, where all that it depends on is known.
local function folded(node, f, known)
  if not_folded[node.op] or #node.inputs == 0 and node.op ~= "Constant" then return nil end
  for _, attribute in pairs(node.attributes) do
    if attribute.kind == "graph" then return nil end
  end
  local values = {}
  for i, name in ipairs(node.inputs) do
    if name == "" or not known[name] then return nil end
    values[i] = known[name]
  end
  local results = table.pack(pcall(f, table.unpack(values, 1, #node.inputs)))
  if not results[1] then return nil end
  local size = 0
  for i = 1, #node.outputs do
    if not ms.is_tensor(results[i + 1]) then return nil end
    size = size + results[i + 1].size
  end
  if size > most_folded and node.op ~= "Constant" then return nil end
  return table.move(results, 2, #node.outputs + 1, 1, {})
end

-- The node for the operator's function: what it may ask for when the model is loaded.
function Writer:node(node, known)
  local fail = function(message) self.fail(node.place .. ": " .. message) end
  local view = {
    op = node.op, domain = node.domain, version = node.version, inputs = #node.inputs, outputs = #node.outputs, known = {},
    given = {}, wanted = {}, graphs = {}, fail = fail, name = node.name,
  }
  for i, name in ipairs(node.inputs) do view.known[i], view.given[i] = known[name], name ~= "" end
  for i, name in ipairs(node.outputs) do view.wanted[i] = name ~= "" end
  for name, attribute in pairs(node.attributes) do
    if attribute.kind == "graph" then
      view.graphs[name] = { inputs = attribute.value.inputs, outputs = attribute.value.outputs }
    end
  end
  return view
end

-- Where the results of a node go: the targets, and what stands before them.
function Writer:targets(body, node, last, captured, scope)
  local targets, fresh, wanted = {}, {}, 0
  for k, name in ipairs(node.outputs) do
    if name ~= "" and last[name] then wanted = k end
  end
  for k = 1, wanted do
    local name = node.outputs[k]
    if name == "" or not last[name] then
      body.dummy = true
      targets[k] = ("d%d"):format(body.id)
    else
      local where, is_local = self:place(body, captured[name])
      if is_local then fresh[#fresh + 1] = where end
      targets[k], scope[name] = where, where
      if not captured[name] then body.own[name] = where end
    end
  end
  -- Variables that are given one value, for the graphs that use them.
  if #fresh > 0 and #fresh < #targets then self:line("local " .. table.concat(fresh, ", ")) end
  return (#fresh > 0 and #fresh == #targets and "local " or "") .. table.concat(targets, ", ")
end

-- The names of a node's attributes that are graphs, in order.
local function graph_names(node)
  local names = {}
  for name, attribute in pairs(node.attributes) do
    if attribute.kind == "graph" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- The message of an error in a node, with the names of the model and the node. What its function was not written for, such as an
-- input of fewer axes than its operator has, ends in an error of Lua's own library that says where in this one.
local function told(title, place, message)
  if type(message) ~= "string" or not place or message:find(place, 1, true) then return message end
  local what = message:match "^lunaria:[^:]*:%d+: (.*)"
  if what then
    message = "the inputs and attributes do not fit together: " .. what
  else
    message = message:gsub("^" .. title:gsub("%p", "%%%0") .. ":%d+: ", "")
  end
  return ("%s: %s: %s"):format(title, place, message)
end

-- Calls the model's function; errors are told with the node whose line they come from.
local function caller(title, source, places)
  local function note(message)
    local level, place = 2, nil
    while not place do
      local frame = debug.getinfo(level, "Sl")
      if not frame then break end
      place = frame.source == source and places[frame.currentline]
      level = level + 1
    end
    return told(title, place, message)
  end
  local function results(ok, ...)
    if ok then return ... end
    local message = ...
    if type(message) == "string" and message:find(title, 1, true) == 1 then
      arguments.fail(title, message:sub(#title + 3))
    end
    error(message, 0)
  end
  return function(main, ...) return results(xpcall(main, note, ...)) end
end

function Writer:statement(body, node, dying, last, captured, scope, known)
  local made, f = pcall(node.row.make, node.values, self:node(node, known))
  if not made then error(told(self.title, node.place, f), 0) end
  local results = folded(node, f, known)
  if results then
    for k, name in ipairs(node.outputs) do
      if name ~= "" then known[name], scope[name] = results[k], false end
    end
    return
  end
  self.functions[#self.functions + 1] = f
  local call = ("f[%d]("):format(#self.functions)
  local count = #node.inputs
  while count > 0 and node.inputs[count] == "" do count = count - 1 end
  local operands = {}
  for k = 1, count do operands[k] = self:value(node.inputs[k], scope, known) end
  -- Graphs come first. Values that they use have variables of their own, which are not used again.
  local outer, inner = setmetatable({}, { __index = scope }), setmetatable({}, { __index = known })
  for _, name in ipairs(dying) do
    if body.own[name] then
      body.free[#body.free + 1] = body.own[name]
      body.own[name] = nil
    end
  end
  local text = self:targets(body, node, last, captured, scope)
  text = text .. " = " .. call
  for _, name in ipairs(graph_names(node)) do
    self:inner(text, node.attributes[name].value, outer, inner)
    text = "end, "
  end
  if text == "end, " and #operands == 0 then text = "end" end
  self:line(("%s%s) -- %s"):format(text, table.concat(operands, ", "), node.place))
  self.places[#self.lines] = node.place
end

function Writer:value(name, scope, known)
  if name == "" then return "nil" end
  local where = scope[name]
  if where then return where end
  -- A known one: written down where it is first needed.
  local constant = self.shared[known[name]]
  if not constant then
    constant = self:constant(known[name])
    self.shared[known[name]] = constant
  end
  return constant
end

-- A graph as a function that is an argument, after the text before it.
function Writer:inner(before, graph, scope, known)
  local header = #self.lines + 1
  self:line ""
  self.depth = self.depth + 1
  local parameters = self:graph(graph, setmetatable({}, { __index = scope }), setmetatable({}, { __index = known }))
  self.depth = self.depth - 1
  self.lines[header] = ("  "):rep(self.depth) .. ("%sfunction(%s)"):format(before, table.concat(parameters, ", "))
end

-- The statements of a graph; gives its parameters.
function Writer:graph(graph, scope, known)
  self.bodies = self.bodies + 1
  local body = { id = self.bodies, count = 0, slots = 0, spilled = 0, free = {}, own = {} }
  for _, entry in ipairs(graph.initializers) do
    if define.is_float(entry.value.dtype) and entry.value.ndim > 0 then
      local weight = ms.Parameter(entry.value, entry.name)
      self.weights[entry.name] = weight
      scope[entry.name] = self:constant(weight)
    else
      known[entry.name], scope[entry.name] = entry.value, false
    end
  end
  local parameters, checks, fixed = {}, {}, {}
  for _, entry in ipairs(graph.initializers) do fixed[entry.name] = true end
  for _, input in ipairs(graph.inputs) do
    if not fixed[input.name] then
      self.next = self.next + 1
      parameters[#parameters + 1] = ("p%d"):format(self.next)
      scope[input.name], known[input.name] = parameters[#parameters], false
      checks[#parameters] = input
      body.count = body.count + 1
    end
  end
  if body.count > 60 then self.fail(("a graph has %d inputs, more than the 60 that a function may have"):format(body.count)) end
  local last, captured = uses_of(graph)
  local dying = {}
  for i = 1, #graph.nodes do dying[i] = {} end
  for name, i in pairs(last) do
    if dying[i] then table.insert(dying[i], name) end
  end
  for _, names in ipairs(dying) do table.sort(names) end
  local header = #self.lines + 1
  self:line ""
  if self.depth == 1 then self:check(checks, parameters) end
  for i, node in ipairs(graph.nodes) do
    local needed = false
    for _, name in ipairs(node.outputs) do needed = needed or last[name] ~= nil end
    if needed then self:statement(body, node, dying[i], last, captured, scope, known) end
  end
  local results = {}
  for i, output in ipairs(graph.outputs) do results[i] = self:value(output.name, scope, known) end
  self:line("return " .. table.concat(results, ", "))
  local declared = {}
  for i = 1, body.slots do declared[i] = ("v%d_%d"):format(body.id, i) end
  if body.dummy then declared[#declared + 1] = ("d%d"):format(body.id) end
  local text = #declared > 0 and "local " .. table.concat(declared, ", ") or ""
  if body.spilled > 0 then text = text .. (text == "" and "" or "; ") .. ("local t%d = {}"):format(body.id) end
  self.lines[header] = ("  "):rep(self.depth) .. text
  return parameters
end

-- What the model's function asks of its arguments.
function Writer:check(inputs, parameters)
  for i, input in ipairs(inputs) do
    local type = input.type
    if type.kind == "tensor" then
      local name, dtype, rank = input.name, rawget(ms, type.dtype), type.shape and #type.shape
      self.functions[#self.functions + 1] = function(x)
        if not ms.is_tensor(x) then
          require "lunaria.nn.arguments".fail(self.title, ("the input '%s' must be a tensor, got %s"):format(name,
            require "lunaria.nn.arguments".describe(x)))
        end
        if x.dtype ~= dtype then
          require "lunaria.nn.arguments".fail(self.title, ("the input '%s' must have dtype %s, it has %s"):format(name,
            tostring(dtype), tostring(x.dtype)))
        end
        if rank and x.ndim ~= rank then
          require "lunaria.nn.arguments".fail(self.title, ("the input '%s' must have %d axes, it has %d"):format(name, rank,
            x.ndim))
        end
      end
      self:line(("f[%d](%s)"):format(#self.functions, parameters[i]))
    end
  end
end

--- The function of a graph and its weights by name.
return function(graph, path, fail)
  local title = path:match "[^/]*$"
  local self = setmetatable({
    lines = {}, functions = {}, constants = {}, weights = {}, shared = {}, places = {}, depth = 0, next = 0, bodies = 0, fail = fail,
    title = title,
  }, Writer)
  self:line "local f, c, inside, call = ..."
  local header = #self.lines + 1
  self:line ""
  self.depth = 1
  local parameters = table.concat(self:graph(graph, {}, {}), ", ")
  self.depth = 0
  self.lines[header] = ("local function main(%s)"):format(parameters)
  self:line "end"
  -- Where a machine runs the model, which has places of its own for errors, it sees nothing but the nodes.
  self:line(("return function(%s)"):format(parameters))
  self:line(("  if inside() then return main(%s) end"):format(parameters))
  self:line(("  return call(main%s)"):format(parameters == "" and "" or ", " .. parameters))
  self:line "end"
  local text = table.concat(self.lines, "\n") .. "\n"
  local source = "=" .. title:gsub("[^%w_%-. ]", "?")
  local chunk, message = load(text, source, "t", {})
  if not chunk then fail("is too large to compile: " .. message) end
  local call = caller(source:sub(2), source, self.places)
  return chunk(self.functions, self.constants, require "lunaria.jit".inside, call), self.weights
end
