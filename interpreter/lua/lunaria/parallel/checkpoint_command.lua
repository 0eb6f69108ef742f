-- lunaria checkpoint COMMAND: the words of the command line.
local usage = [==[
usage: lunaria checkpoint list DIR [--tensors]           steps in a folder, their ranks and sizes; or the tensors of one
       lunaria checkpoint merge DIR -o FILE [options]    one file of whole tensors (.safetensors or .ckpt)
       lunaria checkpoint split PATH -o DIR --ranks N [options]
                                                         files of N ranks, each with its pieces
       lunaria checkpoint diff PATH PATH [--tolerance X] whether two have the same tensors; status 1 where not
       lunaria checkpoint verify DIR                     reads all: check sums, and that no element is missing; status 1
                                                         where something is wrong
  DIR is a folder of steps, a step in it, or a folder rank_0, rank_1 ... of MindSpore's; PATH is that or a file.
  --strategy FILE         MindSpore's strategy file of such a folder
  --axis NAME=K           split: the axis of a tensor that is cut, or NAME=none; NAME may have * (default: axis 0)
  --step K                split: the number of the step that is written (default: that of the source, or 0)
  -o PATH                 where to write]==]

local ms = require "lunaria"
local folders = require "lunaria.parallel.rank_folders"
local shards = require "lunaria.shards"
local sharded = require "lunaria.parallel.checkpoint"

local io_ = ms.io

local function fail(message, ...) error("lunaria checkpoint: " .. message:format(...) .. "\n  hint: lunaria checkpoint --help", 0) end

local value_options = { o = true, strategy = true, ranks = true, axis = true, step = true, tolerance = true }
local flags = { tensors = true }

