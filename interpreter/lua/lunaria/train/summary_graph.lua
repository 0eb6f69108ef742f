-- The graph of a network in TensorBoard's form (GraphDef), made of the MindIR file with our operators.
local ms = require "lunaria"
local events = require "lunaria.train.events"
local messages = require "lunaria.train.messages"
local uncompiled = require "lunaria.nn.uncompiled"

local text_field = events.text_field

-- The contents of the fields of a message that are texts or messages, by number.
local function fields(text)
  local list = {}
  messages.each_field(text, function(number, content, kind)
    if kind ~= 2 then return end
    list[number] = list[number] or {}
    table.insert(list[number], content)
  end)
  return list
end

-- Names of nodes may not have what TensorBoard takes for groups or for results.
local function plain(name) return (name:gsub("[:^]", "_")) end

local function node(name, op, inputs)
  local parts = { text_field(1, plain(name)), text_field(2, op) }
  for _, input in ipairs(inputs or {}) do parts[#parts + 1] = text_field(3, plain(input)) end
  return text_field(1, table.concat(parts))
end

--- The graph of a network, or a function, for inputs.
return function(network, ...)
  local file = ms.io.temporary(".mindir")
  local given = table.pack(...)
  given[given.n + 1] = { file_name = file, form = "lunaria" }
  local ok, message = pcall(uncompiled, ms.export, network, table.unpack(given, 1, given.n + 1))
  local stream = ok and io.open(file, "rb")
  local text = stream and stream:read("a")
  if stream then stream:close() end
  os.remove(file)
  if not ok then error(message, 0) end
  local model = fields(text)
  local graph = fields(model[7][1])
  local parts, known = {}, {}
  local function add(name, op, inputs)
    if known[name] then return end
    known[name] = true
    parts[#parts + 1] = node(name, op, inputs)
  end
  for _, number in ipairs { 5, 4, 3 } do
    for _, value in ipairs(graph[number] or {}) do
      local of = fields(value)
      local name = (number == 5 and of[1] or of[7] or of[1] or {})[1]
      if name then add(name, number == 5 and "Input" or "Parameter") end
    end
  end
  for _, made in ipairs(graph[1] or {}) do
    local of = fields(made)
    local op = ((of[4] or {})[1] or "?"):gsub("^REF::", ""):gsub(":%d+$", "")
    for _, output in ipairs(of[2] or {}) do add(output, op, of[1]) end
  end
  return table.concat(parts)
end
