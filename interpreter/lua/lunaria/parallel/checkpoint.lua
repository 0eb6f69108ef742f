-- Checkpoints of many ranks: a folder of steps, in each a file per rank with the pieces of tensors that the rank holds. No rank
-- waits for another; the last one that has written its file completes the step. core/parallel/shards.h has the files.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local shards = require "lunaria.shards"

local io_ = ms.io
local fail = arguments.fail

local sharded = {}

-- Tensors that are pieces of larger ones: { shape =, offsets =, sizes =, replica =, replicas = }.
local pieces = setmetatable({}, { __mode = "k" })

--- Says that a tensor is the piece of a whole one with this shape that begins at these offsets, and that it is the replica-th of
--- `replicas` ranks that hold the same piece (0 of 1 where no other has it; -1: this rank does not hold it). sizes: of the piece, where the
--- tensor has zeros behind it, so that those of all ranks have one shape.
function sharded.set_piece(tensor, piece) pieces[tensor] = piece end
--- What sharded.set_piece said of a tensor, or nil.
function sharded.piece_of(tensor) return pieces[tensor] end

-- How often each step was saved: a step that is saved again has another draft, since ranks do not do so at the same time.
local saves = {}

-- The rank of this process, their number, and a name for this run of the program that all of its ranks know.
local function own_place()
  local rank, ranks, job = shards.place()
  return { rank = rank, ranks = ranks, job = ranks > 1 and job or ("%x-%x"):format(os.time(), ms.clock()) }
end
sharded.place = own_place

local function sorted(list)
  table.sort(list)
  return list
end

local function zeros(shape)
  local offsets = {}
  for axis = 1, #shape do offsets[axis] = 0 end
  return offsets
end

local function sizes_of(shape)
  local sizes = {}
  for axis = 1, #shape do sizes[axis] = shape[axis] end
  return sizes
end

-- What this process has of a value: a list of { rank =, tensor =, shape =, offsets =, sizes =, replica =, replicas = }, one for each of the
-- ranks of the list.
local function held(value, place, list)
  local piece = pieces[value]
  if piece then
    local everywhere = shards.held(value)
    if everywhere and not everywhere[1].rank then value = everywhere[1].tensor end
    return { { rank = place.rank, tensor = value, shape = piece.shape, offsets = piece.offsets, sizes = piece.sizes,
      replica = piece.replica or 0, replicas = piece.replicas or 1, layout = piece.layout, mesh = piece.mesh } }
  end
  local laid = shards.held(value)
  if laid and laid[1].rank then return laid end
  if laid then value = laid[1].tensor end
  local result = {}
  for i, rank in ipairs(list) do
    result[i] = { rank = rank, tensor = value, shape = sizes_of(value.shape), offsets = zeros(value.shape), replica = rank,
      replicas = place.ranks }
  end
  return result
end

-- The ranks of which this process holds pieces: itself, or all of those that it simulates.
local function held_ranks(values, place)
  local last = 0
  for _, value in pairs(place.ranks == 1 and values or {}) do
    for _, piece in ipairs(type(value) ~= "string" and shards.held(value) or {}) do last = math.max(last, piece.rank or 0) end
  end
  if last == 0 then return { place.rank } end
  place.ranks = last + 1
  local list = {}
  for rank = 0, last do list[rank + 1] = rank end
  return list
end

-- A tensor without the zeros behind the piece in it, and with them.
local function without_zeros(value, sizes)
  for axis, size in ipairs(sizes or {}) do
    if size ~= value.shape[axis] then value = value:narrow(axis - 1, 0, size) end
  end
  return value
end

local function with_zeros(value, like)
  for axis = 1, #like.shape do
    local missing = like.shape[axis] - value.shape[axis]
    if missing > 0 then
      local sizes = sizes_of(value.shape)
      sizes[axis] = missing
      value = ms.ops.concat({ value, ms.zeros(sizes, value.dtype) }, axis - 1)
    end
  end
  return value
end

local step_pattern, draft_pattern = "^step%-(%d+)$", "^step%-(%d+)%.(.+)$"
local function step_name(step) return ("step-%08d"):format(step) end

