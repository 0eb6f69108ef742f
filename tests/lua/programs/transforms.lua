-- Random programs about functions: closures over numbers, rows and parameters, transformed (ms.jit, ms.grad, ms.vjp, ms.jvp,
-- ms.vmap, ms.recompute, ms.custom_vjp, ms.op), asked, held in tables and objects, hooked, and called in between.
-- Transforms.source(random) gives a chunk that returns f(x, n): x is a row of three elements, n a number.
local Transforms = {}

local PRELUDE = [[
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local count = 0
local function call(f, ...) return f(...) end
local function held(f) local t = { f } t.g = f return t[1] == t.g and t.g or nil end
local function asked(f)
  if ms.is_tensor(f) or ms.is_parameter(f) or f == nil or f == 3 or type(f) == "number" then return nil end
  return f
end
local function object(f) return setmetatable({ f = f }, { __call = function(self, z) return self.f(z) end }) end
local Wrapped = nn.Cell:extend("Wrapped")
function Wrapped:init(f, k)
  self.f, self.k, self.calls = f, k, 0
  self.w = ms.Parameter(ops.full({ 3 }, 0.5, ms.float64) * k, { name = "w" })
end
function Wrapped:construct(z)
  self.calls = self.calls + 1
  return self.f(z * self.w) * self.calls + self.k
end
local function slope(net, z)
  return ms.value_and_grad(function(v) return ops.sum(net(v)) end, nil, net:trainable_params())(z)
end
local function trained(net, z, rate)
  local optimizer = nn.Momentum(net:trainable_params(), rate, 0.5)
  for _ = 1, 2 do optimizer((select(2, slope(net, z)))) end
  return net
end
local function loss(f) return function(z) return ops.sum(f(z)) end end
]]

