-- Secure sums from Lua: codes, protocols with clients that drop out, signatures, silos. A second.
-- Eager mode only: messages and whole numbers, of which nothing is compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local secure = ms.federated.secure

local function fails(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(words, 1, true), tostring(message))
end

local function whole(...) return ms.tensor({ ... }, ms.int64) end

t.test("a weighted mean behind masks is the plain one of the rounded values", function()
  local code = secure.FixedPoint { fraction_bits = 20, clip = 8, weight = 500, clients = 10 }
  local vectors, exact, weights = {}, ms.ops.zeros({ 40 }, ms.float64), 0
  for i = 1, 5 do
    local x, n = ms.randn(40):astype(ms.float64), 10 * i + 3
    vectors["client" .. i] = code:encode(x, n)
    if i ~= 2 then exact, weights = exact + ms.ops.round(x * 2.0 ^ 20) * n, weights + n end
  end
  local sum, ids = secure.sum(vectors, { threshold = 3, bits = code.bits, dropouts = { client2 = "update", client4 = "reveal" } })
  local mean, weight = code:decode(sum)
  t.equal(weight, weights)
  t.equal(table.concat(ids, " "), "client1 client3 client4 client5")
  t.equal(ms.ops.all(ms.ops.equal(mean, exact / weights / 2.0 ^ 20)):item(), true)
end)

t.test("codes whose sums would not fit are errors", function()
  fails("the ring has 16", secure.FixedPoint, { bits = 16, clients = 1000 })
  fails("bits", secure.FixedPoint, { bits = 12 })
  fails("fraction_bits", secure.FixedPoint, { fraction_bits = 60 })
  fails("clip", secure.FixedPoint, { clip = 0 / 0 })
  local code = secure.FixedPoint { clip = 1, refuses = true }
  fails("beyond clip", code.encode, code, ms.tensor { 0.5, 1.5 })
  fails("nan", code.encode, code, ms.tensor { 0.5, 0 / 0 })
  fails("weight must be from 1 to 1", code.encode, code, ms.tensor { 0.5 }, 2)
  fails("int64", code.decode, code, ms.tensor { 1.0 })
end)

t.test("fewer clients than the threshold give nothing", function()
  local vectors = { whole(1), whole(2), whole(3) }
  for _, phase in ipairs { "keys", "shares", "update", "reveal" } do
    fails("threshold is 2", secure.sum, vectors, { threshold = 2, dropouts = { ["1"] = phase, ["3"] = phase } })
  end
  t.equal(secure.sum(vectors, { threshold = 2, signed = true, dropouts = { ["3"] = "list" } }):item(), 6)
  fails("which is no client", secure.sum, vectors, { dropouts = { other = "keys" } })
  fails("dropouts must be phases", secure.sum, vectors, { dropouts = { ["1"] = "never" } })
end)

t.test("what the server sees has nothing to do with the values", function()
  local vectors = {}
  for i = 1, 3 do vectors[i] = ms.ops.zeros({ 4000 }, ms.int64) + i end
  local _, _, updates = secure.sum(vectors, { threshold = 2, bits = 32 })
  local counts, chi2 = {}, 0
  for _, byte in ipairs { updates["1"]:byte(33, 8032) } do counts[byte] = (counts[byte] or 0) + 1 end
  for byte = 0, 255 do chi2 = chi2 + ((counts[byte] or 0) - 8000 / 256) ^ 2 / (8000 / 256) end
  assert(chi2 > 130 and chi2 < 420, chi2)
end)

t.test("a server that was killed goes on by accepting its messages again, in any order", function()
  local settings = { size = 2, threshold = 2, job = "j", iteration = 4 }
  local clients, kept = {}, { keys = {}, shares = {}, update = {} }
  for _, id in ipairs { "a", "b", "c" } do clients[id] = secure.Client { id = id, size = 2, threshold = 2, job = "j", iteration = 4 } end
  local function server_after(phase)
    local server = secure.Server(settings)
    for _, name in ipairs { "keys", "shares", "update" } do
      for id, text in pairs(kept[name]) do server["accept_" .. name](server, id, text) end
      if name == phase then return server end
      server:close()
    end
  end
  for id, client in pairs(clients) do kept.keys[id] = client:keys() end
  local server = server_after "keys"
  server:close()
  for id, client in pairs(clients) do kept.shares[id] = client:shares(server:key_list(id)) end
  server = server_after "shares"
  server:close()
  for id, client in pairs(clients) do kept.update[id] = client:update(server:share_list(id), whole(5, #id)) end
  server = server_after "update"
  t.equal(server:accept_update("a", kept.update.a), false)
  server:close()
  t.equal(server:phase(), "revealed shares")
  local list = server:client_list()
  for _, client in pairs(clients) do client:list_signature(list) end
  for id, client in pairs(clients) do server:accept_revealed(id, client:reveal("")) end
  t.equal(server:can_finish(), true)
  t.equal(server:finish():tolist()[1], 15)
  t.equal(server:phase(), "done")
end)

t.test("methods are called in turn, and arguments are checked", function()
  local client = secure.Client { id = "a", size = 2, threshold = 2 }
  fails("turn of keys", client.shares, client, "")
  client:keys()
  fails("key_list must be a text", client.shares, client, 3)
  fails("corrupt", client.shares, client, "x")
  fails("turn of nothing", client.shares, client, "")
  fails("is a method", client.keys, {})
  fails("id must be a text", secure.Client, { id = 3, size = 2, threshold = 2 })
  fails("given together", secure.Client, { id = "a", size = 2, threshold = 2, signing_keys = {} })
  fails("threshold must be at least 2", secure.Server, { size = 2, threshold = 1 })
  fails("public keys of 32 bytes", secure.Server, { size = 2, threshold = 2, signing_keys = { a = "short" } })
  fails("even", secure.Server, { size = 2, threshold = 2, neighbours = 3 })
  fails("elements must be", secure.sum, { ms.tensor { 1.0 } })
end)

t.test("an identity does not print its seed", function()
  local identity = secure.Identity()
  t.equal(tostring(identity), "Identity<its seed is secret>")
  for _, value in pairs(identity) do assert(value ~= identity:seed_bytes()) end
  fails("32 bytes", secure.Identity, "short")
  t.equal(secure.verify(identity.public_key, "y", identity:sign("x")), false)
  t.equal(secure.verify("short", "x", identity:sign("x")), false)
end)

t.test("silos exchange keys once, and a missing one is named", function()
  local server, silos = secure.StableServer { size = 3, bits = 32 }, {}
  for _, id in ipairs { "east", "north", "west" } do
    silos[id] = secure.StableClient { id = id, size = 3, bits = 32 }
    server:accept_keys(id, silos[id]:keys())
  end
  server:close_keys()
  for _, silo in pairs(silos) do silo:take_keys(server:key_list()) end
  for iteration = 1, 3 do
    server:start(iteration)
    for id, silo in pairs(silos) do server:accept_update(id, silo:update(iteration, whole(-iteration, 0, #id))) end
    t.equal(server:finish():tolist()[1], -3 * iteration)
  end
  fails("not after 3", silos.east.update, silos.east, 3, whole(0, 0, 0))
  server:start(4)
  server:accept_update("east", silos.east:update(4, whole(0, 0, 0)))
  t.equal(table.concat(server:missing(), " "), "north west")
  fails("'north', 'west'", server.finish, server)
end)

t.finish()
