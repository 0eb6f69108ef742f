-- Intersections of ids over links, and the join of rows to files. About 2 seconds.
-- Eager mode only: nothing is computed with tensors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local V, F = ms.federated.vertical, ms.federated

local function both(a, b, oa, ob)
  local got = V.run_parties {
    a = function(links) return { V.psi(links.b, a, oa) } end,
    b = function(links) return { V.psi(links.a, b, ob or oa) } end,
  }
  return got.a, got.b
end

t.test("both sides find the common ids in one order, and where they are", function()
  local a, b = both({ "c", "a", "x", 5 }, { "5", "b", "c", "a" })
  t.equal(a[1], { "5", "a", "c" })
  t.equal(b[1], { "5", "a", "c" })
  t.equal(a[2], { 4, 2, 1 })
  t.equal(b[2], { 1, 4, 3 })
  t.equal(a[3], 4)
  a, b = both({}, { "x" })
  t.equal(a[1], {})
  t.equal(b[1], {})
  a = both(ms.tensor { 3, 1, 2 }, { 1, 9, 3 }, { bins = 3 })
  t.equal(a[1], { "1", "3" })
end)

t.test("one side alone learns", function()
  local a, b = both({ "x", "y" }, { "y", "z", "w" }, { learns = "own" }, { learns = "other" })
  t.equal(a[1], { "y" })
  t.equal(b[1], nil)
  t.equal(b[3], 2)
  a, b = both({ "x", "y" }, { "y", "z" }, { learns = "other", first = false }, { learns = "own", first = true })
  t.equal(a[1], nil)
  t.equal(b[1], { "y" })
end)

