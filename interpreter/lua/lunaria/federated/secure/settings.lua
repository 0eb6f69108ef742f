-- Settings that the clients and the server of a secure sum have in common, checked.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local Identity = require("lunaria.federated.secure.identity").Identity

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local settings = {}

--- The settings among the arguments of a class, as the core takes them.
function settings.of(where, a)
  if type(a.job) ~= "string" then fail(where, "job must be a text, got " .. describe(a.job)) end
  local bits = check.positive(where, "bits", a.bits)
  if bits % 8 ~= 0 or bits > 64 then fail(where, ("bits must be 8, 16, 24, ... 64, got %d"):format(bits)) end
  return { job = a.job, iteration = check.integer(where, "iteration", a.iteration), bits = bits,
    size = check.positive(where, "size", a.size), threshold = a.threshold == nil and 2 or check.positive(where, "threshold", a.threshold),
    neighbours = a.neighbours == nil and 0 or check.not_negative(where, "neighbours", a.neighbours),
    is_signed = a.signing_keys ~= nil }
end

--- The signing keys among the arguments: nil, or a table from ids to public keys.
function settings.keys(where, keys)
  if keys == nil then return nil end
  if type(keys) ~= "table" or getmetatable(keys) ~= nil then
    fail(where, "signing_keys must be a table from ids to public keys, got " .. describe(keys))
  end
  for id, key in pairs(keys) do
    if type(id) ~= "string" or type(key) ~= "string" or #key ~= 32 then
      fail(where, ("signing_keys must have public keys of 32 bytes by ids, got %s for %s"):format(
        type(key) == "string" and #key .. " bytes" or describe(key), describe(id)))
    end
  end
  return keys
end

--- The arguments of a client: its id, the seed of its identity, the signing keys, the text of its secrets.
function settings.client(where, a)
  if type(a.id) ~= "string" or a.id == "" then fail(where, "id must be a text, got " .. describe(a.id)) end
  if a.identity ~= nil and not class.is_a(a.identity, Identity) then
    fail(where, "identity must be a ms.federated.secure.Identity, got " .. describe(a.identity))
  end
  if (a.identity == nil) ~= (a.signing_keys == nil) then
    fail(where, "identity and signing_keys are given together or not at all: a signed sum needs both")
  end
  if a.secret ~= nil and type(a.secret) ~= "string" then fail(where, "secret must be a text, got " .. describe(a.secret)) end
  return a.id, a.identity and a.identity:seed_bytes(), settings.keys(where, a.signing_keys), a.secret
end

--- A message, which is a text.
function settings.message(where, name, value)
  if type(value) ~= "string" then fail(where, ("%s must be a text, got %s"):format(name, describe(value))) end
  return value
end

--- Elements of a vector.
function settings.elements(where, value)
  if not ms.is_tensor(value) or value.ndim ~= 1 or value.dtype ~= ms.int64 then
    fail(where, "elements must be an int64 tensor (n,), as FixedPoint:encode gives it, got " .. describe(value))
  end
  return value
end

return settings
