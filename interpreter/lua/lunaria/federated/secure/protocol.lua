-- Clients and the server of secure sums, as state machines over messages.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_secure"
local settings = require "lunaria.federated.secure.settings"

local message = settings.message
local M = {}

local common = "size, threshold, job='', iteration=0, bits=64, neighbours=0, signing_keys=nil"

local Client = class.define(nil, "Client", "id, " .. common .. ", identity=nil, secret=nil", [[A client of a secure sum (Bonawitz and
others 2017). Its methods are called in the order of the protocol, once each: keys, shares, update, list_signature, reveal; each takes
the server's answer and gives a message for it. A client that fails or is silent counts as dropped out.

id: its name. size: elements of its vector. threshold: how many shares restore a secret; the sum needs as many clients until the end.
job, iteration: what the messages belong to; no two sums of a job have the same iteration. bits: of the ring (FixedPoint.bits).
neighbours: 0, or an even number of other clients with which it shares masks (Bell and others 2020), which makes large sums cheap.
identity, signing_keys: its Identity and the public keys of all clients by id; the sum is then signed, and the server can neither invent
clients nor tell them different lists. secret: a text from which all secrets are drawn, for tests alone.

  > client = ms.federated.secure.Client { id = "a", size = 3, threshold = 2 }
  > #client:keys() > 64 --> true]])
Client._called = "client"
M.Client = Client

-- Handles of the core by object: copies of tables have none.
local handles = setmetatable({}, { __mode = "k" })

local function handle(object, where)
  return handles[object] or arguments.fail(where, "is a method of a client or server: write object:" .. where .. "(...)")
end

function Client:setup(a)
  local of_all = settings.of("Client", a)
  self.id, self.bits = a.id, of_all.bits
  local id, seed, keys, secret = settings.client("Client", a)
  handles[self] = core.client(of_all, id, seed, keys, secret)
end

--- The message with the client's keys.
---     > #ms.federated.secure.Client({ id = "a", size = 3, threshold = 2 }):keys() > 64 --> true
function Client:keys() return core.client_keys(handle(self, "keys")) end

--- The message with shares of the client's secrets, sealed for the others. key_list: of Server:key_list.
---     > a = ms.federated.secure.Client { id = "a", size = 3, threshold = 2 }
---     > b = ms.federated.secure.Client { id = "b", size = 3, threshold = 2 }
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > server:accept_keys("a", a:keys()), server:accept_keys("b", b:keys()) --> true	true
---     > server:close()
---     > server:accept_shares("a", a:shares(server:key_list("a"))) --> true
function Client:shares(key_list) return core.client_shares(handle(self, "shares"), message("shares", "key_list", key_list)) end

--- The message with the masked vector. share_list: of Server:share_list. elements: an int64 tensor (size,), as FixedPoint:encode gives it.
---     > ms.federated.secure.sum({ ms.tensor({ 1 }, ms.int64), ms.tensor({ 2 }, ms.int64) }, { threshold = 2 }):item() --> 3
function Client:update(share_list, elements)
  return core.client_update(handle(self, "update"), message("update", "share_list", share_list), settings.elements("update", elements),
    self.bits)
end

--- The client's signature of the list of clients whose vectors are in the sum; an empty text where the sum is not signed. client_list: of
--- Server:client_list.
---     > (pcall(ms.federated.secure.Client({ id = "a", size = 3, threshold = 2 }).list_signature, "x")) --> false
function Client:list_signature(client_list)
  return core.client_list_signature(handle(self, "list_signature"), message("list_signature", "client_list", client_list))
end

--- The message with the shares by which the server takes the masks off the sum: of each other client one secret, never both.
--- list_signatures: of Server:list_signatures; an empty text where the sum is not signed.
---     > ms.federated.secure.sum({ ms.tensor({ 1 }, ms.int64), ms.tensor({ 2 }, ms.int64) }, { threshold = 2 }):item() --> 3
function Client:reveal(list_signatures)
  list_signatures = arguments.named("reveal", { "list_signatures" }, list_signatures)
  return core.client_reveal(handle(self, "reveal"), message("reveal", "list_signatures", list_signatures or ""))
end

local Server = class.define(nil, "Server", common, [[The server of a secure sum. It accepts messages phase by phase (keys, shares, updates,
list signatures where the sum is signed, revealed shares), and close() ends a phase: clients that have sent nothing until then have
dropped out. Fewer than the threshold end the sum with an error and without any result. All it knows follows from the messages that it
has accepted, in any order within a phase: after a crash they are given to a new server.

size: elements of a vector. threshold: how many shares restore a secret. job, iteration: what the messages belong to; no two sums of a job
have the same iteration. bits: of the ring. neighbours: 0 for all, or the even number of clients with which each shares masks.
signing_keys: the clients' public keys by id, where the sum is signed.

  > server = ms.federated.secure.Server { size = 3, threshold = 2 }
  > server:phase() --> keys]])
Server._called = "server"
M.Server = Server

function Server:setup(a)
  handles[self] = core.server(settings.of("Server", a), settings.keys("Server", a.signing_keys))
end

-- A message of a client for the server: whether it is new.
local function accepted(self, name, id, text)
  return core[name](handle(self, name), message(name, "id", id), message(name, "message", text))
end

--- Takes a client's keys; false where it has it already. id: the client's name.
--- text: the message, of Client:keys. An error, which changes nothing, where it was altered, is of another sum or out of turn.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > server:accept_keys("a", ms.federated.secure.Client({ id = "a", size = 3, threshold = 2 }):keys()) --> true
function Server:accept_keys(id, text) return accepted(self, "accept_keys", id, text) end

--- Takes a client's shares; false where it has it already. id: the client's name.
--- text: the message, of Client:shares. An error, which changes nothing, where it was altered, is of another sum or out of turn.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.accept_shares, server, "a", "x")) --> false
function Server:accept_shares(id, text) return accepted(self, "accept_shares", id, text) end

--- Takes a client's masked vector, which is added up at once; false where it has it already. id: the client's name.
--- text: the message, of Client:update. An error, which changes nothing, where it was altered, is of another sum or out of turn.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.accept_update, server, "a", "x")) --> false
function Server:accept_update(id, text) return accepted(self, "accept_update", id, text) end

