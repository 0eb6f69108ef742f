-- Secure sums of silos, with masks from one exchange of keys.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_secure"
local settings = require "lunaria.federated.secure.settings"

local check, message = arguments.check, settings.message
local M = {}

local handles = setmetatable({}, { __mode = "k" })
local function handle(object, where)
  return handles[object] or arguments.fail(where, "is a method of a stable client or server: write object:" .. where .. "(...)")
end

local example = [[

  > clients, server = {}, ms.federated.secure.StableServer { size = 2 }
  > for _, id in ipairs { "north", "south" } do clients[id] = ms.federated.secure.StableClient { id = id, size = 2 } end
  > for id, client in pairs(clients) do server:accept_keys(id, client:keys()) end
  > server:close_keys()
  > for _, client in pairs(clients) do client:take_keys(server:key_list()) end
  > server:start(1)
  > for id, client in pairs(clients) do server:accept_update(id, client:update(1, ms.tensor({ 3, #id }, ms.int64))) end
  > server:finish():tolist()[1] --> 6]]

local StableClient = class.define(nil, "StableClient", "id, size, job='', iteration=0, bits=64, signing_keys=nil, identity=nil, secret=nil",
  [[A silo in sums in which all take part: keys are exchanged once, and each iteration has one message of each silo. If one is missing,
there is no sum.

id: its name. size: elements of its vector. job: a text. iteration: that of the exchange of keys. bits: of the ring. signing_keys,
identity: the public keys of all by id, and its own Identity, where messages are signed. secret: a text from which its key is drawn, for
tests alone.
]] .. example)
StableClient._called = "client"
M.StableClient = StableClient

function StableClient:setup(a)
  local of_all = settings.of("StableClient", a)
  self.id, self.bits = a.id, of_all.bits
  local id, seed, keys, secret = settings.client("StableClient", a)
  handles[self] = core.stable_client(of_all, id, seed, keys, secret)
end

--- The message with the client's key.
---     > #ms.federated.secure.StableClient({ id = "north", size = 2 }):keys() > 32 --> true
function StableClient:keys() return core.stable_keys(handle(self, "keys")) end

--- Takes the keys of all, once. key_list: of StableServer:key_list.
---     > client = ms.federated.secure.StableClient { id = "north", size = 2 }
---     > pcall(client.take_keys, client, "")
function StableClient:take_keys(key_list)
  core.stable_take_keys(handle(self, "take_keys"), message("take_keys", "key_list", key_list))
end

--- The message with the masked vector. iteration: more than that of the last one, since a mask that is used twice shows the difference of
--- what it hides. elements: an int64 tensor (size,).
---     > client = ms.federated.secure.StableClient { id = "north", size = 2 }
---     > (pcall(client.update, client, 1, ms.zeros({ 2 }, ms.int64))) --> false
function StableClient:update(iteration, elements)
  return core.stable_update(handle(self, "update"), check.integer("update", "iteration", iteration), settings.elements("update", elements),
    self.bits)
end

local StableServer = class.define(nil, "StableServer", "size, job='', iteration=0, bits=64, signing_keys=nil",
  [[The server of sums in which all silos take part. size: elements of a vector. job: a text. iteration: that of the exchange of keys. bits:
of the ring. signing_keys: the silos' public keys by id, where messages are signed.
]] .. example)
StableServer._called = "server"
M.StableServer = StableServer

function StableServer:setup(a)
  local of_all = settings.of("StableServer", a)
  self.bits = of_all.bits
  handles[self] = core.stable_server(of_all, settings.keys("StableServer", a.signing_keys))
end

--- Takes a silo's keys; false where it has them already. id: its name. text: of StableClient:keys.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > server:accept_keys("north", ms.federated.secure.StableClient({ id = "north", size = 2 }):keys()) --> true
function StableServer:accept_keys(id, text)
  return core.stable_accept_keys(handle(self, "accept_keys"), message("accept_keys", "id", id), message("accept_keys", "message", text))
end

--- Ends the exchange of keys: those that have sent theirs are all silos.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > (pcall(server.close_keys, server)) --> false
function StableServer:close_keys() core.stable_close(handle(self, "close_keys")) end

--- The keys of all, for each silo.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > (pcall(server.key_list, server)) --> false
function StableServer:key_list() return core.stable_key_list(handle(self, "key_list")) end

--- Starts the sum of an iteration; one that was not finished is given up.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > (pcall(server.start, server, 1)) --> false
function StableServer:start(iteration) core.stable_start(handle(self, "start"), check.integer("start", "iteration", iteration)) end

--- Takes a silo's message; false where it has it already. id: its name. text: of StableClient:update.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > (pcall(server.accept_update, server, "north", "")) --> false
function StableServer:accept_update(id, text)
  return core.stable_accept_update(handle(self, "accept_update"), message("accept_update", "id", id),
    message("accept_update", "message", text))
end

--- The silos that have not sent their message yet, as a list of ids.
---     > #ms.federated.secure.StableServer({ size = 2 }):missing() --> 0
function StableServer:missing() return core.stable_missing(handle(self, "missing")) end

--- The sum, as an int64 tensor (size,); an error that names the silos that are missing.
---     > server = ms.federated.secure.StableServer { size = 2 }
---     > (pcall(server.finish, server)) --> false
function StableServer:finish() return core.stable_finish(handle(self, "finish"), self.bits) end

return M
