-- Random functions with effects between their operators, called with tensors of changing sizes, changing numbers and
-- changing state: a compiled function must give what Lua gives and leave the same state, whatever call it was recorded
-- in, taken up in the middle of, or run as a graph.
-- lunaria tests/lua/jit_random_states_test.lua [SEED [COUNT [FIRST]]]
-- Eager mode only: what it compares is compiled here as well.
local ms = require "lunaria"
local ops = ms.ops
local seed, count = tonumber(arg[1]) or 1, tonumber(arg[2]) or 300
local first = tonumber(arg[3]) or 1
local random = math.random

local function pick(list) return list[random(#list)] end

-- A function of h (a table of numbers), x (a vector) and s (a table that keeps what it is left with), as source;
-- differentiated: its first result is a scalar.
local function program(differentiated)
  local lines, vectors, depth = {}, { "x" }, 0
  local function line(...) lines[#lines + 1] = (...):format(select(2, ...)) end
  local function any() return pick(vectors) end
  local function add(...)
    local name = ("v%d"):format(#lines)
    lines[#lines + 1] = ("local %s = %s"):format(name, (...):format(select(2, ...)))
    vectors[#vectors + 1] = name
    return name
  end
  local kinds = {
    function() add("%s * %s", any(), any()) end,
    function() add("%s + h.a", any()) end,
    function() add("h.b * %s", any()) end,
    function() add("ops.tanh(%s)", any()) end,
    function() add("ops.softmax(%s)", any()) end,
    function() add("ops.sum(%s) * %s", any(), any()) end,
    function() add("ops.where(ops.greater(%s, h.a), %s, %s * 2)", any(), any(), any()) end,
    function() add("ops.where(%s > h.a, %s, %s * 2)", any(), any(), any()) end, -- an error unless it has one element
    function() add("%s:reshape({ 1, -1 }):reshape({ -1 })", any()) end,
    function() add("%s:reshape({ 5 })", any()) end, -- an error for other sizes
    function() add("ops.concat({ %s, %s })[{ { 0, x.shape[1] } }]", any(), any()) end,
    function() add("%s / %s.shape[1]", any(), any()) end,
    function() add("ops.randn({ #%s }) + %s", any(), any()) end,
    function() add("select(2, pcall(inner, s, h, %s))", any()) end,
    function() add("twice(%s)", any()) end,
    function() add("ops.mul(%s, h.k)", any()) end,
    function() add("ops.clip(%s, -h.a, h.b)", any()) end,
    function() add("%s ^ h.k", any()) end,
    function() add("(%s * math.exp(-h.a) - math.max(h.k, 1)) / (1 + h.b)", any()) end,
    function() add("h.k - %s / (h.a + count)", any()) end,
    function() add("%s * (ops.mean(%s):item() > 0.1 and h.a or h.k)", any(), any()) end,
    function() add("%s + ops.mean(%s):item() * h.a", any(), any()) end,
    function() line("s.losses = s.losses or {} s.losses[#s.losses + 1] = ops.sum(%s):item()", any()) end,
    function() line("s.logs = s.logs or {} table.insert(s.logs, h.a * h.k) s.words = #s.logs .. ' ' .. h.a") end,
    function()
      line("s.mean = 0.9 * (s.mean or 0) + 0.1 * ops.mean(%s):item()", any())
      add("%s * s.mean", any())
    end,
    function()
      line("s.w = s.w or ops.ones({ 1 })")
      line("ops.assign(s.w, 0.9 * s.w + h.a * ops.mean(%s))", any())
      add("%s * s.w", any())
    end,
    function()
      line("s.u = s.u or ops.ones({ 1 })")
      add("%s * s.u", any())
      line("s.u:add_(h.a)")
    end,
    function() line("s.c = (s.c or 0) + 1") end,
    function() line("count = count + 1 s.count = count") end,
    function() line("if h.k > %d then s.k = h.k end", random(0, 3)) end,
    function() line("s.list = s.list or {} s.list[h.k + 1] = %s", any()) end,
    function() line("s.log = (s.log or '') .. h.k") end,
    function() line("for i = 1, h.k do s.z = (s.z or 0) + i end") end,
    function() line("s[%q] = { value = %s, k = h.k }", pick { "one", "two" }, any()) end,
    function() line("s.last = s.one and s.one.k") end,
    function()
      line("s.t = 0.5 * (s.t or 0) + %s", any())
      add("s.t * 0.5")
    end,
    function()
      line("if ops.sum(%s):item() > %.3f then s.p = (s.p or 0) + 1 end", any(), random(-2, 2) + 0.371)
    end,
    function()
      local copy = add("%s * 1", any())
      line("%s:add_(%s)", copy, any())
    end,
    function()
      local copy = add("%s * 1", any())
      line("%s[0] = h.b", copy)
      line("s.kept = %s", copy)
    end,
    function()
      if depth > 0 then return end
      depth = 1
      line("for i = 1, 2 do")
      local before = #vectors
      for _ = 1, random(2) do add("%s * i", any()) end
      line("s.sum = (s.sum or 0) + %s", any())
      line("end")
      for k = #vectors, before + 1, -1 do vectors[k] = nil end
    end,
  }
  for _ = 1, random(3, 12) do pick(kinds)() end
  if differentiated then
    line("return ops.sum(%s) + ops.sum(%s) * h.b, h.b", any(), any())
  else
    line("return %s, h.b, %s", any(), any())
  end
  return ([[
local ops = ...
local count = 0
local function twice(v) count = count + 1 return v * 2 end
local function inner(s, h, v)
  s.tried = (s.tried or 0) + 1
  if h.k == 3 then error(v * h.a) end
  return v + s.tried
end
return function(h, x, s)
]] .. table.concat(lines, "\n") .. "\nend\n")
end

local function difference(a, b, path)
  if ms.is_tensor(a) or ms.is_tensor(b) then
    if not ms.is_tensor(a) or not ms.is_tensor(b) then return path end
    if tostring(a.shape) ~= tostring(b.shape) or a.dtype ~= b.dtype then return path end
    return not ops.all(ops.isclose(a, b, 1e-4, 1e-5, true)):item() and path or nil
  elseif type(a) == "table" and type(b) == "table" then
    for k, v in pairs(a) do
      local found = difference(v, b[k], path .. "." .. tostring(k))
      if found then return found end
    end
    for k in pairs(b) do
      if a[k] == nil then return path .. "." .. tostring(k) end
    end
    return nil
  end
  local close = math.type(a) == "float" and math.type(b) == "float" and math.abs(a - b) <= 1e-5 * math.max(1, math.abs(a))
  return not (a == b or a ~= a and b ~= b or close) and path or nil
end

-- The results, or the error's message.
local function outcome(seed_of_call, f, ...)
  ms.set_seed(seed_of_call)
  local results = table.pack(pcall(f, ...))
  if not results[1] and type(results[2]) == "string" then results[2] = results[2]:match "^[^\n]*" end
  return results
end

local failures = 0
for p = first, first + count - 1 do
  math.randomseed(seed, p)
  ms.set_seed(p)
  local differentiated = p % 3 == 0
  local source = program(differentiated)
  local function make()
    local f = assert(load(source, "=program"))(ops)
    if not differentiated then return f end
    return function(h, x, s)
      return ms.value_and_grad(function(v) return f(h, v, s) end, { has_aux = true })(x)
    end
  end
  local plain = make()
  local compiled = ms.jit(make())
  local expected_state, state = {}, {}
  for call = 1, 24 do
    local n = pick { 3, 5, 8, 8, 13, 1 }
    if random() < 0.4 or state.n ~= n then expected_state, state = {}, {} end
    expected_state.n, state.n = n, n
    local h = { a = random(3) * 0.25, b = random(2) * 0.5, k = random(0, 3) }
    local x = ops.randn { n }
    local expected = outcome(p * 100 + call, plain, h, x, expected_state)
    local got = outcome(p * 100 + call, compiled, h, x, state)
    local where = difference(expected, got, "results") or difference(expected_state, state, "state")
    if where then
      failures = failures + 1
      print(("seed %d, program %d, call %d: another value at %s\n%s"):format(seed, p, call, where, source))
      print("expected", table.unpack(expected, 1, expected.n))
      print("got", table.unpack(got, 1, got.n))
      break
    end
  end
end
print(("%d of %d programs differ"):format(failures, count))
os.exit(failures == 0, true)
