-- lunaria bench/federated/secure.lua: processor time of the server of secure sums, in which clients drop out before their update.
-- 100 clients with 100,000 values each must take less than 5 s; few neighbours must make sums of 400 clients at least 5 times as cheap.
local ms = require "lunaria"
local secure = ms.federated.secure

-- Seconds of the server and, on average, of a client.
local function measured(n, size, threshold, neighbours, share)
  local server_seconds, client_seconds = 0.0, 0.0
  local function server_side(f, ...)
    local start = os.clock()
    local a, b = f(...)
    server_seconds = server_seconds + os.clock() - start
    return a, b
  end
  local function client_side(f, ...)
    local start = os.clock()
    local a = f(...)
    client_seconds = client_seconds + os.clock() - start
    return a
  end
  local settings = { size = size, threshold = threshold, neighbours = neighbours, bits = 32 }
  local server, clients = secure.Server(settings), {}
  for i = 1, n do
    clients[i] = secure.Client { id = ("client %04d"):format(i), size = size, threshold = threshold, neighbours = neighbours, bits = 32 }
  end
  local vector = ms.random.randint(0, 1000, { size }):astype(ms.int64)
  local dropped = math.floor(n * share)
  for _, c in ipairs(clients) do server_side(server.accept_keys, server, c.id, client_side(c.keys, c)) end
  server_side(server.close, server)
  for _, c in ipairs(clients) do
    server_side(server.accept_shares, server, c.id, client_side(c.shares, c, server_side(server.key_list, server, c.id)))
  end
  server_side(server.close, server)
  for i = dropped + 1, n do
    local c = clients[i]
    server_side(server.accept_update, server, c.id, client_side(c.update, c, server_side(server.share_list, server, c.id), vector))
  end
  server_side(server.close, server)
  local list = server_side(server.client_list, server)
  for i = dropped + 1, n do
    local c = clients[i]
    client_side(c.list_signature, c, list)
    server_side(server.accept_revealed, server, c.id, client_side(c.reveal, c, ""))
  end
  local sum = server_side(server.finish, server)
  assert(ms.ops.all(ms.ops.equal(sum, vector * (n - dropped))):item(), "the sum is wrong")
  return server_seconds, client_seconds / n
end

local function row(name, limit, ...)
  local server, client = measured(...)
  print(("%-58s server %7.3f s   a client %7.3f s%s"):format(name, server, client,
    limit and (server < limit and "   ok" or "   MORE THAN " .. limit) or ""))
  return server
end

row("100 clients x 100,000 values, none dropped", nil, 100, 100000, 67, 0, 0.0)
row("100 clients x 100,000 values, 10 % dropped", 5.0, 100, 100000, 67, 0, 0.1)
row("100 clients x 100,000 values, 30 % dropped", nil, 100, 100000, 67, 0, 0.3)
local full = row("400 clients x 100,000 values, 10 % dropped, all neighbours", nil, 400, 100000, 267, 0, 0.1)
local few = row("400 clients x 100,000 values, 10 % dropped, 40 neighbours", nil, 400, 100000, 21, 40, 0.1)
print(("few neighbours: %.1f times as cheap%s"):format(full / few, full / few >= 5 and "   ok" or "   LESS THAN 5"))
