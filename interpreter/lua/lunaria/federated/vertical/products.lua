-- Products of one party's matrix with another party's vectors in additive shares modulo 2^64 (core/federated/vertical/masked_products):
-- the owner of a matrix, the asker, which has the vectors, and the dealer of random numbers, which has no data.
local core = require "lunaria.vertical"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local messages = require "lunaria.federated.vertical.link"

local fail, describe = arguments.fail, arguments.describe
local i64 = ms.int64
local products = {}

-- Elements of a masked matrix: 8 bytes each at the asker.
local most_elements = 1 << 31

local function with_axes(x, count)
  if not ms.is_tensor(x) or x.ndim ~= count or x.dtype ~= i64 then fail("products", "integers of 64 bits are expected, got "
    .. describe(x)) end
  return x
end

local Owner, Asker = {}, {}
Owner.__index, Asker.__index = Owner, Asker

--- The side of the owner: matrix is int64 (rows, n). number: which of this owner's matrices it is, from 0. The asker is making its own side
--- meanwhile.
function products.owner(asker, dealer, matrix, number)
  with_axes(matrix, 2)
  local seed = messages.text(dealer, dealer:receive "seed", "seed", 32)
  asker:send("matrix", { number = number, masked = core.masked(matrix, seed) })
  return setmetatable({ dealer = dealer, seed = seed, rows = matrix.shape[1], n = matrix.shape[2] }, Owner)
end

--- What the asker has asked for in a message "product": the owner's share of the products (k, rows), to which the asker has added its
--- own where the owner is to know them.
function Owner:answer(asker, values)
  local masked = messages.tensor(asker, values, "masked", i64, { -1, self.n })
  local k = masked.shape[1]
  local corrections = messages.tensor(self.dealer, self.dealer:receive "correction", "values", i64, { k, self.rows })
  local share = core.sum(core.mask_times(self.seed, self.rows, masked), corrections)
  if values.share == nil then return share end
  return core.sum(share, messages.tensor(asker, values, "share", i64, { k, self.rows }))
end

--- The side of the asker. rows, n: the shape of the matrix that the party at the other end of `owner` has.
function products.asker(owner, dealer, rows, n, number)
  if rows * n > most_elements then fail("products", ("a matrix of %d rows and %d columns is too large"):format(rows, n)) end
  dealer:send("matrix", { owner = owner.peer, number = number, rows = rows, n = n })
  local seed = messages.text(dealer, dealer:receive "seed", "seed", 32)
  local values = owner:receive "matrix"
  messages.integer(owner, values, "number", number, number)
  local masked = messages.tensor(owner, values, "masked", i64, { rows, n })
  return setmetatable({ owner = owner, dealer = dealer, seed = seed, masked = masked, rows = rows, n = n, number = number, used = 0 },
    Asker)
end

local function stacked(list) return #list == 1 and list[1] or ms.ops.concat(list, 0) end

-- k vectors that the seed gives for a purpose, from a number on.
local function drawn(seed, purpose, first, k, length)
  local rows = {}
  for i = 1, k do rows[i] = core.drawn(seed, purpose, first + i - 1, length):reshape { 1, length } end
  return stacked(rows)
end

-- Sends masked vectors (k, n), and the asker's share of the products where the owner is to know them; gives the share.
function Asker:_ask(vectors, for_owner)
  with_axes(vectors, 2)
  local k, first = vectors.shape[1], self.used
  self.used = first + k
  self.dealer:send("product", { owner = self.owner.peer, number = self.number, first = first, count = k })
  local masked = core.difference(vectors, drawn(self.seed, "vector", first, k, self.n))
  local share = core.sum(core.times(self.masked, vectors), drawn(self.seed, "share", first, k, self.rows))
  self.owner:send("product", { number = self.number, masked = masked, share = for_owner and share or nil })
  return share
end

--- The products (k, rows) of the matrix with vectors (k, n), which the owner does not get to know.
function Asker:multiply(vectors)
  local share = self:_ask(vectors, false)
  local other = messages.tensor(self.owner, self.owner:receive "share", "values", i64, { vectors.shape[1], self.rows })
  return core.sum(share, other)
end

--- The same for the owner alone.
function Asker:give(vectors) self:_ask(vectors, true) end

-- What the dealer does for each kind of message of the asker.
local dealing = {}

