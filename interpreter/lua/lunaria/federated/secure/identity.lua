-- Signing keys of clients.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_secure"

local fail, describe = arguments.fail, arguments.describe
local M = {}

local Identity = class.define(nil, "Identity", "seed=nil", [[A key by which a client signs (Ed25519). Its public_key, 32 bytes, is what the
others know it by. seed: the 32 secret bytes of a key that was made before, as seed_bytes gives them; by default a new key.

  > identity = ms.federated.secure.Identity()
  > signature = identity:sign("a message")
  > ms.federated.secure.verify(identity.public_key, "a message", signature) --> true]])
Identity._called = "identity"
M.Identity = Identity

-- Seeds by identity, out of sight of what prints or copies tables.
local seeds = setmetatable({}, { __mode = "k" })

function Identity:setup(a)
  if a.seed ~= nil and (type(a.seed) ~= "string" or #a.seed ~= 32) then
    fail("Identity", "seed must be a text of 32 bytes, got " .. (type(a.seed) == "string" and #a.seed .. " bytes" or describe(a.seed)))
  end
  local seed = a.seed or core.random_key()
  seeds[self] = seed
  self.public_key = core.signing_key(seed)
end

function Identity.__tostring() return "Identity<its seed is secret>" end

--- The signature of a text, 64 bytes. message: the text.
---     > #ms.federated.secure.Identity():sign("x") --> 64
function Identity:sign(message)
  if type(message) ~= "string" then fail("sign", "message must be a text, got " .. describe(message)) end
  return core.sign(seeds[self], message)
end

--- The 32 secret bytes that make the same identity again: they can sign as it does.
---     > identity = ms.federated.secure.Identity()
---     > ms.federated.secure.Identity(identity:seed_bytes()).public_key == identity.public_key --> true
function Identity:seed_bytes() return seeds[self] end

--- Whether a signature is one of the message by the key. public_key: 32 bytes; message: a text; signature: 64 bytes.
---     > ms.federated.secure.verify(ms.federated.secure.Identity().public_key, "x", ("\0"):rep(64)) --> false
function M.verify(public_key, message, signature)
  local names = { "public_key", "message", "signature" }
  public_key, message, signature = arguments.named("verify", names, public_key, message, signature)
  for i, name in ipairs(names) do
    local value = select(i, public_key, message, signature)
    if type(value) ~= "string" then fail("verify", ("%s must be a text, got %s"):format(name, describe(value))) end
  end
  return core.verify(public_key, message, signature)
end

return M
