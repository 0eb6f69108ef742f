-- ms.dataset.config: what data sets do where they are told nothing else.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local check = arguments.check
local config = {}
local settings = { prefetch = 2 }

local most = 1024

-- A number of threads or of batches.
local function bounded(where, name, value)
  value = check.positive(where, name, value)
  if value > most then arguments.fail(where, ("%s must be at most %d, got %d"):format(name, most, value)) end
  return value
end
config._bounded = bounded

--- Shuffles and samplers that are made from now on draw by this seed; without a call by that of ms.set_seed.
---
---     > (function() ms.dataset.config.set_seed(7) return ms.dataset.config.get_seed() end)()
---     7
function config.set_seed(seed) settings.seed = check.not_negative("set_seed", "seed", seed) end

--- The seed by which shuffles and samplers draw.
---
---     > math.type(ms.dataset.config.get_seed())
---     integer
function config.get_seed() return settings.seed or ms.get_seed() end

--- How many threads (num) put batches together. Order and content do not depend on it.
---
---     > (function() ms.dataset.config.set_num_parallel_workers(2) return ms.dataset.config.get_num_parallel_workers() end)()
---     2
function config.set_num_parallel_workers(num) settings.workers = bounded("set_num_parallel_workers", "num", num) end

--- How many threads put batches together; without a call as many as operators use, at most 4.
---
---     > ms.dataset.config.get_num_parallel_workers() >= 1
---     true
function config.get_num_parallel_workers() return settings.workers or math.min(4, ms.get_num_threads()) end

--- How many finished batches (size) wait for each thread that makes them.
---
---     > (function() ms.dataset.config.set_prefetch_size(2) return ms.dataset.config.get_prefetch_size() end)()
---     2
function config.set_prefetch_size(size) settings.prefetch = bounded("set_prefetch_size", "size", size) end

--- How many finished batches wait for each thread that makes them.
---
---     > ms.dataset.config.get_prefetch_size() >= 1
---     true
function config.get_prefetch_size() return settings.prefetch end

return config
