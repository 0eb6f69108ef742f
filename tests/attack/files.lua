-- Files of every format that the library reads, changed at random, and their readers:
--   lunaria files.lua FOLDER SEED FIRST LAST MODE PROGRESS
-- as worker.lua does with calls. A reader gives what is there or an error that names the file.
local folder, seed, first, last, mode, progress = table.unpack(arg)
seed, first, last = math.tointeger(seed), math.tointeger(first), math.tointeger(last)
package.path = folder .. "/?.lua;" .. package.path
local ms = require "lunaria"
local readers = require "readers"
local KINDS, TEXTS = readers.kinds, readers.texts

local random, randomseed = math.random, math.randomseed
local function any(list) return list[random(#list)] end

local root = folder:match "^(.*)/tests/attack$" or "."
local function bytes_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local samples = {}
local function samples_of(kind)
  if samples[kind] then return samples[kind] end
  local list = {}
  if TEXTS[kind] then
    list[1] = TEXTS[kind]
  else
    local where = root .. "/tests/data/samples/" .. kind
    for _, name in ipairs(ms.io.list_folder(where) or {}) do
      if ms.io.kind(where .. "/" .. name) == "file" and not name:find "%.db$" then
        local text = bytes_of(where .. "/" .. name)
        if #text > 0 and #text < 200000 then list[#list + 1] = text end
      end
    end
  end
  assert(#list > 0, "no samples of " .. kind)
  samples[kind] = list
  return list
end

local NUMBERS = { "<I4", "<I8", ">I4", "<i2", "<f", "<d" }
local VALUES = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 20, 255, 65535, 1 << 31 }
local changes = {
  function(s) -- some bytes
    for _ = 1, random(8) do
      local at = random(#s)
      s = s:sub(1, at - 1) .. string.char(random(0, 255)) .. s:sub(at + 1)
    end
    return s
  end,
  function(s) return s:sub(1, random(0, #s)) end,
  function(s) -- one bit, near the beginning
    local at = random(math.min(#s, 200))
    return s:sub(1, at - 1) .. string.char(s:byte(at) ~ (1 << random(0, 7))) .. s:sub(at + 1)
  end,
  function(s) -- a number
    local format = any(NUMBERS)
    local size = string.packsize(format)
    if #s < size then return s end
    local at = random(#s - size + 1)
    local value = any(VALUES)
    if format == "<i2" then value = value & 0x7fff end
    if format:find "4" then value = value & 0xffffffff end
    return s:sub(1, at - 1) .. string.pack(format, format:find "[fd]" and value + 0.0 or value) .. s:sub(at + size)
  end,
  function(s) -- a piece twice, or of another place
    local from, to = random(#s), random(#s)
    local piece = s:sub(from, math.min(#s, from + random(64)))
    return s:sub(1, to) .. piece .. s:sub(random(2) == 1 and to + 1 or math.min(#s, to + #piece) + 1)
  end,
  function(s) -- zeros, or all bits
    local at, n = random(#s), random(32)
    return s:sub(1, at - 1) .. (random(2) == 1 and "\0" or "\255"):rep(n) .. s:sub(at + n)
  end,
  function(s) -- other digits
    local count = 0
    return (s:gsub("%d+", function(digits)
      count = count + 1
      if random(6) == 1 and count < 200 then return any { "0", "-1", "99999999999", "1e308", "9223372036854775807", digits .. digits } end
    end))
  end,
  function(s) return s .. string.char(random(0, 255)):rep(random(100)) end,
  function(s) -- a terminal's command in a name
    local from, to = s:find("%a%a%a%a+", random(#s))
    if not from then return s end
    return s:sub(1, from - 1) .. ("\27]0;x\7\27[2J"):rep(4):sub(1, to - from + 1) .. s:sub(to + 1)
  end,
}

local function file_of(number)
  randomseed(seed, number)
  local kind = KINDS[(number - 1) % #KINDS + 1]
  local text = any(samples_of(kind[1]))
  for _ = 1, any { 1, 1, 1, 2, 4 } do
    if #text > 0 then text = any(changes)(text) end
  end
  return kind, "mutated" .. kind[2], text
end

local function run(number)
  local kind, path, text = file_of(number)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  local ok, message = pcall(kind[3], path)
  if ok then return end
  message = tostring(message)
  for _, foreign in ipairs { "std::", "bad_alloc", "basic_string", "vector::", "out_of_range", "lunaria:lunaria/", "%z", "\27", "\7" } do
    if message:find(foreign) then
      print(("MESSAGE %d %s: %s"):format(number, kind[1], (message:sub(1, 400):gsub("%c", "?"))))
      return
    end
  end
end

if mode:find "^show" then
  local kind, path, text = file_of(first)
  print(kind[1], path, ("%q"):format(text:sub(1, 300)))
  os.exit(0)
end
require "numbered"(progress, first, last, run)
