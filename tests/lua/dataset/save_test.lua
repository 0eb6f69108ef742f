-- Dataset:save: MindRecord files as MindSpore's save writes them, TFRecord where that is asked for, and full files.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local function at(name) return folder .. "/" .. name end
local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(part, 1, true), tostring(message))
end
local function exists(name)
  local file = io.open(at(name), "rb")
  if file then file:close() end
  return file ~= nil
end
local function content(name)
  local file <close> = assert(io.open(at(name), "rb"))
  return file:read "a"
end

local function some(count)
  return D.NumpySlicesDataset({
    label = ms.arange(count):astype(ms.int32), flag = ms.ops.greater(ms.arange(count), 2), small = ms.arange(count):astype(ms.uint8),
    half = (ms.arange(count) / 2):astype(ms.float16), wide = ms.arange(count):astype(ms.uint32),
    plane = ms.ones({ count, 2, 3 }, ms.float64),
    bytes = ms.arange(3 * count):astype(ms.uint8):reshape { count, 3 }
  }, { shuffle = false })
end

t.test("rows come back from MindRecord files, in the types that MindSpore gives them", function()
  t.equal(some(7):save(at "a.mindrecord"), 7)
  assert(exists "a.mindrecord.db")
  local schema = {}
  for name, field in pairs(ms.mindrecord.FileReader(at "a.mindrecord"):schema()) do
    schema[name] = field.type .. (field.shape and "/" .. table.concat(field.shape, ",") or "")
  end
  t.equal(schema, { label = "int32", flag = "int32", small = "int32", half = "float32", wide = "int64",
    plane = "float64/-1,3", bytes = "int32/-1" })
  local row, i = nil, 0
  for found in D.MindDataset(at "a.mindrecord", { shuffle = false }):create_dict_iterator() do
    row = found
    t.equal({ row.label:item(), row.small:item(), row.flag:item(), row.half:item(), row.wide:item() }, { i, i, i > 2 and 1 or 0, i / 2, i })
    t.equal(row.bytes:tolist(), { 3 * i, 3 * i + 1, 3 * i + 2 })
    t.equal(tostring(row.plane.shape), "(2, 3)")
    i = i + 1
  end
  t.equal({ i, row and tostring(row.half.dtype) }, { 7, "Float32" })
end)

t.test("several files, those that are there, more rows than are written at once", function()
  t.equal(some(2500):save(at "b.mindrecord", 3), 2500)
  assert(exists "b.mindrecord0" and exists "b.mindrecord2.db" and not exists "b.mindrecord")
  local sum, count = 0, 0
  for row in D.MindDataset(at "b.mindrecord0"):create_dict_iterator() do sum, count = sum + row.label:item(), count + 1 end
  t.equal({ sum, count }, { 2499 * 1250, 2500 })
  fails("there is a file", some(3).save, some(3), at "a.mindrecord")
  t.equal(some(3):save(at "a.mindrecord", { overwrite = true }), 3)
end)

t.test("TFRecord by the file's name or by the type", function()
  t.equal(some(4):map(function(x) return x:astype(ms.int32) end, "flag"):save(at "c.tfrecord"), 4)
  t.equal(D.TFRecordDataset(at "c.tfrecord"):get_dataset_size(), 4)
  t.equal(D.NumpySlicesDataset({ x = { 1, 2 } }):save(at "d", { file_type = "tfrecord" }), 2)
  t.equal(D.TFRecordDataset(at "d"):get_dataset_size(), 2)
  fails("num_files must be 1", some(2).save, some(2), at "e.tfrecord", 2)
end)

t.test("what cannot be saved is told, and leaves no file", function()
  local ds = D.NumpySlicesDataset({ x = ms.ones({ 2 }, ms.uint64) })
  fails("column 'x' has the dtype UInt64", ds.save, ds, at "f.mindrecord")
  local words = D.NumpySlicesDataset({ x = { "a", "b" } })
  t.equal(words:save(at "g.mindrecord"), 2)
  fails("has lists of texts", words.save, words:batch(2), at "f.mindrecord")
  local none = words:filter(function() return false end, "x")
  fails("has no rows", none.save, none, at "f.mindrecord")
  fails("file_type must be one of", words.save, words, at "f", { file_type = "csv" })
  fails("num_files must be", words.save, words, at "f", 0)
  local endless = words:repeat_(-1)
  fails("has no end", endless.save, endless, at "f.mindrecord")
  assert(not exists "f.mindrecord" and not exists "f")
end)

-- The same program in a process whose files may have 64 KiB: an error that says so, and what was there stays.
t.test("a file that may not grow is an error of the writing, not the end of the process", function()
  local program = at "full.lua"
  local file <close> = assert(io.open(program, "w"))
  file:write(([[
local ms = require "lunaria"
local folder = %q
local x = ms.ones { 100, 1000 }
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find "[Ff]ile too large", tostring(message))
end
for _, name in ipairs { "old.npy", "old.npz", "old.safetensors" } do
  fails(ms.save, folder .. "/" .. name, name:find "npy" and x or { x = x })
end
fails(ms.save_checkpoint, { { name = "x", data = ms.Parameter(x, "x") } }, folder .. "/old.ckpt")
fails(ms.save_mindir, function(y) return ms.ops.matmul(y, x) end, folder .. "/old.mindir", ms.ones { 2, 100 })
fails(function() ms.dataset.NumpySlicesDataset({ x = x }):save(folder .. "/old.tfrecord") end)
fails(function() ms.dataset.NumpySlicesDataset({ x = x }):save(folder .. "/new.mindrecord") end)
local file = assert(io.open(folder .. "/plain", "w"))
local _, message = file:write(("x"):rep(1 << 20))
assert(message and message:find "too large", message)
print "alive"
]]):format(folder))
  file:close()
  local names = { "old.npy", "old.npz", "old.safetensors", "old.ckpt", "old.mindir", "old.tfrecord" }
  for _, name in ipairs(names) do
    local old <close> = assert(io.open(at(name), "w"))
    old:write("old " .. name)
  end
  local lua = arg[-1]
  local pipe = assert(io.popen(("ulimit -f 64; '%s' '%s' 2>&1"):format(lua, program)))
  local output = pipe:read "a"
  local ok = pipe:close()
  assert(ok and output:find "alive", output)
  for _, name in ipairs(names) do t.equal(content(name), "old " .. name) end
  assert(not exists "new.mindrecord")
end)

os.execute("rm -r " .. folder)
t.finish()
