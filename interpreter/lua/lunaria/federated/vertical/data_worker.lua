-- ms.federated.FLDataWorker: rows of two parties that belong together, as files of each party in the same order.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local links = require "lunaria.federated.vertical.link"
local psi = require "lunaria.federated.vertical.psi"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local FLDataWorker = class.define(nil, "FLDataWorker", "role, worker_config, schema", [[Joins the rows of a leader and a follower by their
ids, which neither shows, and writes those that both have to MindRecord files, in the same order at both.

role: "leader" or "follower". worker_config: a table of
- main_table_files: the CSV files with this party's rows, a path or a list, whose first line names the columns; or rows, a list of tables;
- primary_key ("id"): the column of ids, texts or integers, each once;
- output_dir: the folder of the files, which must be there; their names are mindrecord_BIN, with several shards mindrecord_BIN0 ...;
- link: the way to the other party, or server_name, server_address and remote_server_name, remote_server_address with key, as
  ms.federated.VerticalFederatedCommunicator has them;
- bin_num (1): bins of ids that are compared one after the other, each a set of files; shard_num (1): files of each bin;
- join_type ("psi"), psi_type ("ecdh"): no others; overwrite (false): files that are there are replaced.
schema: what is written of a row besides the id: a table of fields { type =, shape = }, as ms.mindrecord.FileWriter:add_schema has
it; a field with a shape is a column of so many numbers with spaces between them.

  > rows = { a = { { id = "b", x = 31 }, { id = "a", x = 22 }, { id = "c", x = 40 } }, b = { { id = "c", x = 5 }, { id = "a", x = 7 } } }
  > config = { a = { output_dir = "/tmp", file_prefix = "lunaria_a" }, b = { output_dir = "/tmp", file_prefix = "lunaria_b" } }
  > function join(own, role, link) config[own].rows, config[own].link, config[own].overwrite = rows[own], link, true end
  > function export(own, role) return ms.federated.FLDataWorker(role, config[own], { x = { type = "int64" } }):export() end
  > a = function(links) join("a", "leader", links.b) return export("a", "leader") end
  > b = function(links) join("b", "follower", links.a) return export("b", "follower") end
  > written = ms.federated.vertical.run_parties { a = a, b = b }
  > written.a.rows, written.b.rows --> 2	2
  > ms.mindrecord.FileReader(written.a.files[1]):get_next()().x --> 22
  > for _, w in pairs(written) do os.remove(w.files[1]) os.remove(w.files[1] .. ".db") end]])

local known = {
  main_table_files = function(v) return type(v) == "string" or type(v) == "table", "a path or a list of paths" end,
  rows = "table", primary_key = "string", output_dir = "string", bin_num = arguments.positive, shard_num = arguments.positive,
  join_type = arguments.one_of "psi", psi_type = arguments.one_of "ecdh", overwrite = "boolean", file_prefix = "string",
  link = function(v) return class.is_a(v, links.Link), "a link to the other party" end,
  server_name = "string", server_address = "string", remote_server_name = "string", remote_server_address = "string",
  key = "string", seconds = "number",
}

function FLDataWorker:init(...)
  local role, config, schema = ...
  -- The last argument is a table of names itself.
  if arguments.is_options(role) then
    local a = arguments.bind("FLDataWorker", FLDataWorker._signature, role)
    role, config, schema = a.role, a.worker_config, a.schema
  end
  local where = "FLDataWorker"
  self.role = check.choice(where, "role", role, { "leader", "follower" })
  if type(config) == "table" and config.psi_type == "filter_ecdh" then
    fail(where, "psi_type 'filter_ecdh' (a Bloom filter of the larger side, with false positives) is left out",
      "psi_type = \"ecdh\" is exact")
  end
  self._config = arguments.options(where, config, known, "{ main_table_files = \"rows.csv\", output_dir = \"joined\", link = link }")
  local c = self._config
  if (c.main_table_files == nil) == (c.rows == nil) then fail(where, "worker_config needs main_table_files or rows, one of them") end
  if c.output_dir == nil or ms.io.kind(c.output_dir) ~= "folder" then
    fail(where, ("output_dir must be a folder that is there, got %s"):format(describe(c.output_dir)))
  end
  if c.link == nil and not (c.server_name and c.remote_server_name and c.server_address and c.remote_server_address) then
    fail(where, "worker_config needs link, or server_name, server_address, remote_server_name and remote_server_address with key")
  end
  if type(schema) ~= "table" or next(schema) == nil then
    fail(where, "schema must be a table of fields, such as { age = { type = \"int32\" } }, got " .. describe(schema))
  end
  for name, field in pairs(schema) do
    if type(name) ~= "string" or type(field) ~= "table" or type(field.type) ~= "string" then
      fail(where, ("schema.%s must be a table with a type, got %s"):format(tostring(name), describe(field)))
    end
  end
  self._key, self._schema = c.primary_key or "id", schema
  if schema[self._key] then fail(where,
    ("schema has the id '%s': ids are not written, rows stand in the order of both parties"):format(self._key)) end
