-- The weights that a training saves for a loss landscape: of some steps or epochs, never of each, and what is known of them in
-- ckpt_dir/train_metadata.json, which ms.train.SummaryLandscape and MindSpore's read.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local saved = {}

-- The most weights that are saved where no intervals are given.
local most_saved = 20

local known = { landscape_size = "number", unit = arguments.one_of("step", "epoch"), create_landscape = "table",
  num_samples = arguments.positive, intervals = "table" }

--- A table of collect_landscape, checked, with its defaults; where: for messages.
function saved.options(where, given)
  arguments.options(where, given, known, "{ landscape_size = 40 }")
  local size = check.integer(where, "landscape_size", given.landscape_size or 40)
  if size < 3 or size > 256 then fail(where, ("landscape_size must be between 3 and 256, got %d"):format(size)) end
  local create = arguments.options(where, given.create_landscape, { train = "boolean", result = "boolean" },
    "{ train = true, result = true }")
  for i, interval in ipairs(given.intervals or {}) do
    if type(interval) ~= "table" or #interval < 3 then
      fail(where, ("intervals[%d] must be a list of at least three steps or epochs, got %s"):format(i, describe(interval)))
    end
    for k, n in ipairs(interval) do check.positive(where, ("intervals[%d][%d]"):format(i, k), n) end
  end
  return { landscape_size = size, unit = given.unit or "step", num_samples = given.num_samples or 2048,
    create_landscape = { train = create.train ~= false, result = create.result ~= false }, intervals = given.intervals }
end

local Saved = {}
Saved.__index = Saved

-- Which units are saved: those of the intervals, or some spread over as many as there are.
-- total: how many there are, after `first` that an earlier training has made.
local function chosen(options, first, total)
  local wanted = {}
  for _, interval in ipairs(options.intervals or {}) do
    for _, n in ipairs(interval) do wanted[n] = true end
  end
  if options.intervals then return wanted end
  if not total then return nil end
  local count = math.min(most_saved, total)
  for i = 1, count do wanted[first + (i * total + count - 1) // count] = true end
  return wanted
end

--- The weights that a training will leave in a folder. total: how many steps it has, or nil.
function saved.new(folder, options, args, total)
  local per_epoch, first = args.batch_num, args.initial_epoch or 0
  if options.unit == "epoch" then total = args.epoch_num - first else first = first * (per_epoch or 0) end
  local self = { folder = folder .. "/ckpt_dir", options = options, files = {}, list = {}, every = 1, per_epoch = per_epoch,
    last = first, wanted = chosen(options, first, total) }
  ms.io.make_folder(self.folder)
  return setmetatable(self, Saved)
end

-- Where the number of steps is not known, every second one goes when there are too many.
local function thin_out(self)
  local list = {}
  for i, n in ipairs(self.list) do
    if i % 2 == 0 then
      list[#list + 1] = n
    else
      os.remove(self.folder .. "/" .. self.files[n])
      self.files[n] = nil
    end
  end
  self.list, self.every = list, 2 * self.every
end

local function save(self, args, n)
  local name = ("%s_%d_%s.ckpt"):format(getmetatable(args.network)._name:gsub("[^%w_]", "_"), n, self.options.unit)
  ms.save_checkpoint(args.network, self.folder .. "/" .. name)
  self.files[n], self.list[#self.list + 1] = name, n
  if not self.wanted and #self.list >= 2 * most_saved then thin_out(self) end
end

-- Of steps that are sunk into one call the last one stands for all.
local function reached(self, args, n)
  local is_due = not self.wanted and n % self.every == 0
  if self.wanted then
    for k = args.dataset_sink_mode and self.last + 1 or n, n do is_due = is_due or self.wanted[k] end
  end
  self.last = n
  if is_due and not self.files[n] then save(self, args, n) end
end

--- Called after a step, and after an epoch.
function Saved:step(args)
  if self.options.unit == "step" then reached(self, args, args.cur_step_num) end
end
function Saved:epoch(args)
  if self.options.unit == "epoch" then reached(self, args, args.cur_epoch_num) end
end

--- Called after the training: writes what the weights are of.
function Saved:close(args)
  local options, groups, files = self.options, {}, {}
  for i, interval in ipairs(options.intervals or { self.list }) do groups[tostring(i - 1)] = ms.json.array(interval) end
  for n, name in pairs(self.files) do files[tostring(n)] = self.folder .. "/" .. name end
  local file, message = io.open(self.folder .. "/train_metadata.json", "w")
  if not file then fail("SummaryCollector", message) end
  file:write(ms.json.encode { epoch_group = groups, model_params_file_map = files,
    step_per_epoch = self.per_epoch or args.cur_step_in_epoch, unit = options.unit, num_samples = options.num_samples,
    landscape_size = options.landscape_size, create_landscape = options.create_landscape })
  file:close()
end

--- What a training left in a folder: the fields of train_metadata.json, with paths of files that are there.
function saved.load(where, folder)
  local inside, text = folder .. "/ckpt_dir/train_metadata.json", nil
  for _, path in ipairs { inside, folder .. "/train_metadata.json" } do
    local file = io.open(path, "r")
    if file then
      text = text or file:read "a"
      file:close()
    end
  end
  if not text then
    fail(where, ("there is no %s"):format(inside), "train with SummaryCollector{ collect_specified_data = { collect_landscape = {} } }")
  end
  local ok, data = pcall(ms.json.decode, text)
  if not ok or type(data) ~= "table" or type(data.epoch_group) ~= "table" or type(data.model_params_file_map) ~= "table" then
    fail(where, inside .. " does not say which weights were saved")
  end
  local files = {}
  for n, path in pairs(data.model_params_file_map) do
    path = tostring(path)
    -- A run may have been moved.
    local moved = folder .. "/ckpt_dir/" .. path:match "[^/]*$"
    files[tonumber(n) or n] = ms.io.kind(moved) == "file" and moved or path
  end
  data.files = files
  return data
end

return saved
