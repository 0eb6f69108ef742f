-- ms.mindrecord.FileReader and MindPage: rows of MindRecord files without a pipeline.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local secret = require "lunaria.mindrecord.secret"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

-- The records of a path, with the files that belong to it, or of a list of paths; and the header of the first.
local function open(where, file_name, columns)
  local paths = type(file_name) == "string" and { file_name } or file_name
  if type(paths) ~= "table" or #paths == 0 then fail(where, "file_name must be a path or a list of paths, got " .. describe(file_name)) end
  return secret.with_plain(where, paths, type(file_name) == "string", function(files, whole)
    return (data.mindrecords(files, whole, columns or {})), data.mindrecord_header(files[1])
  end)
end

local function names_of(where, columns)
  if columns == nil then return nil end
  if type(columns) == "string" then columns = { columns } end
  if type(columns) ~= "table" or #columns == 0 then fail(where, "columns must be a list of names, got " .. describe(columns)) end
  return columns
end

-- Values as they were given to a writer: numbers for scalars, strings for bytes and texts, tensors for arrays.
local function plain(schema, name, value)
  if not ms.is_tensor(value) or schema[name].shape then return value end
  if schema[name].type == "bytes" then return data.text(value) end
  return value:item()
end

local function row_of(records, schema, names, index)
  local values, row = table.pack(data.read(records, index)), {}
  for i, name in ipairs(names) do row[name] = plain(schema, name, values[i]) end
  return row
end

local FileReader = class.define(nil, "FileReader", "file_name, num_consumer=4, columns=nil", [[
Reads MindRecord files row by row. file_name: the path of one file, with which all shards are read that its header names, or a list
of files. columns: the
fields that are read, else all of them. num_consumer is taken for the sake of programs from Python.

    > w = ms.mindrecord.FileWriter("/tmp/lunaria_help5.mindrecord", 1, true)
    > w:add_schema({ label = { type = "int32" } })
    0
    > w:write_raw_data { { label = 3 }, { label = 4 } }
    > w:commit()
    2
    > for row in ms.mindrecord.FileReader("/tmp/lunaria_help5.mindrecord"):get_next() do print(row.label) end
    3
    4
    > (os.remove("/tmp/lunaria_help5.mindrecord") and os.remove("/tmp/lunaria_help5.mindrecord.db"))
    true]])

function FileReader:setup(a)
  check.positive("FileReader", "num_consumer", a.num_consumer)
  local records, header = open("FileReader", a.file_name, names_of("FileReader", a.columns))
  self._records, self._schema, self._names = records, header.schema, data.columns(records)
end

local function opened(self, where)
  return self._records or fail(where, "the reader was closed")
end

--- The rows, for a generic for: tables by the names of the fields. Numbers and texts are Lua's own, bytes are strings, arrays are tensors.
---     > reader = ms.mindrecord.FileReader("tests/data/samples/mindrecord/images.mindrecord")
---     > reader:get_next()().label --> 2
function FileReader:get_next()
  local records, index = opened(self, "get_next"), -1
  return function()
    index = index + 1
    if not self._records or index >= data.rows(records) then return nil end
    return row_of(records, self._schema, self._names, index)
  end
end

--- The fields and their types, as they were given to a writer.
---     > ms.mindrecord.FileReader("tests/data/samples/mindrecord/images.mindrecord"):schema().label.type --> int32
function FileReader:schema() return self._schema end

--- The number of rows in all files.
---     > ms.mindrecord.FileReader("tests/data/samples/mindrecord/images.mindrecord"):len() --> 40
function FileReader:len() return math.tointeger(data.rows(opened(self, "len"))) end

--- Ends the reader; the files are closed when the collector comes.
---     > ms.mindrecord.FileReader("tests/data/samples/mindrecord/images.mindrecord"):close()
function FileReader:close() self._records = nil end
FileReader.__close = FileReader.close

local MindPage = class.define(nil, "MindPage", "file_name, num_consumer=4", [[
Reads MindRecord files by categories, the values of an indexed field, and pages of some rows: what a program that shows them needs.
file_name: as for
FileReader. num_consumer is taken for the sake of programs from Python.

    > page = ms.mindrecord.MindPage("tests/data/samples/mindrecord/sharded.mindrecord0")
    > page:set_category_field("id")
    > page:read_at_page_by_name("6", 0, 1)[1].id
    6]])

