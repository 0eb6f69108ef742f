-- Files of events: records with checksums (ms.io.event_frame), and the fields of Protocol Buffers that are in them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail = arguments.fail
local char, pack = string.char, string.pack

local function varint(n)
  if n & ~127 == 0 then return char(n) end
  if n & ~16383 == 0 then return char(n & 127 | 128, n >> 7) end
  local bytes = {}
  repeat
    bytes[#bytes + 1] = char((n & 127) | (n >> 7 ~= 0 and 128 or 0))
    n = n >> 7
  until n == 0
  return table.concat(bytes)
end

local function text_field(number, text) return varint(number << 3 | 2) .. varint(#text) .. text end
local function integer_field(number, value) return varint(number << 3) .. varint(value) end
local function double_field(number, value) return varint(number << 3 | 1) .. pack("<d", value) end
local function float_field(number, value) return varint(number << 3 | 5) .. pack("<f", value) end

-- Seconds since 1970. The clock of the system has whole seconds; the rest is counted from the first call, so that times never fall.
local began
local function now()
  local clock = ms.clock() / 1e9
  began = began or os.time() - clock
  return began + clock
end

local events = { text_field = text_field, integer_field = integer_field, double_field = double_field, float_field = float_field,
  now = now }

--- Which files of a folder hold the lineage of a run, and which its values: TensorBoard's and ours; MindSpore's.
function events.is_lineage(name) return name:find "_lineage$" ~= nil and name:find("summary", 1, true) ~= nil end
function events.has_values(name)
  return not name:find "_lineage$" and (name:find("tfevents", 1, true) or name:find("events.summary.", 1, true)) ~= nil
end

local File = {}
File.__index = File

--- Writes one record; size is that of the file.
function File:write(event)
  local frame = ms.io.event_frame(event)
  local ok, message = self.file:write(frame)
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
  self.size = self.size + #frame
end

--- Brings what was written to the file.
function File:flush()
  local ok, message = self.file:flush()
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
end

--- Closes the file.
function File:close()
  local ok, message = self.file:close()
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
end

--- A new file in a folder, which is made when it is missing. form: its name, with %d for the time and for a number that no
--- other file has, and %s for the name of the machine. version: what the first record says.
function events.create(where, folder, form, version)
  ms.io.make_folder(folder)
  local host = (os.getenv("HOSTNAME") or ""):match "^[%w%-_]+" or "localhost"
  local taken = {}
  for _, name in ipairs(ms.io.list_folder(folder)) do taken[name] = true end
  local n, name = 0
  repeat
    name = form:format(os.time(), n, host)
    n = n + 1
  until not taken[name]
  local path = folder .. "/" .. name
  local file, message = io.open(path, "wb")
  if not file then fail(where, tostring(message)) end
  local made = setmetatable({ file = file, path = path, name = name, size = 0 }, File)
  made:write(double_field(1, now()) .. text_field(3, version))
  return made
end

-- Whether the export_options of a record ask for npy files.
function events.exports(where, options)
  arguments.options(where, options, { tensor_format = arguments.one_of("npy") }, "{ tensor_format = \"npy\" }")
  return options ~= nil and options.tensor_format == "npy"
end

return events