t.test("thousands of ids with thousands, in bins and with any number of threads, are joined exactly", function()
  local a, b, expected = {}, {}, {}
  for i = 1, 700 do a[i] = ("row %d"):format(i * 2) end
  for i = 1, 900 do b[i] = ("row %d"):format(i * 3) end
  for i = 1, 700 do if i * 2 % 3 == 0 then expected[#expected + 1] = a[i] end end
  table.sort(expected)
  local threads = ms.get_num_threads()
  for _, count in ipairs { 1, 3 } do
    ms.set_num_threads(count)
    local one, other = both(a, b, { bins = count * 2 - 1 })
    t.equal(one[1], expected)
    t.equal(other[1], expected)
  end
  ms.set_num_threads(threads)
end)

-- What goes over a link, in both directions.
local function watched(link, seen)
  local channel = link._channel
  local own = setmetatable({}, { __index = channel })
  function own:send(bytes)
    seen[#seen + 1] = bytes
    channel:send(bytes)
  end
  link._channel = own
  return link
end

t.test("no id and no hash of one is in what is sent, and the sizes of messages tell sizes alone", function()
  local function transcript(b)
    local seen = {}
    V.run_parties {
      a = function(links) return V.psi(watched(links.b, seen), { "secret one", "secret two", "common id" }) end,
      b = function(links) return V.psi(watched(links.a, seen), b) end,
    }
    return seen
  end
  local one, other = transcript { "common id", "other four" }, transcript { "secret two", "secret one" }
  t.equal(#one, #other)
  for i, bytes in ipairs(one) do
    t.equal(#bytes, #other[i])
    for _, word in ipairs { "secret", "common", "four" } do assert(not bytes:find(word, 1, true)) end
    if i > 1 then assert(bytes ~= other[i]) end
  end
end)

t.test("sides that disagree, repeated ids and other values are errors with names", function()
  t.fails({ "psi", "1 bins", "this one has 2" }, both, { "a" }, { "b" }, { bins = 1 }, { bins = 2 })
  t.fails({ "psi", "id 2 of 2 has been there before" }, both, { "a", "a" }, { "b" })
  local message = t.fails({ "psi", "id 1 must be a text or an integer" }, both, { { "hidden" } }, { "b" })
  assert(not message:find "hidden")
  t.fails({ "psi", "list of texts" }, both, 3, { "b" })
  t.fails({ "psi", "there is no option 'bin'", "did you mean 'bins'?" }, both, { "a" }, { "b" }, { bin = 2 })
  t.fails({ "psi", "link to the other party" }, V.psi, {}, { "a" })
  t.fails({ "lets the second learn", "lets the first learn" }, both, { "a" }, { "b" }, { learns = "other" })
end)

local folder = os.getenv "TMPDIR" or "/tmp"

local function rows_of(files)
  local list = {}
  for _, file in ipairs(files) do
    for row in ms.dataset.MindDataset({ file }, { shuffle = false }):create_dict_iterator { num_epochs = 1 } do list[#list + 1] = row end
  end
  return list
end

t.test("a join writes rows that belong together at the same places of both parties' files", function()
  local path = folder .. "/vertical_leader.csv"
  local file <close> = io.open(path, "w")
  file:write "uid,age,scores\n"
  for i = 1, 50 do file:write(("u%03d,%d,%d %d\n"):format(i, i + 20, i, -i)) end
  file:flush()
  local others = {}
  for i = 1, 40 do others[i] = { uid = ("u%03d"):format(81 - 2 * i), income = i * 1.5, city = "city " .. i } end
  for _, case in ipairs { { 1, 1 }, { 3, 2 } } do
    local bins, shards = case[1], case[2]
    local function party(role, peer, config, schema)
      return function(links)
        config.link, config.output_dir, config.primary_key = links[peer], folder, "uid"
        config.bin_num, config.shard_num, config.overwrite, config.file_prefix = bins, shards, true, "vertical_" .. role .. "_"
        return F.FLDataWorker(role, config, schema):export()
      end
    end
    local got = V.run_parties {
      leader = party("leader", "follower", { main_table_files = path }, { age = { type = "int32" }, scores = { type = "int64", shape = {
        2 } } }),
      follower = party("follower", "leader", { rows = others }, { income = { type = "float32" }, city = { type = "string" } }),
    }
    t.equal(got.leader.rows, 25)
    t.equal(got.follower.rows, 25)
    t.equal(#got.leader.files, bins * shards)
    local left, right = rows_of(got.leader.files), rows_of(got.follower.files)
    t.equal(#left, 25)
    t.equal(#right, 25)
    for i, row in ipairs(left) do
      local number = row.age:item() - 20
      t.equal(row.scores:tolist(), { number, -number })
      -- u%03d of 81 - 2 k is number.
      t.equal(right[i].city, "city " .. (81 - number) // 2)
    end
    for _, files in ipairs { got.leader.files, got.follower.files } do
      for _, name in ipairs(files) do os.remove(name) os.remove(name .. ".db") end
    end
  end
  os.remove(path)
end)

t.test("a worker says what is missing or not supported", function()
  local function worker(config, schema)
    return F.FLDataWorker("leader", config, schema or { a = { type = "int32" } })
  end
  local link = V.pair("a", "b")
  t.fails({ "FLDataWorker", "main_table_files or rows" }, worker, { output_dir = folder, link = link })
  t.fails({ "FLDataWorker", "output_dir", "/no/such" }, worker, { rows = {}, output_dir = "/no/such", link = link })
  t.fails({ "FLDataWorker", "needs link" }, worker, { rows = {}, output_dir = folder })
  t.fails({ "filter_ecdh", "left out" }, worker, { rows = {}, output_dir = folder, link = link, psi_type = "filter_ecdh" })
  t.fails({ "schema has the id 'id'" }, worker, { rows = {}, output_dir = folder, link = link }, { id = { type = "string" } })
  t.fails({ "role must be one of" }, F.FLDataWorker, "boss", {}, {})
  t.fails({ "row 1 has no id" }, function() worker({ rows = { { x = 1 } }, output_dir = folder, link = link }):export() end)
end)

t.finish()