function MindPage:setup(a)
  check.positive("MindPage", "num_consumer", a.num_consumer)
  local records, header = open("MindPage", a.file_name)
  self._file, self._records, self._schema, self._index = a.file_name, records, header.schema, header.index
  self._names = data.columns(records)
end

--- The names of the indexed fields, of which one can be the category.
---     > table.concat(ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord"):candidate_fields(), " ")
---     file_name label
function MindPage:candidate_fields() return { table.unpack(self._index) } end

--- The name of the field that is the category; nil before it is set.
---     > ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord"):category_field() == nil --> true
function MindPage:category_field() return self._field end

--- Chooses the field that is the category, one of the indexed fields.
---     > page = ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord")
---     > page:set_category_field("label")
---     > page:category_field() --> label
function MindPage:set_category_field(category_field)
  local known = false
  for _, name in ipairs(self._index) do known = known or name == category_field end
  if not known then
    local names = table.concat(self._index, ", ")
    fail("set_category_field", ("'%s' is none of the indexed fields; there are: %s"):format(tostring(category_field), names))
  end
  local records = open("set_category_field", self._file, { category_field })
  local categories, by_name = {}, {}
  for i = 0, data.rows(records) - 1 do
    local value = data.read(records, i)
    if ms.is_tensor(value) then value = value:item() end
    local category = by_name[tostring(value)]
    if not category then
      category = { name = tostring(value), value = value, rows = {} }
      by_name[category.name] = category
      categories[#categories + 1] = category
    end
    category.rows[#category.rows + 1] = i
  end
  table.sort(categories, function(a, b) return a.value < b.value end)
  for i, category in ipairs(categories) do category.id = i - 1 end
  self._field, self._categories, self._by_name = category_field, categories, by_name
end

local function chosen(self, where)
  return self._categories or fail(where, "there is no category yet", "page:set_category_field(name) chooses one of page:candidate_fields()")
end

--- The categories as a text in JSON: the field's name as key and, for each value in its order, id, name and the count of its rows.
---     > page = ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord")
---     > page:set_category_field("label")
---     > ms.json.decode(page:read_category_info()).categories[1].id --> 0
function MindPage:read_category_info()
  local list = {}
  for i, category in ipairs(chosen(self, "read_category_info")) do
    list[i] = { count = #category.rows, id = category.id, name = category.name }
  end
  return ms.json.encode { key = self._field, categories = list }
end

local function rows_of(self, where, category, page, num_row)
  page, num_row = check.not_negative(where, "page", page), check.positive(where, "num_row", num_row)
  local rows = {}
  for i = page * num_row + 1, math.min((page + 1) * num_row, #category.rows) do
    rows[#rows + 1] = row_of(self._records, self._schema, self._names, category.rows[i])
  end
  return rows
end

--- The rows of page page, which counts from 0, with num_row rows each, of the category with this id: a list of tables as of FileReader.
---     > page = ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord")
---     > page:set_category_field("label")
---     > #page:read_at_page_by_id(0, 0, 1) --> 1
function MindPage:read_at_page_by_id(category_id, page, num_row)
  local categories = chosen(self, "read_at_page_by_id")
  local id = check.not_negative("read_at_page_by_id", "category_id", category_id)
  if not categories[id + 1] then
    fail("read_at_page_by_id", ("there is no category %d: there are %d, which count from 0"):format(id, #categories))
  end
  return rows_of(self, "read_at_page_by_id", categories[id + 1], page, num_row)
end

--- The rows of page page, which counts from 0, by the category's name, the value of the field as a text.
---     > page = ms.mindrecord.MindPage("tests/data/samples/mindrecord/images.mindrecord")
---     > page:set_category_field("label")
---     > #page:read_at_page_by_name("2", 0, 1) --> 1
function MindPage:read_at_page_by_name(category_name, page, num_row)
  chosen(self, "read_at_page_by_name")
  local category = self._by_name[tostring(category_name)]
  if not category then fail("read_at_page_by_name", ("there is no category '%s'"):format(tostring(category_name))) end
  return rows_of(self, "read_at_page_by_name", category, page, num_row)
end

return { FileReader = FileReader, MindPage = MindPage }
