-- Checkpoints of MindSpore's trainings on many ranks, a folder rank_N for each: what each rank has of each parameter by a strategy file,
-- and what a rank of another training needs of them. Of a rank's safetensors file only the tensors that are needed are read;
-- elements are copied, never computed with.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local shards = require "lunaria.shards"
local strategies = require "lunaria.parallel.strategy_files"

local io_ = ms.io
local fail = arguments.fail

local folders = {}

local function sorted(list, compare)
  table.sort(list, compare)
  return list
end

-- A layout in a table: as strategy files have it, or MindSpore's list of its first fields.
local function layout_of(where, name, value)
  if type(value) ~= "table" then fail(where, ("the strategy has for %s no layout, but %s"):format(name, arguments.describe(value))) end
  if value.dev_matrix then return value end
  local keys = { "dev_matrix", "tensor_map", "param_split_shape", "field", "opt_weight_shard_step", "opt_weight_shard_size" }
  local layout = {}
  for i, key in ipairs(keys) do layout[key] = value[i] end
  return layout
end

-- The layouts of a strategy: a file's name, a table by parameter, or nil for one rank. Gives { names =, by = }, where a layout has
-- also the stages of the pipeline that its parameter is in.
local function layouts_of(where, strategy, stage)
  if strategy == nil then return nil end
  local list = {}
  if type(strategy) == "table" then
    for name, value in pairs(strategy) do
      list[#list + 1] = { name = name, layout = strategies.checked(where, name, layout_of(where, name, value)) }
    end
    sorted(list, function(a, b) return a.name < b.name end)
  else
    list = strategies.read(where, strategy).layouts
  end
  if #list == 0 then fail(where, ("the strategy file %s has no layouts"):format(tostring(strategy))) end
  local result = { names = {}, by = {} }
  for _, item in ipairs(list) do
    -- A merged file has the stage in front of the name.
    local number, name = item.name:match "^(%d+)%-(.+)$"
    number, name = math.tointeger(tonumber(number or 0)), name or item.name
    local known = result.by[name]
    if not known then
      result.names[#result.names + 1] = name
      result.by[name] = { layout = item.layout, stages = { [number] = true }, stage = number }
    else
      known.stages[number] = true
      if number == stage or known.stage ~= stage and number < known.stage then known.layout, known.stage = item.layout, number end
    end
  end
  result.ranks = strategies.ranks_of(result.by[result.names[1]].layout)
  return result
end

local function ranks_in_stage(layouts) return layouts and layouts.ranks or 1 end

local function stages_of(where, layouts)
  local there, count = {}, 0
  for _, name in ipairs(layouts and layouts.names or {}) do
    for stage in pairs(layouts.by[name].stages) do
      if not there[stage] then there[stage], count = true, count + 1 end
    end
  end
  for stage = 0, count - 1 do
    if not there[stage] then fail(where, ("the strategy file for pipeline parallel has no stage %d of %d"):format(stage, count)) end
  end
  return math.max(count, 1)
end

-- Whether the layouts have a parameter for the stage of a rank of theirs.
local function is_in_stage(layouts, name, rank)
  local known = layouts.by[name]
  return known ~= nil and known.stages[rank // layouts.ranks] == true
end

-- From and to what a checkpoint goes, for one of its ranks: the layout of a parameter in both, and whether the rank has it.
local Plan = {}
Plan.__index = Plan

local function plan_of(where, src, dst, rank)
  local to = layouts_of(where, dst)
  local stage = to and rank // to.ranks
  return setmetatable({ where = where, rank = rank, from = layouts_of(where, src), to = to and layouts_of(where, dst, stage) }, Plan)
end

-- A parameter of another stage of the pipeline.
function Plan:is_elsewhere(name)
  local to = self.to
  return to ~= nil and to.by[name] ~= nil and not is_in_stage(to, name, self.rank)
end
-- The layouts of a parameter; nil where it is copied as it is.
function Plan:layouts(name)
  local from, to = self.from and self.from.by[name], self.to and self.to.by[name]
  if self.from and not from or self.to and not to then return nil end
  return from and from.layout, to and to.layout, true
end
function Plan:local_rank() return self.rank % ranks_in_stage(self.to) end

local function ones(count)
  local list = {}
  for i = 1, count do list[i] = 1 end
  return list
end

-- What the rank of a layout wants of a tensor, as { offset, size } of each axis.
local function wanted(where, name, whole, layout, rank)
  local parts = layout and strategies.parts_of(layout, #whole) or ones(#whole)
  local piece = layout and strategies.piece_of(layout, #whole, rank)
  local region = {}
  for axis, size in ipairs(whole) do
    if size % parts[axis] ~= 0 then
      fail(where, ("axis %d of %s has %d elements, which cannot be cut into %d equal pieces"):format(axis - 1, name, size, parts[axis]))
    end
    region[axis] = { (piece and piece[axis] or 0) * (size // parts[axis]), size // parts[axis] }
  end
  return region
end

-- Calls found(piece, region of the piece) for the pieces of a tensor that meet a region, in the order of a nested list.
local function each_piece(sizes, region, found, piece, places)
  piece, places = piece or {}, places or {}
  local axis = #piece + 1
  if axis > #region then return found({ table.unpack(piece) }, { table.unpack(places) }) end
  local begin, stop = region[axis][1], region[axis][1] + region[axis][2]
  local list = {}
  for number = begin // sizes[axis], (stop - 1) // sizes[axis] do
    local first = math.max(begin, number * sizes[axis])
    piece[axis], places[axis] = number, { first - number * sizes[axis], math.min(stop, (number + 1) * sizes[axis]) - first }
    list[#list + 1] = each_piece(sizes, region, found, piece, places)
  end
  piece[axis], places[axis] = nil, nil
  if #list == 1 or type(list[1]) ~= "userdata" then return list[1] end
  return ms.ops.concat(list, axis - 1)
end

-- A tensor for the plan's rank. read(rank): what a rank of the source has of it, or nil.
local function transformed(plan, name, read)
  local from, to, is_cut = plan:layouts(name)
  local rank = plan:local_rank()
  local devices = ranks_in_stage(plan.from)
  local own = read(rank % devices)
  for other = 0, devices - 1 do own = own or read(other) end
  if not own then fail(plan.where, ("none of the files of the ranks has %s"):format(name)) end
  if not is_cut then return own end
  local axes = #own.shape
  local parts = from and strategies.parts_of(from, axes) or ones(axes)
  local sizes, whole = {}, {}
  for axis = 1, axes do sizes[axis], whole[axis] = own.shape[axis], own.shape[axis] * parts[axis] end
  if own.size == 0 then return own end
  return each_piece(sizes, wanted(plan.where, name, whole, to, rank), function(piece, places)
    local ranks, tensor = from and strategies.holders_of(from, piece, rank) or { 0 }, nil
    for _, holder in ipairs(ranks) do
      tensor = read(holder)
      if tensor then break end
    end
    if not tensor then
      fail(plan.where, ("the checkpoint of rank %d is missing: it has the piece (%s) of %s"):format(ranks[1] or 0,
        table.concat(piece, ", "), name))
    end
    for axis, place in ipairs(places) do
      if tensor.shape[axis] ~= sizes[axis] then
        fail(plan.where, ("%s has shape %s in the file of one rank and %s in that of another"):format(name, tostring(own.shape),
          tostring(tensor.shape)))
      end
      if place[2] ~= sizes[axis] then tensor = tensor:narrow(axis - 1, place[1], place[2]) end
    end
    return tensor
  end)
end

-- The local ranks of the source that a rank needs.
local function needed_ranks(plan)
  local ranks = {}
  for _, name in ipairs(plan.from.names) do
    local from, to, is_cut = plan:layouts(name)
    if is_cut and not plan:is_elsewhere(name) then
      local axes = #from.tensor_map
      local parts, others = strategies.parts_of(from, axes), to and strategies.parts_of(to, axes) or ones(axes)
      -- A tensor that both can cut.
      local sizes, whole = {}, {}
      for axis = 1, axes do sizes[axis], whole[axis] = others[axis], others[axis] * parts[axis] end
      each_piece(sizes, wanted(plan.where, name, whole, to, plan:local_rank()), function(piece)
        local holder = strategies.holders_of(from, piece, plan:local_rank())[1]
        if holder then ranks[holder] = true end
      end)
    end
  end
  return ranks
end

local function rank_list(where, rank, src, dst)
  if src == nil then return { 0 } end
  local plan = plan_of(where, src, dst, rank)
  local result, there = {}, {}
  local ranks = needed_ranks(plan)
  for _, name in ipairs(plan.from.names) do
    if not plan:is_elsewhere(name) then
      for stage in pairs(plan.from.by[name].stages) do
        for holder in pairs(ranks) do there[stage * plan.from.ranks + holder] = true end
      end
    end
  end
  for number in pairs(there) do result[#result + 1] = number end
  return sorted(result, function(a, b) return a > b end)
end

-- A rank's file: the names in it, and what it has under a name.
local function opened(path)
  local values, names
  if path:sub(-12) == ".safetensors" then
    local handle = shards.open(path)
    names = shards.names(handle)
    return { path = path, names = names, read = function(name)
      local tensor = shards.tensor(handle, name)
      return tensor and shards.read(handle, name)
    end }
  end
  values, names = io_.read_ckpt(path)
  return { path = path, names = names, read = function(name) return values[name] end }
end

-- The last two numbers in a name, by which newer files are told from older ones.
local function last_numbers(name)
  local before, last = -1, -1
  for digits in name:gmatch "%d+" do before, last = last, tonumber(digits) end
  return before, last
end

-- The files of the ranks in a folder, by rank, and their ending: of several of a rank the last by name (.ckpt) or by the last two
-- numbers in it (.safetensors).
local function files_of_ranks(where, folder, suffix)
  local entries = io_.list_folder(folder)
  if not entries then fail(where, ("%s is no folder"):format(folder)) end
  local files, ending = {}, nil
  for _, entry in ipairs(entries) do
    local rank = math.tointeger(tonumber(entry:match "^rank_(%d+)$"))
    for _, name in ipairs(rank and io_.list_folder(folder .. "/" .. entry) or {}) do
      local own = name:match "%.ckpt$" or name:match "%.safetensors$"
      if own and (not suffix or name:sub(-#suffix - #own) == suffix .. own) then
        if ending and ending ~= own then fail(where, ("%s has both .ckpt and .safetensors files"):format(folder)) end
        ending = own
        local known = files[rank]
        local a, b = last_numbers(name)
        local c, d = last_numbers(known or "")
        local newer = known and own == ".safetensors" and (a > c or a == c and b >= d) or known and own == ".ckpt" and name > known
        if not known or newer then files[rank] = name end
      end
    end
  end
  if not ending then fail(where, ("%s has no checkpoints in folders rank_0, rank_1, ..."):format(folder)) end
  for rank, name in pairs(files) do files[rank] = ("%s/rank_%d/%s"):format(folder, rank, name) end
  return files, ending
end

-- Files that were opened lately; .ckpt files are in memory whole.
local function file_cache(files)
  local cache = {}
  return function(ranks)
    local list, kept = {}, {}
    for _, rank in ipairs(ranks) do kept[rank] = true end
    for rank in pairs(cache) do
      if not kept[rank] then cache[rank] = nil end
    end
    for _, rank in ipairs(ranks) do
      cache[rank] = cache[rank] or opened(files[rank])
      list[rank] = cache[rank]
    end
    return list
  end
end

local Source = {}
Source.__index = Source

-- The files of ranks, opened, by rank, and the layouts of their training (nil: of one rank).
local function source_of(where, from, files)
  local self = setmetatable({ where = where, from = from, names = {}, _by_rank = {} }, Source)
  local ranks, seen = {}, {}
  for rank in pairs(files) do ranks[#ranks + 1] = rank end
  for _, rank in ipairs(sorted(ranks)) do
    local own = rank % ranks_in_stage(from)
    self._by_rank[own] = self._by_rank[own] or {}
    table.insert(self._by_rank[own], files[rank])
    for _, name in ipairs(files[rank].names) do
      if not seen[name] then seen[name], self.names[#self.names + 1] = true, name end
    end
  end
  return self
end
folders.source_of = source_of

-- What a rank has under a name.
local function has(self, name)
  return function(rank)
    for _, file in ipairs(self._by_rank[rank] or {}) do
      local found = file.read(name)
      if found ~= nil then return found end
    end
  end
end

--- A tensor as the rank of a plan has it; without one: whole.
function Source:read(name, plan)
  return transformed(plan or setmetatable({ where = self.where, rank = 0, from = self.from }, Plan), name, has(self, name))
end
--- Whether the strategy says how a parameter is cut.
function Source:is_cut(name) return self.from == nil or self.from.by[name] ~= nil end
--- A piece of a tensor, and the sizes of all of it.
function Source:whole_shape(name)
  local piece
  for rank = 0, ranks_in_stage(self.from) - 1 do piece = piece or has(self, name)(rank) end
  local known, sizes = self.from and self.from.by[name], {}
  local parts = known and strategies.parts_of(known.layout, #piece.shape) or ones(#piece.shape)
  for axis = 1, #piece.shape do sizes[axis] = piece.shape[axis] * parts[axis] end
  return piece, sizes
end

--- Where in a whole tensor the piece of the plan's rank begins, and its sizes.
function folders.region(plan, name, shape)
  local to, whole = plan.to and plan.to.by[name], {}
  for axis = 1, #shape do whole[axis] = shape[axis] end
  local offsets, sizes = {}, {}
  for axis, place in ipairs(wanted(plan.where, name, whole, to and to.layout, plan:local_rank())) do
    offsets[axis], sizes[axis] = place[1], place[2]
  end
  return offsets, sizes
end

folders.layouts_of, folders.stages_of, folders.plan, folders.rank_list = layouts_of, stages_of, plan_of, rank_list
folders.opened, folders.files_of_ranks, folders.file_cache = opened, files_of_ranks, file_cache

--- The number of ranks of a strategy, of all stages.
function folders.ranks_of(where, strategy)
  local layouts = layouts_of(where, strategy)
  return ranks_in_stage(layouts) * stages_of(where, layouts)
end

return folders