function dealing.matrix(state, asker, values)
  local owner = messages.text(asker, values, "owner")
  local link = state.links[owner] or fail("deal", ("'%s' speaks of a party '%s', to which there is no link"):format(asker.peer, owner))
  local rows, n = messages.integer(asker, values, "rows", 0, most_elements), messages.integer(asker, values, "n", 0, most_elements)
  local number = messages.integer(asker, values, "number", 0, 1 << 31)
  local key = owner .. ":" .. number
  if state.matrices[key] then fail("deal", ("the matrix %d of '%s' was there before"):format(number, owner)) end
  local m = { link = link, rows = rows, n = n, used = 0, for_owner = core.new_seed(), for_asker = core.new_seed() }
  state.matrices[key] = m
  asker:send("seed", { seed = m.for_asker })
  link:send("seed", { seed = m.for_owner })
end

function dealing.product(state, asker, values)
  local key = messages.text(asker, values, "owner") .. ":" .. messages.integer(asker, values, "number", 0, 1 << 31)
  local m = state.matrices[key] or fail("deal", ("'%s' asks for a product with a matrix that is not known"):format(asker.peer))
  local k = messages.integer(asker, values, "count", 1, 1 << 20)
  -- Random numbers that are used twice would tell differences.
  local first = messages.integer(asker, values, "first", m.used, m.used)
  m.used = first + k
  local vectors = drawn(m.for_asker, "vector", first, k, m.n)
  local shares = drawn(m.for_asker, "share", first, k, m.rows)
  m.link:send("correction", { values = core.difference(core.mask_times(m.for_owner, m.rows, vectors), shares) })
end

-- Seeds in a ring: each owner adds what its own gives and takes off what the next one's gives, so that all together are 0.
function dealing.zeros(state, asker, values)
  local names = {}
  for name in messages.text(asker, values, "owners"):gmatch "[^\n]+" do
    names[#names + 1] = state.links[name] and name or fail("deal", ("there is no link to a party '%s'"):format(name))
  end
  local seeds = {}
  for i in ipairs(names) do seeds[i] = core.new_seed() end
  for i, name in ipairs(names) do state.links[name]:send("zeros", { own = seeds[i], next = seeds[i % #names + 1] }) end
end

--- The dealer of a training of vertical parties: a party without data, which gives the others random numbers by which they multiply what
--- they do not show each other. links: those of this party by name, as ms.federated.vertical.connect or run_parties gives them. Ends when
--- the leader says so. Options: leader ("leader", the party that asks).
---
--- It sees how many products of which sizes there are, and nothing of any number. Together with one of two parties it could find out
--- what the other one has: it must be a party that works with neither.
---     > dealer = function(links) ms.federated.vertical.deal(links) return "done" end
---     > leader = function(links) links.dealer:send("end", {}) end
---     > ms.federated.vertical.run_parties({ dealer = dealer, leader = leader }).dealer --> done
function products.deal(links, options)
  local o = arguments.options("deal", options, { leader = "string" }, "{ leader = \"leader\" }")
  local leader = products.link_of("deal", links, o.leader or "leader")
  local state = { links = links, matrices = {} }
  return messages.guarded(links, function()
    while true do
      local values, kind = leader:receive()
      if kind == "end" then return end
      local act = dealing[kind] or fail("deal", ("'%s' has sent '%s', which a dealer does not know"):format(leader.peer, kind))
      act(state, leader, values)
    end
  end)
end

--- The link to a party among links by name; an error where there is none.
function products.link_of(where, links, name)
  if type(links) ~= "table" or getmetatable(links) ~= nil then fail(where, "links must be a table of links by name, got "
    .. describe(links)) end
  return links[name] or fail(where, ("there is no link to a party '%s'"):format(name),
    "ms.federated.vertical.connect or run_parties gives links to all others by name")
end

--- The links to all but some parties, in the order of their names.
function products.others(links, ...)
  local left = {}
  for _, name in ipairs(messages.sorted_names(links)) do
    local is_left = true
    for _, other in ipairs { ... } do is_left = is_left and name ~= other end
    if is_left then left[#left + 1] = links[name] end
  end
  return left
end

--- Random numbers (n) that sum up to 0 over all owners, which have the seeds of a message "zeros".
function products.zero_share(seeds, number, n)
  return core.difference(core.drawn(seeds.own, "zero", number, n), core.drawn(seeds.next, "zero", number, n))
end

return products
