-- MindSpore's functions that make checkpoints for other numbers of ranks of those of a training on many ranks, and put slices of
-- parameters and files together.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local folders = require "lunaria.parallel.rank_folders"
local strategies = require "lunaria.parallel.strategy_files"

local io_ = ms.io
local plan_of, rank_list, layouts_of, stages_of = folders.plan, folders.rank_list, folders.layouts_of, folders.stages_of
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local transform = {}

local function text(where, name, value)
  if type(value) ~= "string" or value == "" then
    fail(where, ("%s must be a string that is not empty, got %s"):format(name, describe(value)))
  end
  return value
end

local function rank_number(where, value)
  if math.type(value) ~= "integer" or value < 0 then
    fail(where, "rank_id must be an integer that is not negative, got " .. describe(value))
  end
  return value
end

-- Two strategies, which may be named in a table; a strategy itself may be a table, of layouts by parameter.
local function two_strategies(src, dst)
  if dst == nil and type(src) == "table" and (src.src_strategy_file or src.dst_strategy_file) then
    return src.src_strategy_file, src.dst_strategy_file
  end
  return src, dst
end

--- Numbers of the ranks, highest first, whose checkpoints the rank rank_id of a training by dst_strategy_file needs of one by
--- src_strategy_file; nil is a training on one rank. Strategy files are MindSpore's (protobuf, or .json).
---     > ms.rank_list_for_transform(0)[1] --> 0
function transform.rank_list_for_transform(rank_id, src_strategy_file, dst_strategy_file)
  local where = "rank_list_for_transform"
  src_strategy_file, dst_strategy_file = two_strategies(src_strategy_file, dst_strategy_file)
  return rank_list(where, rank_number(where, rank_id), src_strategy_file, dst_strategy_file)
end

-- Writes what a rank has after the transformation. files: those of ranks of the source, opened, by rank.
local function write_rank(plan, files, path)
  local source, list = folders.source_of(plan.where, plan.from, files), {}
  for _, name in ipairs(source.names) do
    if not plan:is_elsewhere(name) then list[#list + 1] = { name = name, data = source:read(name, plan) } end
  end
  if #list == 0 then fail(plan.where, ("nothing in the files of the source is of rank %d"):format(plan.rank)) end
  ms.save_checkpoint(list, path)
end

--- Writes the checkpoint of the rank rank_id of a training by dst_strategy_file to save_checkpoint_file_name, a .ckpt or
--- .safetensors file. checkpoint_files_map: by rank, the files of a training by src_strategy_file that ms.rank_list_for_transform
--- names. nil for a strategy file: one rank.
---     > folder = "/tmp/lunaria_help_transform"
---     > ms.io.make_folder(folder)
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, folder .. "/a.ckpt")
---     > ms.transform_checkpoint_by_rank(0, { [0] = folder .. "/a.ckpt" }, folder .. "/b.ckpt")
---     > ms.load_checkpoint(folder .. "/b.ckpt").w.shape --> (2,)
---     > os.remove(folder .. "/a.ckpt") and os.remove(folder .. "/b.ckpt") and os.remove(folder) --> true
function transform.transform_checkpoint_by_rank(rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file,
    dst_strategy_file)
  local where = "transform_checkpoint_by_rank"
  src_strategy_file, dst_strategy_file = two_strategies(src_strategy_file, dst_strategy_file)
  rank_number(where, rank_id)
  text(where, "save_checkpoint_file_name", save_checkpoint_file_name)
  if not save_checkpoint_file_name:find "%.ckpt$" and not save_checkpoint_file_name:find "%.safetensors$" then
    fail(where, ("save_checkpoint_file_name must end in .ckpt or .safetensors, got %s"):format(save_checkpoint_file_name))
  end
  if type(checkpoint_files_map) ~= "table" or getmetatable(checkpoint_files_map) ~= nil then
    fail(where, "checkpoint_files_map must be a table of files by rank, got " .. describe(checkpoint_files_map))
  end
  local files = {}
  for rank, path in pairs(checkpoint_files_map) do
    rank_number(where, rank)
    if io_.kind(text(where, ("checkpoint_files_map[%d]"):format(rank), path)) ~= "file" then
      fail(where, ("the checkpoint file %s of rank %d is not there"):format(path, rank))
    end
    files[rank] = folders.opened(path)
  end
  write_rank(plan_of(where, src_strategy_file, dst_strategy_file, rank_id), files, save_checkpoint_file_name)
end

local transform_signature = arguments.signature("src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=nil, "
  .. "dst_strategy_file=nil, process_num=1, output_format=\"ckpt\"")

