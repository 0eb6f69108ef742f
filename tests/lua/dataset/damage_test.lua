-- A thousand random damages of TFRecord files and of CSV files: an error that names the file, or the rows that were written.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local state = 77
local function draw(n)
  state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
  return (state >> 20) % n
end

local function damaged(bytes, round)
  if round % 4 == 0 then return bytes:sub(1, draw(#bytes)) end
  local at = 1 + draw(#bytes)
  if round % 4 == 1 then return bytes:sub(1, at - 1) .. bytes:sub(at + 1 + draw(20)) end
  return bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ (1 << draw(8))) .. bytes:sub(at + 1)
end

local function each_damage(path, check)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "a"
  file:close()
  local refused = 0
  for round = 1, 1000 do
    file = assert(io.open(path, "wb"))
    file:write(damaged(bytes, round))
    file:close()
    local ok, message = pcall(check)
    if not ok then
      refused = refused + 1
      assert(tostring(message):find(path, 1, true), ("round %d: %s"):format(round, message))
    end
  end
  os.remove(path)
  return refused
end

t.test("TFRecord", function()
  local path = os.tmpname()
  D.NumpySlicesDataset({ x = ms.arange(40), s = (function()
    local list = {}
    for i = 1, 40 do list[i] = "text " .. i end
    return list
  end)() }, { shuffle = false }):save(path)
  local wrong = 0
  local refused = each_damage(path, function()
    local i = 0
    for row in D.TFRecordDataset(path, { "s", "x" }, { shuffle = false }):create_dict_iterator() do
      -- Whole records that were cut off at the end are not missed; none is changed.
      if row.x:item() ~= i or row.s ~= "text " .. i + 1 then wrong = wrong + 1 end
      i = i + 1
    end
  end)
  t.equal(wrong, 0)
  assert(refused > 900, refused)
end)

t.test("CSV", function()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write "x,name\n"
  for i = 1, 60 do file:write(i, ",\"n, ", i, "\"\n") end
  file:close()
  local refused = each_damage(path, function()
    for row in D.CSVDataset(path, { column_defaults = { 0, "" }, column_names = { "x", "name" },
      shuffle = false }):skip(1):create_dict_iterator() do
      assert(math.type(row.x:item()) == "integer" and type(row.name) == "string")
    end
  end)
  -- The format has no check sums: most changes of a letter are another text.
  assert(refused > 50, refused)
end)

t.finish()
