-- ms.dataset.config: what data sets do where they are told nothing else.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local files = require "lunaria.dataset.files"
local steps = require "lunaria.dataset.steps"

local check = arguments.check
local config = {}
-- How many batches wait for each thread where nothing is said; fewer where they are large.
local usual_prefetch = 8
local settings = { auto_workers = false, debug = false, autotune = false, autotune_interval = 0,
  error_samples = 0 }

local most = 1024

-- A number of threads or of batches.
local function bounded(where, name, value)
  value = check.positive(where, name, value)
  if value > most then arguments.fail(where, ("%s must be at most %d, got %d"):format(name, most, value)) end
  return value
end
config._bounded = bounded

--- Shuffles and samplers that are made from now on draw by this seed; without a call by that of ms.set_seed.
---     > (function() ms.dataset.config.set_seed(7) return ms.dataset.config.get_seed() end)() --> 7
function config.set_seed(seed) settings.seed = check.not_negative("set_seed", "seed", seed) end

--- The seed by which shuffles and samplers draw.
---     > math.type(ms.dataset.config.get_seed()) --> integer
function config.get_seed() return settings.seed or ms.get_seed() end

--- How many threads (num) put batches together. Order and content do not depend on it.
---     > (function() ms.dataset.config.set_num_parallel_workers(2) return ms.dataset.config.get_num_parallel_workers() end)() --> 2
function config.set_num_parallel_workers(num) settings.workers = bounded("set_num_parallel_workers", "num", num) end

--- How many threads put batches together; without a call as many as operators use, at most 4, or with
--- ms.dataset.config.set_auto_num_workers all of them.
---     > ms.dataset.config.get_num_parallel_workers() >= 1 --> true
function config.get_num_parallel_workers()
  local threads = ms.get_num_threads()
  return settings.auto_workers and threads or settings.workers or math.min(4, threads)
end

--- enable: as many threads as operators may use put batches together, whatever ms.dataset.config.set_num_parallel_workers says.
---     > (function() ms.dataset.config.set_auto_num_workers(false) return ms.dataset.config.get_auto_num_workers() end)() --> false
function config.set_auto_num_workers(enable) settings.auto_workers = check.boolean("set_auto_num_workers", "enable", enable) end

--- Whether as many threads as operators may use put batches together.
---     > ms.dataset.config.get_auto_num_workers() --> false
function config.get_auto_num_workers() return settings.auto_workers end

steps.enumeration(config, "ErrorSamplesMode", [[What ds:map does with a row for which its operations fail: RETURN the error, REPLACE the row
or SKIP it.

    > ms.dataset.config.ErrorSamplesMode.SKIP
    2]], { RETURN = 0, REPLACE = 1, SKIP = 2 })

--- What ds:map does, in pipelines that are made from now on, with a row for which its operations fail: error_samples_mode is one of
--- ms.dataset.config.ErrorSamplesMode. RETURN: the error ends the epoch; SKIP: the row is left out; REPLACE: the last row before that was
--- good comes in its place, or the first one behind. Which rows these are does not depend on the number of workers.
---     > ms.dataset.config.set_error_samples_mode(ms.dataset.config.ErrorSamplesMode.SKIP)
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false })
---     > ds = ds:map(function(x) assert(x:item() ~= 2) return x end)
---     > ds:get_dataset_size() --> 2
---     > ms.dataset.config.set_error_samples_mode(ms.dataset.config.ErrorSamplesMode.RETURN)
function config.set_error_samples_mode(error_samples_mode)
  settings.error_samples = steps.choice("set_error_samples_mode", "error_samples_mode", error_samples_mode, config, "ErrorSamplesMode")
end

--- What ds:map does with a row for which its operations fail: one of ms.dataset.config.ErrorSamplesMode.
---     > ms.dataset.config.get_error_samples_mode() --> 0
function config.get_error_samples_mode() return settings.error_samples end

--- enable: no thread makes rows ahead, each is made when it is asked for, so that a debugger and prints follow the program.
---     > (function() ms.dataset.config.set_debug_mode(false) return ms.dataset.config.get_debug_mode() end)() --> false
function config.set_debug_mode(enable) settings.debug = check.boolean("set_debug_mode", "enable", enable) end

--- Whether rows are made only when they are asked for.
---     > ms.dataset.config.get_debug_mode() --> false
function config.get_debug_mode() return settings.debug end

