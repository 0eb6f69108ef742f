-- ms.mindrecord.FileWriter.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local secret = require "lunaria.mindrecord.secret"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

local function exists(path) return ms.io.kind(path) ~= nil end

local function path_of(where, value)
  if type(value) ~= "string" or value == "" then fail(where, "file_name must be a path, got " .. describe(value)) end
  return value
end

local FileWriter = class.define(nil, "FileWriter", "file_name, shard_num=1, overwrite=false", [[
Writes rows to MindRecord files, which ms.dataset.MindDataset and MindSpore read. file_name: their path; with shard_num above 1 the
names of the files have
a number behind it. overwrite: files that are there are replaced, else they are an error. Files are there whole after w:commit(), or
as they were before,
whatever happens to the program.

    > w = ms.mindrecord.FileWriter("/tmp/lunaria_help.mindrecord", 1, true)
    > w:add_schema({ label = { type = "int32" }, data = { type = "bytes" } })
    0
    > w:write_raw_data { { label = 3, data = "abc" } }
    > w:commit()
    1
    > ms.dataset.MindDataset("/tmp/lunaria_help.mindrecord"):create_dict_iterator()().label:item()
    3
    > (os.remove("/tmp/lunaria_help.mindrecord") and os.remove("/tmp/lunaria_help.mindrecord.db"))
    true]])

function FileWriter:setup(a)
  local path = path_of("FileWriter", a.file_name)
  local shards = check.positive("FileWriter", "shard_num", a.shard_num)
  if shards > 1000 then fail("FileWriter", ("shard_num must be at most 1000, got %d"):format(shards)) end
  check.boolean("FileWriter", "overwrite", a.overwrite)
  local paths = { path }
  if shards > 1 then
    local form = "%s%0" .. #tostring(shards - 1) .. "d"
    for i = 1, shards do paths[i] = form:format(path, i - 1) end
  end
  for _, name in ipairs(paths) do
    if not a.overwrite and (exists(name) or exists(name .. ".db")) then
      fail("FileWriter", ("there is a file %s already"):format(exists(name) and name or name .. ".db"), "overwrite = true replaces it")
    end
  end
  self._paths, self._header_size, self._page_size = paths, 1 << 24, 1 << 25
end

--- A writer that goes on behind the rows of the file file_name and of the shards that belong to it. They have to be written by
--- MindSpore or by a writer here that was committed.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help2.mindrecord", 1, true)
---     > w:add_schema({ label = { type = "int32" } }) --> 0
---     > w:write_raw_data { { label = 3 } }
---     > w:commit() --> 1
---     > w = ms.mindrecord.FileWriter.open_for_append("/tmp/lunaria_help2.mindrecord")
---     > w:write_raw_data { { label = 4 } }
---     > w:commit() --> 2
---     > (os.remove("/tmp/lunaria_help2.mindrecord") and os.remove("/tmp/lunaria_help2.mindrecord.db")) --> true
function FileWriter.open_for_append(file_name)
  secret.refuse("open_for_append", path_of("open_for_append", file_name))
  return setmetatable({ _writer = data.mindrecord_append(path_of("open_for_append", file_name)), _appends = true }, FileWriter)
end

local function check_unwritten(self, where)
  if self._writer then fail(where, "rows were written already, or the file is appended to: its header is fixed") end
end

