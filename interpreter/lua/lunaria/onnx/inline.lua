-- The graph of a model with its functions in place of their calls, and a place for messages at each node.
local most = 200000 -- nodes that a model may come to

local function copy_graph(graph, rename, attributes, self, context)
  local copy = { name = graph.name, nodes = {}, initializers = {}, inputs = {}, outputs = {} }
  for i, entry in ipairs(graph.initializers) do copy.initializers[i] = { name = rename(entry.name), value = entry.value } end
  for i, input in ipairs(graph.inputs) do copy.inputs[i] = { name = rename(input.name), type = input.type } end
  for i, output in ipairs(graph.outputs) do copy.outputs[i] = { name = rename(output.name), type = output.type } end
  self:nodes(graph.nodes, rename, attributes, copy.nodes, context)
  return copy
end

local Inline = {}
Inline.__index = Inline

-- What stands in messages and in comments of the text.
local function plain(name) return (name:gsub("[^%w_%-./:]", "?"):sub(1, 60)) end

-- The attributes of a node, those of the function around it in place of what refers to them.
function Inline:attributes(node, rename, given, context)
  local attributes = {}
  for name, attribute in pairs(node.attributes) do
    if attribute.ref then attribute = given and given[attribute.ref] end
    if attribute and attribute.kind == "graph" then
      attributes[name] = { kind = "graph", value = copy_graph(attribute.value, rename, given, self, context) }
    elseif attribute then
      attributes[name] = attribute
    end
  end
  return attributes
end

local function names(list, rename)
  local renamed = {}
  for i, name in ipairs(list) do renamed[i] = name == "" and "" or rename(name) end
  return renamed
end

-- The nodes of a function's body for one call.
function Inline:call(f, node, out, context)
  if context.running[f] then self.fail(("the function '%s' calls itself"):format(plain(f.name))) end
  if #node.inputs > #f.inputs or #node.outputs > #f.outputs then
    self.fail(("%s: the function has %d inputs and %d outputs"):format(node.place, #f.inputs, #f.outputs))
  end
  self.calls = self.calls + 1
  local prefix = ("f%d/"):format(self.calls)
  local map, extra = {}, {}
  for i, name in ipairs(f.inputs) do map[name] = node.inputs[i] or "" end
  for i, name in ipairs(f.outputs) do
    local outer = node.outputs[i] or ""
    if outer ~= "" then
      if map[name] then
        extra[#extra + 1] = { map[name], outer }
      else
        map[name] = outer
      end
    end
  end
  local attributes = {}
  for name, default in pairs(f.defaults) do attributes[name] = default end
  for name, attribute in pairs(node.attributes) do attributes[name] = attribute end
  context.running[f] = true
  local inner = { running = context.running, opsets = next(f.opsets) and f.opsets or context.opsets, path = node.place .. ", " }
  self:nodes(f.nodes, function(name) return map[name] or prefix .. name end, attributes, out, inner)
  context.running[f] = nil
  for _, pair in ipairs(extra) do
    out[#out + 1] = {
      op = "Identity", domain = "", name = "", inputs = { pair[1] }, outputs = { pair[2] }, attributes = {}, version = 16,
      place = node.place,
    }
  end
end

function Inline:nodes(list, rename, given, out, context)
  for i, node in ipairs(list) do
    local domain = node.domain == "ai.onnx" and "" or node.domain
    local place = ("%snode %d (%s%s)"):format(context.path, i - 1, plain(node.op),
      node.name ~= "" and " '" .. plain(rename(node.name)) .. "'" or "")
    local copy = {
      op = node.op, domain = domain, name = node.name, place = place, inputs = names(node.inputs, rename),
      outputs = names(node.outputs, rename), attributes = self:attributes(node, rename, given, context),
      version = context.opsets[domain] or (domain == "" and context.opsets["ai.onnx"]),
    }
    local f = self.functions[domain .. ":" .. node.op .. ":" .. node.overload]
    if f then
      self:call(f, copy, out, context)
    elseif not copy.version then
      self.fail(("%s: the model does not say which version of the operators of '%s' it uses"):format(place, plain(domain)))
    else
      out[#out + 1] = copy
    end
    self.count = self.count + 1
    if self.count > most then self.fail(("comes to more than %d nodes"):format(most)) end
  end
end

--- `fail` raises an error with the message.
return function(model, fail)
  local self = setmetatable({ functions = {}, calls = 0, count = 0, fail = fail }, Inline)
  for _, f in ipairs(model.functions) do
    local domain = f.domain == "ai.onnx" and "" or f.domain
    self.functions[domain .. ":" .. f.name .. ":" .. f.overload] = f
  end
  local context = { running = {}, opsets = model.opsets, path = "" }
  return copy_graph(model.graph, function(name) return name end, nil, self, context)
end