-- The steps in a folder: lists of { step =, path =, complete = }, oldest first.
local function steps_of(folder)
  local steps = {}
  for _, name in ipairs(io_.list_folder(folder) or {}) do
    local number = name:match(step_pattern) or name:match(draft_pattern)
    local path = folder .. "/" .. name
    if number and io_.kind(path) == "folder" then
      steps[#steps + 1] = { step = math.tointeger(tonumber(number)), path = path, name = name,
        complete = io_.kind(path .. "/complete") ~= nil }
    end
  end
  table.sort(steps, function(a, b)
    if a.step ~= b.step then return a.step < b.step end
    return #a.name > #b.name
  end)
  return steps
end
sharded.steps_of = steps_of

local function remove_step(path)
  for _, name in ipairs(io_.list_folder(path) or {}) do os.remove(path .. "/" .. name) end
  os.remove(path)
end

-- Removes all but the newest complete steps, and what runs before this one left unfinished.
local function clean(folder, keep, job)
  local complete = {}
  for _, step in ipairs(steps_of(folder)) do
    if step.complete then
      complete[#complete + 1] = step
    elseif not step.name:find(job, 1, true) then
      remove_step(step.path)
    end
  end
  for i = 1, keep > 0 and #complete - keep or 0 do remove_step(complete[i].path) end
end

--- Removes all steps from a folder.
function sharded.remove_steps(folder)
  for _, step in ipairs(steps_of(folder)) do remove_step(step.path) end
end

-- What a checkpoint is made by.
local function origin(rank, ranks)
  local script = arg and type(arg[0]) == "string" and arg[0]
  local text = script and io_.kind(script) == "file" and io_._read(script)
  return { ["lunaria.version"] = ms.version, ["lunaria.ranks"] = tostring(ranks), ["lunaria.rank"] = tostring(rank),
    ["lunaria.script"] = text and shards.sum(text) or nil }
end

--- Writes what this rank has of the values, a table by name of tensors and texts, to a step of the checkpoint in a folder.
--- options: step (0), keep (how many complete steps stay; 0: all), later (a thread writes it), place (the rank, where this
--- process stands in for several). Gives the path of the step, and whether it is complete by this call.
function sharded.save(folder, values, options)
  options = options or {}
  local place, step = options.place or own_place(), options.step or 0
  local final = folder .. "/" .. step_name(step)
  if not options.place then saves[final] = (saves[final] or 0) + 1 end
  local draft = ("%s.%s-%d"):format(final, place.job, saves[final] or 0)
  if options.later then io_.finish_writing() end
  io_.make_folder(draft)
  if place.rank == 0 then clean(folder, options.keep or 0, place.job) end
  local ranks = held_ranks(values, place)
  local lists, texts, names = {}, {}, {}
  for _, rank in ipairs(ranks) do lists[rank] = {} end
  for name in pairs(values) do names[#names + 1] = name end
  for _, name in ipairs(sorted(names)) do
    if type(values[name]) == "string" then
      texts[name] = values[name]
    else
      for _, piece in ipairs(held(values[name], place, ranks)) do
        if piece.replica == shards.writer_of(name, piece.replicas) then
          piece.name, piece.tensor = name, without_zeros(piece.tensor, piece.sizes)
          table.insert(lists[piece.rank], piece)
        end
      end
    end
  end
  local complete
  for _, rank in ipairs(ranks) do
    local metadata = origin(rank, place.ranks)
    metadata.format, metadata["lunaria.step"] = "ms", tostring(step)
    for name, text in pairs(texts) do metadata[name] = text end
    if options.later then io_.finish_writing() end
    complete = shards.write(draft .. "/" .. shards.name_of(rank, place.ranks), lists[rank], metadata,
      { draft = draft, final = final, ranks = place.ranks, later = options.later })
  end
  return final, complete
end

--- Whether a path is a folder that sharded.save wrote, or a step in one.
function sharded.is_checkpoint(path)
  for _, name in ipairs(io_.list_folder(path) or {}) do
    if name:find "^rank%-%d+%-of%-%d+%.safetensors$" or name:find(step_pattern) or name:find(draft_pattern) then return true end
  end
  return false
end

local function listed(numbers, most)
  local shown = table.concat(numbers, ", ", 1, math.min(#numbers, most))
  return #numbers > most and ("%s and %d more"):format(shown, #numbers - most) or shown
end

--- Why a step is not complete: in words.
function sharded.why_incomplete(path)
  local there, ranks = {}, nil
  for _, name in ipairs(io_.list_folder(path) or {}) do
    local rank, of = name:match "^rank%-(%d+)%-of%-(%d+)%.safetensors$"
    if rank then
      ranks = math.max(ranks or 0, math.tointeger(tonumber(of)))
      there[math.tointeger(tonumber(rank))] = true
    end
  end
  if not ranks then return "no rank has written its file" end
  local absent = {}
  for rank = 0, ranks - 1 do
    if not there[rank] then absent[#absent + 1] = rank end
  end
  if #absent == 0 then return "all files are there, but no file 'complete'" end
  return ("the file%s of rank%s %s of %d %s missing"):format(#absent > 1 and "s" or "", #absent > 1 and "s" or "", listed(absent, 8), ranks,
    #absent > 1 and "are" or "is")
end

--- The folder of the step that a path means: the newest complete one of a folder of steps. unfinished: one that is not
--- complete will do.
function sharded.find_step(path, unfinished)
  local steps = steps_of(path)
  if #steps == 0 then
    if not unfinished and io_.list_folder(path) and sharded.is_checkpoint(path) and not io_.kind(path .. "/complete") then
      fail(path, "is not complete: " .. sharded.why_incomplete(path), "the step before it may be; lunaria checkpoint list shows all")
    end
    return path
  end
  for i = #steps, 1, -1 do
    if steps[i].complete then return steps[i].path end
  end
  local last = steps[#steps]
  fail(path, ("has no complete step: of step %d %s"):format(last.step, sharded.why_incomplete(last.path)))
end

local Checkpoint = {}
Checkpoint.__index = Checkpoint

--- The checkpoint at a path: fields path, files, ranks, absent, and the methods below.
function sharded.open(path, unfinished)
  local self = setmetatable({ path = sharded.find_step(path, unfinished) }, Checkpoint)
  self._shards = shards.open(self.path)
  self.files, self.ranks, self.absent = shards.files(self._shards)
  return self
end

--- Names of the tensors, and what one is: { dtype =, shape =, mesh =, layout =, parts = { { file =, place =, elements = } } }.
function Checkpoint:names() return shards.names(self._shards) end
function Checkpoint:tensor(name) return shards.tensor(self._shards, name) end
--- The regions of a tensor that are in no file, as texts.
function Checkpoint:missing(name) return shards.missing(self._shards, name) end
--- Compares the sums in the i-th file; one that is wrong is an error.
function Checkpoint:verify(i) shards.verify(self._shards, i) end
--- How many bytes of tensors were read.
function Checkpoint:bytes_read() return shards.bytes_read(self._shards) end
--- A tensor, or the region of it that begins at the offsets. check: false does not compare sums.
function Checkpoint:read(name, offsets, sizes, check) return shards.read(self._shards, name, offsets, sizes, check) end

--- The texts that were saved: those of the file of this rank where there is one, else of the first.
function Checkpoint:texts()
  local place, own = own_place(), self.files[1]
  for _, file in ipairs(self.files) do
    if file.rank == place.rank and self.ranks == place.ranks then own = file end
  end
  local texts = {}
  for key, text in pairs(own.metadata) do
    if key ~= "format" and key:sub(1, 8) ~= "lunaria." then texts[key] = text end
  end
  return texts
end

--- What the parameters of a network (a function of their names) need of a checkpoint, and all other tensors: a table by name of
--- tensors and texts. Of a parameter that is a piece only that piece is read.
function sharded.load(path, parameter, check)
  local self = sharded.open(path)
  local values = {}
  for _, name in ipairs(self:names()) do
    local own = parameter and parameter(name)
    local piece = own and pieces[own]
    if own and shards.fill(self._shards, name, own, check) then
      values[name] = own
    elseif piece then
      values[name] = with_zeros(self:read(name, piece.offsets, piece.sizes or sizes_of(own.shape), check), own)
    else
      values[name] = self:read(name, nil, nil, check)
    end
  end
  for name, text in pairs(self:texts()) do values[name] = values[name] or text end
  return values
end

return sharded
