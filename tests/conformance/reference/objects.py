"""What Lua's language has: classes, metatables, coroutines, errors, strings, varargs, goto."""
import torch
from reference import program, tensor, value_and_grads


@program("memoised_recursion", ["memo", "recursion", "strings"], """
return function(x)
  local function f(v)
    local memo, misses = {}, 0
    local function p(n)
      if n == 0 then return ms.tensor(1.0, v.dtype) end
      if n == 1 then return v end
      local key = "p" .. n
      if memo[key] == nil then
        misses = misses + 1
        memo[key] = ((2 * n - 1) * v * p(n - 1) - (n - 1) * p(n - 2)) / n
      end
      return memo[key]
    end
    return p(7) * misses + p(4)
  end
  return f(x), ms.grad(f)(x), ms.grad(ms.grad(f))(x)
end
""", [[0.3], [-0.85]])
def memoised_recursion(x):
    def f(v):
        p = [tensor(1.0), v]
        for n in range(2, 8):
            p.append(((2 * n - 1) * v * p[n - 1] - (n - 1) * p[n - 2]) / n)
        return p[7] * 6 + p[4]

    y, g = value_and_grads(f, x)
    return [y, g, torch.autograd.functional.hessian(f, x.detach())]


@program("classes_with_inheritance", ["class", "metatables", "in-place"], """
local Shape = {}
Shape.__index = Shape
function Shape.new(class, fields) return setmetatable(fields, class) end
function Shape:area() return 0 end
function Shape:scale(k)
  for name, value in pairs(self) do
    if ms.is_tensor(value) then value:mul_(k) end
    assert(name == "r" or name == "hole")
  end
  return self
end
local Circle = setmetatable({}, { __index = Shape })
Circle.__index = Circle
function Circle:area() return math.pi * self.r * self.r end
local Ring = setmetatable({}, { __index = Circle })
Ring.__index = Ring
function Ring:area() return Circle.area(self) - math.pi * self.hole * self.hole end
return function(r, h)
  local function f(a, b)
    local radius = a * 1.0
    local ring = Shape.new(Ring, { r = radius, hole = b * 1.0 })
    local circle = Shape.new(Circle, { r = radius })
    ring:scale(b)
    local before = circle:area()
    circle:scale(2.0)
    return ring:area() * before
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(r, h)
  return y, g[1], g[2]
end
""", [[1.5, 0.4]])
def classes_with_inheritance(r, h):
    def f(a, b):
        radius, hole = a * b, b * b
        before = torch.pi * radius**2
        radius = radius * 2
        return (torch.pi * radius**2 - torch.pi * hole**2) * before

    return value_and_grads(f, r, h)


@program("complex_numbers_by_metatables", ["metatables", "while", "numbers"], """
local C = {}
C.__index = C
local function complex(re, im) return setmetatable({ re = re, im = im }, C) end
C.__add = function(a, b) return complex(a.re + b.re, a.im + b.im) end
C.__mul = function(a, b) return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re) end
C.__len = function(a) return a.re * a.re + a.im * a.im end
C.__lt = function(a, b) return #a < #b end
return function(x, y)
  local function escape(re, im)
    local c, z, rounds = complex(re, im), complex(0, 0), 0
    while z < complex(4, 0) and rounds < 50 do
      z = z * z + c
      rounds = rounds + 1
    end
    return ops.log(#z) / 2 ^ rounds
  end
  local v, g = ms.value_and_grad(escape, { 0, 1 })(x, y)
  return v, g[1], g[2]
end
""", [[0.4, 0.5], [-0.9, 0.7]])
def complex_numbers_by_metatables(x, y):
    def escape(re, im):
        c = torch.complex(re, im)
        z, rounds = torch.zeros((), dtype=torch.complex128), 0
        while z.abs() < 4 and rounds < 50:
            z, rounds = z * z + c, rounds + 1
        return torch.log(z.real**2 + z.imag**2) / 2**rounds

    return value_and_grads(escape, x, y)


