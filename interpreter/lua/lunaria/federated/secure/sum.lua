-- A whole secure sum in one process: to look at, to test, and for simulations.
local arguments = require "lunaria.nn.arguments"
local protocol = require "lunaria.federated.secure.protocol"
local settings = require "lunaria.federated.secure.settings"
local Identity = require("lunaria.federated.secure.identity").Identity

local fail, describe = arguments.fail, arguments.describe
local M = {}

local phases = { "keys", "shares", "update", "list", "reveal" }

-- By id the number of the phase before which a client drops out.
local function dropouts(where, given, ids)
  local left, known = {}, {}
  for _, id in ipairs(ids) do known[id] = true end
  for id, phase in pairs(given or {}) do
    local number
    for i, name in ipairs(phases) do number = name == phase and i or number end
    if not known[id] then fail(where, "dropouts has " .. describe(id) .. ", which is no client") end
    if not number then
      fail(where, ("dropouts must be phases by id (%s), got %s"):format(table.concat(phases, ", "), describe(phase)))
    end
    left[id] = number
  end
  return left
end

local function identities(ids)
  local own, keys = {}, {}
  for _, id in ipairs(ids) do
    own[id] = Identity()
    keys[id] = own[id].public_key
  end
  return own, keys
end

local known = { threshold = "number", neighbours = "number", bits = "number", dropouts = "table", signed = "boolean", secrets = "table",
  job = "string", iteration = "number" }

--- The sum of vectors by the whole protocol, with clients that drop out. vectors: a list of int64 tensors of one size (n,), or a table of
--- them by id. options: { threshold, neighbours, bits, job, iteration, as those of Client; dropouts, a table from ids (of a list: "1",
--- "2", ...) to the phase before which the client falls silent: "keys", "shares", "update", "list" or "reveal"; signed = true; secrets, a
--- table of texts by id from which secrets are drawn, for tests }. Gives the sum (n,), the ids whose vectors are in it, and the masked
--- updates by id, which are what the server has seen.
---     > vectors = { a = ms.tensor({ 1, 2 }, ms.int64), b = ms.tensor({ 10, 20 }, ms.int64), c = ms.tensor({ 5, 5 }, ms.int64) }
---     > sum, ids = ms.federated.secure.sum(vectors, { threshold = 2, dropouts = { c = "update" } })
---     > sum:tolist()[2], table.concat(ids, " ") --> 22	a b
function M.sum(vectors, options)
  local where = "sum"
  options = arguments.options(where, options, known, "{ threshold = 2 }")
  if type(vectors) ~= "table" or next(vectors) == nil then fail(where, "vectors must be a table of tensors, got " .. describe(vectors)) end
  local ids, by_id, size = {}, {}, nil
  for key, vector in pairs(vectors) do
    local id = tostring(key)
    ids[#ids + 1], by_id[id] = id, settings.elements(where, vector)
    if size and vector.size ~= size then fail(where, ("vectors must have one size, got %d and %d"):format(size, vector.size)) end
    size = vector.size
  end
  table.sort(ids)
  local own, keys
  if options.signed then own, keys = identities(ids) end
  local shared = { size = size, threshold = options.threshold or #ids // 2 + 1, neighbours = options.neighbours or 0,
    bits = options.bits or 64, job = options.job or "", iteration = options.iteration or 0, signing_keys = keys }
  local server, clients, left = protocol.Server(shared), {}, dropouts(where, options.dropouts, ids)
  for _, id in ipairs(ids) do
    local a = { id = id, identity = own and own[id], secret = options.secrets and options.secrets[id] }
    for name, value in pairs(shared) do a[name] = value end
    clients[id] = protocol.Client(a)
  end
  local function each(phase, f)
    for _, id in ipairs(ids) do
      if not left[id] or left[id] > phase then f(id, clients[id]) end
    end
  end
  local updates = {}
  each(1, function(id, client) server:accept_keys(id, client:keys()) end)
  server:close()
  each(2, function(id, client) server:accept_shares(id, client:shares(server:key_list(id))) end)
  server:close()
  each(3, function(id, client)
    updates[id] = client:update(server:share_list(id), by_id[id])
    server:accept_update(id, updates[id])
  end)
  server:close()
  local list = server:client_list()
  each(4, function(id, client)
    local signature = client:list_signature(list)
    if keys then server:accept_list_signature(id, signature) end
  end)
  if keys then server:close() end
  local signatures = keys and server:list_signatures() or ""
  each(5, function(id, client) server:accept_revealed(id, client:reveal(signatures)) end)
  local sum, present = server:finish()
  return sum, present, updates
end

return M
