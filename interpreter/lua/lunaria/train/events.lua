-- Files of events: records with checksums (the framing of TFRecord), and the fields of Protocol Buffers that are in them.
local ms = require "lunaria"
local fail = require("lunaria.nn.arguments").fail

local crc_table
local function crc32c(text)
  if not crc_table then
    crc_table = {}
    for i = 0, 255 do
      local value = i
      for _ = 1, 8 do value = value & 1 == 1 and value >> 1 ~ 0x82f63b78 or value >> 1 end
      crc_table[i] = value
    end
  end
  local sum = 0xffffffff
  for from = 1, #text, 4096 do
    for _, byte in ipairs { text:byte(from, math.min(from + 4095, #text)) } do
      sum = crc_table[(sum ~ byte) & 0xff] ~ sum >> 8
    end
  end
  return ~sum & 0xffffffff
end

local function masked(text)
  local sum = crc32c(text)
  return ("<I4"):pack(((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff)
end

local function varint(n)
  local bytes = {}
  repeat
    bytes[#bytes + 1] = string.char((n & 127) | (n >> 7 ~= 0 and 128 or 0))
    n = n >> 7
  until n == 0
  return table.concat(bytes)
end

local function text_field(number, text) return varint(number << 3 | 2) .. varint(#text) .. text end
local function integer_field(number, value) return varint(number << 3) .. varint(value) end
local function double_field(number, value) return varint(number << 3 | 1) .. ("<d"):pack(value) end
local function float_field(number, value) return varint(number << 3 | 5) .. ("<f"):pack(value) end

local function packed_doubles(number, list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = ("<d"):pack(value) end
  return text_field(number, table.concat(parts))
end

local function now() return os.time() + (ms.clock() % 1000000000) / 1e9 end

local events = { text_field = text_field, integer_field = integer_field, double_field = double_field, float_field = float_field,
  packed_doubles = packed_doubles, now = now }

local File = {}
File.__index = File

--- Writes one record.
function File:write(event)
  local length = ("<I8"):pack(#event)
  local ok, message = self.file:write(length, masked(length), event, masked(event))
  if not ok then fail(self.path, "writing failed: " .. tostring(message)) end
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
  local made = setmetatable({ file = file, path = path, name = name }, File)
  made:write(double_field(1, now()) .. text_field(3, version))
  return made
end

return events