@program("a_generator_of_terms", ["coroutine", "while", "closure"], """
return function(x)
  local function f(v)
    local terms = coroutine.wrap(function()
      local term, n = v * 1.0, 1
      while true do
        coroutine.yield(n, term)
        term:mul_(-(v * v)):div_((n + 1) * (n + 2))
        n = n + 2
      end
    end)
    local sum = ops.zeros({}, v.dtype)
    for n, term in terms do
      sum:add_(term)
      if n > 20 then break end
    end
    return sum
  end
  return f(x), ms.grad(f)(x), ms.grad(ms.grad(f))(x)
end
""", [[0.7], [-2.0]])
def a_generator_of_terms(x):
    return [torch.sin(x), torch.cos(x), -torch.sin(x)]


@program("producers_and_consumers", ["coroutine", "table", "in-place"], """
return function(x)
  local function f(v)
    local stock = ops.zeros({ 2 }, v.dtype)
    local function worker(k)
      return coroutine.create(function(gain)
        for i = 0, 2 do
          stock:add_(v[i] * gain * k)
          gain = coroutine.yield(ops.sum(stock * stock))
        end
        return ops.sum(stock)
      end)
    end
    local a, b, total = worker(1), worker(2), 0
    for round = 1, 4 do
      for _, co in ipairs { a, b } do
        local ok, value = coroutine.resume(co, v["0:2"] * round)
        if ok and value then total = total + value end
      end
    end
    return total
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, -0.3, 0.8]]])
def producers_and_consumers(x):
    def f(v):
        stock, total = torch.zeros(2), 0
        for turn in range(4):
            for k in (1, 2):
                if turn < 3:
                    stock = stock + v[turn] * v[:2] * (turn + 1) * k
                    total = total + (stock * stock).sum()
                else:
                    total = total + stock.sum()
        return total

    return value_and_grads(f, x)


@program("errors_that_carry_tensors", ["pcall", "error", "in-place"], """
return function(x)
  local function f(v)
    local state = v * 1.0
    local function risky(limit)
      state:mul_(1.5)
      if ops.sum(state) > limit then error({ at = state * v, limit = limit }) end
      state[0] = state[0] + 1
      return state
    end
    local total = 0
    for round = 1, 5 do
      local ok, result = pcall(risky, 12.0)
      if ok then
        total = total + ops.sum(result)
      else
        total = total + ops.sum(result.at) * result.limit / round
        state:fill_(v[1])
      end
    end
    return total
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, 1.3, 0.8]]])
def errors_that_carry_tensors(x):
    def f(v):
        state, total = v, 0
        for turn in range(1, 6):
            state = state * 1.5
            if state.sum() > 12:
                total = total + (state * v).sum() * 12 / turn
                state = v[1].expand(3)
            else:
                state = state + tensor([1.0, 0.0, 0.0])
                total = total + state.sum()
        return total

    return value_and_grads(f, x)


