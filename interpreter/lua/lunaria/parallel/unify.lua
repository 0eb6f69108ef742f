-- MindSpore's functions that make one set of weights of the files of many ranks, and load that into a network: unified_safetensors
-- and load_distributed_checkpoint.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local shards = require "lunaria.shards"
local folders = require "lunaria.parallel.rank_folders"
local sharded = require "lunaria.parallel.checkpoint"

local io_, json = ms.io, ms.json
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local unify = {}

local function sorted(list, compare)
  table.sort(list, compare)
  return list
end

local function own_rank() return sharded.place().rank end

-- A file of weights has at most so many bytes, roughly.
local largest_part = 3 << 30

-- What choice_func makes of a name: another, or nil where the parameter is left out.
local function chosen(where, choice_func, name)
  if choice_func == nil then return name end
  local choice = choice_func(name)
  if type(choice) == "string" then return choice end
  if type(choice) ~= "boolean" then fail(where, "choice_func must give a string, true or false, got " .. describe(choice)) end
  return choice and name or nil
end

-- The names in `parts` lists, so that the sums of their bytes are about equal.
local function divided(bytes, parts)
  local names, lists, sums = {}, {}, {}
  for name in pairs(bytes) do names[#names + 1] = name end
  sorted(names, function(a, b)
    if bytes[a] ~= bytes[b] then return bytes[a] > bytes[b] end
    return a < b
  end)
  for i = 1, parts do lists[i], sums[i] = {}, 0 end
  for _, name in ipairs(names) do
    local least = 1
    for i = 2, parts do
      if sums[i] < sums[least] then least = i end
    end
    table.insert(lists[least], name)
    sums[least] = sums[least] + bytes[name]
  end
  return lists
end

-- Which of the lists the subtask { number, of so many } has.
local function subtask(where, given, count)
  if given == nil or type(given) == "table" and next(given) == nil then return 1, count, 1 end
  local is_pair = type(given) == "table" and math.type(given[1]) == "integer" and math.type(given[2]) == "integer"
  if not is_pair or given[1] < 1 or given[1] > given[2] then
    fail(where, "split_dst_file must be { number, of so many }, got " .. describe(given))
  end
  local each, more = count // given[2], count % given[2]
  local first = each * (given[1] - 1) + math.min(given[1] - 1, more)
  return first + 1, first + each + (given[1] <= more and 1 or 0), given[1]
end

local function size_in_bytes(tensor, shape)
  local bytes = tensor.size == 0 and 0 or tensor.nbytes // tensor.size
  for _, size in ipairs(shape) do bytes = bytes * size end
  return bytes
end

local unified_signature = arguments.signature("src_dir, src_strategy_file, dst_dir, merge_with_redundancy=true, file_suffix=nil, "
  .. "max_process_num=64, choice_func=nil, split_dst_file=nil")

--- Puts the safetensors files of the ranks of a training, src_dir/rank_N/*.safetensors, together: dst_dir gets part0.safetensors and so on
--- of about 3 GiB, param_name_map.json, which says what is where, and hyper_param.safetensors with what the strategy file does not
--- name. file_suffix: the ending of the files that are meant, without .safetensors. merge_with_redundancy: false where a tensor may be
--- missing in the files of ranks that share it with others; both are read the same way. choice_func: of a name gives true, false (left out)
--- or another name. split_dst_file = { 1, 2 }: writes the first half of the files. max_process_num: at most so many processes; one is used.
---     > (pcall(ms.unified_safetensors, "/no/such/folder", "/no/such/strategy.ckpt", "/tmp/lunaria_help_unified")) --> false
function unify.unified_safetensors(...)
  local where = "unified_safetensors"
  local a = arguments.bind(where, unified_signature, ...)
  for _, name in ipairs { "src_dir", "src_strategy_file", "dst_dir" } do
    if type(a[name]) ~= "string" or a[name] == "" then fail(where, ("%s must be a path, got %s"):format(name, describe(a[name]))) end
  end
  check.boolean(where, "merge_with_redundancy", a.merge_with_redundancy)
  check.positive(where, "max_process_num", a.max_process_num)
  if a.choice_func ~= nil and not arguments.is_callable(a.choice_func) then
    fail(where, "choice_func must be a function, got " .. describe(a.choice_func))
  end
  local files, ending = folders.files_of_ranks(where, a.src_dir, a.file_suffix)
  for rank, path in pairs(files) do files[rank] = folders.opened(path) end
  local source = folders.source_of(where, folders.layouts_of(where, a.src_strategy_file), files)
  if ending ~= ".safetensors" then fail(where, ("%s has .ckpt files"):format(a.src_dir), "ms.transform_checkpoints reads those") end
  local bytes, hyper, total = {}, {}, 0
  for _, name in ipairs(source.names) do
    if not source:is_cut(name) then
      hyper[#hyper + 1] = name
    elseif not name:find "^accu_grads" and chosen(where, a.choice_func, name) then
      local tensor, whole = source:whole_shape(name)
      bytes[name] = size_in_bytes(tensor, whole)
      total = total + bytes[name]
    end
  end
  if next(bytes) == nil then
    fail(where, ("the files in %s have none of the parameters that the strategy file names"):format(a.src_dir))
  end
  local count = 0
  for _ in pairs(bytes) do count = count + 1 end
  local lists = divided(bytes, math.max(1, math.min((total + largest_part - 1) // largest_part, count)))
  local first, last, number = subtask(where, a.split_dst_file, #lists)
  io_.make_folder(a.dst_dir)
  if number == 1 then
    local map = {}
    for i, names in ipairs(lists) do
      for _, name in ipairs(names) do map[chosen(where, a.choice_func, name)] = ("part%d.safetensors"):format(i - 1) end
    end
    local draft <close> = io_.draft(a.dst_dir .. "/param_name_map.json")
    local file <close> = assert(io.open(draft.path, "w"))
    file:write(json.encode { metadata = { total_size = total }, weight_map = map })
    file:close()
    draft:commit()
    local values = {}
    for _, name in ipairs(hyper) do values[name] = source:read(name) end
    if next(values) then ms.save_safetensors(a.dst_dir .. "/hyper_param.safetensors", values, { metadata = { format = "ms" } }) end
  end
  for i = first, last do
    local values = {}
    for _, name in ipairs(lists[i]) do values[chosen(where, a.choice_func, name)] = source:read(name) end
    ms.save_safetensors(("%s/part%d.safetensors"):format(a.dst_dir, i - 1), values, { metadata = { format = "ms" } })
  end
end

-- Where in a folder of unified files each parameter is: a function of a name that gives its tensor, and the names.
local function unified(where, folder, name_map)
  local entries = io_.list_folder(folder)
  if not entries then fail(where, ("unified_safetensors_dir %s is no folder"):format(folder)) end
  local files, has_map, hyper = {}, false, false
  for _, name in ipairs(entries) do
    if name == "param_name_map.json" then
      has_map = true
    elseif name == "hyper_param.safetensors" then
      hyper = true
    elseif name:find "%.safetensors$" then
      files[#files + 1] = name
    end
  end
  if #files == 0 then fail(where, ("%s has no .safetensors files"):format(folder)) end
  local place, handles = {}, {}
  local function handle(name)
    handles[name] = handles[name] or shards.open(folder .. "/" .. name)
    return handles[name]
  end
  if #files == 1 or not has_map then
    if #files > 1 then fail(where, ("%s has several files, but no param_name_map.json"):format(folder)) end
    for _, name in ipairs(shards.names(handle(files[1]))) do place[name] = files[1] end
  else
    local ok, map = pcall(json.decode, io_.read_text(folder .. "/param_name_map.json"))
    map = ok and type(map) == "table" and (map.weight_map or map)
    if type(map) ~= "table" then fail(where, ("%s/param_name_map.json does not say where weights are"):format(folder)) end
    for name, file in pairs(map) do
      if type(file) ~= "string" or file:find "/" then
        fail(where, ("param_name_map.json says that %s is in %s"):format(tostring(name), describe(file)))
      end
      place[name] = file
    end
  end
  local function find(name)
    local other = name_map and name_map[name] or name
    local file = place[other] or place[name]
    if not file or not shards.tensor(handle(file), other) then return nil end
    return handle(file), other
  end
  local names = {}
  local back = {}
  for name, other in pairs(name_map or {}) do back[other] = name end
  for name in pairs(place) do names[#names + 1] = back[name] or name end
  local others = {}
  if hyper then
    local file = handle "hyper_param.safetensors"
    for _, name in ipairs(shards.names(file)) do others[name] = shards.read(file, name) end
  end
  return find, sorted(names), others
end

-- What a rank has of unified files by a strategy; without one: all.
local function part_of_unified(where, a, rank)
  local find, names, others = unified(where, a.unified_safetensors_dir, a.name_map)
  local values = {}
  local plan = folders.plan(where, nil, a.predict_strategy, rank)
  for _, name in ipairs(plan.to and plan.to.names or names) do
    local handle, other = find(name)
    if handle and not plan:is_elsewhere(name) then
      local offsets, sizes = folders.region(plan, name, shards.tensor(handle, other).shape)
      values[name] = shards.read(handle, other, offsets, sizes)
    end
  end
  for name, value in pairs(others) do values[name] = value end
  return values
end

local function from_unified(where, a)
  for _, name in ipairs { "checkpoint_filenames", "train_strategy_filename", "dec_key" } do
    if a[name] ~= nil then fail(where, name .. " must be nil where format is \"safetensors\"") end
  end
  if a.strict_load then fail(where, "strict_load must be false where format is \"safetensors\"") end
  if type(a.unified_safetensors_dir) ~= "string" then
    fail(where, "unified_safetensors_dir must be a folder where format is \"safetensors\", got " .. describe(a.unified_safetensors_dir))
  end
  if a.name_map ~= nil and type(a.name_map) ~= "table" then
    fail(where, "name_map must be a table of names by name, got " .. describe(a.name_map))
  end
  if a.network ~= nil then
    local values = part_of_unified(where, a, own_rank())
    if a.return_param_dict then
      for name, value in pairs(values) do values[name] = ms.Parameter(value, name) end
      return values
    end
    return ms.load_param_into_net(a.network, values)
  end
  if type(a.dst_safetensors_dir) ~= "string" then
    fail(where, "dst_safetensors_dir must be a folder where network is nil, got " .. describe(a.dst_safetensors_dir))
  end
  local first, last = a.rank_id, a.rank_id
  if first == nil then first, last = 0, folders.ranks_of(where, a.predict_strategy) - 1 end
  for rank = first, last do
    local folder = ("%s/rank_%d"):format(a.dst_safetensors_dir, rank)
    io_.make_folder(folder)
    ms.save_checkpoint(part_of_unified(where, a, rank), folder .. "/net." .. a.output_format)
  end
  return true
end

local load_signature = arguments.signature("network=nil, checkpoint_filenames=nil, predict_strategy=nil, train_strategy_filename=nil, "
  .. "strict_load=false, dec_key=nil, dec_mode=\"AES-GCM\", format=\"ckpt\", unified_safetensors_dir=nil, dst_safetensors_dir=nil, "
  .. "rank_id=nil, "
  .. "output_format=\"safetensors\", name_map=nil, max_process_num=64, return_param_dict=false")

--- Gives a network the parameters of a training on many ranks. format "ckpt": checkpoint_filenames are the files of the ranks, in
--- order, train_strategy_filename says how they were cut, and predict_strategy, a strategy file or a table of layouts by name, how
--- they are cut now (nil: on one rank). format "safetensors": unified_safetensors_dir is what ms.unified_safetensors wrote,
--- predict_strategy a strategy file or nil. network = nil writes what each rank needs, or the rank rank_id, to
--- dst_safetensors_dir/rank_N/net.safetensors (or .ckpt by output_format) instead. name_map: other names in the files, by those
--- of the network. return_param_dict: gives the parameters by name instead of loading them. max_process_num: at most so many
--- processes; one is used.
---     > net = ms.nn.Dense(2, 1)
---     > ok, message = pcall(ms.load_distributed_checkpoint, net, {}, { train_strategy_filename = "/no/such/file.ckpt" })
---     > ok --> false
function unify.load_distributed_checkpoint(...)
  local where = "load_distributed_checkpoint"
  local a = arguments.bind(where, load_signature, ...)
  check.choice(where, "format", a.format, { "ckpt", "safetensors" })
  check.choice(where, "output_format", a.output_format, { "ckpt", "safetensors" })
  check.positive(where, "max_process_num", a.max_process_num)
  check.boolean(where, "strict_load", a.strict_load)
  check.boolean(where, "return_param_dict", a.return_param_dict)
  if a.dec_key ~= nil then fail(where, "encrypted checkpoints are not read: dec_key must be nil") end
  if a.network ~= nil and not cells.is_cell(a.network) then fail(where, "network must be a cell, got " .. describe(a.network)) end
  if a.format == "safetensors" then return from_unified(where, a) end
  if a.network == nil then fail(where, "network must be a cell where format is \"ckpt\"") end
  if type(a.checkpoint_filenames) ~= "table" then
    fail(where, "checkpoint_filenames must be a list of files, in the order of the ranks, got " .. describe(a.checkpoint_filenames))
  end
  if a.train_strategy_filename == nil then fail(where, "train_strategy_filename says how the files were cut: it is missing") end
  local from, files = folders.layouts_of(where, a.train_strategy_filename), {}
  if #a.checkpoint_filenames ~= from.ranks then
    fail(where, ("checkpoint_filenames must have a file of each of the %d ranks, got %d"):format(from.ranks, #a.checkpoint_filenames))
  end
  for i, path in ipairs(a.checkpoint_filenames) do files[i - 1] = folders.opened(path) end
  local source = folders.source_of(where, from, files)
  local plan = folders.plan(where, a.train_strategy_filename, a.predict_strategy, own_rank())
  local values = {}
  for _, name in ipairs(source.names) do
    if not plan:is_elsewhere(name) then values[name] = source:read(name, plan) end
  end
  if a.return_param_dict then
    for name, value in pairs(values) do values[name] = ms.Parameter(value, name) end
    return values
  end
  ms.load_param_into_net(a.network, values, a.strict_load)
  return true
end

return unify
