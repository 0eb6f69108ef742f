-- Links between parties: messages of a kind with values by name, over queues of this process or over sealed connections.
local core = require "lunaria.vertical"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local links = {}

local Link = class.Object:extend("Link")
Link._called = "link"
Link._doc = [[The way to one other party, which ms.federated.vertical.run_parties or ms.federated.vertical.connect gives: link.own and
link.peer
are the names of both ends, link.sent and link.received count bytes.

  > ms.federated.vertical.pair("a", "b").peer --> b]]
links.Link = Link

-- What gives up says so, and not why: messages of errors may hold data.
local given_up = "lunaria.given_up"

function Link:__tostring() return ("Link<%s to %s>"):format(self.own, self.peer) end

-- A link over a channel, which sends and receives bytes.
local function make(own, peer, channel)
  local link = setmetatable({}, Link)
  link.own, link.peer, link.sent, link.received, link._channel = own, peer, 0, 0, channel
  return link
end

local function channel_of(link, where)
  return link._channel or fail(where, ("the link to '%s' was closed"):format(link.peer))
end

--- Sends a message. kind: a text that says what it is. values: a table of tensors, numbers and texts by name.
---     > step = function(links) links.b:send("greeting", { x = ms.tensor { 1, 2 } }) end
---     > got = ms.federated.vertical.run_parties { a = step, b = function(links) return links.a:receive("greeting").x end }
---     > got.b:tolist()[2] --> 2
function Link:send(kind, values)
  if type(kind) ~= "string" or kind == "" then fail("send", "kind must be a text, got " .. describe(kind)) end
  if type(values) ~= "table" or getmetatable(values) ~= nil then
    fail("send", "values must be a table of tensors, numbers and texts by name, got " .. describe(values))
  end
  local bytes = core.pack(kind, values)
  self.sent = self.sent + #bytes
  channel_of(self, "send"):send(bytes)
end

--- The next message of the other party: its values, then its kind. kind: what it must be; nil takes any. An error says so where the
--- other party has given up, where nothing comes in time, and where the message is another.
---     > step = function(links) links.b:send("greeting", { x = 1 }) end
---     > (ms.federated.vertical.run_parties { a = step, b = function(links) return links.a:receive() end }).b.x --> 1
function Link:receive(kind)
  kind = arguments.named("receive", { "kind" }, kind)
  if kind ~= nil and type(kind) ~= "string" then fail("receive", "kind must be a text or nil, got " .. describe(kind)) end
  local bytes = channel_of(self, "receive"):receive()
  self.received = self.received + #bytes
  local got, values = core.unpack(bytes, "a message of '" .. self.peer .. "'")
  if got == given_up then
    self:close()
    fail("receive", ("'%s' has given up after an error of its own"):format(self.peer), "its messages say more")
  end
  if kind ~= nil and got ~= kind then
    fail("receive", ("'%s' has sent '%s' where '%s' is expected"):format(self.peer, got, kind),
      "both parties must run the same steps with the same settings")
  end
  return values, got
end

-- A value of a message that must be there.
local function wanted(link, values, name, fits, words)
  local value = values[name]
  if not fits(value) then
    fail("receive", ("'%s' has sent %s as '%s' where %s is expected"):format(link.peer, describe(value), name, words))
  end
  return value
end

local function shaped(x, dtype, shape)
  if not ms.is_tensor(x) or x.ndim ~= #shape or dtype and x.dtype ~= dtype then return false end
  for i, size in ipairs(shape) do
    if size >= 0 and x.shape[i] ~= size then return false end
  end
  return true
end

--- For protocols: a tensor of a message, of a dtype and a shape (-1: any size).
function links.tensor(link, values, name, dtype, shape)
  local words = ("a tensor of %s and shape (%s)"):format(tostring(dtype or "any dtype"), table.concat(shape, ", "))
  return wanted(link, values, name, function(x) return shaped(x, dtype, shape) end, words)
end
--- The same for an integer between two others, for a finite number, and for a text of some length (nil: any).
function links.integer(link, values, name, least, most)
  return wanted(link, values, name, function(x) return math.type(x) == "integer" and x >= least and x <= most end,
    ("an integer from %d to %d"):format(least, most))
end
function links.number(link, values, name)
  return wanted(link, values, name, function(x) return math.type(x) == "float" and x - x == 0 end, "a finite number")
