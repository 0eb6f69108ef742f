-- ms.lite.Model: a light file that runs.
local ms = require "lunaria"
local core = require "lunaria.lite_model_core"
local arguments = require "lunaria.nn.arguments"

local function fail(message, hint) arguments.fail("lite.Model", message, hint) end

--- A light model from a file that ms.lite.convert wrote; the file is mapped, its weights are read where they are. Checksums of the
--- description are always compared, those of the weights in files of up to 8 MiB.
---
--- threads: how many compute; 0: one for each processor. affinity: "none", "big" or "middle" cores for threads but the
--- caller's; cores: their numbers. decrypt_key: of an encrypted file, in hexadecimal digits.
local Model = {}
Model.__index = Model
Model.__name = "lite.Model"

local known = { threads = true, affinity = true, cores = true, decrypt_key = true }
local affinities = { none = 0, big = 1, middle = 2 }

local function wrap(model) return setmetatable({ _model = model, _count = #core.about(model).inputs }, Model) end

local function build(path, options)
  options = options or {}
  if type(path) ~= "string" then fail("the first argument is the path of a light file, not " .. arguments.describe(path)) end
  for name in pairs(options) do
    if not known[name] then fail(("there is no option '%s'"):format(name), "threads, affinity, cores and decrypt_key are") end
  end
  local affinity = affinities[options.affinity or "none"]
  if not affinity then fail "affinity is \"none\", \"big\" or \"middle\"" end
  local threads = options.threads or 1
  if math.type(threads) ~= "integer" or threads < 0 or threads > 1024 then fail "threads is a number from 0 to 1024" end
  return wrap(core.build(path, threads, affinity, options.cores or {}, options.decrypt_key or ""))
end

--- The inputs in their order: tables with name, dtype and shape.
function Model:inputs() return core.about(self._model).inputs end

--- The outputs in their order: tables with name, dtype and shape.
function Model:outputs() return core.about(self._model).outputs end

--- Shapes for all inputs, in their order. Only sizes that were left open when the model was converted may change.
function Model:resize(...)
  core.resize(self._model, { ... })
  return self
end

--- The outputs for these inputs: tensors in the order of inputs(), or one table of them by name.
function Model:predict(...)
  local given, count = { ... }, self._count
  if #given == 1 and type(given[1]) == "table" and not ms.is_tensor(given[1]) then
    local named = given[1]
    given = {}
    for i, input in ipairs(self:inputs()) do
      given[i] = named[input.name] or named[i] or fail(("input '%s' is missing"):format(input.name))
    end
  elseif select("#", ...) ~= count then
    fail(("the model takes %d input%s, got %d"):format(count, count == 1 and "" or "s", select("#", ...)))
  end
  return table.unpack(core.predict(self._model, given, self._times or false))
end
Model.__call = Model.predict

--- Sets weights by their names: { name = tensor }. Names and bytes are those of the light file, which stays as it is.
function Model:update_weights(weights)
  for name, weight in pairs(weights) do core.update(self._model, name, weight) end
  return self
end

--- Writes the model with its present weights and states to a file: complete under its name, or not there.
function Model:save(path)
  core.save(self._model, path)
  return self
end

--- The steps of the model: tables with kind, label (its operators), node, source, flops; and seconds of the last predict
--- after measure(true). Second, the seconds of all of it.
function Model:steps() return core.steps(self._model) end

--- Whether predict notes how long each step takes.
function Model:measure(on)
  self._times = on ~= false
  return self
end

--- Bytes of temporaries (arena), of kernels' scratch memory, and of the model's own results and states.
function Model:memory() return core.memory(self._model) end

function Model:__tostring()
  local function list(values)
    local texts = {}
    for i, v in ipairs(values) do texts[i] = ("%s %s%s"):format(v.name, tostring(v.dtype):lower(), tostring(v.shape)) end
    return table.concat(texts, ", ")
  end
  return ("lite.Model(%s -> %s)"):format(list(self:inputs()), list(self:outputs()))
end

return setmetatable({ _methods = Model, _build = build, _wrap = wrap },
  { __call = function(_, ...) return build(...) end, __index = Model })
