-- MindSpore's strategy files, which say how the parameters of a training are cut: messages of Protocol Buffers, or JSON where the
-- name ends in .json. A layout is { dev_matrix =, tensor_map =, param_split_shape =, indices_offset =, field =,
-- opt_weight_shard_step =, opt_weight_shard_size = }, as the files have it: dev_matrix is the mesh, major to minor; tensor_map has
-- for each axis of a parameter the axis of the mesh that cuts it, counted from the last one, -1 for none, or a list of them. Where
-- the optimizer's states are cut (opt_weight_shard_size), axis 0 of each piece is cut again, along what replicates it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local messages = require "lunaria.train.messages"

local io_, json = ms.io, ms.json
local fail, describe = arguments.fail, arguments.describe

local strategies = {}

local Dims = { { "dim", 1, { "integer" } } }
local Layouts = {
  { "dev_matrix", 1, { Dims } }, { "tensor_map", 2, { Dims } }, { "param_split_shape", 3, { Dims } }, { "indices_offset", 4, { Dims } },
  { "field", 5, "integer" }, { "opt_weight_shard_step", 6, "integer" }, { "opt_weight_shard_size", 7, "integer" },
}
local Strategys = { { "stage", 1, "integer" }, { "parallel_strategy", 2, { Dims } } }
local Map = {
  { "current_stage", 1, "integer" },
  { "parallel_strategy_item", 2, { { { "node_name", 1, "string" }, { "parallel_strategys", 2, Strategys } } } },
  { "parallel_layout_item", 3, { { { "param_name", 1, "string" }, { "parallel_layouts", 2, Layouts } } } },
}
local GroupMap = {
  { "parallel_group_item", 1, { { { "group_name", 1, "string" }, { "parallel_group_ranks", 2, Dims } } } },
  { "ckpt_restore_rank_list", 2, Dims },
}

local most = 1 << 28  -- bytes of a file

local function is_json(path) return path:sub(-5) == ".json" end

-- 32-bit numbers of older writers, whose sign is not extended.
local function signed(number)
  if number >= 1 << 31 and number < 1 << 32 then return number - (1 << 32) end
  return number
end

local function numbers(path, name, key, list)
  if type(list) ~= "table" then fail(path, ("has for %s a %s that is no list, but %s"):format(name, key, describe(list))) end
  local result = {}
  for i, item in ipairs(list) do
    if type(item) == "table" then
      result[i] = numbers(path, name, key, item)
    else
      result[i] = math.tointeger(item) or fail(path, ("has for %s a %s with %s, which is no integer"):format(name, key, describe(item)))
      result[i] = signed(result[i])
    end
  end
  return result
end