--- Takes a client's signature of the list; false where it has it already. id: the client's name.
--- text: the message, of Client:list_signature. An error, which changes nothing, where it was altered, is of another sum or out of turn.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.accept_list_signature, server, "a", "x")) --> false
function Server:accept_list_signature(id, text) return accepted(self, "accept_list_signature", id, text) end

--- Takes the shares that a client reveals; false where it has it already. id: the client's name.
--- text: the message, of Client:reveal. An error, which changes nothing, where it was altered, is of another sum or out of turn.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.accept_revealed, server, "a", "x")) --> false
function Server:accept_revealed(id, text) return accepted(self, "accept_revealed", id, text) end

--- Ends a phase; the next one begins. An error where fewer clients than the threshold have taken part.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.close, server)) --> false
function Server:close() core.close(handle(self, "close")) end

--- The keys of the others, for the client of that id.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.key_list, server, "a")) --> false
function Server:key_list(id) return core.key_list(handle(self, "key_list"), message("key_list", "id", id)) end

--- The sealed shares that others have sent to the client of that id.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.share_list, server, "a")) --> false
function Server:share_list(id) return core.share_list(handle(self, "share_list"), message("share_list", "id", id)) end

--- The list of clients whose vectors are in the sum, for all of them.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.client_list, server)) --> false
function Server:client_list() return core.client_list(handle(self, "client_list")) end

--- The signatures of that list, for all; only where the sum is signed.
---     > server = ms.federated.secure.Server { size = 3, threshold = 2 }
---     > (pcall(server.list_signatures, server)) --> false
function Server:list_signatures() return core.list_signatures(handle(self, "list_signatures")) end

--- What the server waits for: "keys", "shares", "updates", "list signatures" or "revealed shares"; then "done" or "failed".
---     > ms.federated.secure.Server({ size = 3, threshold = 2 }):phase() --> keys
function Server:phase() return core.phase(handle(self, "phase")) end

--- The ids that have done what the phase asks for, as a list.
---     > #ms.federated.secure.Server({ size = 3, threshold = 2 }):arrived() --> 0
function Server:arrived() return core.arrived(handle(self, "arrived")) end

--- Whether the shares that have arrived restore the sum.
---     > ms.federated.secure.Server({ size = 3, threshold = 2 }):can_finish() --> false
function Server:can_finish() return core.can_finish(handle(self, "can_finish")) end

--- The sum, as an int64 tensor (size,); the ids whose vectors are in it; and the ids of clients that have revealed shares of no secret.
---     > ms.federated.secure.sum({ ms.tensor({ 1 }, ms.int64), ms.tensor({ 2 }, ms.int64) }, { threshold = 2 }):item() --> 3
function Server:finish() return core.finish(handle(self, "finish")) end

return M