-- Parameters beside those of optimizers.
local function own_names(layouts)
  local names, count = {}, 0
  for _, name in ipairs(layouts.names) do
    if not (name:find "^accu_grads" or name:find "^adam_v" or name:find "^adam_m") then names[name], count = true, count + 1 end
  end
  return names, count
end

-- Whether the source is one stage of a pipeline by itself: the files made of it are parts of the ranks' checkpoints.
local function is_one_stage(where, from, to)
  if not from or not to or stages_of(where, from) > 1 or stages_of(where, to) > 1 then return false end
  local names, count = own_names(from)
  local others, other_count = own_names(to)
  for name in pairs(names) do
    if not others[name] then return false end
  end
  return count < other_count
end

local function rank_folder(folder, rank)
  local path = ("%s/rank_%d"):format(folder, rank)
  io_.make_folder(path)
  return path
end

--- Writes checkpoints for all ranks of a training by dst_strategy_file, as dst_checkpoints_dir/rank_N/PREFIXN.ckpt, from those of one by
--- src_strategy_file in src_checkpoints_dir/rank_N: of several .ckpt files of a rank the last by name. nil for a strategy file: one
--- rank. output_format: "ckpt" or "safetensors". process_num: at most so many processes; one is used. A source that is one
--- stage of a pipeline gives files PREFIXN_partSTAGE.ckpt.
---     > folder = "/tmp/lunaria_help_transform"
---     > ms.io.make_folder(folder .. "/rank_0")
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, folder .. "/rank_0/a.ckpt")
---     > ms.transform_checkpoints(folder, folder .. "/new", "b")
---     > ms.load_checkpoint(folder .. "/new/rank_0/b0.ckpt").w.shape --> (2,)
---     > os.execute("rm -r /tmp/lunaria_help_transform") --> true	exit	0
function transform.transform_checkpoints(...)
  local where = "transform_checkpoints"
  local a = arguments.bind(where, transform_signature, ...)
  text(where, "src_checkpoints_dir", a.src_checkpoints_dir)
  text(where, "dst_checkpoints_dir", a.dst_checkpoints_dir)
  if type(a.ckpt_prefix) ~= "string" or a.ckpt_prefix:find "/" then
    fail(where, "ckpt_prefix must be a string without '/', got " .. describe(a.ckpt_prefix))
  end
  check.positive(where, "process_num", a.process_num)
  check.choice(where, "output_format", a.output_format, { "ckpt", "safetensors" })
  local files = folders.files_of_ranks(where, a.src_checkpoints_dir)
  local from, to = layouts_of(where, a.src_strategy_file), layouts_of(where, a.dst_strategy_file)
  local open_files = folders.file_cache(files)
  if is_one_stage(where, from, to) then
    local items = type(a.src_strategy_file) == "string" and strategies.read(where, a.src_strategy_file).items or {}
    local stage = items[1] and items[1].stage or 0
    local ranks = {}
    for rank = 0, from.ranks - 1 do
      if files[stage * from.ranks + rank] then ranks[#ranks + 1] = stage * from.ranks + rank end
    end
    for rank = 0, to.ranks - 1 do
      write_rank(plan_of(where, a.src_strategy_file, a.dst_strategy_file, rank), open_files(ranks),
        ("%s/%s%d_part%d.%s"):format(rank_folder(a.dst_checkpoints_dir, rank), a.ckpt_prefix, rank, stage, a.output_format))
    end
    return
  end
  for rank = 0, folders.ranks_of(where, a.dst_strategy_file) - 1 do
    local ranks = rank_list(where, rank, a.src_strategy_file, a.dst_strategy_file)
    for _, needed in ipairs(ranks) do
      if not files[needed] then
        fail(where, ("the checkpoint file of rank %d is needed for that of rank %d, but it is missing"):format(needed, rank))
      end
    end
    write_rank(plan_of(where, a.src_strategy_file, a.dst_strategy_file, rank), open_files(ranks),
      ("%s/%s%d.%s"):format(rank_folder(a.dst_checkpoints_dir, rank), a.ckpt_prefix, rank, a.output_format))
  end
end

--- Writes the strategies of all stages of a pipeline, the files (.ckpt, or .json) of a folder, to one file: the names of parameters
--- get the stage in front. Files of a stage that is there already are left out.
---     > ok, message = pcall(ms.merge_pipeline_strategys, "/no/such/folder", "/tmp/lunaria_help.ckpt")
---     > message:match "merge_pipeline_strategys: src_strategy_dirs" --> merge_pipeline_strategys: src_strategy_dirs
function transform.merge_pipeline_strategys(src_strategy_dirs, dst_strategy_file)
  local where = "merge_pipeline_strategys"
  text(where, "src_strategy_dirs", src_strategy_dirs)
  text(where, "dst_strategy_file", dst_strategy_file)
  local entries = io_.list_folder(src_strategy_dirs)
  if not entries then fail(where, ("src_strategy_dirs %s is no folder"):format(src_strategy_dirs)) end
  local messages, texts = {}, {}
  for _, name in ipairs(entries) do
    local list = name:find "%.ckpt$" and messages or name:find "%.json$" and texts
    if list then list[#list + 1] = src_strategy_dirs .. "/" .. name end
  end
  if #messages > 0 and #texts > 0 then fail(where, "the strategy files should be all .ckpt or all .json") end
  local merged, there = { stage = 1, items = {}, layouts = {} }, {}
  for _, path in ipairs(#messages > 0 and messages or texts) do
    local strategy = strategies.read(where, path)
    if #strategy.items == 0 or #strategy.layouts == 0 then fail(where, ("the strategy file %s is empty"):format(path)) end
    local stage = strategy.items[1].stage
    if not there[stage] then
      there[stage] = true
      for _, item in ipairs(strategy.items) do table.insert(merged.items, item) end
      for _, item in ipairs(strategy.layouts) do
        table.insert(merged.layouts, { name = ("%d-%s"):format(stage, item.name), layout = item.layout })
      end
    end
  end
  local folder = dst_strategy_file:match "^(.*)/[^/]*$"
  if folder and folder ~= "" then io_.make_folder(folder) end
  strategies.write(dst_strategy_file, merged)
end

--- What a strategy file says of parameters: a table by name of layouts, with the fields that the file has.
---     > (pcall(ms.build_searched_strategy, "/no/such/file.ckpt")) --> false
function transform.build_searched_strategy(strategy_filename)
  local result = {}
  for _, item in ipairs(strategies.read("build_searched_strategy", strategy_filename).layouts) do result[item.name] = item.layout end
  return result
end

--- The ranks that a file of groups (GROUP_INFO_FILE of MindSpore) names for restoring a checkpoint.
---     > (pcall(ms.restore_group_info_list, "/no/such/file.pb")) --> false
function transform.restore_group_info_list(group_info_file_name)
  return strategies.group_ranks("restore_group_info_list", text("restore_group_info_list", "group_info_file_name", group_info_file_name))
end

-- Rows of one-hot fields: each rank has some rows of every field.
local function merged_fields(list, field)
  local columns = {}
  for i, piece in ipairs(list) do
    local shape = { field, piece.shape[1] // field }
    for axis = 2, #piece.shape do shape[axis + 1] = piece.shape[axis] end
    columns[i] = piece:reshape(shape)
  end
  local merged = ms.ops.concat(columns, 1)
  local shape = { merged.shape[1] * merged.shape[2] }
  for axis = 3, #merged.shape do shape[axis - 1] = merged.shape[axis] end
  return merged:reshape(shape)
end

local function merged_by(where, name, list, layout)
  local count = strategies.ranks_of(layout)
  if #list ~= count then
    fail(where, ("sliced_parameters must have %d slices, as many as dev_matrix has ranks, got %d"):format(count, #list))
  end
  local axes, rows = #list[1].shape, layout.param_split_shape or {}
  if #rows == 0 then
    for i, piece in ipairs(list) do
      if tostring(piece.shape) ~= tostring(list[1].shape) then
        fail(where, ("slice %d of %s has shape %s, slice 0 %s: the slices of an even strategy are equal"):format(i - 1, name,
          tostring(piece.shape), tostring(list[1].shape)))
      end
    end
    if (layout.field or 0) > 0 then return merged_fields(list, layout.field) end
  end
  local parts, by_piece = strategies.parts_of(layout, axes), {}
  for rank = 0, count - 1 do by_piece[table.concat(strategies.piece_of(layout, axes, rank), ",")] = list[rank + 1] end
  if #rows > 0 and #rows ~= math.max(table.unpack(parts)) and axes > 0 then
    local pieces = 1
    for _, n in ipairs(parts) do pieces = pieces * n end
    if #rows ~= pieces then fail(where, ("the param_split_shape of %s should have %d numbers, got %d"):format(name, pieces, #rows)) end
  end
  for i, size in ipairs(rows) do
    local index, piece = i - 1, {}
    for axis = axes, 1, -1 do piece[axis], index = index % parts[axis], index // parts[axis] end
    local slice = by_piece[table.concat(piece, ",")]
    if slice and slice.shape[1] ~= size then
      fail(where, ("slice %d of %s should have %d rows, got %d"):format(i - 1, name, size, slice.shape[1]))
    end
  end
  local function joined(piece)
    local axis = #piece + 1
    if axis > axes then return by_piece[table.concat(piece, ",")] end
    local slices = {}
    for number = 0, parts[axis] - 1 do
      piece[axis] = number
      slices[#slices + 1] = joined { table.unpack(piece, 1, axis) }
    end
    return #slices == 1 and slices[1] or ms.ops.concat(slices, axis - 1)
  end
  return joined {}
end

--- Slices of a parameter, in the order of their ranks, as one parameter: one after the other along axis 0, or by the strategy, a table of
--- layouts by name as ms.build_searched_strategy gives it.
---     > slices = { ms.Parameter(ms.tensor { 1, 2 }, "w"), ms.Parameter(ms.tensor { 3 }, "w") }
---     > ms.merge_sliced_parameter(slices):tolist()[3] --> 3
function transform.merge_sliced_parameter(sliced_parameters, strategy)
  local where = "merge_sliced_parameter"
  strategy = arguments.named(where, { "strategy", last_has_names = true }, strategy)
  if type(sliced_parameters) ~= "table" or getmetatable(sliced_parameters) ~= nil then
    fail(where, "sliced_parameters must be a list of parameters, got " .. describe(sliced_parameters))
  end
  if #sliced_parameters == 0 then fail(where, "sliced_parameters must not be empty") end
  local first = sliced_parameters[1]
  for i, parameter in ipairs(sliced_parameters) do
    if not ms.is_tensor(parameter) or not ms.is_parameter(parameter) then
      fail(where, ("sliced_parameters[%d] must be a parameter, got %s"):format(i, describe(parameter)))
    end
    local fits = parameter.name == first.name and #parameter.shape == #first.shape
    for axis = 2, #first.shape do fits = fits and parameter.shape[axis] == first.shape[axis] end
    if not fits then
      fail(where, ("slice %d is %s of shape %s, slice 0 is %s of shape %s: names and all axes but the first have to be the same")
        :format(i - 1, parameter.name, tostring(parameter.shape), first.name, tostring(first.shape)))
    end
  end
  local merged
  if strategy == nil then
    merged = ms.ops.concat(sliced_parameters, 0)
  else
    if type(strategy) ~= "table" then fail(where, "strategy must be a table of layouts by name, got " .. describe(strategy)) end
    local layout = strategy[first.name]
    if type(layout) ~= "table" then fail(where, ("the strategy has no layout of %s"):format(first.name)) end
    merged = merged_by(where, first.name, sliced_parameters, layout)
  end
  return ms.Parameter(merged, first.name, first.requires_grad)
end

local segmented_signature = arguments.signature("ckpt_file_dir, net=nil, strict_load=false, filter_prefix=nil, dec_key=nil, "
  .. "dec_mode=\"AES-GCM\", specify_prefix=nil, choice_func=nil")

--- The parameters of all .ckpt files of a folder in one table; the arguments after it are those of ms.load_checkpoint.
---     > ms.io.make_folder "/tmp/lunaria_help_parts"
---     > ms.save_checkpoint({ w = ms.ones { 2 } }, "/tmp/lunaria_help_parts/a.ckpt")
---     > ms.save_checkpoint({ b = ms.ones { 3 } }, "/tmp/lunaria_help_parts/b.ckpt")
---     > ms.load_segmented_checkpoints("/tmp/lunaria_help_parts").b.shape --> (3,)
---     > os.execute("rm -r /tmp/lunaria_help_parts") --> true	exit	0
function transform.load_segmented_checkpoints(...)
  local where = "load_segmented_checkpoints"
  local a = arguments.bind(where, segmented_signature, ...)
  local folder = text(where, "ckpt_file_dir", a.ckpt_file_dir)
  local entries = io_.list_folder(folder)
  if not entries then fail(where, ("ckpt_file_dir %s is no folder"):format(folder)) end
  local values, count = {}, 0
  for _, name in ipairs(entries) do
    if name:find "%.ckpt$" then
      count = count + 1
      local loaded = ms.load_checkpoint(folder .. "/" .. name, { filter_prefix = a.filter_prefix, dec_key = a.dec_key,
        dec_mode = a.dec_mode, specify_prefix = a.specify_prefix, choice_func = a.choice_func })
      for key, value in pairs(loaded) do values[key] = value end
    end
  end
  if count == 0 then fail(where, ("%s has no .ckpt files"):format(folder)) end
  if a.net ~= nil then ms.load_param_into_net(a.net, values, a.strict_load) end
  return values
end

transform.rank_list_for_convert = transform.rank_list_for_transform
transform.convert_checkpoint_by_rank = transform.transform_checkpoint_by_rank
transform.convert_checkpoints = transform.transform_checkpoints

return transform
