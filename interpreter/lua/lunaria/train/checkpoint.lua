-- Checkpoints: ms.save_checkpoint, ms.load_checkpoint, ms.load_param_into_net. Files are MindSpore's .ckpt or safetensors; a
-- file is written beside its name, brought to the disk and renamed, so that under the name there is always a whole one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local devices = require "lunaria.devices"
local sharded = require "lunaria.parallel.checkpoint"

local io_, json = ms.io, ms.json
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local checkpoint = {}

local function ends_with(text, ending) return text:sub(-#ending) == ending end

-- Values in the order in which they are written: { names =, [name] = tensor }.
local function add(where, values, names, name, value)
  if type(name) ~= "string" then fail(where, "a parameter's name must be a string, got " .. describe(name)) end
  if values[name] ~= nil then fail(where, ("the parameter %s is there twice"):format(name)) end
  if math.type(value) then
    value = ms.tensor(value)
  elseif type(value) == "boolean" then
    value = ms.tensor(value)
  end
  if not ms.is_tensor(value) and type(value) ~= "string" then
    fail(where, ("the value of %s must be a tensor, got %s"):format(name, describe(value)))
  end
  values[name], names[#names + 1] = value, name
end

local function sorted_names(dictionary)
  local names = {}
  for name in pairs(dictionary) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

-- A network, a table by name, or a list of { name =, data = }.
local function collect(where, object)
  local values, names = {}, {}
  if cells.is_cell(object) then
    for name, parameter in object:parameters_and_names() do add(where, values, names, name, parameter) end
  elseif type(object) == "table" and getmetatable(object) == nil and #object > 0 then
    for i, item in ipairs(object) do
      if type(item) ~= "table" or item.name == nil or item.data == nil then
        fail(where, ("save_obj[%d] must be { name =, data = }, got %s"):format(i, describe(item)))
      end
      add(where, values, names, item.name, item.data)
    end
  elseif type(object) == "table" and getmetatable(object) == nil then
    for _, name in ipairs(sorted_names(object)) do add(where, values, names, name, object[name]) end
  else
    fail(where, "save_obj must be a cell, a table of tensors by name or a list of { name =, data = }, got " .. describe(object))
  end
  return values, names
end

-- Texts of safetensors files are in the metadata. later: a thread writes the file.
local function write(path, format, values, names, checksum, later, key)
  if format == "ckpt" then return io_.write_ckpt(path, values, names, checksum, later, key) end
  local tensors, metadata = {}, { format = "ms" }
  for _, name in ipairs(names) do
    if type(values[name]) == "string" then metadata[name] = values[name] else tensors[name] = values[name] end
  end
  ms.save_safetensors(path, tensors, { metadata = metadata, later = later })
end

local formats, modes = { "ckpt", "safetensors" }, { "AES-GCM" }

local function path_of(where, name, value)
  if type(value) ~= "string" or value == "" then fail(where, ("%s must be a path, got %s"):format(name, describe(value))) end
  return value
end

local save_signature = arguments.signature("save_obj, ckpt_file_name, integrated_save=true, async_save=false, append_dict=nil, "
  .. "enc_key=nil, enc_mode=\"AES-GCM\", choice_func=nil, crc_check=false, format=nil, sharded=false, step=0")

--- Writes the parameters of a network (or a table of tensors by name, or a list of { name =, data = }) to a file: .ckpt, or
--- .safetensors by its name or format = "safetensors". Tensors have any shape and dtype, and are read again with the same elements.
--- append_dict: further numbers, texts and tensors. choice_func: a
--- function of a name that says whether it is saved. crc_check: with a checksum. The file is there whole or not at all, also
--- after a crash. enc_key: a text of 16, 24 or 32 bytes, under which a .ckpt file is encrypted (enc_mode: "AES-GCM"). async_save: the
--- function returns at once, and a thread writes the values as they are now, one file at a
--- time: the next call waits for the file before it, and is where an error of it shows; the end of the program waits too.
--- ms.async_ckpt_wait() waits, ms.async_ckpt_thread_status() says whether a file is being written.
--- sharded: ckpt_file_name is a folder, in which step-00000100 (step: its number) gets a file of each rank with the tensors and
--- pieces of tensors that the rank holds. No rank waits for another; the step is complete, and has its name, when the last of
--- them has written. Any number of ranks can load it.
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, "/tmp/lunaria_help.ckpt")
---     > ms.load_checkpoint("/tmp/lunaria_help.ckpt").w:tolist()[1] --> 1.0
---     > (os.remove("/tmp/lunaria_help.ckpt")) --> true
function checkpoint.save_checkpoint(...)
  local where = "save_checkpoint"
  local a = arguments.bind(where, save_signature, ...)
  local path = path_of(where, "ckpt_file_name", a.ckpt_file_name)
  local is_sharded, step = check.boolean(where, "sharded", a.sharded), check.not_negative(where, "step", a.step)
  local format = a.format
  if is_sharded then
    if format ~= nil then fail(where, "the files of ranks are safetensors: format must be nil") end
    if a.crc_check then fail(where, "the files of ranks always have check sums: crc_check must be false") end
    format = "safetensors"
  end
  if format == nil then format = ends_with(path, ".safetensors") and "safetensors" or "ckpt" end
  check.choice(where, "format", format, formats)
  local key = check.optional_key(where, "enc_key", a.enc_key)
  check.choice(where, "enc_mode", a.enc_mode, modes)
  if key and format ~= "ckpt" then fail(where, "only .ckpt files are encrypted, not safetensors: enc_key must be nil") end
  if not is_sharded and not ends_with(path, "." .. format) then path = path .. "." .. format end
  local values, names = collect(where, a.save_obj)
  if a.append_dict ~= nil then
    if type(a.append_dict) ~= "table" then fail(where, "append_dict must be a table, got " .. describe(a.append_dict)) end
    for _, name in ipairs(sorted_names(a.append_dict)) do add(where, values, names, name, a.append_dict[name]) end
  end
  if a.choice_func ~= nil then
    if not arguments.is_callable(a.choice_func) then fail(where, "choice_func must be a function, got " .. describe(a.choice_func)) end
    local chosen = {}
    for _, name in ipairs(names) do
      if a.choice_func(name) then chosen[#chosen + 1] = name end
    end
    names = chosen
  end
  if #names == 0 then fail(where, "there is nothing to save") end
  local checksum = check.boolean(where, "crc_check", a.crc_check)
  if checksum and format ~= "ckpt" then fail(where, "crc_check is for .ckpt files: a safetensors file has no checksum") end
  local later = checkpoint.is_async(where, "async_save", a.async_save)
  if not is_sharded then return write(path, format, values, names, checksum, later, key) end
  local chosen = {}
  for _, name in ipairs(names) do chosen[name] = values[name] end
  sharded.save(path, chosen, { step = step, later = later })
end

--- Whether an option asks for a thread: MindSpore has three ways, of which processes are not one of ours.
function checkpoint.is_async(where, name, value)
  if value == "thread" then return true end
  if type(value) ~= "boolean" then fail(where, ("%s must be true, false or \"thread\", got %s"):format(name, describe(value))) end
  return value
end

--- Waits until the file that ms.save_checkpoint with async_save = true began is written; what went wrong is an error.
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, "/tmp/lunaria_help.ckpt", { async_save = true })
---     > ms.async_ckpt_wait()
---     > (os.remove("/tmp/lunaria_help.ckpt")) --> true
function checkpoint.async_ckpt_wait() io_.finish_writing() end

--- Whether a file of ms.save_checkpoint with async_save = true is being written.
---     > ms.async_ckpt_thread_status() --> false
function checkpoint.async_ckpt_thread_status() return io_.is_writing() end

local function refuse_pickle(path)
  fail(path, "is a Python pickle, which can run any code when it is read, so it is refused",
    "in Python: safetensors.torch.save_file(torch.load(path, weights_only=True), \"weights.safetensors\")")
end

-- The parts of a model that is cut into files, as its index says: all of them lie in the index's folder.
local function parts_of_index(path)
  local ok, index = pcall(json.decode, io_.read_text(path))
  local map = ok and type(index) == "table" and index.weight_map
  if type(map) ~= "table" then fail(path, "is not the index of a checkpoint: it has no weight_map") end
  local folder, files, parts = path:match("^(.*/)[^/]*$") or "", {}, {}
  for _, name in ipairs(sorted_names(map)) do
    local file = map[name]
    if type(name) ~= "string" or type(file) ~= "string" or file:find("[/\\%z]") or file == "" or file:sub(1, 1) == "." then
      fail(path, ("says that '%s' is in %s, which is no file of the folder"):format(tostring(name), describe(file)))
    end
    if not files[file] then
      files[file] = { path = folder .. file, kind = "safetensors", names = {} }
      parts[#parts + 1] = files[file]
    end
    table.insert(files[file].names, name)
  end
  table.sort(parts, function(a, b) return a.path < b.path end)
  return parts
end

local index_name = "model.safetensors.index.json"

-- The files of a checkpoint: a list of { path =, kind =, names = }.
local function parts_of(path, format)
  local entries = not path:find("\0", 1, true) and io_.list_folder(path)
  if entries then
    local found
    for _, name in ipairs(entries) do
      if name == index_name then found = name break end
      if ends_with(name, ".safetensors.index.json") then found = name end
    end
    if not found and sharded.is_checkpoint(path) then return { { path = path, kind = "shards" } } end
    if not found then fail(path, ("is a directory without a file %s"):format(index_name)) end
    return parts_of_index(path .. "/" .. found)
  end
  if ends_with(path, ".index.json") then return parts_of_index(path) end
  for _, ending in ipairs { ".pt", ".pth", ".pkl", ".pickle" } do
    if ends_with(path:lower(), ending) then refuse_pickle(path) end
  end
  local kind = io_.format_of(path)
  if kind == "zip" and not ends_with(path, ".npz") then refuse_pickle(path) end
  if kind == "unknown" then fail(path, "has an unknown format; a checkpoint is a .ckpt or a .safetensors file") end
  if format ~= nil and kind ~= format then fail(path, ("is a %s file, not a %s file"):format(kind, format)) end
  return { { path = path, kind = kind } }
end

-- Texts that were appended are among the metadata of safetensors files.
local function with_texts(values, metadata)
  for name, text in pairs(metadata) do
    if name ~= "format" and values[name] == nil then values[name] = text end
  end
  return values
end

-- Tensors and texts by name.
local function read(parts, crc_check, mmap, net, key)
  local values = {}
  for _, part in ipairs(parts) do
    if part.kind == "shards" then
      if mmap then fail(part.path, "has files of ranks, which cannot be mapped: mmap must be false") end
      local own = {}
      if net then
        for name, parameter in net:parameters_and_names() do own[name] = parameter end
      end
      return sharded.load(part.path, function(name) return own[name] end, crc_check)
    end
    if part.kind == "ckpt" then
      if mmap then
        fail(part.path, "is a .ckpt file, which cannot be mapped: mmap is for safetensors", "ms.ckpt_to_safetensors(path)")
      end
      return (io_.read_ckpt(part.path, crc_check ~= nil and { crc_check = crc_check } or nil, key))
    end
    if key then fail(part.path, "is not encrypted: dec_key must be nil") end
    if part.kind == "zip" then
      if mmap then fail(part.path, "is a .npz file, which cannot be mapped: mmap is for safetensors") end
      return ms.load(part.path)
    end
    local tensors, metadata = ms.load_safetensors(part.path, { names = part.names, mmap = mmap })
    for name, tensor in pairs(tensors) do values[name] = tensor end
    if not part.names then with_texts(values, metadata) end
  end
  return values
end

local function prefixes(where, name, given)
  if given == nil then return nil end
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" or #given == 0 then
    fail(where, ("%s must be a string or a list of them, got %s"):format(name, describe(given)))
  end
  for i, prefix in ipairs(given) do
    if type(prefix) ~= "string" or prefix == "" then
      fail(where, ("%s[%d] must be a string that is not empty, got %s"):format(name, i, describe(prefix)))
    end
  end
  return given
end

local function has_prefix(name, list)
  for _, prefix in ipairs(list) do
    if name:sub(1, #prefix) == prefix then return true end
  end
  return false
end

local load_signature = arguments.signature("ckpt_file_name, net=nil, strict_load=false, filter_prefix=nil, dec_key=nil, "
  .. "dec_mode=\"AES-GCM\", specify_prefix=nil, choice_func=nil, crc_check=nil, format=nil, mmap=false")

-- What the arguments of a call ask for: which files, and what becomes of what is in them.
local function request(where, ...)
  local a = arguments.bind(where, load_signature, ...)
  local path = path_of(where, "ckpt_file_name", a.ckpt_file_name)
  a.dec_key = check.optional_key(where, "dec_key", a.dec_key)
  check.choice(where, "dec_mode", a.dec_mode, modes)
  if a.format ~= nil then check.choice(where, "format", a.format, formats) end
  if a.crc_check ~= nil then check.boolean(where, "crc_check", a.crc_check) end
  check.boolean(where, "mmap", a.mmap)
  local wanted, unwanted = prefixes(where, "specify_prefix", a.specify_prefix), prefixes(where, "filter_prefix", a.filter_prefix)
  if a.choice_func ~= nil and not arguments.is_callable(a.choice_func) then
    fail(where, "choice_func must be a function, got " .. describe(a.choice_func))
  end
  if a.net ~= nil and not cells.is_cell(a.net) then fail(where, "net must be a cell, got " .. describe(a.net)) end
  local function chosen(values)
    local dictionary = {}
    for name, value in pairs(values) do
      if (not wanted or has_prefix(name, wanted)) and not (unwanted and has_prefix(name, unwanted))
        and (not a.choice_func or a.choice_func(name)) then
        -- A parameter that lies on several ranks has got its pieces already.
        dictionary[name] = (type(value) == "string" or ms.is_parameter(value)) and value or ms.Parameter(value, name)
      end
    end
    if next(dictionary) == nil then fail(path, "has no parameter whose name is wanted") end
    if a.net ~= nil then checkpoint.load_param_into_net(a.net, dictionary, a.strict_load) end
    return dictionary
  end
  return parts_of(path, a.format), chosen, a
end

--- Reads a checkpoint: a table of parameters by name, of the shapes and dtypes that are in the file; texts that were appended are
--- strings. A .ckpt or .safetensors file, or
--- the index (.index.json) of a model in several safetensors files, or their folder; or the folder of a sharded checkpoint (the
--- newest complete step) or a step in it, from whatever number of ranks: without net whole tensors come back. net: gets the parameters, as
--- load_param_into_net. specify_prefix, filter_prefix: only names that begin so, or not so. choice_func: a function of a name
--- that says whether it is read. dec_key: the key of an encrypted .ckpt file. crc_check: true demands a checksum, false does not compare
--- one. mmap: the tensors of a safetensors file stay in it until they are looked at; the file must not be made shorter meanwhile. A file
--- that is cut off or damaged is an error that names the offset.
---     > ms.save_checkpoint({ w = ms.ones({ 2, 3 }, ms.float16) }, "/tmp/lunaria_help.ckpt")
---     > w = ms.load_checkpoint("/tmp/lunaria_help.ckpt").w
---     > w.shape, w.dtype --> (2, 3)	Float16
---     > (os.remove("/tmp/lunaria_help.ckpt")) --> true
function checkpoint.load_checkpoint(...)
  local parts, chosen, a = request("load_checkpoint", ...)
  return chosen(read(parts, a.crc_check, a.mmap, a.net, a.dec_key))
end

-- A checkpoint that a thread reads.
local Loading = class.Object:extend("Loading")
function Loading:init(handle, chosen) self._handle, self._chosen = handle, chosen end

--- The parameters by name, as ms.load_checkpoint gives them; waits until they are read. What went wrong is an error here.
function Loading:result()
  if not self._dictionary then
    self._dictionary = self._chosen(with_texts(io_.finish_reading(self._handle)))
    self._handle, self._chosen = nil, nil
  end
  return self._dictionary
end

--- Whether the file is read.
function Loading:done() return self._dictionary ~= nil or io_.finish_reading(self._handle, true) end

--- Begins to read a checkpoint and returns at once; a thread reads it while the program goes on. The arguments are those of
--- ms.load_checkpoint, but for mmap. The result has two methods: result() waits and gives what ms.load_checkpoint gives (net
--- gets its parameters then), done() says whether there is nothing to wait for.
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, "/tmp/lunaria_help.ckpt")
---     > ms.load_checkpoint_async("/tmp/lunaria_help.ckpt"):result().w:tolist()[1] --> 1.0
---     > (os.remove("/tmp/lunaria_help.ckpt")) --> true
function checkpoint.load_checkpoint_async(...)
  local where = "load_checkpoint_async"
  local parts, chosen, a = request(where, ...)
  if a.mmap then fail(where, "a file that is mapped is not read: mmap must be false", "ms.load_checkpoint(path, { mmap = true })") end
  if a.dec_key then fail(where, "an encrypted file is read at once: dec_key must be nil", "ms.load_checkpoint(path, { dec_key = key })") end
  for _, part in ipairs(parts) do
    if part.kind == "shards" then
      fail(where, part.path .. " has files of ranks, which are read at once", "ms.load_checkpoint(path)")
    end
    part.crc_check = a.crc_check
  end
  return Loading(io_.read_later(parts), chosen)
end

-- The values for the names of a network. Where none but a prefix differs, the prefix is left out.
local function matched(own, dictionary)
  local missing, found = {}, {}
  for _, entry in ipairs(own) do
    local name = dictionary[entry.name] ~= nil and entry.name or entry.parameter.name
    if dictionary[name] ~= nil then found[entry] = name else missing[#missing + 1] = entry end
  end
  if #missing == 0 then return found, missing end
  local first = missing[1].name
  for other in pairs(dictionary) do
    local prefix = ends_with(other, "." .. first) and other:sub(1, #other - #first)
    if prefix then
      local all = true
      for _, entry in ipairs(missing) do all = all and dictionary[prefix .. entry.name] ~= nil end
      if all then
        for _, entry in ipairs(missing) do found[entry] = prefix .. entry.name end
        return found, {}
      end
    end
  end
  return found, missing
end

local function listed(names)
  local shown = table.concat(names, ", ", 1, math.min(#names, 8))
  return #names > 8 and ("%s and %d more"):format(shown, #names - 8) or shown
end

local floats = { Float16 = true, BFloat16 = true, Float32 = true, Float64 = true }

local function complaint(name, parameter, value, strict)
  if not ms.is_tensor(value) then return ("%s must be a tensor, got %s"):format(name, describe(value)) end
  if tostring(value.shape) ~= tostring(parameter.shape) then
    return ("%s has shape %s in the network and %s in the checkpoint"):format(name, tostring(parameter.shape), tostring(value.shape))
  end
  local own, other = tostring(parameter.dtype), tostring(value.dtype)
  if own ~= other and (strict or not (floats[own] and floats[other])) then
    return ("%s is %s in the network and %s in the checkpoint"):format(name, own, other)
  end
end

local into_options = { strict_load = "boolean", remove_redundancy = "boolean" }

--- Gives a network the parameters of a table by name, as load_checkpoint reads it: two lists of names come back, those of the
--- network that are not in the table and those of the table that are not in the network. A common prefix of the table's
--- names is left out where that makes them fit. Shapes must be the same. strict_load: all of the network's must be there, with the
--- same dtypes; else floats are converted to the parameter's dtype, which stays. Nothing is changed when something does not fit.
---     > local net = ms.nn.Dense(2, 1)
---     > #ms.load_param_into_net(ms.nn.Dense(2, 1), { weight = ms.ones { 1, 2 } }) --> 1
function checkpoint.load_param_into_net(net, parameter_dict, strict_load)
  local where, dictionary = "load_param_into_net", parameter_dict
  if not cells.is_cell(net) then fail(where, "net must be a cell, got " .. describe(net)) end
  if type(dictionary) ~= "table" or getmetatable(dictionary) ~= nil then
    fail(where, "parameter_dict must be a table of parameters by name, got " .. describe(dictionary), "ms.load_checkpoint(path) gives one")
  end
  for name in pairs(dictionary) do
    if type(name) ~= "string" then
      fail(where, "parameter_dict must have names as its keys, got " .. describe(name) .. " among them",
        "ms.load_checkpoint(path) gives such a table, net:parameters_dict() too")
    end
  end
  -- Options come after the table of parameters, which has names itself.
  if type(strict_load) == "table" then
    strict_load = arguments.options(where, strict_load, into_options, "{ strict_load = true }").strict_load
  end
  local strict = check.boolean(where, "strict_load", strict_load or false)
  local own = {}
  for name, parameter in net:parameters_and_names() do own[#own + 1] = { name = name, parameter = parameter } end
  local found, missing = matched(own, dictionary)
  if #own > 0 and next(dictionary) ~= nil and next(found) == nil then
    local names = {}
    for i, entry in ipairs(own) do names[i] = entry.name end
    fail(where, ("no parameter of the network has a name of the checkpoint: the network has %s; the checkpoint %s"):format(
      listed(names), listed(sorted_names(dictionary))),
      ("the first names differ: a table with names of the network's is loaded, such as { [\"%s\"] = dict.%s }"):format(
        names[1], sorted_names(dictionary)[1]))
  end
  local used, wrong = {}, {}
  for _, entry in ipairs(own) do
    local name = found[entry]
    if name then
      used[name] = true
      wrong[#wrong + 1] = complaint(entry.name, entry.parameter, dictionary[name], strict)
    end
  end
  if #wrong > 0 then
    fail(where, #wrong == 1 and wrong[1] or ("%s; and %d more do not fit"):format(wrong[1], #wrong - 1))
  end
  local not_loaded, left = {}, {}
  for i, entry in ipairs(missing) do not_loaded[i] = entry.name end
  for _, name in ipairs(sorted_names(dictionary)) do
    if not used[name] and ms.is_tensor(dictionary[name]) then left[#left + 1] = tostring(name) end
  end
  if strict and #not_loaded > 0 then
    fail(where, ("the checkpoint has no %s"):format(listed(not_loaded)), #left > 0 and "it has " .. listed(left) or nil)
  end
  for _, entry in ipairs(own) do
    if found[entry] then
      local value = dictionary[found[entry]]
      if value.dtype ~= entry.parameter.dtype then value = value:astype(entry.parameter.dtype) end
      if entry.parameter.device == "Shapes" then
        devices.fill(entry.parameter, value)
      elseif not rawequal(value, entry.parameter) then
        entry.parameter:assign(value)
      end
    end
  end
  return not_loaded, left
end

-- The network's name of a name in a file, or nil where it is to be left out.
local function renamed(where, name, rename)
  if type(rename) == "function" then
    local own = rename(name)
    if own == nil or own == false then return nil end
    if type(own) ~= "string" then fail(where, ("rename must give a name, or nil to leave %s out, got %s"):format(name, describe(own))) end
    return own
  end
  for i, rule in ipairs(rename) do
    if type(rule) ~= "table" or type(rule[1]) ~= "string" or rule[2] == nil then
      fail(where, ("rename[%d] must be { pattern, what it becomes }, got %s"):format(i, describe(rule)),
        'patterns are those of string.gsub, such as { "^module%%.", "" }; false leaves the name out')
    end
    if name:find(rule[1]) then
      if not rule[2] then return nil end
      name = name:gsub(rule[1], rule[2])
    end
  end
  return name
end

local weights_options = { rename = function(v) return type(v) == "function" or type(v) == "table", "a list of rules or a function" end,
  strict_load = "boolean", filter_prefix = "string", specify_prefix = "string" }

--- Gives a network the weights of a file, of an index of several or of their folder (see ms.load_checkpoint), or of a table by name.
--- rename: how names of the file become the network's: a list of rules { pattern, what it becomes }, which are applied one after the
--- other, as string.gsub does, and where false leaves the name out; or a function of a name that gives the network's, or nil.
--- strict_load: all of the network's parameters must be there, with the same dtypes; specify_prefix, filter_prefix: only names that
--- begin so, or not so. Two lists of names come back, as from ms.load_param_into_net: of the network's parameters without a value, and
--- of what the network has no place for.
--- - net (cell): the network
--- - file (string or table): a path, or tensors by name
--- - options (table): rename, strict_load, specify_prefix, filter_prefix
---     > ms.save_checkpoint({ ["fc.kernel"] = ms.ones { 1, 2 }, ["fc.bias"] = ms.zeros { 1 } }, "/tmp/lunaria_help.ckpt")
---     > net = ms.nn.Dense(2, 1)
---     > #ms.load_weights(net, "/tmp/lunaria_help.ckpt", { rename = { { "^fc%.", "" }, { "^kernel$", "weight" } } }) --> 0
---     > net(ms.ones { 1, 2 }):item() --> 2.0
---     > (os.remove("/tmp/lunaria_help.ckpt")) --> true
function checkpoint.load_weights(net, file, options)
  local where = "load_weights"
  if not cells.is_cell(net) then fail(where, "net must be a cell, got " .. describe(net)) end
  options = arguments.options(where, options, weights_options, '{ rename = { { "^module%%.", "" } } }')
  local given = file
  if type(file) == "string" then
    given = checkpoint.load_checkpoint(file, { filter_prefix = options.filter_prefix, specify_prefix = options.specify_prefix })
  elseif type(file) ~= "table" or getmetatable(file) ~= nil then
    fail(where, "file must be a path or a table of tensors by name, got " .. describe(file))
  end
  local values, of = {}, {}
  for _, name in ipairs(sorted_names(given)) do
    local own = renamed(where, name, options.rename or {})
    if own and values[own] ~= nil then fail(where, ("%s and %s both become %s"):format(of[own], name, own)) end
    if own then values[own], of[own] = given[name], name end
  end
  return checkpoint.load_param_into_net(net, values, options.strict_load)
end

-- Converts a file, or all files of a folder, from one format to the other.
local function convert(where, from, to, file_path, save_path)
  path_of(where, "file_path", file_path)
  local list, folder = io_.list_folder(file_path), file_path .. "/"
  if not list then
    folder, list = file_path:match("^(.*/)[^/]*$") or "", { file_path:match("[^/]*$") }
  end
  local target = save_path ~= nil and path_of(where, "save_path", save_path) .. "/" or folder
  if save_path ~= nil then io_.make_folder(save_path) end
  local written = {}
  for _, name in ipairs(list) do
    if ends_with(name, "." .. from) then
      local values = read(parts_of(folder .. name, from))
      local out = target .. name:sub(1, -#from - 1) .. to
      write(out, to, values, sorted_names(values), false)
      written[#written + 1] = out
    end
  end
  if #written == 0 then fail(where, ("there is no .%s file at %s"):format(from, file_path)) end
  return written
end

--- Writes .ckpt files, one or all of a folder, as safetensors, beside them or to the folder save_path: the same names, shapes,
--- dtypes and elements. Gives a list of the files.
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, "/tmp/lunaria_help.ckpt")
---     > ms.ckpt_to_safetensors("/tmp/lunaria_help.ckpt")[1] --> /tmp/lunaria_help.safetensors
---     > os.remove("/tmp/lunaria_help.ckpt") and os.remove("/tmp/lunaria_help.safetensors") --> true
function checkpoint.ckpt_to_safetensors(file_path, save_path)
  return convert("ckpt_to_safetensors", "ckpt", "safetensors", file_path, save_path)
end

--- Writes .safetensors files, one or all of a folder, as .ckpt, beside them or to the folder save_path: the same names, shapes,
--- dtypes and elements. Gives a list of the files.
---     > ms.save_safetensors("/tmp/lunaria_help.safetensors", { w = ms.ones { 2 } })
---     > ms.safetensors_to_ckpt("/tmp/lunaria_help.safetensors")[1] --> /tmp/lunaria_help.ckpt
---     > os.remove("/tmp/lunaria_help.ckpt") and os.remove("/tmp/lunaria_help.safetensors") --> true
function checkpoint.safetensors_to_ckpt(file_path, save_path)
  return convert("safetensors_to_ckpt", "safetensors", "ckpt", file_path, save_path)
end

return checkpoint
