-- Random tile programs over all pipes: valid ones give the numbers of plain operators and no alarm; where one wait is left out, a race
-- is reported exactly when no other wait makes the order. What makes an order is worked out here a second time, from the program alone.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, f16, f32 = ms.ops, ms.float16, ms.float32

-- The text of a program, written down before it is given to a core: instructions that read and write parts of buffers, and waits
-- between two pipes. Waits are put where the last one that touched a buffer is another pipe.
local Text = {}
Text.__index = Text

local function new_text() return setmetatable({ lines = {}, waits = 0 }, Text) end

function Text:wait(from, to)
  self.waits = self.waits + 1
  self.lines[#self.lines + 1] = { wait = self.waits, from = from, to = to }
end

function Text:need(pipe, buffer, writes)
  if buffer.writer and buffer.writer ~= pipe then self:wait(buffer.writer, pipe) end
  if not writes then
    buffer.readers[pipe] = true
    return
  end
  for _, reader in ipairs { "V", "M", "MTE1", "MTE2", "MTE3" } do
    if buffer.readers[reader] and reader ~= pipe then self:wait(reader, pipe) end
  end
  buffer.writer, buffer.readers = pipe, {}
end

function Text:instruction(pipe, reads, writes, write)
  for _, b in ipairs(reads) do self:need(pipe, b, false) end
  for _, b in ipairs(writes) do self:need(pipe, b, true) end
  self.lines[#self.lines + 1] = { pipe = pipe, reads = reads, writes = writes, write = write }
end

-- Whether two instructions that touch the same buffer, one of which writes it, have no order when the wait number `without` is left out.
local function has_race(text, without)
  local clocks, counts, last = {}, {}, {}
  local function clock(pipe)
    clocks[pipe], counts[pipe] = clocks[pipe] or {}, counts[pipe] or 0
    return clocks[pipe]
  end
  for _, line in ipairs(text.lines) do
    if line.wait then
      if line.wait ~= without then
        local from, to = clock(line.from), clock(line.to)
        for pipe, n in pairs(from) do to[pipe] = math.max(to[pipe] or 0, n) end
        to[line.from] = math.max(to[line.from] or 0, counts[line.from])
      end
    else
      local pipe = line.pipe
      local known = clock(pipe)
      counts[pipe] = counts[pipe] + 1
      local function before(other, n) return other == pipe or n <= (known[other] or 0) end
      for _, b in ipairs(line.reads) do
        local of = last[b] or { readers = {} }
        last[b] = of
        if of.writer and not before(of.writer, of.at) then return true end
        of.readers[pipe] = counts[pipe]
      end
      for _, b in ipairs(line.writes) do
        local of = last[b] or { readers = {} }
        if of.writer and not before(of.writer, of.at) then return true end
        for reader, n in pairs(of.readers) do
          if not before(reader, n) then return true end
        end
        last[b] = { writer = pipe, at = counts[pipe], readers = {} }
      end
    end
  end
  return false
end

local function buffers(count)
  local list = {}
  for i = 1, count do list[i] = { readers = {} } end
  return list
end

local function one_of(list) return list[math.random(#list)] end

local function with_value(list)
  local found = {}
  for _, b in ipairs(list) do
    if b.value then found[#found + 1] = b end
  end
  return found
end

-- Values are small whole numbers, so that no sum is rounded.
local function clamp(x) return ops.clamp(x, -4.0, 4.0) end

-- A program of one block on squares of 16 x 16. x: the input, whose values are known. The text, and what it stores.
local function random_text(x, length)
  local text = new_text()
  local ub, l1, l0a, l0b, l0c = buffers(4), buffers(2), buffers(2), buffers(2), buffers(2)
  local actions = {}

  local function load_into(list)
    local b, at = one_of(list), math.random(0, 3) * 256
    text:instruction("MTE2", {}, { b }, function(p, input) p:load(b.at, input:at(at), { count = 256 }) end)
    b.value = x[{ ms.slice(at, at + 256) }]
  end
  function actions.load() load_into(ub) end
  function actions.load_l1() load_into(l1) end
  function actions.vector()
    local ready = with_value(ub)
    if #ready == 0 then return end
    local a, b, to = one_of(ready), one_of(ready), one_of(ub)
    local name, plain = table.unpack(one_of { { "vadd", ops.add }, { "vsub", ops.sub }, { "vmul", ops.mul }, { "vmax", ops.maximum } })
    text:instruction("V", { a, b }, { to }, function(p) p[name](p, to.at, a.at, b.at) end)
    to.value = clamp(plain(a.value, b.value))
    text:instruction("V", { to }, { to }, function(p) p:vmins(to.at, to.at, 4.0) end)
    text:instruction("V", { to }, { to }, function(p) p:vmaxs(to.at, to.at, -4.0) end)
  end
  function actions.to_l1() -- from UB
    local ready = with_value(ub)
    if #ready == 0 then return end
    local from, to = one_of(ready), one_of(l1)
    text:instruction("MTE3", { from }, { to }, function(p) p:copy(to.at, from.at) end)
    to.value = from.value
  end
  function actions.to_cube()
    local ready = with_value(l1)
    if #ready == 0 then return end
    local from, to = one_of(ready), one_of(math.random(2) == 1 and l0a or l0b)
    text:instruction("MTE1", { from }, { to }, function(p) p:load2d(to.at, from.at) end)
    to.value = from.value
  end
  function actions.multiply()
    local left, right = with_value(l0a), with_value(l0b)
    if #left == 0 or #right == 0 then return actions.to_cube() end
    local a, b, c = one_of(left), one_of(right), one_of(l0c)
    local adds = c.value ~= nil and c.sums < 3 and math.random(2) == 1
    text:instruction("M", adds and { a, b, c } or { a, b }, { c }, function(p)
      p:mmad(c.at, a.at, b.at, 16, 16, 16, { init = not adds })
    end)
    local product = ops.matmul(a.value:reshape { 16, 16 }:astype(f32), b.value:reshape { 16, 16 }:astype(f32).T):reshape { 256 }
    c.value, c.sums = adds and c.value + product or product, adds and c.sums + 1 or 1
  end
  function actions.drain()
    local ready = with_value(l0c)
    if #ready == 0 then return actions.multiply() end
    local from, to = one_of(ready), one_of(ub)
    text:instruction("V", { from }, { to }, function(p) p:drain(to.at, from.at) end)
    text:instruction("V", { to }, { to }, function(p) p:vmins(to.at, to.at, 4.0) end)
    text:instruction("V", { to }, { to }, function(p) p:vmaxs(to.at, to.at, -4.0) end)
    to.value = clamp(from.value:astype(f16))
  end

  actions.load()
  actions.load_l1()
  local names = { "load", "load_l1", "vector", "vector", "to_l1", "to_cube", "to_cube", "multiply", "multiply", "drain" }
  for _ = 1, length do actions[one_of(names)]() end
  local last = one_of(with_value(ub))
  text:instruction("MTE3", { last }, {}, function(p, _, output) p:store(output:at(p.block * 256), last.at) end)
  text.value, text.buffers = last.value, { { "ub", ub, f16 }, { "l1", l1, f16 }, { "l0a", l0a, f16 }, { "l0b", l0b, f16 },
    { "l0c", l0c, f32 } }
  return text
end

local function write(p, input, output, text, without)
  for _, row in ipairs(text.buffers) do
    for _, b in ipairs(row[2]) do b.at = p[row[1]](p, row[3], 256) end
  end
  for _, line in ipairs(text.lines) do
    if line.pipe then line.write(p, input, output) elseif line.wait ~= without then p:sync(line.from, line.to, 0) end
  end
end

local function kernel_of(texts, without)
  return ms.ascend.kernel("random", { blocks = #texts, outputs = function() return { shape = { #texts, 256 }, dtype = f16 } end },
    function(p, input, output) write(p, input, output, texts[p.block + 1], without) end)
end

ms.set_seed(5)
local x = ops.randint(-3, 4, { 1024 }):astype(f16)
local pipes_used = {}

t.test("1,000 random valid programs over all pipes give the numbers of plain operators, and no alarm", function()
  for seed = 1, 1000 do
    math.randomseed(seed)
    local texts = {}
    for block = 1, math.random(3) do texts[block] = random_text(x, math.random(4, 24)) end
    local run = kernel_of(texts):check(x)
    if #run.faults > 0 then error(("program %d: %s"):format(seed, tostring(run))) end
    for block, text in ipairs(texts) do
      t.equal({ seed, block, has_race(text) }, { seed, block, false })
      if not ops.all(ops.equal(run.outputs[1][block - 1], text.value)):item() then
        error(("program %d, block %d gives other numbers"):format(seed, block))
      end
    end
    for pipe, n in pairs(run.instructions) do pipes_used[pipe] = (pipes_used[pipe] or 0) + n end
  end
  for _, pipe in ipairs { "V", "M", "MTE1", "MTE2", "MTE3" } do t.equal({ pipe, pipes_used[pipe] > 1000 }, { pipe, true }) end
end)

t.test("where a wait is left out, a race is found exactly when nothing else makes the order", function()
  local with, none = 0, 0
  for seed = 1, 1500 do
    math.randomseed(seed)
    local text = random_text(x, math.random(4, 24))
    if text.waits > 0 then
      local without = math.random(text.waits)
      local wanted = has_race(text, without)
      local run = kernel_of({ text }, without):check(x)
      local found = false
      for _, f in ipairs(run.faults) do
        if f.kind ~= "race" then error(("program %d without wait %d: %s"):format(seed, without, tostring(run))) end
        t.equal(f.place:match "random_kernels_test.lua:%d+$" ~= nil, true)
        found = true
      end
      if found ~= wanted then
        error(("program %d without wait %d: a race is %sreported"):format(seed, without, found and "" or "not "))
      end
      if wanted then with = with + 1 else none = none + 1 end
    end
  end
  t.equal({ with > 500, none > 100 }, { true, true })
end)

t.finish()
