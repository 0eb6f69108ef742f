-- SummaryLandscape: the loss landscapes of the weights that a training has saved.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local saved_weights = require "lunaria.train.saved_weights"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local SummaryLandscape = class.define(nil, "SummaryLandscape", "summary_dir",
  [[Computes loss landscapes from the weights that SummaryCollector saved with collect_landscape, and writes them into the run, where
lunaria insight shows them. summary_dir: the folder of the collector. ms.insight.landscape is the same for weights from elsewhere.

  > ms.io.make_folder("/tmp/lunaria_help_landscape")
  > ms.train.SummaryLandscape("/tmp/lunaria_help_landscape").summary_dir --> /tmp/lunaria_help_landscape
  > os.remove("/tmp/lunaria_help_landscape") --> true]])

function SummaryLandscape:setup(a)
  if type(a.summary_dir) ~= "string" or a.summary_dir == "" then
    fail("SummaryLandscape", "summary_dir must be a path, got " .. describe(a.summary_dir))
  end
  self.summary_dir = a.summary_dir
end

--- Removes the saved weights.
---     > ms.io.make_folder("/tmp/lunaria_help_landscape/ckpt_dir")
---     > ms.train.SummaryLandscape("/tmp/lunaria_help_landscape"):clean_ckpt()
---     > ms.io.kind("/tmp/lunaria_help_landscape/ckpt_dir") == nil --> true
---     > os.remove("/tmp/lunaria_help_landscape") --> true
function SummaryLandscape:clean_ckpt()
  local folder = self.summary_dir .. "/ckpt_dir"
  for _, name in ipairs(ms.io.list_folder(folder) or {}) do
    if name:find "%.ckpt$" or name == "train_metadata.json" then os.remove(folder .. "/" .. name) end
  end
  os.remove(folder)
end

-- A table of settings that comes last is one of arguments by name only where it has their names.
local function by_name(callback_fn, last, ...)
  if select("#", ...) == 0 and type(last) == "table" and getmetatable(last) == nil then
    for _, name in ipairs { "landscape_size", "unit", "create_landscape", "num_samples", "intervals" } do
      if last[name] ~= nil then return callback_fn, { collect_landscape = last } end
    end
  end
  return callback_fn, last, ...
end

local names = { "callback_fn", "collect_landscape", "device_ids", "device_target", "output" }

-- A list of integers as MindSpore writes it into a tag.
local function listed(list) return "[" .. table.concat(list, ", ") .. "]" end

local function given_model(callback_fn)
  local model, network, dataset = callback_fn()
  if not class.is_a(model, ms.Model) or type(network) ~= "table" or dataset == nil then
    fail("gen_landscapes_with_multi_process", "callback_fn must give a Model, its network and a data set, got "
      .. describe(model) .. ", " .. describe(network) .. ", " .. describe(dataset))
  end
  return model, network, dataset
end

--- Computes the landscapes and writes them: of each interval of saved weights the plane of its path, and the surroundings of the
--- result in two random directions. callback_fn: a function that gives a Model, its network and a data set. collect_landscape: as for
--- SummaryCollector; what it has replaces what was said there. output: another folder for the landscapes. device_ids, device_target:
--- MindSpore's; all is computed in this process. Gives the landscapes by tag.
---     > net, folder = ms.nn.Dense(2, 1), "/tmp/lunaria_help_landscape"
---     > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.1))
---     > batches = { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }
---     > wanted = { collect_landscape = { landscape_size = 3, create_landscape = { train = true, result = false } } }
---     > collector = ms.train.SummaryCollector(folder, { keep_default_action = false, collect_specified_data = wanted })
---     > model:train(4, batches, collector)
---     > landscape = ms.train.SummaryLandscape(folder)
---     > found = landscape:gen_landscapes_with_multi_process(function() return model, net, batches end)
---     > next(found), found["landscape_[1, 4]"].z.shape --> landscape_[1, 4]	(3, 3)
---     > landscape:clean_ckpt()
---     > for _, name in ipairs(ms.io.list_folder(folder)) do os.remove(folder .. "/" .. name) end
---     > os.remove(folder) --> true
function SummaryLandscape:gen_landscapes_with_multi_process(...)
  local where = "gen_landscapes_with_multi_process"
  local callback_fn, collect_landscape, _, _, output = arguments.named(where, names, by_name(...))
  if not arguments.is_callable(callback_fn) then fail(where, "callback_fn must be a function, got " .. describe(callback_fn)) end
  if output ~= nil and type(output) ~= "string" then fail(where, "output must be a path, got " .. describe(output)) end
  local data = saved_weights.load(where, self.summary_dir)
  local checked = saved_weights.options(where, collect_landscape or {})
  local function setting(name)
    if collect_landscape and collect_landscape[name] ~= nil then return checked[name] end
    return data[name] == nil and checked[name] or data[name]
  end
  local groups = {}
  local intervals = collect_landscape and collect_landscape.intervals
  if intervals then
    groups = intervals
  else
    for i = 0, math.huge do
      local group = data.epoch_group[tostring(i)]
      if type(group) ~= "table" then break end
      groups[i + 1] = group
    end
  end
  local create, size = setting "create_landscape", check.integer(where, "landscape_size", setting "landscape_size")
  local model, network, dataset = given_model(callback_fn)
  local found, tags = {}, {}
  local function add(interval, directions, tag)
    local checkpoints = {}
    local there = {}
    for _, n in ipairs(interval) do
      if data.files[n] then checkpoints[#checkpoints + 1], there[#there + 1] = data.files[n], n end
    end
    if #there < (directions == "pca" and 3 or 1) then return end
    found[tag] = ms.insight.landscape(network, model.loss_fn, dataset, checkpoints, { size = size, directions = directions,
      num_samples = setting "num_samples", intervals = there, unit = setting "unit", steps_per_epoch = data.step_per_epoch })
    tags[#tags + 1] = tag
  end
  if create.train then
    for _, interval in ipairs(groups) do add(interval, "pca", "landscape_" .. listed { interval[1], interval[#interval] }) end
  end
  local last = groups[#groups]
  if create.result and last then add({ last[#last] }, "random", "landscape_" .. listed { last[#last] }) end
  if #tags == 0 then fail(where, "no interval has the weights of three steps or epochs") end
  local record <close> = ms.train.SummaryRecord(output or self.summary_dir)
  for _, tag in ipairs(tags) do
    record:add_value("landscape", tag, found[tag])
    record:record(0)
  end
  return found
end

return { SummaryLandscape = SummaryLandscape }
