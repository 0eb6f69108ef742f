-- ms.federated.partition: how the samples of a data set are divided over clients. Every function draws from its seed alone, so that the
-- same call gives the same division in every program, and leaves the session's random numbers alone.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local chances = require "lunaria.federated.chances"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local partition = {}

local Partition = class.define(nil, "Partition", "rows, shift=nil",
  [[A division of samples over clients. rows: for each client the numbers of its samples, from 0, as a list or a tensor of integers.
shift: a function of (x, client) that gives the samples as this client sees them. The functions of ms.federated.partition make it;
p[i] are the numbers of client i as an int64 tensor, #p is how many clients there are.

  > p = ms.federated.partition.Partition { { 0, 1, 2 }, { 3 } }
  > #p, p[1]:tolist()[3], p:sizes()[2] --> 2	2	1]])
Partition._called = "partition"
partition.Partition = Partition

local function is_integers(value)
  return ms.is_tensor(value) and value.ndim == 1 and not value:is_floating_point()
end

function Partition:setup(a)
  if type(a.rows) ~= "table" or #a.rows == 0 then
    fail("Partition", "rows must be a list with the numbers of each client's samples, got " .. describe(a.rows))
  end
  if a.shift ~= nil and not arguments.is_callable(a.shift) then
    fail("Partition", "shift must be a function of samples and a client, got " .. describe(a.shift))
  end
  self.shift = a.shift
  for client, rows in ipairs(a.rows) do
    if type(rows) == "table" and getmetatable(rows) == nil then
      for _, row in ipairs(rows) do
        if math.type(row) ~= "integer" or row < 0 then
          fail("Partition", ("client %d has %s among its samples: these are integers from 0"):format(client, describe(row)))
        end
      end
      rows = #rows == 0 and ops.zeros({ 0 }, ms.int64) or ms.tensor(rows, ms.int64)
    end
    if not is_integers(rows) then
      fail("Partition", ("rows[%d] must be a list or a tensor of integers, got %s"):format(client, describe(rows)))
    end
    rawset(self, client, rows:astype(ms.int64))
  end
end

--- How many samples each client has, a list.
---     > ms.federated.partition.iid(10, 3):sizes()[3] --> 4
function Partition:sizes()
  local sizes = {}
  for client = 1, #self do sizes[client] = self[client].shape[1] end
  return sizes
end

local function labels_of(where, labels)
  if type(labels) == "table" and getmetatable(labels) == nil and #labels > 0 then labels = ms.tensor(labels) end
  if not is_integers(labels) or labels.shape[1] == 0 then
    fail(where, "labels must be a list or a tensor of integers, one for each sample, got " .. describe(labels))
  end
  local list = labels:astype(ms.int64):tolist()
  for i, label in ipairs(list) do
    if label < 0 then fail(where, ("label %d is %d: classes count from 0"):format(i - 1, label)) end
  end
  return list
end

-- Of each class, from 0, the numbers of its samples.
local function rows_of_classes(labels)
  local rows, classes = {}, 0
  for _, label in ipairs(labels) do classes = math.max(classes, label + 1) end
  for k = 0, classes - 1 do rows[k] = {} end
  for i, label in ipairs(labels) do table.insert(rows[label], i - 1) end
  return rows, classes
end

--- How many samples of each class each client has: an int64 tensor (clients, classes). labels: of all samples.
---     > p = ms.federated.partition.Partition { { 0, 1 }, { 2 } }
---     > p:counts({ 0, 2, 0 }):tolist()[1][3] --> 1
function Partition:counts(labels)
  local of_sample, table_of = labels_of("Partition:counts", labels), {}
  local classes = 0
  for _, label in ipairs(of_sample) do classes = math.max(classes, label + 1) end
  for client = 1, #self do
    local counts = {}
    for k = 1, classes do counts[k] = 0 end
    for _, row in ipairs(self[client]:tolist()) do
      local label = of_sample[row + 1]
      if not label then
        fail("Partition:counts", ("client %d has sample %d, and there are %d labels"):format(client, row, #of_sample))
      end
      counts[label + 1] = counts[label + 1] + 1
    end
    table_of[client] = counts
  end
  return ms.tensor(table_of, ms.int64)
end

--- The samples of a client: of each tensor its rows, the first one shifted where the partition shifts features. client: from 1.
---     > p = ms.federated.partition.Partition { { 0, 2 }, { 1 } }
---     > x, y = p:take(1, ms.tensor { 1.0, 2.0, 3.0 }, ms.tensor { 0, 1, 2 })
---     > x:tolist()[2], y:tolist()[2] --> 3.0	2
function Partition:take(client, ...)
  client = check.positive("Partition:take", "client", client)
  if client > #self then fail("Partition:take", ("there is no client %d; there are %d"):format(client, #self)) end
  local given, rows = table.pack(...), self[client]
  local last = rows.shape[1] > 0 and ops.max(rows):item() or -1
  for i = 1, given.n do
    local x = given[i]
    if not ms.is_tensor(x) or x.ndim == 0 then
      fail("Partition:take", "a tensor with a row for each sample is expected, got " .. describe(x))
    end
    if x.shape[1] <= last then
      fail("Partition:take", ("client %d has sample %d, and the tensor has %d rows"):format(client, last, x.shape[1]))
    end
    given[i] = ops.index_select(x, 0, rows)
  end
  if self.shift and given[1] then given[1] = self.shift(given[1], client) end
  return table.unpack(given, 1, given.n)
end

--- A picture of the division: a row for each client, a column for each class, the colour is how many samples. labels: of all samples.
---     > p = ms.federated.partition.Partition { { 0, 1 }, { 2 } }
---     > p:plot({ 0, 1, 1 }):vega().title --> samples of each class by client
function Partition:plot(labels)
  return ms.plot.heatmap(self:counts(labels):astype(ms.float32), { title = "samples of each class by client", x_label = "class",
    y_label = "client", cmap = "viridis" })
end

function Partition:__len() return rawlen(self) end

function Partition:__tostring()
  local sizes = self:sizes()
  table.sort(sizes)
  return ("Partition<%d clients, %d to %d samples%s>"):format(#sizes, sizes[1], sizes[#sizes], self.shift and ", shifted" or "")
end

-- How many samples there are: a number, or as many as labels.
local function count_of(where, data)
  if ms.is_tensor(data) and data.ndim > 0 then return data.shape[1] end
  if type(data) == "table" and getmetatable(data) == nil then return #data end
  return check.positive(where, "data", data)
end

local function checked(where, clients, seed)
  return check.positive(where, "clients", clients), check.not_negative(where, "seed", seed == nil and 0 or seed)
end

-- Parts of a list by shares that sum to 1: cuts at rounded cumulated shares, so that every element goes to one part.
local function cut(list, shares, parts)
  local from, sum = 0, 0.0
  for i = 1, #shares do
    sum = sum + shares[i]
    local to = i == #shares and #list or math.min(#list, math.floor(sum * #list))
    for k = from + 1, to do table.insert(parts[i], list[k]) end
    from = math.max(from, to)
  end
end

-- Parts of a list, as equal as they can be.
local function cut_evenly(list, parts)
  local n = #parts
  for i = 1, n do table.move(list, #list * (i - 1) // n + 1, #list * i // n, #parts[i] + 1, parts[i]) end
end

local function empty_parts(n)
  local parts = {}
  for i = 1, n do parts[i] = {} end
  return parts
end

local function made(parts)
  for _, rows in ipairs(parts) do table.sort(rows) end
  return Partition(parts)
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return list
end

--- Every client gets the same number of samples (give or take one), drawn without regard to what they are. data: labels, or how many
--- samples there are; clients: how many; seed: 0.
---     > p = ms.federated.partition.iid(100, 10, { seed = 3 })
---     > #p, p:sizes()[10] --> 10	10
function partition.iid(data, clients, seed)
  seed = arguments.named("iid", { "seed" }, seed)
  local n = count_of("iid", data)
  clients, seed = checked("iid", clients, seed)
  if clients > n then fail("iid", ("%d clients cannot share %d samples"):format(clients, n)) end
  local order = chances.of(seed, "partition"):shuffled(numbers(n))
  local parts = empty_parts(clients)
  cut_evenly(order, parts)
  return made(parts)
end

local ATTEMPTS = 1000

-- Draws parts until the smallest has at least so many samples.
local function until_large_enough(where, n, clients, least, draw)
  if least * clients > n then
    fail(where, ("%d clients with at least %d samples each need %d, and there are %d"):format(clients, least, least * clients, n))
  end
  for _ = 1, ATTEMPTS do
    local parts, smallest = draw(), math.huge
    for _, rows in ipairs(parts) do smallest = math.min(smallest, #rows) end
    if smallest >= least then return made(parts) end
  end
  fail(where, ("no division in which every client has at least %d samples was found in %d attempts"):format(least, ATTEMPTS),
    "a larger alpha, fewer clients or a smaller min_size")
end

--- Of each class, clients get shares drawn from a Dirichlet distribution, so that classes are rarer the smaller alpha is (Hsu and others
--- 2019). As in NIID-Bench (Li and others 2021) a client that has its even share of all samples gets no more, and the draw is repeated
--- until every client has min_size samples. labels: of all samples; clients: how many; alpha: 0.5; seed: 0; min_size: 10.
---     > labels = ms.arange(1000) % 10
---     > p = ms.federated.partition.dirichlet(labels, 5, { alpha = 0.5, seed = 1 })
---     > #p, p:counts(labels):sum():item() --> 5	1000
function partition.dirichlet(labels, clients, alpha, seed, min_size)
  alpha, seed, min_size = arguments.named("dirichlet", { "alpha", "seed", "min_size" }, alpha, seed, min_size)
  local list = labels_of("dirichlet", labels)
  clients, seed = checked("dirichlet", clients, seed)
  alpha = check.number_positive("dirichlet", "alpha", alpha == nil and 0.5 or alpha)
  min_size = check.not_negative("dirichlet", "min_size", min_size == nil and 10 or min_size)
  local draws = chances.of(seed, "partition")
  local rows, classes = rows_of_classes(list)
  return until_large_enough("dirichlet", #list, clients, min_size, function()
    local parts = empty_parts(clients)
    for k = 0, classes - 1 do
      local shares, sum = draws:dirichlet(alpha, clients), 0.0
      for i = 1, clients do
        if #parts[i] >= #list / clients then shares[i] = 0.0 end
        sum = sum + shares[i]
      end
      -- All that are below their share drew nothing: the class is divided evenly over them all.
      for i = 1, clients do shares[i] = sum > 0 and shares[i] / sum or 1 / clients end
      cut(draws:shuffled(rows[k]), shares, parts)
    end
    return parts
  end)
end

-- As McMahan and others (2017): samples in the order of their labels, cut into shards, of which each client gets so many.
local function shards_of(list, clients, count, draws)
  local n = clients * count
  if n > #list then
    fail("by_label", ("%d clients with %d shards each need %d samples, and there are %d"):format(clients, count, n, #list))
  end
  local rows, classes = rows_of_classes(list)
  local sorted = {}
  for k = 0, classes - 1 do
    for _, row in ipairs(draws:shuffled(rows[k])) do sorted[#sorted + 1] = row end
  end
  local shards = empty_parts(n)
  cut_evenly(sorted, shards)
  local order, parts = draws:shuffled(numbers(n)), empty_parts(clients)
  for i, shard in ipairs(order) do
    local part = parts[(i - 1) // count + 1]
    for _, row in ipairs(shards[shard + 1]) do part[#part + 1] = row end
  end
  return parts
end

-- As NIID-Bench ("#C = k"): each client has k classes, one of them by its number so that none is left out, and the clients of a
-- class share its samples evenly.
local function classes_of_clients(list, clients, count, draws)
  local rows, classes = rows_of_classes(list)
  if count > classes then fail("by_label", ("labels_per_client is %d, and there are %d classes"):format(count, classes)) end
  local owners = {}
  for k = 0, classes - 1 do owners[k] = {} end
  for client = 1, clients do
    local own = (client - 1) % classes
    table.insert(owners[own], client)
    local others = numbers(classes)
    table.remove(others, own + 1)
    others = draws:shuffled(others)
    for i = 1, count - 1 do table.insert(owners[others[i]], client) end
  end
  local parts = empty_parts(clients)
  for k = 0, classes - 1 do
    local own = empty_parts(#owners[k])
    if #own > 0 then cut_evenly(draws:shuffled(rows[k]), own) end
    for i, client in ipairs(owners[k]) do table.move(own[i], 1, #own[i], #parts[client] + 1, parts[client]) end
  end
  return parts
end

--- Every client has samples of few classes. labels: of all samples; clients: how many; labels_per_client: 2; method: "classes" (each
--- client has exactly so many classes, whose samples are shared evenly by the clients that have them: NIID-Bench, Li and others 2021; with
--- fewer clients than classes some classes may be left out) or "shards" (the samples in the order of their labels are cut into clients *
--- labels_per_client shards, and each client gets so many: McMahan and others 2017); seed: 0.
---     > labels = ms.arange(1000) % 10
---     > p = ms.federated.partition.by_label(labels, 10, { labels_per_client = 2, seed = 1 })
---     > ms.ops.greater(p:counts(labels), 0):astype(ms.int64):sum(1):tolist()[1] --> 2
function partition.by_label(labels, clients, labels_per_client, method, seed)
  labels_per_client, method, seed =
    arguments.named("by_label", { "labels_per_client", "method", "seed" }, labels_per_client, method, seed)
  local list = labels_of("by_label", labels)
  clients, seed = checked("by_label", clients, seed)
  local count = check.positive("by_label", "labels_per_client", labels_per_client == nil and 2 or labels_per_client)
  method = check.choice("by_label", "method", method == nil and "classes" or method, { "classes", "shards" })
  local of = method == "shards" and shards_of or classes_of_clients
  return made(of(list, clients, count, chances.of(seed, "partition")))
end

--- Clients have different numbers of samples, by shares drawn from a Dirichlet distribution, drawn without regard to what they are. data:
--- labels, or how many samples there are; clients: how many; alpha: 0.5; seed: 0; min_size: 10, the draw is repeated until every client
--- has as many.
---     > sizes = ms.federated.partition.by_quantity(1000, 4, { alpha = 0.5, seed = 1 }):sizes()
---     > sizes[1] + sizes[2] + sizes[3] + sizes[4] --> 1000
function partition.by_quantity(data, clients, alpha, seed, min_size)
  alpha, seed, min_size = arguments.named("by_quantity", { "alpha", "seed", "min_size" }, alpha, seed, min_size)
  local n = count_of("by_quantity", data)
  clients, seed = checked("by_quantity", clients, seed)
  alpha = check.number_positive("by_quantity", "alpha", alpha == nil and 0.5 or alpha)
  min_size = check.not_negative("by_quantity", "min_size", min_size == nil and 10 or min_size)
  local draws = chances.of(seed, "partition")
  local order = draws:shuffled(numbers(n))
  return until_large_enough("by_quantity", n, clients, min_size, function()
    local parts = empty_parts(clients)
    cut(order, draws:dirichlet(alpha, clients), parts)
    return parts
  end)
end

--- One client for each writer, device or hospital: samples with the same id belong together. ids: of all samples, a list of texts or
--- integers or a tensor of integers; clients: nil, or how many: the ids are then dealt out to them; seed: 0. Without `clients` the clients
--- are in the order of their ids.
---     > p = ms.federated.partition.by_id { "ann", "bob", "ann" }
---     > #p, p[1]:tolist()[2] --> 2	2
function partition.by_id(ids, clients, seed)
  clients, seed = arguments.named("by_id", { "clients", "seed" }, clients, seed)
  if ms.is_tensor(ids) and is_integers(ids) then ids = ids:tolist() end
  if type(ids) ~= "table" or getmetatable(ids) ~= nil or #ids == 0 then
    fail("by_id", "ids must be a list or a tensor with one id for each sample, got " .. describe(ids))
  end
  local of, names = {}, {}
  for i, id in ipairs(ids) do
    if type(id) ~= "string" and math.type(id) ~= "integer" then
      fail("by_id", ("id %d must be a text or an integer, got %s"):format(i - 1, describe(id)))
    elseif type(id) ~= type(ids[1]) then
      fail("by_id", ("id %d is %s, and id 0 is %s: all must be of one kind"):format(i - 1, describe(id), describe(ids[1])))
    end
    if not of[id] then
      of[id] = {}
      names[#names + 1] = id
    end
    table.insert(of[id], i - 1)
  end
  table.sort(names)
  if clients == nil then
    local parts = {}
    for i, name in ipairs(names) do parts[i] = of[name] end
    return made(parts)
  end
  clients, seed = checked("by_id", clients, seed)
  if clients > #names then fail("by_id", ("%d clients cannot share %d ids"):format(clients, #names)) end
  local parts = empty_parts(clients)
  for i, k in ipairs(chances.of(seed, "partition"):shuffled(numbers(#names))) do
    local rows, part = of[names[k + 1]], parts[(i - 1) % clients + 1]
    table.move(rows, 1, #rows, #part + 1, part)
  end
  return made(parts)
end

local function shifted(self, shift)
  local before = self.shift
  local rows = {}
  for client = 1, #self do rows[client] = self[client] end
  return Partition(rows, before and function(x, client) return shift(before(x, client), client) end or shift)
end

--- The same division, in which each client sees its samples with noise: client i of n has normal noise of the variance level * i / n
--- (NIID-Bench). level: the largest variance; seed: 0.
---     > p = ms.federated.partition.iid(4, 2):with_noise(0.1, { seed = 1 })
---     > x = p:take(2, ms.zeros { 4, 3 })
---     > x.shape, x:abs():max():item() > 0 --> (2, 3)	true
function Partition:with_noise(level, seed)
  seed = arguments.named("with_noise", { "seed" }, seed)
  level = check.number_not_negative("with_noise", "level", level)
  seed = check.not_negative("with_noise", "seed", seed == nil and 0 or seed)
  return shifted(self, function(x, client)
    return x + (chances.of(seed, "noise", 0, client):normal_tensor(x.shape) * math.sqrt(level * client / #self)):astype(x.dtype)
  end)
end

-- Degrees for each of n clients.
local function angles_of(angle, n)
  local angles = {}
  if type(angle) == "table" and getmetatable(angle) == nil then
    if #angle ~= n then fail("with_rotation", ("there are %d angles and %d clients"):format(#angle, n)) end
    for i = 1, n do angles[i] = check.number("with_rotation", ("angle[%d]"):format(i), angle[i]) end
    return angles
  end
  angle = check.number("with_rotation", "angle", angle)
  for i = 1, n do angles[i] = n > 1 and angle * (2 * (i - 1) / (n - 1) - 1) or angle end
  return angles
end

--- The same division, in which each client sees its pictures turned by an angle of its own. angle: the largest, in degrees: client i of n
--- turns by angle * (2 (i - 1) / (n - 1) - 1), from -angle to angle; or a list with an angle for each client. Pictures are tensors
--- (samples, height, width) or (samples, channels, height, width) of floats; what comes from outside is 0.
---     > p = ms.federated.partition.iid(2, 2):with_rotation { 0, 90 }
---     > p:take(1, ms.ones { 2, 1, 4, 4 }):min():item() --> 1.0
function Partition:with_rotation(angle)
  local angles = angles_of(angle, #self)
  return shifted(self, function(x, client)
    if not x:is_floating_point() or x.ndim < 3 or x.ndim > 4 then
      fail("with_rotation", "pictures (samples, height, width) or (samples, channels, height, width) of floats are expected, got "
        .. describe(x))
    end
    if angles[client] == 0 then return x end
    local shape, turned = x.shape, math.rad(angles[client])
    local pictures = x.ndim == 4 and x or ops.expand_dims(x, 1)
    local c, s = math.cos(turned), math.sin(turned)
    -- In the grid's units height and width are 2 from the first pixel to the last: an oblong picture is turned in pixels.
    local ratio = math.max(shape[#shape - 1] - 1, 1) / math.max(shape[#shape] - 1, 1)
    local theta = ops.broadcast_to(ms.tensor({ { { c, -s * ratio, 0.0 }, { s / ratio, c, 0.0 } } }, x.dtype), { shape[1], 2, 3 })
    local grid = ops.affine_grid(theta, pictures.shape, true)
    return ops.reshape(ops.grid_sample(pictures, grid, "bilinear", "zeros", true), shape)
  end)
end

return partition
