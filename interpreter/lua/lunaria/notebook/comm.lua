--- Comms: pipes for messages between a cell and what shows it, such as widgets.
-- comm.open("target", { value = 1 }) opens one from here; comm.register("target", function(comm, data) ... end) is
-- called when the front end opens one. A message is a table, with bytes beside it in a list of strings.
local ms = require "lunaria"
local frontend = require "lunaria.frontend"

local targets, open = {}, {}

local Comm = {}
Comm.__index = Comm
Comm.__name = "comm"

local function text_of(value, what)
  if value == nil then
    return "{}"
  elseif type(value) ~= "table" then
    error(("comm: %s must be a table, got %s"):format(what, type(value)), 3)
  end
  return ms.json.encode(value)
end

local function send(kind, comm, data, options)
  options = options or {}
  return frontend.send_comm(
    kind, comm.id, comm.target, text_of(data, "data"), text_of(options.metadata, "metadata"), options.buffers)
end

--- Sends a message: data is a table, options may have metadata and buffers.
---     > ms.notebook.comm.open("example", {}):send({ value = 2 })
function Comm:send(data, options)
  if self.closed then
    error("comm: it is closed", 2)
  end
  send("message", self, data, options)
end

--- Closes the pipe; the other side is told.
---     > ms.notebook.comm.open("example", {}):close()
function Comm:close(data, options)
  if self.closed then
    return
  end
  self.closed = true
  open[self.id] = nil
  send("close", self, data, options)
end

--- Calls f(data, buffers, metadata) for every message.
---     > ms.notebook.comm.open("example", {}):on_message(function(data) print(data) end)
function Comm:on_message(f)
  self._on_message = f
end

--- Calls f(data) when the other side closes.
---     > ms.notebook.comm.open("example", {}):on_close(function() print("closed") end)
function Comm:on_close(f)
  self._on_close = f
end

local comm = {}

--- Opens a comm. Nothing happens where no front end listens; the comm then takes messages all the same.
---     > type(ms.notebook.comm.open("example", { value = 1 }).id) --> string
function comm.open(target, data, options)
  if type(target) ~= "string" then
    error("comm.open: target must be a string, got " .. type(target), 2)
  end
  local id = options and options.id or frontend.new_id()
  local new = setmetatable({ id = id, target = target, closed = false }, Comm)
  open[id] = new
  send("open", new, data, options)
  return new
end

--- Calls f(comm, data, buffers, metadata) when the front end opens a comm of that target; nil takes it away.
---     > ms.notebook.comm.register("example", function(comm, data) comm:send(data) end)
function comm.register(target, f)
  if type(target) ~= "string" then
    error("comm.register: target must be a string, got " .. type(target), 2)
  end
  targets[target] = f
end

--- The comms that are open, by id.
---     > type(ms.notebook.comm.list()) --> table
function comm.list()
  local all = {}
  for id, each in pairs(open) do
    all[id] = each
  end
  return all
end

frontend.on_comm(function(kind, id, target, data, metadata, buffers)
  local known = open[id]
  if kind == "open" then
    local f = targets[target]
    local new = setmetatable({ id = id, target = target, closed = false }, Comm)
    if not f then
      send("close", new)
      error(("no comm target '%s' is registered; ms.notebook.comm.register adds one"):format(target), 0)
    end
    open[id] = new
    f(new, ms.json.decode(data), buffers, ms.json.decode(metadata))
  elseif kind == "close" then
    open[id] = nil
    if known then
      known.closed = true
      if known._on_close then
        known._on_close(ms.json.decode(data))
      end
    end
  elseif known and known._on_message then
    known._on_message(ms.json.decode(data), buffers, ms.json.decode(metadata))
  end
end)

return comm
