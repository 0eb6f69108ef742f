-- Links between parties, within this process and between processes. About 3 seconds.
-- Eager mode only: nothing is computed with tensors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local V = ms.federated.vertical

t.test("values arrive as they were sent", function()
  local a, b = V.pair("a", "b")
  local sent = { i = -3, f = 0.1, s = "x\0y", x = ms.tensor { { 1.5, 2.5 } }, h = ms.ones({ 2 }, ms.bfloat16), q = ms.tensor { true,
    false },
    none = ms.zeros { 0, 3 } }
  a:send("all", sent)
  local got, kind = b:receive()
  t.equal(kind, "all")
  for name, value in pairs(sent) do
    t.equal(got[name], value)
    if ms.is_tensor(value) then
      t.equal(got[name].dtype, value.dtype)
      t.equal(got[name].shape, value.shape)
    end
  end
  t.equal(math.type(got.i), "integer")
  assert(a.sent > 0 and a.sent == b.received)
end)

t.test("what is sent later does not change what was sent", function()
  local a, b = V.pair("a", "b")
  local x = ms.tensor { 1.0, 2.0 }
  a:send("x", { x = x })
  x:add_(10)
  t.equal(b:receive("x").x:tolist(), { 1.0, 2.0 })
end)

t.test("other kinds, other values and a closed link are errors that name the other party", function()
  local a, b = V.pair("a", "b")
  a:send("one", {})
  t.fails({ "'a' has sent 'one' where 'two' is expected" }, b.receive, b, "two")
  t.fails({ "nothing has come from 'a'", "run_parties" }, b.receive, b)
  t.fails({ "send", "'f' must be a tensor, a number or a text" }, a.send, a, "x", { f = print })
  t.fails({ "send", "name of a value must be a text" }, a.send, a, "x", { [1] = 2 })
  t.fails({ "kind must be a text" }, a.send, a, 5)
  a:close()
  t.fails({ "the link to 'b' was closed" }, a.send, a, "x", {})
  t.fails({ "the link to 'a' was closed" }, b.receive, b)
  t.fails({ "two names that differ" }, V.pair, "a", "a")
end)

t.test("parties run until all have ended, and those that wait for each other are told", function()
  local order = {}
  local got = V.run_parties {
    c = function(l) order[#order + 1] = "c" return l.a:receive("x").n + 1 end,
    a = function(l) order[#order + 1] = "a" l.c:send("x", { n = 1 }) l.b:send("go", {}) end,
    b = function(l) order[#order + 1] = "b" l.a:receive "go" end,
  }
  t.equal(order, { "a", "b", "c" })
  t.equal(got.c, 2)
  t.fails({ "every party waits for another", "'a' for 'b'", "'b' for 'a'" }, V.run_parties, {
    a = function(l) l.b:receive() end, b = function(l) l.a:receive() end })
  t.fails({ "party 'b':", "link_test.lua", "broken" }, V.run_parties, {
    a = function(l) l.b:receive() end, b = function() error "broken" end })
  t.fails({ "run_parties", "party 'a' must be a function" }, V.run_parties, { a = 1 })
end)

t.test("a party that gives up within a protocol does not leave the others waiting", function()
  local got = V.run_parties {
    a = function(l) return select(2, pcall(V.psi, l.b, { "x" })) end,
    b = function(l) pcall(V.psi, l.a, { "x" }, { bins = 2 }) end,
  }
  assert(tostring(got.a):find("'b' has given up after an error of its own", 1, true), got.a)
end)

t.test("addresses, keys and names are checked", function()
  t.fails({ "connect", "key for 'b' must be a text of at least 16 bytes" }, V.connect, "a", { a = false, b = "127.0.0.1:1" })
  local message = t.fails({ "at least 16 bytes" }, V.connect, "a", { a = false, b = "127.0.0.1:1" }, { key = "hidden" })
  assert(not message:find "hidden")
  t.fails({ "own must be the name of one of the parties" }, V.connect, "x", { a = false }, { key = V.new_key() })
  t.fails({ "neither 'a' nor 'b' has an address" }, V.connect, "a", { a = false, b = false }, { key = V.new_key() })
  t.fails({ "nothing listens at 127.0.0.1:1 within 0.1 seconds", "start the party 'b'" }, V.connect, "a", { a = false, b = "127.0.0.1:1" },
    { key = V.new_key(), seconds = 0.1 })
  t.fails({ "no party has come within 0.1 seconds" }, V.connect, "a", { a = "127.0.0.1:0", b = false }, { key = V.new_key(),
    seconds = 0.1 })
  t.fails({ "'nowhere' is no address" }, V.connect, "a", { a = false, b = "nowhere" }, { key = V.new_key(), seconds = 0.1 })
  t.equal(#V.new_key(), 64)
  assert(V.new_key() ~= V.new_key())
end)

-- Another process that runs a text with the links of party b.
local program = arg[-1] or "build/lunaria"
local function other_process(address, key, body)
  local path = os.tmpname()
  local file = io.open(path, "w")
  file:write(([[
    local ms = require "lunaria"
    local V = ms.federated.vertical
    local ok, links = pcall(V.connect, "b", { a = %q, b = false }, { key = %q, seconds = 20 })
    if not ok then print(links) os.exit(1) end
    %s]]):format(address, key, body))
  file:close()
  return io.popen(("%s %s 2>&1"):format(program, path)), path
end

t.test("two processes find their common ids, and a process with another key is told", function()
  local key = V.new_key()
  local listener = V.listen "127.0.0.1:0"
  local other, path = other_process(listener.address, key, [[
    local common = V.psi(links.a, { "x", "y", "q" })
    links.a:send("common", { text = table.concat(common, " ") })
    print(select(2, pcall(links.a.receive, links.a)))]])
  local links = V.connect("a", { a = listener, b = false }, { key = key, seconds = 20 })
  t.equal(V.psi(links.b, { "q", "z", "x" }), { "q", "x" })
  t.equal(links.b:receive("common").text, "q x")
  links.b:close()
  assert(other:read "a":find "the channel to 'a': no whole message has come")
  other:close()
  os.remove(path)
  other, path = other_process(listener.address, V.new_key(), "")
  t.fails({ "no party has come", "'b' has called and not shown that it has the key" }, V.connect, "a", { a = listener, b = false },
    { key = key, seconds = 2 })
  assert(other:read "a":find "'a' does not have the same key")
  other:close()
  os.remove(path)
  listener:close()
end)

t.finish()