--- enable: from now on iterators look at the end of each epoch (or after the rows of ms.dataset.config.set_autotune_interval) how often
--- the program waited for rows and how full the queue was, and change the number of threads, up to those that operators may use, and of
--- rows that wait for the next epoch. Order and content do not depend on it. filepath_prefix: what was found is written to
--- PREFIX_0.json then.
---     > ms.dataset.config.set_enable_autotune(true)
---     > ms.dataset.config.get_enable_autotune() --> true
---     > ms.dataset.config.set_enable_autotune(false)
function config.set_enable_autotune(enable, filepath_prefix)
  filepath_prefix = arguments.named("set_enable_autotune", { "filepath_prefix" }, filepath_prefix)
  settings.autotune = check.boolean("set_enable_autotune", "enable", enable)
  if filepath_prefix ~= nil and type(filepath_prefix) ~= "string" then
    arguments.fail("set_enable_autotune", "filepath_prefix must be a path, got " .. arguments.describe(filepath_prefix))
  end
  settings.autotune_path = filepath_prefix
end

--- Whether iterators choose the number of threads and of rows that wait.
---     > ms.dataset.config.get_enable_autotune() --> false
function config.get_enable_autotune() return settings.autotune end

--- After how many rows (interval; batches where they are) of an epoch tuning looks at it: what comes later does not count. 0: at its
--- end.
---     > (function() ms.dataset.config.set_autotune_interval(0) return ms.dataset.config.get_autotune_interval() end)() --> 0
function config.set_autotune_interval(interval)
  settings.autotune_interval = check.not_negative("set_autotune_interval", "interval", interval)
end

--- After how many rows of an epoch tuning looks at it.
---     > ms.dataset.config.get_autotune_interval() --> 0
function config.get_autotune_interval() return settings.autotune_interval end

-- Threads and rows for each that the next epoch of a data set begins with; without threads in debug mode.
function config._begin(dataset)
  if settings.debug then return 0, 1, false end
  local tuned = settings.autotune and rawget(dataset, "_tuned") or nil
  local prefetch = tuned and tuned.prefetch or settings.prefetch
  return tuned and tuned.workers or config.get_num_parallel_workers(), prefetch or usual_prefetch, settings.autotune, prefetch == nil
end

-- By the queue of an epoch: whether the program waited for rows, or threads had nothing to do.
function config._tune(dataset, queue)
  local workers, prefetch = config._begin(dataset)
  local waits, full = queue.waits / math.max(1, queue.asked), queue.full / math.max(1, queue.asked * queue.places)
  if waits > 0.05 then
    if workers < ms.get_num_threads() then workers = workers + 1 elseif prefetch < 16 then prefetch = prefetch * 2 end
  elseif full > 0.9 and workers > 1 then
    workers = workers - 1
  end
  dataset._tuned = { workers = workers, prefetch = prefetch }
  if not settings.autotune_path then return end
  local file, problem = io.open(settings.autotune_path .. "_0.json", "w")
  if not file then arguments.fail("autotune", problem) end
  file:write(ms.json.encode { num_parallel_workers = workers, prefetch_size = prefetch, waits = waits, queue = full })
  file:close()
end

--- Takes settings from a file of JSON: seed, numParallelWorkers (or num_parallel_workers), prefetchSize (or prefetch_size, as tuning
--- writes it).
---     > (pcall(ms.dataset.config.load, "/no/such.json")) --> false
function config.load(file)
  local ok, given = pcall(ms.json.decode, files.text_of("load", file, "file"))
  if not ok or type(given) ~= "table" then arguments.fail("load", file .. ": the settings are no object of JSON") end
  local function take(set, ...)
    for _, name in ipairs { ... } do
      if given[name] ~= nil then set(given[name]) end
    end
  end
  take(config.set_seed, "seed")
  take(config.set_num_parallel_workers, "numParallelWorkers", "num_parallel_workers")
  take(config.set_prefetch_size, "prefetchSize", "prefetch_size")
end

--- How many finished batches (size) wait for each thread that makes them, however large they are.
---     > (function() ms.dataset.config.set_prefetch_size(2) return ms.dataset.config.get_prefetch_size() end)() --> 2
function config.set_prefetch_size(size) settings.prefetch = bounded("set_prefetch_size", "size", size) end

--- How many finished batches wait for each thread that makes them; without a call of ms.dataset.config.set_prefetch_size 8, or fewer
--- (2 at least) where they would take more than 64 MB together.
---     > ms.dataset.config.get_prefetch_size() >= 1 --> true
function config.get_prefetch_size() return settings.prefetch or usual_prefetch end

return config
