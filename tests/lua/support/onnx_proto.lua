-- ONNX files as texts, by hand: what tests need that no writer of ours would write.
local M = {}

local function varint(n)
  local bytes = {}
  repeat
    local low = n & 127
    n = n >> 7
    bytes[#bytes + 1] = string.char(n == 0 and low or low | 128)
  until n == 0
  return table.concat(bytes)
end

local function integer(field, n) return varint(field << 3) .. varint(n) end
local function text(field, s) return varint(field << 3 | 2) .. varint(#s) .. s end
local function float(field, x) return varint(field << 3 | 5) .. string.pack("<f", x) end

local function shape_of(dims)
  local parts = {}
  for i, d in ipairs(dims) do parts[i] = text(1, type(d) == "string" and text(2, d) or integer(1, d)) end
  return table.concat(parts)
end

--- An input or output: its name, its TensorProto.DataType and its sizes (numbers or names).
function M.value(name, dtype, dims)
  return text(1, name) .. text(2, text(1, integer(1, dtype) .. text(2, shape_of(dims))))
end

--- A list of such values; optional = true: one that may be missing.
function M.sequence(name, dtype, dims, optional)
  local inner = text(4, text(1, text(1, integer(1, dtype) .. text(2, shape_of(dims)))))
  return text(1, name) .. text(2, optional and text(9, text(1, inner)) or inner)
end

--- A tensor of float32 numbers, or of another type by its bytes.
function M.tensor(name, dims, values, dtype)
  local parts = {}
  for _, d in ipairs(dims) do parts[#parts + 1] = integer(1, d) end
  if type(values) == "table" then
    for i, x in ipairs(values) do values[i] = string.pack("<f", x) end
    values = table.concat(values)
  end
  parts[#parts + 1] = integer(2, dtype or 1) .. text(8, name) .. (dtype == 8 and text(6, values) or text(9, values))
  return table.concat(parts)
end

--- A float32 tensor in another file.
function M.external(name, dims, location, more)
  local parts = {}
  for _, d in ipairs(dims) do parts[#parts + 1] = integer(1, d) end
  local function entry(key, value) return text(13, text(1, key) .. text(2, tostring(value))) end
  parts[#parts + 1] = integer(2, 1) .. text(8, name) .. entry("location", location) .. integer(14, 1)
  for key, value in pairs(more or {}) do parts[#parts + 1] = entry(key, value) end
  return table.concat(parts)
end

local graphs = setmetatable({}, { __mode = "k" })

local function attribute(name, value)
  if math.type(value) == "integer" then return text(1, name) .. integer(3, value) .. integer(20, 2) end
  if math.type(value) == "float" then return text(1, name) .. float(2, value) .. integer(20, 1) end
  return text(1, name) .. text(6, graphs[value]) .. integer(20, 5)
end

--- A node; options: name, domain, attributes (integers, floats and graphs), references = { attribute = that of the
--- function }, twice = true to write attributes twice.
function M.node(op, inputs, outputs, options)
  options = options or {}
  local parts = {}
  for _, name in ipairs(inputs) do parts[#parts + 1] = text(1, name) end
  for _, name in ipairs(outputs) do parts[#parts + 1] = text(2, name) end
  parts[#parts + 1] = text(3, options.name or "") .. text(4, op) .. text(7, options.domain or "")
  for _ = 1, options.twice and 2 or 1 do
    for name, value in pairs(options.attributes or {}) do parts[#parts + 1] = text(5, attribute(name, value)) end
  end
  for name, of in pairs(options.references or {}) do
    parts[#parts + 1] = text(5, text(1, name) .. text(21, of) .. integer(20, 1))
  end
  return table.concat(parts)
end

--- A graph of name, nodes, initializers, inputs and outputs.
function M.graph(options)
  local parts = { text(2, options.name) }
  for field, list in pairs { [1] = options.nodes, [5] = options.initializers, [11] = options.inputs, [12] = options.outputs } do
    for _, item in ipairs(list or {}) do parts[#parts + 1] = text(field, item) end
  end
  local key = { functions = options.functions }
  graphs[key] = table.concat(parts)
  return key
end

--- A function of name, domain, inputs, outputs, attributes and nodes.
function M.func(options)
  local parts = { text(1, options.name), text(10, options.domain), text(9, text(1, "") .. integer(2, 17)) }
  for field, list in pairs { [4] = options.inputs, [5] = options.outputs, [6] = options.attributes, [7] = options.nodes } do
    for _, item in ipairs(list) do parts[#parts + 1] = text(field, item) end
  end
  if options.domain ~= "" then parts[#parts + 1] = text(9, text(1, options.domain) .. integer(2, 1)) end
  return table.concat(parts)
end

--- A model of a graph, with the versions of its operators by domain, and functions.
function M.model(options)
  local parts = { integer(1, 8), text(7, graphs[options.graph]) }
  for domain, version in pairs(options.opsets or { [""] = 17 }) do
    parts[#parts + 1] = text(8, text(1, domain) .. integer(2, version))
  end
  for _, f in ipairs(options.functions or options.graph.functions or {}) do
    parts[#parts + 1] = text(25, type(f) == "table" and M.func(f) or f)
  end
  return table.concat(parts)
end

return M