--- What the rows have: content is a table of fields, each { type = }, with shape = for arrays, in which -1 is a size that differs.
--- Types are
--- bytes, string, int32, int64, float32, float64; desc is a description. Gives the schema's number, 0.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help3a.mindrecord", 1, true)
---     > w:add_schema({ ids = { type = "int32", shape = { -1 } } }, "tokens") --> 0
function FileWriter:add_schema(content, desc)
  desc = arguments.named("add_schema", { "desc" }, desc)
  check_unwritten(self, "add_schema")
  if self._fields then fail("add_schema", "there is a schema already: a file has one") end
  if type(content) ~= "table" or next(content) == nil then
    fail("add_schema", "content must be a table of fields, such as { label = { type = \"int32\" } }, got " .. describe(content))
  end
  if desc ~= nil and type(desc) ~= "string" then fail("add_schema", "desc must be a text, got " .. describe(desc)) end
  local fields = {}
  for name, field in pairs(content) do
    if type(name) ~= "string" then fail("add_schema", "the name of a field must be a text, got " .. describe(name)) end
    if type(field) ~= "table" or type(field.type) ~= "string" then
      fail("add_schema", ("field '%s' must be a table with a type, such as { type = \"int32\" }, got %s"):format(name, describe(field)))
    end
    for key in pairs(field) do
      if key ~= "type" and key ~= "shape" then fail("add_schema", ("field '%s' has the unknown entry '%s'"):format(name, tostring(key))) end
    end
    fields[#fields + 1] = { name, field.type, field.shape }
  end
  data.mindrecord_check(fields)
  self._fields, self._description, self._content = fields, desc or "", content
  return 0
end

--- The fields index_fields, a name or a list, that the index file has, for other readers: no bytes and no arrays. Without a call all
--- that can be.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help3b.mindrecord", 1, true)
---     > w:add_schema({ label = { type = "int32" } }) --> 0
---     > w:add_index { "label" }
function FileWriter:add_index(index_fields)
  check_unwritten(self, "add_index")
  if not self._fields then fail("add_index", "there is no schema yet", "add_schema comes first") end
  if type(index_fields) == "string" then index_fields = { index_fields } end
  if type(index_fields) ~= "table" or #index_fields == 0 then
    fail("add_index", "index_fields must be a list of names, got " .. describe(index_fields))
  end
  local index, seen = self._index or {}, {}
  for _, name in ipairs(index) do seen[name] = true end
  for _, name in ipairs(index_fields) do
    local field = self._content[name]
    if not field then fail("add_index", ("there is no field '%s' in the schema"):format(tostring(name))) end
    if field.shape or field.type == "bytes" then fail("add_index", ("field '%s' is no single number and no text"):format(name)) end
    if seen[name] then fail("add_index", ("field '%s' is there twice"):format(name)) end
    seen[name] = true
    index[#index + 1] = name
  end
  self._index = index
end

local function size_of(where, what, value, least, most)
  value = check.integer(where, what, value)
  if value < least or value > most or value % 4 ~= 0 then
    fail(where, ("%s must be a multiple of 4 from %d to %d, got %d"):format(what, least, most, value))
  end
  return value
end

--- The bytes at the beginning of each file that are for its schema and its list of pages: 16 KiB to 128 MiB, without a call 16 MiB.
---     > ms.mindrecord.FileWriter("/tmp/lunaria_help3c.mindrecord", 1, true):set_header_size(1 << 20)
function FileWriter:set_header_size(header_size)
  check_unwritten(self, "set_header_size")
  self._header_size = size_of("set_header_size", "header_size", header_size, 1 << 14, 1 << 27)
end

--- The bytes of a page, into which each row has to fit: 32 KiB to 256 MiB, without a call 32 MiB.
---     > ms.mindrecord.FileWriter("/tmp/lunaria_help3d.mindrecord", 1, true):set_page_size(1 << 20)
function FileWriter:set_page_size(page_size)
  check_unwritten(self, "set_page_size")
  self._page_size = size_of("set_page_size", "page_size", page_size, 1 << 15, 1 << 28)
end

-- Writers of this program that have begun a file, by its path.
local begun = setmetatable({}, { __mode = "v" })

-- One that nothing names any more has its files until the collector comes.
local function claim(self, path)
  if begun[path] then collectgarbage() end
  local other = begun[path]
  if other and other ~= self and not other._committed then
    fail("FileWriter", ("another writer of this program has begun %s and was not committed"):format(path),
      "end it with its commit(), or set it to nil")
  end
  begun[path] = self
end

--- Begins the files. w:write_raw_data does it where it has not been done.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help3e.mindrecord", 1, true)
---     > w:add_schema({ label = { type = "int32" } }) --> 0
---     > w:open_and_set_header()
function FileWriter:open_and_set_header()
  if self._committed then fail("open_and_set_header", "the file was committed") end
  if self._writer then return end
  if not self._fields then fail("open_and_set_header", "there is no schema", "add_schema comes first") end
  local index = self._index
  if not index then
    index = {}
    for _, field in ipairs(self._fields) do
      if not field[3] and field[2] ~= "bytes" then index[#index + 1] = field[1] end
    end
    table.sort(index)
  end
  claim(self, self._paths[1])
  self._writer = data.mindrecord_writer(self._paths, self._description, self._fields, index, self._header_size, self._page_size)
end

--- Writes rows: raw_data is a list of tables with a value for each field. Bytes are texts or tensors of uint8, arrays are tensors of
--- the field's type or tables of
--- numbers. When a value does not fit none of them is written. Rows are put into their form by as many threads as operators use, with
--- parallel_writer = false by one.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help3f.mindrecord", 1, true)
---     > w:add_schema({ ids = { type = "int64", shape = { -1 } } }) --> 0
---     > w:write_raw_data { { ids = { 1, 2, 3 } }, { ids = ms.arange(7) } }
function FileWriter:write_raw_data(raw_data, parallel_writer)
  parallel_writer = arguments.named("write_raw_data", { "parallel_writer" }, parallel_writer)
  if parallel_writer ~= nil then check.boolean("write_raw_data", "parallel_writer", parallel_writer) end
  if type(raw_data) ~= "table" or getmetatable(raw_data) ~= nil or (next(raw_data) ~= nil and #raw_data == 0) then
    fail("write_raw_data", "raw_data must be a list of rows, such as { { label = 1 } }, got " .. describe(raw_data))
  end
  if self._committed then fail("write_raw_data", "the file was committed", "ms.mindrecord.FileWriter.open_for_append goes on") end
  self:open_and_set_header()
  data.mindrecord_write(self._writer, raw_data, parallel_writer)
end

--- Puts the files and their indexes into place. Nothing can be written after that. Gives the number of rows in all files.
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help4.mindrecord", 1, true)
---     > w:add_schema({ label = { type = "int32" } }) --> 0
---     > w:commit() --> 0
---     > (os.remove("/tmp/lunaria_help4.mindrecord") and os.remove("/tmp/lunaria_help4.mindrecord.db")) --> true
function FileWriter:commit()
  if self._committed then fail("commit", "the file was committed before") end
  self:open_and_set_header()
  local rows = data.mindrecord_commit(self._writer)
  self._committed, self._writer = true, nil
  for _, path in ipairs(self._paths or {}) do
    secret.close(path)
    secret.close(path .. ".db")
  end
  return rows
end

return FileWriter
