-- MindRecord files: what is written is read again, appended to, cut into shards and pages; damaged ones are refused.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local R = ms.mindrecord

local function name(stem)
  local path = ms.io.temporary()
  os.remove(path)
  return path .. stem
end

local function remove(path, shards)
  for i = 0, (shards or 1) - 1 do
    local file = shards and ("%s%0" .. #tostring(shards - 1) .. "d"):format(path, i) or path
    os.remove(file)
    os.remove(file .. ".db")
  end
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

local schema = {
  id = { type = "int64" }, small = { type = "int32" }, x = { type = "float64" }, y = { type = "float32" }, text = { type = "string" },
  data = { type = "bytes" }, more = { type = "bytes" },
  ids = { type = "int32", shape = { -1 } }, big = { type = "int64", shape = { 2, -1 } },
  f32 = { type = "float32", shape = { 2, 2 } }, f64 = { type = "float64", shape = { -1 } },
}

local function row(i)
  return {
    id = i * 3000000007, small = i % 7 - 3, x = i / 3, y = i / 4, text = ("é"):rep(i % 5) .. i, data = ("\0\255x"):rep(i % 50),
    more = "m" .. i, ids = ms.arange(i % 4):astype(ms.int32) * 70000 - 3, big = ms.full({ 2, i % 3 }, (i - 50) * 10000000000, ms.int64),
    f32 = ms.full({ 2, 2 }, i / 2), f64 = ms.full({ i % 6 }, i / 7, ms.float64),
  }
end

local function rows(from, count)
  local list = {}
  for i = 1, count do list[i] = row(from + i - 1) end
  return list
end

local function same(got, wanted)
  for field, value in pairs(wanted) do
    if ms.is_tensor(value) then
      t.equal(got[field].dtype, value.dtype)
      t.equal(tostring(got[field].shape), tostring(value.shape))
      t.equal(got[field]:tolist(), value:tolist())
    else
      t.equal(got[field], value)
    end
  end
end

local function write(path, count, options)
  options = options or {}
  local w = R.FileWriter(path, { shard_num = options.shards or 1 })
  w:add_schema(options.schema or schema, "everything")
  if options.index then w:add_index(options.index) end
  w:set_header_size(options.header or 1 << 16)
  w:set_page_size(options.page or 1 << 15)
  local at = 0
  for _, part in ipairs(options.parts or { count }) do
    w:write_raw_data(options.rows and options.rows(at, part) or rows(at, part))
    at = at + part
  end
  t.equal(w:commit(), count)
end

t.test("all types in many pages come back", function()
  local path = name "types"
  write(path, 700, { parts = { 1, 0, 299, 400 } })
  local reader, i = R.FileReader(path), 0
  t.equal(reader:len(), 700)
  t.equal(reader:schema().big, { type = "int64", shape = { 2, -1 } })
  for got in reader:get_next() do
    same(got, row(i))
    i = i + 1
  end
  t.equal(i, 700)
  -- By chance, by threads.
  local seen = 0
  for got in ms.dataset.MindDataset(path, { columns_list = { "id", "data" } }):create_dict_iterator() do
    local wanted = row(got.id:item() // 3000000007)
    t.equal(got.data.shape[1], #wanted.data)
    seen = seen + 1
  end
  t.equal(seen, 700)
  remove(path)
end)

t.test("only scalars, only arrays, no rows", function()
  local path = name "few"
  write(path, 3, { schema = { a = { type = "int32" } },
    rows = function(at, n) return n == 3 and { { a = at }, { a = 5 }, { a = -70000 } } end })
  local list = {}
  for got in R.FileReader(path):get_next() do list[#list + 1] = got.a end
  t.equal(list, { 0, 5, -70000 })
  remove(path)
  write(path, 2, { schema = { b = { type = "bytes" } }, rows = function() return { { b = "" }, { b = ms.tensor({ 7 }, ms.uint8) } } end })
  list = {}
  for got in R.FileReader(path):get_next() do list[#list + 1] = got.b end
  t.equal(list, { "", "\7" })
  remove(path)
  write(path, 0)
  t.equal(R.FileReader(path):len(), 0)
  for _ in ms.dataset.MindDataset(path):create_dict_iterator() do error "a row" end
  remove(path)
end)

t.test("shards are written and read together", function()
  local path = name "shards"
  write(path, 103, { shards = 12, parts = { 3, 100 } })
  local first = path .. "00"
  local ids, reader = {}, R.FileReader(first)
  t.equal(reader:len(), 103)
  for got in reader:get_next() do ids[#ids + 1] = got.id // 3000000007 end
  table.sort(ids)
  for i, id in ipairs(ids) do t.equal(id, i - 1) end
  local two = R.FileReader { path .. "03", path .. "04" }
  assert(two:len() < 30 and two:len() > 10)
  local w = R.FileWriter.open_for_append(path .. "07")
  w:write_raw_data(rows(103, 20))
  t.equal(w:commit(), 123)
  t.equal(R.FileReader(first):len(), 123)
  remove(path, 12)
end)

t.test("rows are appended, again and again", function()
  local path = name "append"
  write(path, 10)
  local count = 10
  for _ = 1, 5 do
    local w = R.FileWriter.open_for_append(path)
    fails("its header is fixed", w.add_schema, w, schema)
    w:write_raw_data(rows(count, 90))
    count = count + 90
    t.equal(w:commit(), count)
    local i = 0
    for got in R.FileReader(path):get_next() do
      same(got, row(i))
      i = i + 1
    end
    t.equal(i, count)
  end
  remove(path)
  -- Files of the reference product, too, which have no check sums.
  local data = assert(io.open("tests/data/samples/mindrecord/images.mindrecord", "rb"):read "a")
  assert(io.open(path, "wb")):write(data):close()
  local w = R.FileWriter.open_for_append(path)
  w:write_raw_data { { data = "new", file_name = "n", label = 77 } }
  t.equal(w:commit(), 41)
  local last
  for got in R.FileReader(path):get_next() do last = got end
  t.equal(last, { data = "new", file_name = "n", label = 77 })
  remove(path)
end)

t.test("a writer that is not committed changes nothing", function()
  local path = name "uncommitted"
  do
    local w = R.FileWriter(path)
    w:add_schema { a = { type = "int32" } }
    w:write_raw_data { { a = 1 } }
  end
  collectgarbage()
  collectgarbage()
  assert(not io.open(path), "a file is there")
  write(path, 5)
  do
    local w = R.FileWriter.open_for_append(path)
    w:write_raw_data(rows(5, 500))
    fails("is being written", R.FileWriter.open_for_append, path)
  end
  collectgarbage()
  collectgarbage()
  t.equal(R.FileReader(path):len(), 5)
  remove(path)
end)

t.test("a writer that was given up does not keep its file from the next one", function()
  local path = name "again"
  local function failing()
    local w = R.FileWriter(path, 1, true)
    w:add_schema { label = { type = "int32" } }
    w:write_raw_data { { label = 1 } }
    return w
  end
  do
    local kept = failing()
    fails("another writer of this program has begun .* and was not committed", failing)
    kept:write_raw_data { { label = 2 } }
  end
  t.equal(failing():commit(), 1)
  remove(path)
end)

t.test("what does not fit is refused and not written", function()
  local path = name "bad"
  local w = R.FileWriter(path)
  fails("add_schema comes first", w.write_raw_data, w, {})
  fails("field name 'bad name!'", w.add_schema, w, { ["bad name!"] = { type = "int32" } })
  fails("unknown type 'int8'", w.add_schema, w, { a = { type = "int8" } })
  fails("has a shape, which only numbers have", w.add_schema, w, { a = { type = "string", shape = { 2 } } })
  fails("one may be %-1", w.add_schema, w, { a = { type = "int32", shape = { -1, -1 } } })
  fails("unknown entry 'sharp'", w.add_schema, w, { a = { type = "int32", sharp = { 2 } } })
  w:add_schema { a = { type = "int32" }, b = { type = "int64", shape = { 2 } }, s = { type = "string" } }
  fails("a schema already", w.add_schema, w, { a = { type = "int32" } })
  fails("is no single number", w.add_index, w, { "b" })
  fails("no field 'c'", w.add_index, w, "c")
  fails("page_size must be", w.set_page_size, w, 1)
  fails("header_size must be", w.set_header_size, w, 1 << 30)
  w:set_page_size(1 << 15)
  local function bad(pattern, change)
    local rowed = { a = 1, b = { 1, 2 }, s = "x" }
    for k, v in pairs(change) do rowed[k] = v end
    fails(pattern, w.write_raw_data, w, { { a = 1, b = { 1, 2 }, s = "x" }, rowed })
  end
  bad("2147483648, which is out of range of int32", { a = 2147483648 })
  bad("must be an integer", { a = "x" })
  bad("must be an integer", { a = 1.5 })
  bad("has shape %(3%)", { b = { 1, 2, 3 } })
  bad("must be of dtype int64, got int32", { b = ms.zeros({ 2 }, ms.int32) })
  bad("must be a string", { s = 3 })
  bad("not UTF%-8", { s = "\255\254" })
  bad("row 1 takes .* set_page_size", { s = ("x"):rep(40000) })
  bad("which the schema does not have", { more = 1 })
  fails("has no field 's'", w.write_raw_data, w, { { a = 1, b = { 1, 2 } } })
  fails("raw_data must be a list of rows", w.write_raw_data, w, { a = 1 })
  fails("its header is fixed", w.set_page_size, w, 1 << 16)
  w:write_raw_data { { a = 1, b = { 1, 2 }, s = "only this" } }
  t.equal(w:commit(), 1)
  fails("was committed", w.write_raw_data, w, {})
  fails("was committed", w.commit, w)
  t.equal(R.FileReader(path):len(), 1)
  fails("there is a file", R.FileWriter, path)
  fails("such.mindrecord", R.FileWriter.open_for_append, "/proc/no/such.mindrecord")
  fails("shard_num must be at most 1000", R.FileWriter, path, 1001)
  local full = R.FileWriter("/dev/full", 1, true)
  full:add_schema { a = { type = "int32" } }
  fails("no regular file", full.commit, full)
  remove(path)
end)

t.test("a header that is too small says so", function()
  local path = name "header"
  local w = R.FileWriter(path)
  w:add_schema { b = { type = "bytes" } }
  w:set_header_size(1 << 14)
  w:set_page_size(1 << 15)
  local list = {}
  for i = 1, 200 do list[i] = { b = ("x"):rep(30000) } end
  w:write_raw_data(list)
  fails("does not fit.*set_header_size", w.commit, w)
  remove(path)
end)

t.test("damaged pages are errors with file and page, or are left out and counted", function()
  local path = name "damaged"
  write(path, 300, { schema = { i = { type = "int32" }, b = { type = "bytes" } }, rows = function(at, n)
    local list = {}
    for k = 1, n do list[k] = { i = at + k - 1, b = ("b"):rep(1000) } end
    return list
  end })
  local file = assert(io.open(path, "r+b"))
  file:seek("set", (1 << 16) + (1 << 15) * 2 + 5000)
  file:write "X"
  file:close()
  fails("crc of page 2", function() for _ in R.FileReader(path):get_next() do end end)
  fails("crc of page 2", function() for _ in ms.dataset.MindDataset(path):batch(8):create_dict_iterator() do end end)
  local ds = ms.dataset.MindDataset(path, { skip_damaged = true, shuffle = false })
  t.equal(ds:get_dataset_size() + ds.skipped_rows, 300)
  assert(ds.skipped_rows > 20 and ds.skipped_rows < 40, ds.skipped_rows)
  local previous, jumps = -1, 0
  for got in ds:create_dict_iterator() do
    if got.i:item() ~= previous + 1 then jumps = jumps + 1 end
    previous = got.i:item()
  end
  t.equal(jumps, 1)
  remove(path)
end)

t.test("a thousand random damages: an error or right rows", function()
  local path = name "random"
  write(path, 60, { parts = { 60 }, header = 1 << 14 })
  local bytes = assert(io.open(path, "rb")):read "a"
  local random = 12345
  local function draw(n)
    random = (random * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (random >> 20) % n
  end
  local length = string.unpack("<I8", bytes)
  local refused, right = 0, 0
  for round = 1, 1000 do
    local kind, damaged = round % 4
    if kind == 0 then
      damaged = bytes:sub(1, draw(#bytes))
    else
      -- In the header's text, anywhere, or in the pages.
      local at = kind == 1 and 1 + draw(length + 8) or kind == 2 and 1 + draw(#bytes) or (1 << 14) + 1 + draw(#bytes - (1 << 14))
      damaged = bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ (1 << draw(8))) .. bytes:sub(at + 1)
    end
    assert(io.open(path, "wb")):write(damaged):close()
    local ok, message = pcall(function()
      local i = 0
      for got in R.FileReader(path):get_next() do
        same(got, row(i))
        i = i + 1
      end
      assert(i == 60, "rows are missing: " .. i)
    end)
    if ok then right = right + 1 else
      refused = refused + 1
      assert(tostring(message):find(path, 1, true), ("round %d: %s"):format(round, message))
    end
  end
  assert(refused > 600 and right > 50, ("%d refused, %d right"):format(refused, right))
  remove(path)
end)

t.test("pages of categories", function()
  local path = name "page"
  local fields = { label = { type = "int32" }, name = { type = "string" } }
  write(path, 50, { schema = fields, index = { "label" }, rows = function(_, n)
    local list = {}
    for i = 1, n do list[i] = { label = i % 3, name = "n" .. i } end
    return list
  end })
  local page = R.MindPage(path)
  t.equal(page:candidate_fields(), { "label" })
  fails("no category yet", page.read_category_info, page)
  fails("none of the indexed fields", page.set_category_field, page, "name")
  page:set_category_field "label"
  local info = ms.json.decode(page:read_category_info())
  t.equal(info.key, "label")
  t.equal(#info.categories, 3)
  t.equal(info.categories[1], { count = 16, id = 0, name = "0" })
  t.equal(page:read_at_page_by_id(1, 1, 3)[1], { label = 1, name = "n10" })
  t.equal(#page:read_at_page_by_name("2", 5, 3), 2)
  t.equal(page:read_at_page_by_name("2", 50, 3), {})
  fails("no category 3", page.read_at_page_by_id, page, 3, 0, 1)
  fails("no category 'x'", page.read_at_page_by_name, page, "x", 0, 1)
  remove(path)
end)

t.test("other formats are converted", function()
  local path = name "convert"
  local file = assert(io.open(path .. ".csv", "w"))
  file:write("i,x,s\n1,0.5,a\n2,1,\"b, c\"\n")
  file:close()
  t.equal(R.CsvToMR(path .. ".csv", path):transform(), 2)
  local list = {}
  for got in R.FileReader(path):get_next() do list[#list + 1] = got end
  t.equal(list, { { i = 1, x = 0.5, s = "a" }, { i = 2, x = 1.0, s = "b, c" } })
  remove(path)
  os.remove(path .. ".csv")
  ms.dataset.NumpySlicesDataset({ x = ms.arange(6):reshape { 2, 3 }, s = { "one", "two" } }, { shuffle = false }):save(path .. ".tfrecord")
  t.equal(R.TFRecordToMR(path .. ".tfrecord", path, { x = { type = "int64", shape = { 3 } }, s = "string" }, { "s" }):transform(), 2)
  local got = R.FileReader(path):get_next()()
  t.equal(got.s, "one")
  t.equal(got.x:tolist(), { 0, 1, 2 })
  remove(path)
  os.remove(path .. ".tfrecord")
  t.equal(pcall(R.Cifar10ToMR("tests/data/samples/cifar10", path).transform), false)
  os.execute(("mkdir -p %s_dir/n01; cd %s_dir; printf 'n01 4\\n' > ../$(basename %s).map; printf jpeg > n01/a.JPEG; printf no > n01/b.txt")
    :format(path, path, path))
  t.equal(R.ImageNetToMR(path .. ".map", path .. "_dir", path):transform(), 1)
  got = R.FileReader(path):get_next()()
  t.equal({ got.label, got.data }, { 4, "jpeg" })
  remove(path)
  os.execute(("rm -r %s_dir %s.map"):format(path, path))
end)

t.finish()