-- Paths, and options by name; axis is a list.
local function parsed(words, most)
  local paths, options, i = {}, { axis = {} }, 1
  while i <= #words do
    local word = words[i]
    local name, given = word:match "^%-%-([%w_]+)=(.*)$"
    name = name or word:match "^%-%-([%w_]+)$" or word:match "^%-(o)$"
    if name and flags[name] and not given then
      options[name] = true
    elseif name and value_options[name] then
      if not given then
        i = i + 1
        given = words[i] or fail("option %s needs an argument", word)
      end
      if name == "axis" then table.insert(options.axis, given) else options[name] = given end
    elseif word:find "^%-" then
      fail("'%s' is not understood", word)
    else
      paths[#paths + 1] = word
    end
    i = i + 1
  end
  if #paths < most then fail(most == 1 and "a path is missing" or "two paths are expected") end
  if #paths > most then fail("'%s' is too much", paths[most + 1]) end
  return paths, options
end

local function whole_number(options, name, least)
  if options[name] == nil then return nil end
  local value = math.tointeger(tonumber(options[name]))
  if not value or value < least then fail("--%s must be an integer of at least %d, got '%s'", name, least, options[name]) end
  return value
end

local function bytes_text(bytes)
  local units = { "bytes", "KB", "MB", "GB", "TB" }
  local i = 1
  while bytes >= 1000 and i < #units do bytes, i = bytes / 1000, i + 1 end
  return i == 1 and ("%d bytes"):format(bytes) or ("%.1f %s"):format(bytes, units[i])
end

local function is_rank_folder(path)
  for _, name in ipairs(io_.list_folder(path) or {}) do
    if name:find "^rank_%d+$" then return true end
  end
  return false
end

-- What can be read by name: { names =, read(name), shape(name), dtype(name), texts =, step = }.
local function opened(path, options)
  if is_rank_folder(path) then
    local files = folders.files_of_ranks("lunaria checkpoint", path)
    for rank, file in pairs(files) do files[rank] = folders.opened(file) end
    local layouts = folders.layouts_of("lunaria checkpoint", options.strategy)
    if not layouts and next(files, (next(files))) then
      fail("%s has files of several ranks: --strategy FILE says how they were cut", path)
    end
    local source = folders.source_of("lunaria checkpoint", layouts, files)
    return { names = source.names, texts = {}, read = function(name) return source:read(name) end }
  end
  if io_.kind(path) == "file" and path:find "%.ckpt$" then
    local values, names = io_.read_ckpt(path)
    local texts, list = {}, {}
    for _, name in ipairs(names) do
      if type(values[name]) == "string" then texts[name] = values[name] else list[#list + 1] = name end
    end
    return { names = list, texts = texts, read = function(name) return values[name] end }
  end
  local checkpoint = sharded.open(path)
  return { names = checkpoint:names(), texts = checkpoint:texts(), read = function(name) return checkpoint:read(name) end,
    step = math.tointeger(tonumber(checkpoint.files[1].metadata["lunaria.step"] or "")) }
end

local commands = {}

local function list_tensors(checkpoint)
  for _, name in ipairs(checkpoint:names()) do
    local tensor = checkpoint:tensor(name)
    local layout = tensor.layout ~= "" and tensor.layout .. (tensor.mesh ~= "" and " on " .. tensor.mesh or "")
      or ("%s %s"):format(tostring(tensor.dtype), tostring(tensor.shape))
    print(("%s: %s in %d file%s"):format(io_.printable(name), layout, #tensor.parts, #tensor.parts == 1 and "" or "s"))
  end
end

function commands.list(words)
  local paths, options = parsed(words, 1)
  local path = paths[1]
  if not io_.kind(path) then fail("there is nothing at %s", path) end
  local steps = sharded.steps_of(path)
  if #steps == 0 or options.tensors then
    local checkpoint = sharded.open(path)
    if options.tensors then return list_tensors(checkpoint) end
    steps = { { path = checkpoint.path, name = checkpoint.path:match "[^/]*$", complete = #checkpoint.absent == 0 } }
  end
  for _, step in ipairs(steps) do
    if step.complete then
      local checkpoint, bytes = sharded.open(step.path, true), 0
      for _, file in ipairs(checkpoint.files) do bytes = bytes + file.size end
      print(("%s: complete, %d rank%s, %d tensors, %s"):format(step.name, #checkpoint.files, #checkpoint.files == 1 and "" or "s",
        #checkpoint:names(), bytes_text(bytes)))
    else
      print(("%s: not complete, %s"):format(step.name, sharded.why_incomplete(step.path)))
    end
  end
end

function commands.merge(words)
  local paths, options = parsed(words, 1)
  local target = options.o or fail "-o FILE is missing"
  local source = opened(paths[1], options)
  local list = {}
  for i, name in ipairs(source.names) do list[i] = { name = name, data = source.read(name) } end
  for name, text in pairs(source.texts) do list[#list + 1] = { name = name, data = text } end
  if not target:find "%.ckpt$" and not target:find "%.safetensors$" then fail("%s must end in .safetensors or .ckpt", target) end
  ms.save_checkpoint(list, target)
  print(("%s: %d tensors"):format(target, #source.names))
end

-- A function of a name that gives the axis that is cut, or nil.
local function axes_of(list)
  local rules = {}
  for i, given in ipairs(list) do
    local name, axis = given:match "^(.*)=([^=]*)$"
    if not name or not (axis == "none" or axis:find "^%d+$") then fail("--axis must be NAME=K or NAME=none, got '%s'", given) end
    local pattern = name:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*")
    rules[i] = { pattern = "^" .. pattern .. "$", axis = math.tointeger(tonumber(axis)) }
  end
  return function(name)
    for _, rule in ipairs(rules) do
      if name:find(rule.pattern) then return rule.axis end
    end
    return 0
  end
end

function commands.split(words)
  local paths, options = parsed(words, 1)
  local target, ranks = options.o or fail "-o DIR is missing", whole_number(options, "ranks", 1) or fail "--ranks N is missing"
  local source, axis_of = opened(paths[1], options), axes_of(options.axis)
  local step = whole_number(options, "step", 0) or source.step or 0
  local final
  for rank = 0, ranks - 1 do
    local values = {}
    for name, text in pairs(source.texts) do values[name] = text end
    for _, name in ipairs(source.names) do
      local tensor, axis = source.read(name), axis_of(name)
      local shape, offsets = {}, {}
      for k = 1, #tensor.shape do shape[k], offsets[k] = tensor.shape[k], 0 end
      local piece = { shape = shape, offsets = offsets, replica = rank, replicas = ranks }
      if axis and axis < #shape then
        local size = shape[axis + 1]
        local chunk = (size + ranks - 1) // ranks
        local first = math.min(rank * chunk, size)
        tensor = tensor:narrow(axis, first, math.min(chunk, size - first)):copy()
        offsets[axis + 1], piece.replica, piece.replicas = first, 0, 1
        local texts = {}
        for k = 1, #shape do texts[k] = k == axis + 1 and shape[k] .. "@ranks" or tostring(shape[k]) end
        piece.layout, piece.mesh = ("%s[%s]"):format(tostring(tensor.dtype), table.concat(texts, ", ")), "ranks=" .. ranks
      end
      sharded.set_piece(tensor, piece)
      values[name] = tensor
    end
    final = sharded.save(target, values, { step = step, place = { rank = rank, ranks = ranks, job = "split" } })
  end
  print(("%s: %d tensors for %d ranks"):format(final, #source.names, ranks))
end

local function names_of(source)
  local known = {}
  for _, name in ipairs(source.names) do known[name] = true end
  return known
end

-- How two tensors differ: nil where they do not.
local function difference(a, b, tolerance)
  if tostring(a.shape) ~= tostring(b.shape) or a.dtype ~= b.dtype then
    return ("%s %s and %s %s"):format(tostring(a.dtype), tostring(a.shape), tostring(b.dtype), tostring(b.shape))
  end
  if a.size == 0 or ms.ops.equal(a, b):all():item() then return nil end
  if tostring(a.dtype) == "Bool" then return "other truth values" end
  local largest = (a:astype(ms.float64) - b:astype(ms.float64)):abs():max():item()
  if largest <= tolerance then return nil end
  return ("differ by up to %g"):format(largest)
end

function commands.diff(words)
  local paths, options = parsed(words, 2)
  local tolerance = tonumber(options.tolerance or 0) or fail("--tolerance must be a number, got '%s'", options.tolerance)
  local a, b = opened(paths[1], options), opened(paths[2], options)
  local in_a, in_b, count = names_of(a), names_of(b), 0
  local function tell(name, what)
    count = count + 1
    print(("%s: %s"):format(io_.printable(name), what))
  end
  for _, name in ipairs(a.names) do
    if not in_b[name] then
      tell(name, "only in " .. paths[1])
    else
      local what = difference(a.read(name), b.read(name), tolerance)
      if what then tell(name, what) end
    end
  end
  for _, name in ipairs(b.names) do
    if not in_a[name] then tell(name, "only in " .. paths[2]) end
  end
  print(count == 0 and ("the same %d tensors"):format(#a.names) or ("%d tensors differ"):format(count))
  if count > 0 then os.exit(1, true) end
end

function commands.verify(words)
  local paths = parsed(words, 1)
  local steps, wrong = sharded.steps_of(paths[1]), 0
  if #steps == 0 then steps = { { path = paths[1], complete = true } } end
  local function tell(text)
    wrong = wrong + 1
    print(text)
  end
  for _, step in ipairs(steps) do
    if not step.complete then
      print(("%s: not complete, %s"):format(step.path, sharded.why_incomplete(step.path)))
    else
      local before = wrong
      local ok, checkpoint = pcall(sharded.open, step.path, true)
      if not ok then
        tell((tostring(checkpoint):gsub("^lunaria:[^:]*:%d+: ", "")))
      else
        for i in ipairs(checkpoint.files) do
          local good, message = pcall(checkpoint.verify, checkpoint, i)
          if not good then tell((tostring(message):gsub("^lunaria:[^:]*:%d+: ", ""))) end
        end
        for _, rank in ipairs(checkpoint.absent) do
          tell(("%s/%s is not there"):format(step.path, shards.name_of(rank, checkpoint.ranks)))
        end
        for _, name in ipairs(checkpoint:names()) do
          local missing = checkpoint:missing(name)
          if #missing > 0 then
            tell(("%s: the elements %s are in no file"):format(io_.printable(name), table.concat(missing, ", ", 1, math.min(#missing, 4))))
          end
        end
        if wrong == before then
          print(("%s: %d tensors in %d files are whole"):format(step.path, #checkpoint:names(), #checkpoint.files))
        end
      end
    end
  end
  if wrong > 0 then os.exit(1, true) end
end

return function(command, ...)
  local words = { ... }
  if command == nil or command == "--help" or words[1] == "--help" then return print(usage) end
  if commands[command] then return commands[command](words) end
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  table.sort(names)
  fail("there is no '%s'; there are: %s", command, table.concat(names, ", "))
end