end
function links.text(link, values, name, length)
  return wanted(link, values, name, function(x) return type(x) == "string" and (length == nil or #x == length) end,
    length and ("a text of %d bytes"):format(length) or "a text")
end

--- Closes the link. The other party's next receive fails.
---     > (function(links) links.b:close() return tostring(links.b) end){ b = ms.federated.vertical.pair("a", "b") } --> Link<a to b>
function Link:close()
  local channel = self._channel
  self._channel = nil
  if channel then channel:close() end
end

--- f(...) as a part of a protocol over links (a table of them): where it raises an error the other parties are told, so that they do
--- not wait.
function links.guarded(those, f, ...)
  local results = table.pack(xpcall(f, function(e) return e end, ...))
  if results[1] then return table.unpack(results, 2, results.n) end
  for _, link in pairs(those) do
    -- The connection may be what has failed.
    if link._channel then pcall(link.send, link, given_up, {}) end
  end
  error(results[2], 0)
end

-- Queues of this process. ------------------------------------------------------------------------------------------

-- The parties that run_parties runs, by their coroutines.
local running = setmetatable({}, { __mode = "k" })

local Queue = {}
Queue.__index = Queue

function Queue:send(bytes)
  if self.closed then fail("send", ("the link to '%s' was closed"):format(self.peer)) end
  table.insert(self.out, bytes)
end

function Queue:receive()
  while #self.into == 0 do
    if self.into.closed then fail("receive", ("the link to '%s' was closed"):format(self.peer)) end
    if not running[coroutine.running()] then
      fail("receive", ("nothing has come from '%s'"):format(self.peer),
        "within one process the other party sends first; run_parties lets parties wait for each other")
    end
    coroutine.yield(self)
  end
  return table.remove(self.into, 1)
end

function Queue:close() self.out.closed, self.into.closed = true, true end

--- Two ends of a link within this process. own, peer: names of the parties. Gives the link of each.
---     > a, b = ms.federated.vertical.pair("a", "b")
---     > a:send("x", { value = 3 })
---     > b:receive("x").value --> 3
function links.pair(own, peer)
  if type(own) ~= "string" or type(peer) ~= "string" or own == peer then
    fail("pair", ("two names that differ are expected, got %s and %s"):format(describe(own), describe(peer)))
  end
  local there, back = {}, {}
  return make(own, peer, setmetatable({ out = there, into = back, peer = peer }, Queue)),
    make(peer, own, setmetatable({ out = back, into = there, peer = own }, Queue))
end

local function sorted_names(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end
links.sorted_names = sorted_names

local function check_parties(where, parties, fits, words)
  if type(parties) ~= "table" or getmetatable(parties) ~= nil then fail(where, "parties must be a table by name, got "
    .. describe(parties)) end
  for name, value in pairs(parties) do
    if type(name) ~= "string" or name == "" or #name > 128 then
      fail(where, "the name of a party must be a text of at most 128 bytes, got " .. describe(name))
    end
    if not fits(value) then fail(where, ("party '%s' must be %s, got %s"):format(name, words, describe(value))) end
  end
  return sorted_names(parties)
end

local function made_links(names)
  local all = {}
  for _, name in ipairs(names) do all[name] = {} end
  for i, a in ipairs(names) do
    for j = i + 1, #names do all[a][names[j]], all[names[j]][a] = links.pair(a, names[j]) end
  end
  return all
end

--- f(...) outside of the coroutine of a party: graph mode compiles what the program's first thread calls.
function links.outside(f, ...)
  if not running[coroutine.running()] then return f(...) end
  local got = table.pack(coroutine.yield { call = f, given = table.pack(...) })
  if not got[1] then error(got[2], 0) end
  return table.unpack(got, 2, got.n)
end

local function resume(party, results)
  local got = table.pack(coroutine.resume(party.thread, party.links))
  while got[1] and coroutine.status(party.thread) ~= "dead" and got[2].call do
    local asked = got[2]
    got = table.pack(coroutine.resume(party.thread, pcall(asked.call, table.unpack(asked.given, 1, asked.given.n))))
  end
  if not got[1] then
    local place = type(got[2]) == "string" and ("party '%s': %s"):format(party.name, got[2]) or got[2]
    error(place, 0)
  end
  party.waits = got[2]
  if coroutine.status(party.thread) == "dead" then
    party.done, results[party.name] = true, got[2]
  end
end

local function can_go_on(party)
  return not party.done and (party.waits == nil or #party.waits.into > 0 or party.waits.into.closed)
end

--- Runs parties within this process until all have ended, each until it has to wait for another, in the order of their names: the same
--- run each time. parties: a table of functions by name; each gets a table of links to the others by name. Gives what each returned,
--- by name. An error of one ends all.
---     > asks = function(links) links.b:send("number", { n = 2 }) return links.b:receive("number").n end
---     > adds = function(links) links.a:send("number", { n = 40 + links.a:receive("number").n }) end
---     > ms.federated.vertical.run_parties({ a = asks, b = adds }).a --> 42
function links.run_parties(parties)
  local names = check_parties("run_parties", parties, arguments.is_callable, "a function of its links")
  local all, list, results = made_links(names), {}, {}
  for i, name in ipairs(names) do
    local thread = coroutine.create(function(those) return parties[name](those) end)
    running[thread] = true
    list[i] = { name = name, thread = thread, links = all[name] }
  end
  local function go()
    while true do
      local moved, waiting = false, {}
      for _, party in ipairs(list) do
        if can_go_on(party) then
          moved = true
          resume(party, results)
        end
        if not party.done then waiting[#waiting + 1] = ("'%s' for '%s'"):format(party.name, party.waits.peer) end
      end
      if #waiting == 0 then return end
      if not moved then fail("run_parties", "every party waits for another: " .. table.concat(waiting, ", ")) end
    end
  end
  local ok, problem = xpcall(go, function(e) return e end)
  for _, party in ipairs(list) do
    if not party.done then coroutine.close(party.thread) end
  end
  if not ok then error(problem, 0) end
  return results
end

-- Connections between processes. -----------------------------------------------------------------------------------

local Sealed = {}
Sealed.__index = Sealed
function Sealed:send(bytes) core.send(self.handle, bytes) end
function Sealed:receive() return core.receive(self.handle) end
function Sealed:close() core.close_channel(self.handle) end

local Listener = class.Object:extend("Listener")
Listener._called = "listener"

--- Closes it.
function Listener:close() core.close_listener(self._handle) end

--- Listens for other parties. address: "host:port"; with port 0 the system chooses one. Gives a listener, whose field address is what
--- others call.
---     > l = ms.federated.vertical.listen("127.0.0.1:0")
---     > l.address:match "^127%.0%.0%.1:%d+$" ~= nil --> true
---     > l:close()
function links.listen(address)
  if type(address) ~= "string" then fail("listen", "address must be a text 'host:port', got " .. describe(address)) end
  local host, port = address:match "^(.+):0$", 0
  if not host then host, port = core.split(address) end
  local handle, given = core.listen(host, port)
  local listener = setmetatable({}, Listener)
  listener._handle, listener.address = handle, ("%s:%d"):format(host, given)
  return listener
end

--- A new secret key for links: 64 hexadecimal digits of the system's cryptographic generator.
---     > #ms.federated.vertical.new_key() --> 64
function links.new_key()
  return (core.new_seed():gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- The key for each of the other parties.
local function keys_of(where, key, others)
  local keys = {}
  for _, name in ipairs(others) do
    local own = type(key) == "table" and key[name] or key
    if type(own) ~= "string" or #own < 16 then
      -- It says nothing of what was given.
      fail(where, ("the key for '%s' must be a text of at least 16 bytes, got a value of type %s"):format(name, type(own)),
        "ms.federated.vertical.new_key() makes one, which all parties are given by a safe way")
    end
    keys[name] = own
  end
  return keys
end

local function is_address(value) return value == false or type(value) == "string" or class.is_a(value, Listener) end

-- Of two parties with an address the one whose name comes first in the alphabet waits for the other's call.
local function calls(own, own_address, other, other_address)
  if not other_address then return false end
  return not own_address or other < own
end

local known_options = { key = function(value) return type(value) == "string" or type(value) == "table", "a text, or a table by name" end,
  seconds = "number", most_bytes = arguments.positive }

--- Connects this process with the other parties of a training: a table of links by name. own: the name of this party. parties: the
--- address "host:port" of each party by name, its own included; false for one that listens nowhere and calls the others. A listener
--- may stand for the own address. Options: key (a secret text of at least 16 bytes that both ends of a link have, or a table of one for
--- each party), seconds (60: how long each send and receive may take, and the others to come), most_bytes (2^28: of a message).
---
--- The key proves to each side that the other one has it; what is sent is sealed under fresh keys that cannot be told from it later
--- (X25519, HKDF, ChaCha20-Poly1305). Others see sizes and times. A party without the key, of another version, or of another name is
--- an error that says so.
---     > (pcall(ms.federated.vertical.connect, "a", { a = false, b = "127.0.0.1:1" }, { key = "too short" })) --> false
function links.connect(own, parties, options)
  local where = "connect"
  local names = check_parties(where, parties, is_address, "an address 'host:port' or false")
  if type(own) ~= "string" or parties[own] == nil then
    fail(where, ("own must be the name of one of the parties, got %s"):format(describe(own)))
  end
  local o = arguments.options(where, options, known_options, "{ key = secret }")
  local seconds = check.number_positive(where, "seconds", o.seconds or 60)
  local others = {}
  for _, name in ipairs(names) do
    if name ~= own then others[#others + 1] = name end
  end
  local keys = keys_of(where, o.key, others)
  local settings = { own = own, seconds = seconds + 0.0, most = o.most_bytes or 1 << 28, keys = keys }
  local those, awaited = {}, 0
  local address = parties[own]
  local listener = class.is_a(address, Listener) and address
  for _, other in ipairs(others) do
    if calls(own, address, other, parties[other]) then
      local host, port = core.split(class.is_a(parties[other], Listener) and parties[other].address or parties[other])
      those[other] = make(own, other, setmetatable({ handle = core.call(host, port, other, settings) }, Sealed))
    elseif not address then
      fail(where, ("neither '%s' nor '%s' has an address"):format(own, other))
    else
      awaited = awaited + 1
      -- Those that call this party need its listener at once.
      listener = listener or links.listen(address)
    end
  end
  for other in pairs(those) do keys[other] = nil end
  for _ = 1, awaited do
    local handle, other = core.accept(listener._handle, settings)
    keys[other] = nil
    those[other] = make(own, other, setmetatable({ handle = handle }, Sealed))
  end
  if listener and listener ~= address then listener:close() end
  return those
end

return links
