-- Dataset:save: the rows of a data set as files.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

local names = { "num_files", "file_type", "overwrite" }
-- Rows that the writer gets at once.
local together = 1000

-- What MindRecord has in the place of each dtype, as MindSpore converts them.
local types = {
  Bool = "int32", Int8 = "int32", UInt8 = "int32", Int16 = "int32", UInt16 = "int32", Int32 = "int32", UInt32 = "int64", Int64 = "int64",
  Float16 = "float32", BFloat16 = "float32", Float32 = "float32", Float64 = "float64"
}

-- The field of a column, and what makes its values fit.
local function field_of(name, value)
  if type(value) == "string" then return { type = "string" } end
  if not ms.is_tensor(value) then
    fail("save", ("column '%s' has lists of texts, which MindRecord cannot hold"):format(name), "save the rows before they are batched")
  end
  local dtype = tostring(value.dtype)
  local kind = types[dtype]
  if not kind then
    fail("save", ("column '%s' has the dtype %s, which MindRecord cannot hold"):format(name, dtype), "cast it to float32")
  end
  local shape
  if value.ndim > 0 then
    -- Rows may have another number of elements along the first axis.
    shape = { -1 }
    for axis = 2, value.ndim do shape[axis] = value.shape[axis] end
  end
  local same = dtype:lower() == kind
  if value.ndim > 0 then return { type = kind, shape = shape }, not same and function(x) return x:astype(kind) end or nil end
  return { type = kind }, function(x) return x:item() end
end

local function number_of(x) return x == true and 1 or x == false and 0 or x end

local function save_mindrecord(node, file_name, num_files, overwrite)
  local columns = data.columns(node)
  local writer = ms.mindrecord.FileWriter(file_name, num_files, overwrite)
  local content, converters
  local cursor <close> = setmetatable({ data.open(node, 0, 0, 1) }, { __close = function(c) data.close(c[1]) end })
  local rows, waiting = 0, {}
  local values = table.pack(data.next(cursor[1]))
  while values.n > 0 and values[1] ~= nil do
    if not content then
      content, converters = {}, {}
      for i, name in ipairs(columns) do content[name], converters[i] = field_of(name, values[i]) end
      writer:add_schema(content)
    end
    local row = {}
    for i, name in ipairs(columns) do
      local convert = converters[i]
      row[name] = number_of(convert and convert(values[i]) or not convert and values[i])
    end
    rows = rows + 1
    waiting[#waiting + 1] = row
    if #waiting == together then
      writer:write_raw_data(waiting)
      waiting = {}
    end
    values = table.pack(data.next(cursor[1]))
  end
  if not content then fail("save", "the data set has no rows, which say what the file has to hold") end
  if #waiting > 0 then writer:write_raw_data(waiting) end
  writer:commit()
  return rows
end

return function(dataset, file_name, ...)
  local num_files, file_type, overwrite = arguments.named("save", names, ...)
  if type(file_name) ~= "string" or file_name == "" then fail("save", "file_name must be a path, got " .. describe(file_name)) end
  num_files = num_files == nil and 1 or check.positive("save", "num_files", num_files)
  file_type = file_type or file_name:find "%.tfrecords?$" and "tfrecord" or "mindrecord"
  check.choice("save", "file_type", file_type, { "mindrecord", "tfrecord" })
  if overwrite ~= nil then check.boolean("save", "overwrite", overwrite) end
  local node = dataset._node
  if data.rows(node) == math.huge then fail("save", "the data set has no end") end
  if file_type == "mindrecord" then return save_mindrecord(node, file_name, num_files, overwrite) end
  if num_files ~= 1 then fail("save", ("num_files must be 1 for a TFRecord, got %d"):format(num_files)) end
  return data.save_tfrecord(node, file_name)
end
