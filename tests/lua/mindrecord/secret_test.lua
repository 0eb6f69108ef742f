-- Encrypted MindRecord files.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local mr = ms.mindrecord

local base = os.tmpname()
os.remove(base)
local made = {}
local function path_of(name)
  local path = base .. name
  made[#made + 1] = path
  return path
end
local function write(path, shards)
  local w = mr.FileWriter(path, shards or 1, true)
  w:add_schema { label = { type = "int32" }, data = { type = "bytes" } }
  w:set_header_size(1 << 14)
  w:set_page_size(1 << 15)
  local rows = {}
  for i = 1, 30 do rows[i] = { label = i, data = ("secret%d"):format(i) } end
  w:write_raw_data(rows)
  w:commit()
end
local function labels(path)
  local list = {}
  for row in mr.FileReader(path):get_next() do
    assert(row.data == "secret" .. row.label)
    list[#list + 1] = row.label
  end
  table.sort(list)
  return list
end
local function content(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end
local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(pattern), tostring(message))
end
local all = {}
for i = 1, 30 do all[i] = i end

t.test("files of one shard and of several are written and read", function()
  for _, size in ipairs { 16, 24, 32 } do
    mr.set_enc_key(("k"):rep(size))
    local path = path_of("one" .. size)
    write(path)
    local text = content(path)
    assert(text:sub(-14) == "AES-GCMENCRYPT" and not text:find("secret3", 1, true) and content(path .. ".db"):sub(-7) == "ENCRYPT")
    t.equal(labels(path), all)
    local count = 0
    for row in ms.dataset.MindDataset(path):create_dict_iterator() do count = count + row.label:item() end
    t.equal(count, 465)
  end
  local path = path_of "three"
  write(path, 3)
  for i = 0, 2 do made[#made + 1] = path .. i end
  t.equal(labels(path .. "1"), all)
  t.equal(mr.FileReader { path .. "0", path .. "1" }:len(), 20)
  mr.set_enc_key(nil)
end)

t.test("a wrong key, no key and damage are errors, plain files are read", function()
  local plain, path = path_of "plain", path_of "locked"
  write(plain)
  mr.set_enc_key "0123456789012345"
  write(path)
  t.equal(labels(plain), all)
  mr.set_enc_key "0123456789012346"
  fails("cannot be decrypted: the key is another one.*hint: ms.mindrecord.set_enc_key", mr.FileReader, path)
  mr.set_enc_key(nil)
  fails("is encrypted.*hint: ms.mindrecord.set_enc_key", mr.FileReader, path)
  fails("is encrypted", ms.dataset.MindDataset, path)
  fails("cannot be appended to", mr.FileWriter.open_for_append, path)
  mr.set_enc_key "0123456789012345"
  local good = content(path)
  math.randomseed(5)
  for _ = 1, 100 do
    local at = math.random(#good - 14)
    local bad = math.random(4) == 1 and good:sub(1, at) .. good:sub(-14)
      or good:sub(1, at - 1) .. string.char(good:byte(at) ~ (1 << math.random(0, 7))) .. good:sub(at + 1)
    do
      local file <close> = assert(io.open(path, "wb"))
      file:write(bad)
    end
    fails("locked: ", mr.FileReader, path)
  end
  mr.set_enc_key(nil)
end)

t.test("functions of the program encrypt and decrypt", function()
  local function turn(input, size, output, key) output:write((input:read(size):gsub(".", function(c)
    return string.char(c:byte() ~ key:byte())
  end))) end
  mr.set_enc_key "0123456789012345"
  mr.set_enc_mode(turn)
  local path = path_of "own"
  write(path)
  t.equal(content(path):sub(-14), "UDF-ENCENCRYPT")
  t.equal(labels(path), all)
  mr.set_dec_mode "AES-GCM"
  fails("by a function of the program", mr.FileReader, path)
  mr.set_dec_mode(function() error "no way" end)
  fails("no way", mr.FileReader, path)
  mr.set_dec_mode(nil)
  mr.set_enc_mode()
  mr.set_enc_key(nil)
end)

t.test("bad arguments are named", function()
  fails("set_enc_key: enc_key must be a text or nil", mr.set_enc_key, 5)
  fails("set_enc_key: enc_key must have 16, 24 or 32 bytes, got 3", mr.set_enc_key, "abc")
  fails("set_enc_mode: enc_mode must be", mr.set_enc_mode, "AES")
  fails("set_dec_mode: dec_mode must be", mr.set_dec_mode, 7)
end)

for _, path in ipairs(made) do
  os.remove(path)
  os.remove(path .. ".db")
end
t.finish()
