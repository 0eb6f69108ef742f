-- ms.federated.FLYamlData: what a party of a split network takes, gives, sends and optimizes, as a table or a file.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local links = require "lunaria.federated.vertical.link"

local fail, describe = arguments.fail, arguments.describe

-- Checks of values: each gives the value, or nil and what it must be. -----------------------------------------------

local function text(value) return type(value) == "string" and value ~= "" and value or nil, "a text" end
local function count(value) return math.type(value) == "integer" and value > 0 and value or nil, "a positive integer" end
local function flag(value) if type(value) == "boolean" then return value end return nil, "true or false" end
local function any(value) return value end
local function not_negative(value) return math.type(value) and value >= 0 and value or nil, "a number from 0 up" end
local function bits(value) return math.type(value) == "integer" and value >= 1 and value <= 8 and value or nil, "an integer from 1 to 8" end
local function number_or_text(value) return (math.type(value) or type(value) == "string") and value or nil,
  "a number or the name of an output" end
local function choice(...)
  local fits = arguments.one_of(...)
  return function(value)
    local is_one, words = fits(value)
    return is_one and value or nil, words
  end
end

-- A table with these keys; "!" before a check: the key must be there.
local function fields(known) return { fields = known } end
local function list(item) return { list = item } end

local compression = { compress_type = choice("no_compress", "min_max", "bit_pack"), bit_num = bits }
local function with(more, base)
  for key, value in pairs(base) do more[key] = value end
  return more
end
local input = fields(with({ name = text, source = choice("local", "remote") }, compression))
local output = fields(with({ name = text, destination = choice("local", "remote") }, compression))
local named = fields { name = text }
local net = fields { name = text, inputs = list(input), outputs = list(output), gt = text }
local gradient = fields { inputs = list(named), output = named, params = list(any), sens = number_or_text }

local all = fields {
  role = choice("leader", "follower"),
  model = fields { train_net = net, eval_net = net },
  opts = list(fields { type = text, grads = list(gradient), params = list(any), hyper_parameters = any }),
  grad_scalers = list(fields { inputs = list(named), output = named, sens = number_or_text }),
  dataset = any,
  hyper_parameters = fields { epochs = count, batch_size = count, is_eval = flag },
  privacy = fields { label_dp = fields { eps = not_negative, classes = count }, embedding_dp = fields { eps = not_negative } },
  ckpt_path = text,
}

local checked

local function checked_fields(value, known, place)
  if type(value) ~= "table" or getmetatable(value) ~= nil or #value > 0 then
    fail("FLYamlData", ("%s must be a table of names, got %s"):format(place, describe(value)))
  end
  for key, item in pairs(value) do
    local rule = known[key]
    if rule == nil then
      local hint = key == "tee_layer" and "cut layers in a trusted enclave are not supported: no hardware for it is assumed"
        or arguments.nearest(tostring(key), links.sorted_names(known))
      fail("FLYamlData", ("%s has the unknown key '%s'; there are: %s"):format(place, tostring(key),
        table.concat(links.sorted_names(known), ", ")), hint)
    end
    checked(item, rule, place == "the configuration" and key or place .. "." .. key)
  end
end

function checked(value, rule, place)
  if type(rule) == "function" then
    local ok, words = rule(value)
    if ok == nil then fail("FLYamlData", ("%s must be %s, got %s"):format(place, words or "something else", describe(value))) end
  elseif rule.fields then
    checked_fields(value, rule.fields, place)
  else
    if type(value) ~= "table" or getmetatable(value) ~= nil or next(value) ~= nil and #value == 0 then
      fail("FLYamlData", ("%s must be a list, got %s"):format(place, describe(value)))
    end
    for i, item in ipairs(value) do checked(item, rule.list, ("%s[%d]"):format(place, i)) end
  end
end

local function read(path)
  local file, problem = io.open(path, "rb")
  if not file then fail("FLYamlData", ("%s cannot be read: %s"):format(path, problem)) end
  local content = file:read "a"
  file:close()
  if path:find "%.json$" then return ms.json.decode(content) end
  return ms.json.decode((require("lunaria.federated_server_core").yaml(content, path)))
end

local FLYamlData = class.define(nil, "FLYamlData", "config", [[What a party of a split network takes and gives: config is a table, or the
path of a .json or .yaml file with one. Its keys:

role: "leader" or "follower". model.train_net and model.eval_net: inputs, a list of { name =, source = "local" or "remote" }, and outputs,
of { name =, destination = "local" or "remote" }, in the order in which the network takes and gives them; what goes to or comes from
remote may have compress_type ("no_compress", "min_max" or "bit_pack") and bit_num (1 to 8); eval_net has gt, the input that is the label.
opts: optimizers, a list of { type = a name of ms.nn, params = names of parameters (with * for any letters), hyper_parameters =, grads = {
{ output = { name = }, sens = } } }: gradients of that output, times sens, a number or the name of what the other party sends.
grad_scalers: a list of { inputs = { { name = } }, output = { name = }, sens = }: gradients by remote inputs, which go back to the parties
that have sent them. privacy.label_dp.eps, privacy.embedding_dp.eps; hyper_parameters.epochs, batch_size, is_eval; dataset, for the
program; ckpt_path. Other keys, and values that do not fit, are errors.

  > net = { inputs = { { name = "x", source = "local" } }, outputs = { { name = "h", destination = "remote" } } }
  > ms.federated.FLYamlData({ role = "follower", model = { train_net = net } }).role --> follower]])

function FLYamlData:init(...)
  local config = ...
  if type(config) == "table" and getmetatable(config) == nil and config.config ~= nil and next(config,
    "config") == nil then config = config.config end
  if select("#", ...) ~= 1 then fail("FLYamlData", ("takes one argument, got %d"):format(select("#", ...))) end
  if type(config) == "string" then config = read(config) end
  checked(config, all, "the configuration")
  if config.role == nil then fail("FLYamlData", "the configuration has no role", "role = \"leader\" or \"follower\"") end
  local train = config.model and config.model.train_net
  if not train or not train.inputs or not train.outputs or #train.inputs == 0 or #train.outputs == 0 then
    fail("FLYamlData", "model.train_net must have inputs and outputs")
  end
  for _, which in ipairs { train, config.model.eval_net } do
    for _, part in ipairs { "inputs", "outputs" } do
      local seen = {}
      for i, item in ipairs(which[part] or {}) do
        if item.name == nil then fail("FLYamlData", ("%s[%d] has no name"):format(part, i)) end
        if seen[item.name] then fail("FLYamlData", ("%s has '%s' twice"):format(part, item.name)) end
        seen[item.name] = true
      end
    end
  end
  self.config, self.role = config, config.role
  self.train_net, self.eval_net = train, config.model.eval_net
  self.opts, self.grad_scalers = config.opts or {}, config.grad_scalers
  self.hyper_parameters, self.privacy, self.dataset = config.hyper_parameters or {}, config.privacy or {}, config.dataset
  self.ckpt_path = config.ckpt_path
end

return FLYamlData