@program("a_state_machine_of_gotos", ["goto", "in-place", "while"], """
return function(x)
  local function f(v)
    local acc, i = v * 0.0, 0
    local other = acc
    ::start::
    if i >= 6 then goto done end
    i = i + 1
    if i % 3 == 0 then goto skip end
    acc:add_(ops.sin(v * i))
    if ops.sum(acc) > 1.5 then goto reset end
    goto start
    ::skip::
    other[0] = other[1] * 0.5
    goto start
    ::reset::
    acc:mul_(0.25)
    goto start
    ::done::
    return ops.sum(other * v)
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, 1.3]], [[-0.7, 0.2]]])
def a_state_machine_of_gotos(x):
    def f(v):
        acc = v * 0
        for i in range(1, 7):
            if i % 3 == 0:
                acc = torch.stack([acc[1] * 0.5, acc[1]])
                continue
            acc = acc + torch.sin(v * i)
            if acc.sum() > 1.5:
                acc = acc * 0.25
        return (acc * v).sum()

    return value_and_grads(f, x)


@program("any_number_of_arguments", ["varargs", "in-place", "table"], """
local function fold(f, start, ...)
  local acc = start
  for i = 1, select("#", ...) do acc = f(acc, (select(i, ...))) end
  return acc, select("#", ...)
end
local function spread(t) return table.unpack(t, 1, t.n) end
return function(x)
  local function f(v)
    local packed = table.pack(v[0], nil, v[1] * v[2], v[2], nil)
    local first, n = fold(function(a, b) return b and a + b * b or a * 1.1 end, 0, spread(packed))
    local buffer = ops.zeros({ 3 }, v.dtype)
    fold(function(t, k) return t:add_(v * k) end, buffer, 1, v[0], 3)
    return first * n + ops.sum(buffer * buffer)
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, 1.3, -0.8]]])
def any_number_of_arguments(x):
    def f(v):
        first = ((v[0] ** 2 * 1.1) + (v[1] * v[2]) ** 2 + v[2] ** 2) * 1.1
        buffer = v * (4 + v[0])
        return first * 5 + (buffer * buffer).sum()

    return value_and_grads(f, x)


@program("a_formula_in_a_string", ["strings", "gsub", "closure"], """
return function(x)
  local function f(v)
    local names, stack = { a = v[0], b = v[1], c = v[2] }, {}
    local function push(value) stack[#stack + 1] = value end
    local function pop() return table.remove(stack) end
    local text = ("a b * c + a -"):gsub("%S+", function(word)
      if names[word] then
        push(names[word])
        return "x"
      end
      local right, left = pop(), pop()
      push(word == "*" and left * right or word == "+" and left + right or left - right)
      return #stack .. ""
    end)
    return pop() * #text
  end
  local y, g = ms.value_and_grad(f)(x)
  return y, g
end
""", [[[0.5, 1.3, -0.8]]])
def a_formula_in_a_string(x):
    return value_and_grads(lambda v: (v[0] * v[1] + v[2] - v[0]) * 13, x)


@program("names_made_of_numbers", ["strings", "table", "order2"], """
return function(x)
  local function f(v)
    local layers = {}
    for i = 1, 3 do layers[("w%02d"):format(i)] = v * i end
    local order = {}
    for name in pairs(layers) do order[#order + 1] = name end
    table.sort(order)
    local y = 1
    for at, name in ipairs(order) do y = ops.tanh(y * layers[name] + #name * at) end
    return y
  end
  return f(x), ms.grad(f)(x), ms.grad(ms.grad(f))(x)
end
""", [[0.1], [-0.6]])
def names_made_of_numbers(x):
    def f(v):
        y = tensor(1.0)
        for i in range(1, 4):
            y = torch.tanh(y * v * i + 3 * i)
        return y

    y, g = value_and_grads(f, x)
    return [y, g, torch.autograd.functional.hessian(f, x.detach())]