function Transforms.source(random)
  local function pick(list) return list[random(#list)] end
  local names = 0
  local function fresh(prefix)
    names = names + 1
    return prefix .. names
  end
  local scope = { k = { "n" }, r = { "x" }, f = {}, w = {} }
  local function within(body)
    local before = scope
    scope = {}
    for kind, list in pairs(before) do scope[kind] = { table.unpack(list) } end
    local result = body()
    scope = before
    return result
  end
  local function declare(kind, name)
    table.insert(scope[kind], name)
    return name
  end

  local number, row, func
  function number(deep)
    if deep <= 0 or random() < 0.4 then return random() < 0.7 and pick(scope.k) or pick { "0.5", "-1.25", "2.0", "0.1" } end
    return ("(%s %s %s)"):format(number(deep - 1), pick { "+", "-", "*" }, number(deep - 1))
  end
  local function leaf()
    if #scope.w > 0 and random() < 0.25 then return pick(scope.w) end
    return pick(scope.r)
  end
  function row(deep)
    if deep <= 0 then return leaf() end
    local way = random(9)
    if way <= 2 then return ("ops.%s(%s)"):format(pick { "tanh", "sin", "sigmoid", "cos", "erf" }, row(deep - 1)) end
    if way <= 4 then return ("(%s %s %s)"):format(row(deep - 1), pick { "+", "-", "*" }, row(deep - 1)) end
    if way <= 6 then return ("(%s %s %s)"):format(row(deep - 1), pick { "*", "+" }, number(1)) end
    if way == 7 then return ("(%s - ops.mean(%s))"):format(row(deep - 1), row(deep - 1)) end
    if #scope.f > 0 and random() < 0.7 then return ("%s(%s)"):format(pick(scope.f), row(deep - 1)) end
    return leaf()
  end

  local function lambda(deep)
    return within(function()
      local z = declare("r", fresh "z")
      local extra = ""
      if random() < 0.25 then
        local k = fresh "k"
        extra = ("local %s = %s "):format(k, number(2))
        declare("k", k)
      end
      if random() < 0.12 then extra = extra .. ("%s:register_hook(function(d) return d * %s end) "):format(z, number(1)) end
      if random() < 0.12 then extra = extra .. ("if n > %s then return %s end "):format(pick { "1", "2", "3" }, row(1)) end
      if random() < 0.15 then
        local a = fresh "a"
        extra = extra .. ("local %s = %s:copy() %s:mul_(%s) "):format(a, row(1), a, number(1))
        declare("r", a)
      end
      if deep > 0 and random() < 0.3 then
        local g = fresh "g"
        extra = extra .. ("local %s = %s "):format(g, func(deep - 1))
        declare("f", g)
      end
      return ("function(%s) %sreturn ops.tanh(%s) end"):format(z, extra, row(2))
    end)
  end
  -- What a function of a row becomes; %f stands for the function, %g for another, %k for a number.
  local WAYS = {
    "ms.jit(%f)", "ms.jit(%f)", "ms.recompute(%f)", "ms.grad(loss(%f))", "ms.grad(ms.jit(loss(%f)))", "held(%f)", "asked(%f)",
    "object(%f)", "function(z) return ms.vmap(%f)(ops.stack({ z, z * %k }, 0)):sum(0) end",
    "function(z) local _, pull = ms.vjp(%f, z) return pull(%g(z)) end",
    "function(z) local _, d = ms.jvp(%f, { z }, { %g(z) }) return d end",
    "function(z) local y, d = ms.value_and_grad(loss(%f))(z) return y * d end",
    "ms.custom_vjp(%f, function(_, y, d) return d * y * %k end)",
    "function(z) return call(%f, %g(z)) end", "function(z) return (select(2, pcall(%f, z))) end",
    "n > 2 and %f or %g", "function(z) return ops.sum(ms.jacrev(%f)(z), 0) end", "function(z) return ms.stop_gradient(%f(z)) + z end",
    "function(z) local t = { z } for i = 1, 2 do t[i + 1] = %f(t[i]) end return t[#t] end",
    "ms.grad(function(z) return ops.sum(%f(z) * %g(z)) end)",
    "function(z) return coroutine.wrap(function(v) return %f(v) end)(z) end",
    "(function() local s = %k return function(z) s = s * 0.5 + 1 return %f(z) * s end end)()",
    "(function() local t = { [%f] = %k } return function(z) local f, k = next(t) return f(z) * k end end)()",
    "Wrapped(%f, %k)", "ms.jit(Wrapped(%f, %k))", "trained(Wrapped(%f, %k), x, 0.1)",
    "function(z) return select(2, slope(Wrapped(%f, %k), z))[1] + z end",
    "(function() local net = Wrapped(%f, %k) net:register_forward_hook(function(_, _, y) return y * %k end) return net end)()",
    "(function() local w = ms.Parameter(x * %k) return function(z) w:set_data(%f(w)) return z * w end end)()",
    "function(z) return ops.HyperMap()(%f, { z, %g(z) })[2] end",
    "function(z) if z:sum():item() > %k then error(\"large\") end return %f(z) end",
    "ms.jit(function(z) return %f(z) + %k end)", "ms.vmap(function(a) return ops.sum(%f(a * ops.ones({ 3 }, ms.float64))) end)",
  }
  function func(deep)
    if deep <= 0 then return #scope.f > 0 and random() < 0.4 and pick(scope.f) or "(" .. lambda(0) .. ")" end
    if random() < 0.3 then return "(" .. lambda(deep) .. ")" end
    local text = pick(WAYS):gsub("%%(.)", function(kind)
      if kind == "k" then return number(1) end
      return func(kind == "f" and deep - 1 or deep - 2)
    end)
    return "(" .. text .. ")"
  end

  local lines = {}
  local function line(...) lines[#lines + 1] = "  " .. string.format(...) end
  local function statement()
    local way = random(9)
    if way <= 3 then
      local f = fresh "f"
      line("local %s = %s", f, func(random(3)))
      declare("f", f)
    elseif way == 4 then
      local k = fresh "k"
      line("local %s = %s", k, number(2))
      declare("k", k)
    elseif way <= 6 then
      local r = fresh "r"
      line("local %s = %s", r, row(3))
      declare("r", r)
    elseif way == 7 then
      local w = fresh "w"
      line("local %s = ms.Parameter(%s, { name = \"%s\" })", w, row(1), w)
      if random() < 0.5 then line("%s:register_hook(function(d) return d * %s end)", w, number(1)) end
      declare("w", w)
    elseif way == 8 and #scope.w > 0 then
      local w, r = pick(scope.w), fresh "r"
      line("local %s = ms.grad(function(z) return ops.sum(%s) end, nil, { %s })(%s)[1]", r, within(function()
        declare("r", "z")
        return row(3)
      end), w, row(1))
      declare("r", r)
    else
      local r = fresh "r"
      line("local %s = %s", r, row(1))
      line("for i = 1, %d + n %% 2 do %s = %s(%s) * 0.5 + i end", random(2), r, func(2), r)
      declare("r", r)
    end
  end
  if random() < 0.7 then
    line("count = count + 1")
    if random() < 0.7 then line("local c = count") declare("k", "c") end
  end
  for _ = 1, random(2, 6) do statement() end
  line("return %s, %s(%s), count", row(2), func(2), row(1))
  return ("%sreturn function(x, n)\n%s\nend\n"):format(PRELUDE, table.concat(lines, "\n"))
end

return Transforms