local function checked(path, name, layout)
  if type(layout) ~= "table" then fail(path, ("has for %s no layout, but %s"):format(name, describe(layout))) end
  local result = {}
  for _, key in ipairs { "dev_matrix", "tensor_map", "param_split_shape", "indices_offset" } do
    result[key] = numbers(path, name, key, layout[key] or {})
  end
  for _, key in ipairs { "field", "opt_weight_shard_step", "opt_weight_shard_size" } do
    result[key] = signed(math.tointeger(layout[key] or 0) or fail(path, ("has for %s a %s that is no integer"):format(name, key)))
  end
  local count = 1
  for _, size in ipairs(result.dev_matrix) do
    if type(size) ~= "number" or size < 1 or size > 1 << 20 then
      fail(path, ("has for %s a dev_matrix with a size of %s"):format(name, describe(size)))
    end
    count = count * size
    if count > 1 << 20 then fail(path, ("has for %s more than %d ranks"):format(name, 1 << 20)) end
  end
  for _, entry in ipairs(result.tensor_map) do
    for _, axis in ipairs(type(entry) == "table" and entry or { entry }) do
      if axis < -1 or axis >= #result.dev_matrix then
        fail(path, ("has for %s a tensor_map with %d, but a dev_matrix of %d axes"):format(name, axis, #result.dev_matrix))
      end
    end
  end
  local size = result.opt_weight_shard_size
  if size < -1 or size > 0 and count % size ~= 0 then
    fail(path, ("has for %s an opt_weight_shard_size of %d on %d ranks"):format(name, size, count))
  end
  return result
end

strategies.checked = checked

local function first(list) return list and list[1] and list[1].dim or {} end

-- Several maps are those of the axes, each with the mesh axes of one.
local function map_of(list)
  if not list or #list < 2 then return first(list) end
  local result = {}
  for _, dims in ipairs(list) do
    if dims.dim then result[#result + 1] = dims.dim end
  end
  return result
end

local function read_messages(path, text)
  local ok, map = pcall(messages.decode, Map, text)
  if not ok then
    fail(path, "is no strategy file", "a file whose name does not end in .json consists of Protocol Buffers, as MindSpore writes them")
  end
  local result = { items = {}, layouts = {} }
  for i, item in ipairs(map.parallel_strategy_item or {}) do
    local strategys = item.parallel_strategys or {}
    local list = {}
    for k, strategy in ipairs(strategys.parallel_strategy or {}) do list[k] = strategy.dim or {} end
    result.items[i] = { name = item.node_name or "", stage = strategys.stage or 0, strategies = list }
  end
  for i, item in ipairs(map.parallel_layout_item or {}) do
    local layouts, name = item.parallel_layouts or {}, item.param_name or ""
    result.layouts[i] = { name = name, layout = checked(path, name, {
      dev_matrix = first(layouts.dev_matrix), tensor_map = map_of(layouts.tensor_map), param_split_shape = first(layouts.param_split_shape),
      indices_offset = first(layouts.indices_offset), field = layouts.field, opt_weight_shard_step = layouts.opt_weight_shard_step,
      opt_weight_shard_size = layouts.opt_weight_shard_size }) }
  end
  return result
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function read_json(path, text)
  local ok, map = pcall(json.decode, text)
  if not ok or type(map) ~= "table" then fail(path, "is no strategy file: it is no JSON object") end
  local result = { items = {}, layouts = {} }
  for _, key in ipairs { "parallel_strategy_item", "parallel_layout_item" } do
    if map[key] ~= nil and type(map[key]) ~= "table" then fail(path, ("has a %s that is no object"):format(key)) end
  end
  for _, name in ipairs(sorted_names(map.parallel_strategy_item or {})) do
    local item = map.parallel_strategy_item[name]
    if type(item) ~= "table" then fail(path, ("has for %s no strategy, but %s"):format(name, describe(item))) end
    result.items[#result.items + 1] = { name = name, stage = math.tointeger(item.stage) or 0,
      strategies = numbers(path, name, "parallel_strategy", item.parallel_strategy or {}) }
  end
  for _, name in ipairs(sorted_names(map.parallel_layout_item or {})) do
    result.layouts[#result.layouts + 1] = { name = name, layout = checked(path, name, map.parallel_layout_item[name]) }
  end
  return result
end

--- What a strategy file says: items, a list of { name =, stage =, strategies = } of operators, and layouts, a list of
--- { name =, layout = } of parameters.
function strategies.read(where, path)
  if type(path) ~= "string" then fail(where, "a strategy file's name must be a string, got " .. describe(path)) end
  local text, problem = io_._read(path, most)
  if not text then fail(where, problem) end
  if text == "" then fail(where, ("the strategy file %s is empty"):format(path)) end
  return is_json(path) and read_json(path, text) or read_messages(path, text)
end

local function dims(list)
  if #list == 0 then return {} end
  if type(list[1]) ~= "table" then return { { dim = list } } end
  local result = {}
  for i, item in ipairs(list) do result[i] = { dim = type(item) == "table" and item or { item } } end
  return result
end

local function array(list)
  local result = {}
  for i, item in ipairs(list) do result[i] = type(item) == "table" and array(item) or item end
  return json.array(result)
end

local function of_json(strategy)
  local items, layouts = {}, {}
  for _, item in ipairs(strategy.items) do items[item.name] = { stage = item.stage, parallel_strategy = array(item.strategies) } end
  for _, item in ipairs(strategy.layouts) do
    local layout = item.layout
    layouts[item.name] = { dev_matrix = array(layout.dev_matrix), tensor_map = array(layout.tensor_map),
      param_split_shape = array(layout.param_split_shape or {}), indices_offset = array(layout.indices_offset or {}),
      field = layout.field or 0,
      opt_weight_shard_step = layout.opt_weight_shard_step or 0, opt_weight_shard_size = layout.opt_weight_shard_size or 0 }
  end
  return json.encode { current_stage = strategy.stage or 1, parallel_strategy_item = items, parallel_layout_item = layouts }
end

local function of_messages(strategy)
  local items, layouts = {}, {}
  for i, item in ipairs(strategy.items) do
    local list = {}
    for k, cuts in ipairs(item.strategies) do list[k] = { dim = cuts } end
    items[i] = { node_name = item.name, parallel_strategys = { stage = item.stage, parallel_strategy = list } }
  end
  for i, item in ipairs(strategy.layouts) do
    local layout = item.layout
    -- MindSpore reads the first entry of each list, also where it is empty.
    local function listed(key)
      local list = dims(layout[key] or {})
      return #list > 0 and list or { { dim = {} } }
    end
    layouts[i] = { param_name = item.name, parallel_layouts = { dev_matrix = listed "dev_matrix", tensor_map = listed "tensor_map",
      param_split_shape = listed "param_split_shape", indices_offset = listed "indices_offset", field = layout.field or 0,
      opt_weight_shard_step = layout.opt_weight_shard_step or 0, opt_weight_shard_size = layout.opt_weight_shard_size or 0 } }
  end
  return messages.encode(Map, { current_stage = strategy.stage or 1, parallel_strategy_item = items, parallel_layout_item = layouts })
end

--- Writes what strategies.read gives. A file whose name ends in .json is JSON.
function strategies.write(path, strategy)
  local draft <close> = io_.draft(path)
  local file <close> = assert(io.open(draft.path, "wb"))
  file:write(is_json(path) and of_json(strategy) or of_messages(strategy))
  file:close()
  draft:commit()
end

--- The ranks of a file of groups that MindSpore writes.
function strategies.group_ranks(where, path)
  local text, problem = io_._read(path, most)
  if not text then fail(where, problem) end
  local ok, map = pcall(messages.decode, GroupMap, text)
  local list = ok and map.ckpt_restore_rank_list and map.ckpt_restore_rank_list.dim
  if not list or #list == 0 then fail(where, ("%s has no restore rank list"):format(path)) end
  return list
end

-- The mesh axes that cut an axis of the parameter, as positions in dev_matrix, major to minor.
local function mesh_axes(layout, axis)
  local entry, count = layout.tensor_map[axis], #layout.dev_matrix
  local result = {}
  for _, number in ipairs(type(entry) == "table" and entry or { entry }) do
    if number >= 0 then result[#result + 1] = count - number end
  end
  return result
end

--- The number of ranks of a layout (of one stage).
function strategies.ranks_of(layout)
  local count = 1
  for _, size in ipairs(layout.dev_matrix) do count = count * size end
  return count
end

-- The coordinates of a rank, major to minor.
local function coordinates(layout, rank)
  local result = {}
  for i = #layout.dev_matrix, 1, -1 do
    result[i] = rank % layout.dev_matrix[i]
    rank = rank // layout.dev_matrix[i]
  end
  return result
end

-- How the axes of a parameter with `rank` axes are cut: for each a list of { size =, axis of the mesh }, and the axes of the mesh
-- that replicate it.
local function cuts_of(layout, rank)
  local map = layout.tensor_map
  -- One map of several mesh axes for a parameter of one axis.
  if rank == 1 and #map > 1 then
    layout = setmetatable({ tensor_map = { map } }, { __index = layout })
  end
  local cuts, used = {}, {}
  for axis = 1, rank do
    cuts[axis] = layout.tensor_map[axis] and mesh_axes(layout, axis) or {}
    for _, number in ipairs(cuts[axis]) do used[number] = true end
  end
  local free = {}
  for number, size in ipairs(layout.dev_matrix) do
    if not used[number] and size > 1 then free[#free + 1] = number end
  end
  return cuts, free
end

-- The number of pieces into which axis 0 of a piece is cut again.
local function optimizer_pieces(layout, free)
  if layout.opt_weight_shard_size == 0 or layout.opt_weight_shard_step == 0 then return 1 end
  if layout.opt_weight_shard_size > 0 then return layout.opt_weight_shard_size end
  local count = 1
  for _, number in ipairs(free) do count = count * layout.dev_matrix[number] end
  return count
end

--- Into how many pieces a layout cuts each axis of a parameter with so many axes.
function strategies.parts_of(layout, rank)
  local cuts, free = cuts_of(layout, rank)
  local parts = {}
  for axis = 1, rank do
    parts[axis] = 1
    for _, number in ipairs(cuts[axis]) do parts[axis] = parts[axis] * layout.dev_matrix[number] end
  end
  if rank > 0 then parts[1] = parts[1] * optimizer_pieces(layout, free) end
  return parts
end

--- The number of the piece that a rank has along each axis, from 0.
function strategies.piece_of(layout, axes, rank)
  local cuts, free = cuts_of(layout, axes)
  local at, piece = coordinates(layout, rank), {}
  for axis = 1, axes do
    piece[axis] = 0
    for _, number in ipairs(cuts[axis]) do piece[axis] = piece[axis] * layout.dev_matrix[number] + at[number] end
  end
  local again = axes > 0 and optimizer_pieces(layout, free) or 1
  if again > 1 then
    local index = 0
    for _, number in ipairs(free) do index = index * layout.dev_matrix[number] + at[number] end
    piece[1] = piece[1] * again + index % again
  end
  return piece
end

-- For each layout and number of axes: the ranks with each piece, by the piece's numbers.
local ranks_by_piece = setmetatable({}, { __mode = "k" })

local function holders(layout, axes)
  local known = ranks_by_piece[layout] or {}
  ranks_by_piece[layout] = known
  if not known[axes] then
    local map = {}
    for rank = 0, strategies.ranks_of(layout) - 1 do
      local key = table.concat(strategies.piece_of(layout, axes, rank), ",")
      map[key] = map[key] or {}
      table.insert(map[key], rank)
    end
    known[axes] = map
  end
  return known[axes]
end

--- The ranks with a piece, given by its number along each axis: the one that has most coordinates of the rank `near` first.
function strategies.holders_of(layout, piece, near)
  local target = coordinates(layout, near % strategies.ranks_of(layout))
  local list, agree = {}, {}
  for i, rank in ipairs(holders(layout, #piece)[table.concat(piece, ",")] or {}) do
    list[i], agree[rank] = rank, 0
    for k, coordinate in ipairs(coordinates(layout, rank)) do
      if coordinate == target[k] then agree[rank] = agree[rank] + 1 end
    end
  end
  table.sort(list, function(x, y)
    if agree[x] ~= agree[y] then return agree[x] > agree[y] end
    return x < y
  end)
  return list
end

return strategies