@program("linked_nodes", ["table", "in-place", "queue"], """
return function(x)
  local function f(v)
    local nodes = {}
    for i = 0, 4 do nodes[i] = { value = v[i] * 1.0, next = {} } end
    for _, edge in ipairs { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 3, 4 } } do
      local from = nodes[edge[1]]
      from.next[#from.next + 1] = nodes[edge[2]]
    end
    local queue, head, steps = { nodes[0] }, 1, 0
    while queue[head] do
      local node = queue[head]
      head, steps = head + 1, steps + 1
      for _, other in ipairs(node.next) do
        other.value:add_(node.value * 0.5)
        queue[#queue + 1] = other
      end
    end
    return nodes[4].value * nodes[3].value * steps
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, 1.3, -0.8, 0.2, 0.9]]])
def linked_nodes(x):
    def f(v):
        values, edges = list(v), {0: [1, 2], 1: [3], 2: [3], 3: [4], 4: []}
        queue, steps = [0], 0
        while queue:
            node = queue.pop(0)
            steps += 1
            for other in edges[node]:
                values[other] = values[other] + values[node] * 0.5
                queue.append(other)
        return values[4] * values[3] * steps

    return value_and_grads(f, x)


@program("a_tree_of_operations", ["recursion", "dispatch", "in-place"], """
local apply
local rules = {
  sum = function(v, ...)
    local total = v * 0.0
    for i = 1, select("#", ...) do total:add_(apply((select(i, ...)), v)) end
    return total
  end,
  product = function(v, a, b) return apply(a, v) * apply(b, v) end,
  sin = function(v, a) return ops.sin(apply(a, v)) end,
}
function apply(tree, v)
  if tree == "x" then return v end
  if type(tree) == "number" then return v * 0 + tree end
  return rules[tree[1]](v, table.unpack(tree, 2))
end
return function(x)
  local tree = { "sum", { "product", "x", { "sin", { "product", 2, "x" } } }, 3, { "product", "x", "x" } }
  local function f(v) return apply(tree, v) end
  local g = ms.grad(f)
  return f(x), g(x), ms.grad(g)(x), ms.grad(ms.grad(g))(x)
end
""", [[0.6], [-1.4]])
def a_tree_of_operations(x):
    return [
        x * torch.sin(2 * x) + 3 + x * x,
        torch.sin(2 * x) + 2 * x * torch.cos(2 * x) + 2 * x,
        4 * torch.cos(2 * x) - 4 * x * torch.sin(2 * x) + 2,
        -12 * torch.sin(2 * x) - 8 * x * torch.cos(2 * x),
    ]


@program("closures_that_share_a_tensor", ["closure", "in-place", "higher-order"], """
local function counter(start)
  local value = start * 1.0
  return {
    add = function(d) value:add_(d) return value end,
    get = function() return value end,
    reset = function() value = start * 2.0 end,
  }
end
return function(x)
  local function f(v)
    local c = counter(v)
    local seen = c.get()
    local one = ops.sum(c.add(v) * v)
    c.add(seen * seen)
    local two = ops.sum(seen)
    c.reset()
    c.add(one)
    return ops.sum(c.get() * seen) + two
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, -1.3]]])
def closures_that_share_a_tensor(x):
    def f(v):
        seen = v + v
        one = (seen * v).sum()
        seen = seen + seen * seen
        return ((v * 2 + one) * seen).sum() + seen.sum()

    return value_and_grads(f, x)


@program("a_proxy_that_counts", ["metatables", "in-place", "index"], """
local function proxy(target)
  local log = { reads = 0, writes = 0 }
  return setmetatable({}, {
    __index = function(_, key)
      log.reads = log.reads + 1
      return target[key]
    end,
    __newindex = function(_, key, value)
      log.writes = log.writes + 1
      target[key] = value * log.writes
    end,
    __call = function() return log end,
  })
end
return function(x)
  local function f(v)
    local data = v * 1.0
    local p = proxy(data)
    for i = 0, 2 do p[i] = p[i] * p[(i + 1) % 3] end
    return ops.sum(data * data) * p().reads / p().writes
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, -1.3, 0.8]]])
def a_proxy_that_counts(x):
    def f(v):
        d = list(v)
        for i in range(3):
            d[i] = d[i] * d[(i + 1) % 3] * (i + 1)
        return sum(a * a for a in d) * 2

    return value_and_grads(f, x)


@program("to_be_closed_in_place", ["close", "in-place", "for"], """
return function(x)
  local function f(v)
    local shared = v * 1.0
    local function scoped(k) return setmetatable({}, { __close = function() shared:mul_(k) end }) end
    local total = 0
    for i = 1, 3 do
      local _ <close> = scoped(i * 0.5)
      shared:add_(v)
      total = total + ops.sum(shared * v)
    end
    return total + ops.sum(shared)
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, -1.3]]])
def to_be_closed_in_place(x):
    def f(v):
        shared, total = v, 0
        for i in range(1, 4):
            shared = shared + v
            total = total + (shared * v).sum()
            shared = shared * i * 0.5
        return total + shared.sum()

    return value_and_grads(f, x)
