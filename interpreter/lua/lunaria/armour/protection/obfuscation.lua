-- Obfuscated weights: files whose weights are of use only with a secret. Factors are powers of two with signs, so that what is
-- put right again has the bits of the original.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local obfuscation = {}

-- Factors +-2^k of a shape, -most <= k <= most, drawn by a seed.
local function factors(draws, shape, most, dtype)
  local exponents = draws:integers(shape, -most, most + 1):astype(ms.float32)
  local signs = 1 - 2 * draws:integers(shape, 0, 2):astype(ms.float32)
  return (signs * ops.exp2(exponents)):astype(dtype)
end

-- The cells that are obfuscated, with their names: those that are named, or all Dense and convolution cells.
local function targets_of(where, network, target_modules)
  if not cells.is_cell(network) then fail(where, "network must be a cell, got " .. describe(network)) end
  local found, names, list = {}, {}, {}
  for name, cell in network:cells_and_names() do
    local weight = rawget(cell, "weight")
    local kind = getmetatable(cell)._name
    if (kind == "Dense" or kind:find "^Conv%dd$") and ms.is_parameter(weight) then
      found[name] = cell
      names[#names + 1] = name
    end
  end
  if target_modules == nil then target_modules = names end
  if type(target_modules) ~= "table" or getmetatable(target_modules) ~= nil or #target_modules == 0 then
    fail(where, #names == 0 and "the network has no Dense or convolution cell"
      or "target_modules must be a list of names of cells, got " .. describe(target_modules))
  end
  for i, name in ipairs(target_modules) do
    local cell = found[name]
    if not cell then
      fail(where, ("the network has no Dense or convolution cell '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
    end
    list[i] = { name = name, cell = cell }
  end
  return list
end

-- The factor of each input channel that belongs to a ratio: the ratio is the key, and its size says how far factors go.
local function channel_factors(ratio, channels, dtype)
  local seed = string.unpack("<I8", string.pack("<d", ratio)) & 0x7fffffffffff
  return factors(common.generator(seed), { channels }, math.max(1, math.floor(math.log(ratio, 2))), dtype)
end

-- With axes of length 1 so that factors go along an axis of x, counted from 0.
local function along(f, axis, ndim)
  local shape = {}
  for i = 1, ndim do shape[i] = i == axis + 1 and f.size or 1 end
  return f:reshape(shape)
end

local obfuscate_signature = arguments.signature("network, ckpt_files, target_modules=nil, saved_path=\"./\", obfuscate_scale=100, seed=nil")

--- Writes a checkpoint whose weights are scrambled, as NAME_obf.ckpt, and gives the ratios that put them right, a list of numbers: the
--- secret.
--- network: the cell that the checkpoint belongs to, which keeps its values. ckpt_files: the path of the checkpoint. target_modules: the
--- names of the Dense and convolution cells to scramble, by default all: the weights of each input channel get a factor. saved_path: the
--- folder for the file. obfuscate_scale: more than 1, the larger the farther the factors go. seed: of the ratios, by default drawn anew.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
---     > ms.save_checkpoint(net, "/tmp/lunaria_obfuscated.ckpt")
---     > ratios = ms.obfuscate_ckpt(net, "/tmp/lunaria_obfuscated.ckpt", { saved_path = "/tmp" })
---     > restored = ms.load_obf_params_into_net(ms.nn.SequentialCell(ms.nn.Dense(4, 3)), nil, ratios)
---     > _ = ms.load_param_into_net(restored, ms.load_checkpoint("/tmp/lunaria_obfuscated_obf.ckpt"))
---     > ms.ops.equal(restored(ms.ones { 1, 4 }), net(ms.ones { 1, 4 })):all():item() --> true
---     > (os.remove("/tmp/lunaria_obfuscated.ckpt")) and (os.remove("/tmp/lunaria_obfuscated_obf.ckpt")) --> true
function obfuscation.obfuscate_ckpt(...)
  local where = "obfuscate_ckpt"
  local a = arguments.bind(where, obfuscate_signature, ...)
  local targets = targets_of(where, a.network, a.target_modules)
  for _, name in ipairs { "ckpt_files", "saved_path" } do
    if type(a[name]) ~= "string" then fail(where, ("%s must be a path, got %s"):format(name, describe(a[name]))) end
  end
  local scale = check.number(where, "obfuscate_scale", a.obfuscate_scale)
  if not (scale > 1) then fail(where, ("obfuscate_scale must be more than 1, got %s"):format(tostring(scale))) end
  local draws = common.generator(a.seed, where)
  local values, ratios = ms.load_checkpoint(a.ckpt_files), {}
  for i, target in ipairs(targets) do
    local name = target.cell.weight.name
    local weight = values[name]
    if weight == nil then fail(where, ("%s has no parameter '%s' of the network"):format(a.ckpt_files, name)) end
    local ratio = 1 + draws:number() * (scale - 1)
    ratios[i] = ratio
    values[name] = weight * along(channel_factors(ratio, weight.shape[2], weight.dtype), 1, weight.ndim)
  end
  local base = a.ckpt_files:match "([^/]+)$":gsub("%.ckpt$", ""):gsub("%.safetensors$", "")
  local folder = a.saved_path:sub(-1) == "/" and a.saved_path or a.saved_path .. "/"
  local extension = a.ckpt_files:match "%.safetensors$" or ".ckpt"
  ms.save_checkpoint(values, folder .. base .. "_obf" .. extension)
  return ratios
end

--- Makes a network that computes with scrambled weights what the original did; the checkpoint is loaded afterwards. network: the cell.
--- target_modules: as for ms.obfuscate_ckpt. obf_ratios: what that gave. Gives the network back.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
---     > ms.load_obf_params_into_net(net, { "0" }, { 2.5 }) == net --> true
function obfuscation.load_obf_params_into_net(network, target_modules, obf_ratios)
  local where = "load_obf_params_into_net"
  target_modules, obf_ratios = arguments.named(where, { "target_modules", "obf_ratios", last_has_names = true }, target_modules, obf_ratios)
  local targets = targets_of(where, network, target_modules)
  if type(obf_ratios) ~= "table" or #obf_ratios ~= #targets then
    fail(where, ("obf_ratios must have a number for each of the %d cells, got %s"):format(#targets, describe(obf_ratios)))
  end
  for i, target in ipairs(targets) do
    -- The ratios are a secret, which the error doesn't tell.
    local ratio = obf_ratios[i]
    if not math.type(ratio) or not (ratio > 1) then
      fail(where, "obf_ratios must be numbers of more than 1, as ms.obfuscate_ckpt gives them")
    end
    local weight = target.cell.weight
    local own = channel_factors(ratio, weight.shape[2], weight.dtype)
    -- The channels of all groups of a convolution share the factors.
    local is_dense = weight.ndim == 2
    local inverse = 1 / own
    target.cell:register_forward_pre_hook(function(_, x)
      local axis = is_dense and x.ndim - 1 or 1
      local groups = x.shape[axis + 1] // own.size
      return x * along(groups > 1 and ops.tile(inverse, { groups }) or inverse, axis, x.ndim)
    end)
  end
  return network
end

--- Scales the parameters of a GraphCell by factors of a seed, or back.
function obfuscation.scale(where, cell, seed, is_back)
  local draws = common.generator(common.secret(where, "obf_random_seed", seed))
  local names, params = {}, {}
  for _, p in pairs(cell:get_parameters()) do
    names[#names + 1] = p.name
    params[p.name] = p
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local p = params[name]
    if ops.is_floating_point(p) then
      local f = factors(draws, { p.size }, 4, p.dtype):reshape(p.shape)
      p:set_data(is_back and p / f or p * f)
    end
  end
end

local config_names = { "original_model_path", "save_model_path", "model_inputs", "obf_random_seed" }

--- Writes a MindIR file whose parameters are scrambled by a seed; nn.GraphCell(path, { obf_random_seed = seed }) puts them right.
--- obf_config: a table with original_model_path and save_model_path, files; model_inputs, a list of tensors as the network takes; and
--- obf_random_seed, the secret, an integer.
---     > ms.save_mindir(ms.nn.Dense(2, 3), "/tmp/lunaria_plain.mindir", ms.ones { 1, 2 })
---     > config = { original_model_path = "/tmp/lunaria_plain.mindir", save_model_path = "/tmp/lunaria_secret.mindir" }
---     > config.model_inputs, config.obf_random_seed = { ms.ones { 1, 2 } }, 77
---     > ms.obfuscate_model(config)
---     > plain, secret = ms.nn.GraphCell("/tmp/lunaria_plain.mindir"), ms.nn.GraphCell("/tmp/lunaria_secret.mindir", nil, 77)
---     > ms.ops.equal(secret(ms.ones { 1, 2 }), plain(ms.ones { 1, 2 })):all():item() --> true
---     > (os.remove("/tmp/lunaria_plain.mindir")) and (os.remove("/tmp/lunaria_secret.mindir")) --> true
function obfuscation.obfuscate_model(obf_config)
  local where = "obfuscate_model"
  if type(obf_config) ~= "table" then fail(where, "obf_config must be a table, got " .. describe(obf_config)) end
  for name in pairs(obf_config) do
    local known = false
    for _, other in ipairs(config_names) do known = known or other == name end
    if not known then
      fail(where, ("obf_config has no field '%s'"):format(tostring(name)), arguments.nearest(tostring(name), config_names))
    end
  end
  for _, name in ipairs { "original_model_path", "save_model_path" } do
    if type(obf_config[name]) ~= "string" then fail(where, ("%s must be a path, got %s"):format(name, describe(obf_config[name]))) end
  end
  local inputs = obf_config.model_inputs
  if ms.is_tensor(inputs) then inputs = { inputs } end
  if type(inputs) ~= "table" or not ms.is_tensor(inputs[1]) then
    fail(where, "model_inputs must be a list of tensors, got " .. describe(obf_config.model_inputs))
  end
  common.secret(where, "obf_random_seed", obf_config.obf_random_seed)
  local cell = ms.nn.GraphCell(obf_config.original_model_path)
  obfuscation.scale(where, cell, obf_config.obf_random_seed, false)
  ms.save_mindir(cell, obf_config.save_model_path, table.unpack(inputs))
end

return obfuscation
