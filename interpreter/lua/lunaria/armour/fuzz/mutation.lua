-- Mutations of inputs for fuzz testing: transforms of pictures and attacks with parameters drawn from lists.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local kinds = {}
local function add(kind, names)
  for name in names:gmatch "%S+" do kinds[name] = kind end
end
add("pixels", "Contrast GradientLuminance GaussianBlur MotionBlur GradientBlur UniformNoise GaussianNoise SaltAndPepperNoise NaturalNoise")
add("affine", "Translate Scale Shear Rotate Perspective Curve")
add("attack", "FGSM PGD MDIIM")

local attack_classes = { FGSM = "FastGradientSignMethod", PGD = "ProjectedGradientDescent", MDIIM = "MomentumDiverseInputIterativeMethod" }

local mutation = {}

--- Whether a method is an attack.
function mutation.is_attack(method) return kinds[method] == "attack" end

local Mutation = {}
Mutation.__index = Mutation

local example = "{ { method = \"GaussianNoise\", params = { factor = { 0.1, 0.2 } } } }"

local function check_config(where, config)
  if type(config) ~= "table" or getmetatable(config) ~= nil or #config == 0 then
    fail(where, "mutate_config must be a list of methods, got " .. describe(config), example)
  end
  local has_pixels = false
  for i, row in ipairs(config) do
    if type(row) ~= "table" or type(row.method) ~= "string" then
      fail(where, ("entry %d of mutate_config must have a method, got %s"):format(i, describe(row)), example)
    end
    for key in pairs(row) do
      if key ~= "method" and key ~= "params" then
        fail(where, ("entry %d of mutate_config has method and params, not %s"):format(i, tostring(key)), example)
      end
    end
    if not kinds[row.method] then
      local names = {}
      for name in pairs(kinds) do names[#names + 1] = name end
      table.sort(names)
      fail(where, ("there is no mutation '%s'"):format(row.method), arguments.nearest(row.method, names) or table.concat(names, ", "))
    end
    for name, values in pairs(row.params or {}) do
      if type(values) ~= "table" or getmetatable(values) ~= nil or #values == 0 then
        fail(where, ("%s of %s must be a list of values to draw from, got %s"):format(name, row.method, describe(values)), example)
      end
    end
    has_pixels = has_pixels or kinds[row.method] == "pixels"
  end
  -- A seed that has been moved or attacked is only changed pixel by pixel.
  if not has_pixels then fail(where, "mutate_config must have at least one change of pixels, as GaussianNoise", example) end
end

--- Mutations by a configuration. model: of ms.armour's common.classifier, for attacks; lo, hi: the range of the inputs.
function mutation.new(where, config, model, lo, hi, draws)
  check_config(where, config)
  local pixels = {}
  for _, row in ipairs(config) do
    if kinds[row.method] == "pixels" then pixels[#pixels + 1] = row end
  end
  return setmetatable({ _all = config, _pixels = pixels, _model = model, _lo = lo, _hi = hi, _draws = draws }, Mutation)
end

local function one_of(self, list) return list[self._draws:integers({ 1 }, 0, #list):item() + 1] end

-- The attack of a row, one for each choice of its parameters: a compiled one is compiled once.
local function attack_of(self, row, params)
  self._attacks = self._attacks or {}
  local words = {}
  for name, value in pairs(params) do words[#words + 1] = name .. "=" .. tostring(value) end
  table.sort(words)
  local key = row.method .. " " .. table.concat(words, " ")
  if not self._attacks[key] then
    params.loss_fn = self._model.loss_fn
    params.bounds = params.bounds or { self._lo, self._hi }
    self._attacks[key] = ms.armour.attacks[attack_classes[row.method]](self._model.network, params)
  end
  return self._attacks[key]
end

--- A mutant of a seed { image =, label =, pixels_only = }: its image, the method, and whether from now on only pixels may change.
function Mutation:once(seed)
  local row = one_of(self, seed.pixels_only and self._pixels or self._all)
  local params, names = {}, {}
  for name in pairs(row.params or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do params[name] = one_of(self, row.params[name]) end
  local kind = kinds[row.method]
  if kind == "attack" then
    local attack = attack_of(self, row, params)
    return attack:generate(ops.expand_dims(seed.image, 0), ms.tensor({ seed.label }, ms.int32))[0], row.method, true
  end
  params.seed = self._draws:integers({ 1 }, 0, 1 << 31):item()
  local range = self._hi - self._lo
  -- Transforms take pictures from 0 to 1; rounding must not carry one past its ends.
  local image = ops.clamp((seed.image - self._lo) / range, 0.0, 1.0)
  image = ms.armour.natural_robustness.transform.image[row.method](params)(image) * range + self._lo
  return image, row.method, seed.pixels_only or kind == "affine"
end

--- Whether a mutant still shows what its seed shows: either more than 2 % of its pixels changed, by no more than the range of values, or
--- few
--- changed, by less than a fifth of the range.
function Mutation:is_valid(image, mutant)
  local range = self._hi - self._lo
  local difference = ops.abs(image - mutant)
  local changed = ops.mean(ops.greater(difference, 0):astype(ms.float32)):item()
  local most = ops.max(difference):item()
  if changed > 0.02 then return most <= range end
  return changed > 0 and most < 0.2 * range
end

return mutation