end

local numeric = { int32 = math.tointeger, int64 = math.tointeger, float32 = tonumber, float64 = tonumber }

-- A field of a CSV row, by the schema.
local function converted(value, name, field, number)
  local function wrong(words) fail("export", ("row %d: '%s' must be %s"):format(number, name, words)) end
  if value == nil then wrong("there: the row has no such column") end
  local convert = numeric[field.type]
  if not convert then return type(value) == "string" and value or wrong "a text" end
  if field.shape == nil then
    local result = convert(tonumber(value))
    return result ~= nil and result or wrong("of type " .. field.type)
  end
  if type(value) ~= "string" then return value end
  local list = {}
  for part in value:gmatch "%S+" do
    list[#list + 1] = convert(tonumber(part)) or wrong("numbers of type " .. field.type .. " with spaces between them")
  end
  return list
end

local function row_of(self, row, number)
  local made = {}
  for name, field in pairs(self._schema) do made[name] = converted(row[name], name, field, number) end
  return made
end

-- The ids and a function that gives the row at a position, from 1.
local function read(self)
  local rows = self._config.rows
  if rows == nil then
    local files = self._config.main_table_files
    rows = {}
    for row in ms.dataset.CSVDataset(files, { shuffle = false }):create_dict_iterator { num_epochs = 1 } do rows[#rows + 1] = row end
  end
  local ids = {}
  for i, row in ipairs(rows) do
    local id = type(row) == "table" and row[self._key]
    if type(id) ~= "string" and math.type(id) ~= "integer" then
      fail("export", ("row %d has no id '%s', a text or an integer"):format(i, self._key))
    end
    ids[i] = id
  end
  return ids, rows
end

local function write(self, path, positions, rows)
  local writer = ms.mindrecord.FileWriter(path, { shard_num = self._config.shard_num or 1, overwrite = self._config.overwrite or false })
  writer:add_schema(self._schema, "vertical")
  local part = {}
  for i, position in ipairs(positions) do
    part[#part + 1] = row_of(self, rows[position], position)
    if #part == 256 or i == #positions then
      writer:write_raw_data(part)
      part = {}
    end
  end
  writer:commit()
  return writer._paths
end

local function own_link(self)
  local c = self._config
  if c.link then return c.link end
  return links.connect(c.server_name, { [c.server_name] = c.server_address, [c.remote_server_name] = c.remote_server_address },
    { key = c.key, seconds = c.seconds })[c.remote_server_name]
end

--- Finds the rows that both parties have and writes those of this party: the same number at both, in the same order. Gives a table:
--- rows, how many there are; files, a list of their paths; other_rows, how many rows the other party has (with several bins: at most).
---     > (pcall(ms.federated.FLDataWorker.export, {})) --> false
function FLDataWorker:export()
  local bins = self._config.bin_num or 1
  local ids, rows = read(self)
  local link = own_link(self)
  return links.guarded({ link }, function()
    local common, positions, others = psi(link, ids, { bins = bins })
    local parts = {}
    for b = 1, bins do parts[b] = {} end
    -- Common rows are dealt to the bins in their order, which both know.
    for i in ipairs(common) do table.insert(parts[(i - 1) % bins + 1], positions[i]) end
    local files = {}
    for b, part in ipairs(parts) do
      local path = ("%s/%smindrecord_%d"):format(self._config.output_dir, self._config.file_prefix or "", b - 1)
      for _, file in ipairs(write(self, path, part, rows)) do files[#files + 1] = file end
    end
    if not self._config.link then link:close() end
    return { rows = #common, files = files, other_rows = others }
  end)
end

return FLDataWorker
