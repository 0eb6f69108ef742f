"""Matrix algorithms, solvers and dynamic programming."""
import torch
from reference import program, tensor, value_and_grads

SPD = [[4.0, 1.0, 0.6], [1.0, 3.0, -0.4], [0.6, -0.4, 2.5]]
VECTOR = [0.3, -1.2, 0.8]


@program("cholesky_in_place", ["matrix", "in-place", "for"], """
local function cholesky(a)
  local n = a.shape[1]
  local l = ops.zeros({ n, n }, a.dtype)
  for i = 0, n - 1 do
    for j = 0, i do
      local s = a[{ i, j }]
      for k = 0, j - 1 do s = s - l[{ i, k }] * l[{ j, k }] end
      if i == j then l[{ i, j }] = ops.sqrt(s) else l[{ i, j }] = s / l[{ j, j }] end
    end
  end
  return l
end
return function(a)
  local function f(m)
    local l = cholesky(m)
    local logdet = 0
    for i = 0, 2 do logdet = logdet + 2 * ops.log(l[{ i, i }]) end
    return logdet + ops.sum(l * l * l)
  end
  local y, g = ms.value_and_grad(f)(a)
  return y, g + g.T, cholesky(a)
end
""", [[SPD], [[[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]]]])
def cholesky_in_place(a):
    def f(m):
        lower = torch.linalg.cholesky(m)
        return 2 * torch.log(torch.diagonal(lower)).sum() + (lower**3).sum()

    y, g = value_and_grads(f, a)
    return [y, g + g.T, torch.linalg.cholesky(a)]


@program("gauss_elimination", ["matrix", "in-place", "for"], """
local function solve(a, b)
  a, b = a:clone(), b:clone()
  local n = a.shape[1]
  for k = 0, n - 1 do
    local p = k
    for i = k + 1, n - 1 do
      if ops.abs(a[{ i, k }]) > ops.abs(a[{ p, k }]) then p = i end
    end
    if p ~= k then
      local row, value = a[p], b[p]
      a[p], b[p] = a[k], b[k]
      a[k], b[k] = row, value
    end
    for i = k + 1, n - 1 do
      local factor = a[{ i, k }] / a[{ k, k }]
      a[i] = a[i] - factor * a[k]
      b[i] = b[i] - factor * b[k]
    end
  end
  for i = n - 1, 0, -1 do
    for j = i + 1, n - 1 do b[i] = b[i] - a[{ i, j }] * b[j] end
    b[i] = b[i] / a[{ i, i }]
  end
  return b
end
return function(a, b)
  local function f(m, v) return ops.sum(ops.sin(solve(m, v))) end
  local y, g = ms.value_and_grad(f, { 0, 1 })(a, b)
  return y, g[1], g[2]
end
""", [[SPD, VECTOR], [[[0.1, 2.0, 1.0], [3.0, 0.5, -1.0], [1.0, 1.0, 1.0]], [1.0, 0.5, -0.25]]])
def gauss_elimination(a, b):
    return value_and_grads(lambda m, v: torch.sin(torch.linalg.solve(m, v)).sum(), a, b)


@program("gram_schmidt", ["matrix", "in-place", "table-arg"], """
local function orthonormal(rows)
  local q = {}
  for i, v in ipairs(rows) do
    local u = v * 1.0
    for j = 1, i - 1 do u:sub_(q[j] * ops.sum(q[j] * u)) end
    q[i] = u
    u:div_(ops.sqrt(ops.sum(u * u)))
  end
  return q
end
return function(rows)
  local function f(t)
    local q, sum = orthonormal(t), 0
    for i, row in ipairs(q) do sum = sum + ops.sum(row * row * row) * i end
    return sum
  end
  local y, g = ms.value_and_grad(f)(rows)
  return y, g[1], g[2], g[3]
end
""", [[{"__list__": [[1.0, 0.2, -0.5], [0.3, 2.0, 0.1], [-0.7, 0.4, 1.5]]}]])
def gram_schmidt(rows):
    def f(a, b, c):
        q, r = torch.linalg.qr(torch.stack([a, b, c]).T)
        q = q * torch.sign(torch.diagonal(r))
        return (q**3 * tensor([1.0, 2.0, 3.0])).sum()

    return value_and_grads(f, *rows)


@program("conjugate_gradients", ["matrix", "in-place", "while"], """
local function solve(a, b)
  local x, r = ops.zeros_like(b), b * 1.0
  local p = r * 1.0
  local rr = ops.sum(r * r)
  while rr > 1e-24 do
    local ap = ops.mv(a, p)
    local alpha = rr / ops.sum(p * ap)
    x:add_(alpha * p)
    r:sub_(alpha * ap)
    local new = ops.sum(r * r)
    p:mul_(new / rr):add_(r)
    rr = new
  end
  return x
end
return function(a, b)
  local y, g = ms.value_and_grad(function(m, v) return ops.sum(solve(m, v) * v) end, { 0, 1 })(a, b)
  return y, ops.sum(g[1] * a), g[2]
end
""", [[SPD, VECTOR]])
def conjugate_gradients(a, b):
    y, ga, gb = value_and_grads(lambda m, v: (torch.linalg.solve(m, v) * v).sum(), a, b)
    return [y, (ga * a).sum(), gb]


@program("power_iteration", ["matrix", "in-place", "repeat"], """
return function(a)
  local function largest(m)
    local v = ops.ones({ 3 }, m.dtype)
    local value, rounds = 0, 0
    repeat
      v:copy_(ops.mv(m, v))
      v:div_(ops.sqrt(ops.sum(v * v)))
      rounds = rounds + 1
    until rounds == 200
    return ops.sum(v * ops.mv(m, v))
  end
  return ms.value_and_grad(largest)(a)
end
""", [[SPD]])
def power_iteration(a):
    a.requires_grad_(True)
    values, vectors = torch.linalg.eigh(a)
    v = vectors[:, -1].detach()
    return [values[-1], torch.outer(v, v)]


@program("matrix_exponential", ["matrix", "for", "recursion"], """
local function exponential(a, halvings)
  if halvings > 0 then
    local half = exponential(a / 2, halvings - 1)
    return ops.matmul(half, half)
  end
  local term, sum = ops.eye(2, 2, a.dtype), ops.eye(2, 2, a.dtype)
  for k = 1, 14 do
    term = ops.matmul(term, a) / k
    sum:add_(term)
  end
  return sum
end
return function(a)
  local y, g = ms.value_and_grad(function(m) return ops.sum(exponential(m, 4)) end)(a)
  return y, g
end
""", [[[[0.4, -1.1], [0.7, 0.2]]], [[[1.5, 0.0], [0.3, -2.0]]]])
def matrix_exponential(a):
    return value_and_grads(lambda m: torch.linalg.matrix_exp(m).sum(), a)


@program("determinant_by_minors", ["matrix", "recursion", "table"], """
local function determinant(rows)
  if #rows == 1 then return rows[1][1] end
  local sum, sign = 0, 1
  for c = 1, #rows do
    local minor = {}
    for i = 2, #rows do
      local row = {}
      for j, v in ipairs(rows[i]) do
        if j ~= c then row[#row + 1] = v end
      end
      minor[#minor + 1] = row
    end
    sum = sum + sign * rows[1][c] * determinant(minor)
    sign = -sign
  end
  return sum
end
return function(a)
  local function f(m)
    local rows = {}
    for i, row in m:iter() do
      rows[i + 1] = {}
      for j = 0, #row - 1 do rows[i + 1][j + 1] = row[j] end
    end
    return determinant(rows)
  end
  return f(a), ms.grad(f)(a)
end
""", [[SPD], [[[0.5, 1.0, 0.0, 2.0], [1.0, -1.0, 0.3, 0.2], [0.0, 2.0, 1.0, 0.4], [0.7, 0.1, -0.6, 1.1]]]])
def determinant_by_minors(a):
    return value_and_grads(torch.linalg.det, a)


@program("runge_kutta_pendulum", ["ode", "closure", "order2"], """
local function step(f, state, h)
  local k1 = f(state)
  local k2 = f(state + h / 2 * k1)
  local k3 = f(state + h / 2 * k2)
  local k4 = f(state + h * k3)
  return state:add_(h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
end
return function(start, g)
  local function final(s, gravity)
    local state = s * 1.0
    local function f(y) return ops.stack({ y[1], -gravity * ops.sin(y[0]) - 0.1 * y[1] }, 0) end
    for _ = 1, 20 do step(f, state, 0.05) end
    return state[0] * state[0] + state[1]
  end
  local y, d = ms.value_and_grad(final, { 0, 1 })(start, g)
  local second = ms.grad(ms.grad(function(v) return final(start, v) end))(g)
  return y, d[1], d[2], second
end
""", [[[0.5, 0.0], 9.81], [[1.2, -0.4], 3.7]])
def runge_kutta_pendulum(start, g):
    def final(s, gravity):
        def f(y):
            return torch.stack([y[1], -gravity * torch.sin(y[0]) - 0.1 * y[1]])

        h = 0.05
        for _ in range(20):
            k1 = f(s)
            k2 = f(s + h / 2 * k1)
            k3 = f(s + h / 2 * k2)
            k4 = f(s + h * k3)
            s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return s[0] * s[0] + s[1]

    first = value_and_grads(final, start, g)
    second = torch.autograd.functional.hessian(lambda v: final(start.detach(), v), g.detach())
    return [*first, second]


@program("heat_equation", ["ode", "in-place", "slices"], """
return function(u0, kappa)
  local function energy(u, k)
    u = u:clone()
    local history = {}
    for t = 1, 6 do
      local next_u = u * 1.0
      next_u["1:-1"] = u["1:-1"] + k * (u["2:"] - 2 * u["1:-1"] + u[":-2"])
      next_u[0] = next_u[1]
      next_u[-1] = 0.0
      u:copy_(next_u)
      history[t] = ops.sum(u * u)
    end
    local total = 0
    for t, e in ipairs(history) do total = total + e / t end
    return total + u[2]
  end
  local y, g = ms.value_and_grad(energy, { 0, 1 })(u0, kappa)
  return y, g[1], g[2]
end
""", [[[0.1, 1.0, 2.0, 0.5, 0.0, -1.0], 0.2]])
def heat_equation(u0, kappa):
    def energy(u, k):
        total = 0
        for t in range(1, 7):
            inner = u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2])
            u = torch.cat([inner[:1], inner, torch.zeros(1)])
            total = total + (u * u).sum() / t
        return total + u[2]

    return value_and_grads(energy, u0, kappa)


@program("newton_two_equations", ["solver", "for", "jacobian"], """
return function(p)
  local function root(q)
    local x, y = 1.0, 1.0
    for _ = 1, 12 do
      local f, g = x * x + q * y - 3, x * y + y * y * q - 2
      local fx, fy, gx, gy = 2 * x, q, y, x + 2 * y * q
      local d = fx * gy - fy * gx
      x, y = x - (f * gy - g * fy) / d, y - (g * fx - f * gx) / d
    end
    return x, y
  end
  local function f(q)
    local x, y = root(q)
    return x * x + 3 * y
  end
  return f(p), ms.grad(f)(p)
end
""", [[1.0], [0.8]])
def newton_two_equations(p):
    x = y = tensor(1.0)
    for _ in range(60):
        f, g = x * x + p * y - 3, x * y + y * y * p - 2
        jacobian = torch.stack([torch.stack([2 * x, p]), torch.stack([y, x + 2 * y * p])])
        dx, dy = torch.linalg.solve(jacobian, torch.stack([f, g]))
        x, y = x - dx, y - dy
    # The implicit function theorem.
    jacobian = torch.stack([torch.stack([2 * x, p]), torch.stack([y, x + 2 * y * p])])
    dx, dy = torch.linalg.solve(jacobian, -torch.stack([y, y * y]))
    return [x * x + 3 * y, 2 * x * dx + 3 * dy]


@program("bisection_polished", ["solver", "while", "numbers"], """
return function(a)
  local function root(c)
    local low, high = 0.0, 4.0
    while high - low > 1e-9 do
      local middle = (low + high) / 2
      if middle ^ 3 + middle - c:item() > 0 then high = middle else low = middle end
    end
    local x = (low + high) / 2
    for _ = 1, 2 do x = x - (x ^ 3 + x - c) / (3 * x ^ 2 + 1) end
    return x
  end
  return root(a), ms.grad(root)(a), ms.grad(ms.grad(root))(a)
end
""", [[2.0], [10.5]])
def bisection_polished(a):
    x = tensor(1.0)
    for _ in range(200):
        x = x - (x**3 + x - a) / (3 * x**2 + 1)
    slope = 1 / (3 * x**2 + 1)
    return [x, slope, -6 * x * slope**3]


@program("adaptive_simpson", ["recursion", "higher-order", "while"], """
local function simpson(f, a, b) return (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b)) end
local function adaptive(f, a, b, whole, tolerance, depth)
  local m = (a + b) / 2
  local left, right = simpson(f, a, m), simpson(f, m, b)
  local delta = left + right - whole
  if depth == 0 or ops.abs(delta) < tolerance then return left + right + delta / 15 end
  return adaptive(f, a, m, left, tolerance / 2, depth - 1) + adaptive(f, m, b, right, tolerance / 2, depth - 1)
end
return function(p)
  local function integral(c)
    local function f(x) return ops.exp(-c * x * x) end
    return adaptive(f, 0.0, 1.0, simpson(f, 0.0, 1.0), 1e-12, 12)
  end
  return integral(p), ms.grad(integral)(p)
end
""", [[1.0], [2.5]])
def adaptive_simpson(p):
    def integral(c):
        return torch.sqrt(torch.pi / c) / 2 * torch.erf(torch.sqrt(c))

    return value_and_grads(integral, p)


@program("viterbi", ["dynamic-programming", "table", "in-place"], """
return function(emit, move)
  local function best(e, m)
    local n, states = e.shape[1], e.shape[2]
    local score = e[0] * 1.0
    for t = 1, n - 1 do
      local old = score:clone()
      for j = 0, states - 1 do
        local top
        for i = 0, states - 1 do
          local s = old[i] + m[{ i, j }]
          if not top or s > top then top = s end
        end
        score[j] = top + e[{ t, j }]
      end
    end
    return ops.max(score)
  end
  local y, g = ms.value_and_grad(best, { 0, 1 })(emit, move)
  return y, g[1], g[2]
end
""", [[[[0.1, 1.2, -0.3], [0.8, 0.05, 0.4], [-0.2, 0.9, 1.1], [0.33, 0.21, -0.5]],
       [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.7, 0.2]]]])
def viterbi(emit, move):
    def best(e, m):
        score = e[0]
        for row in e[1:]:
            score = (score[:, None] + m).max(0).values + row
        return score.max()

    return value_and_grads(best, emit, move)


@program("forward_algorithm", ["dynamic-programming", "in-place", "order2"], """
local function logsumexp(t)
  local top = ms.stop_gradient(ops.max(t))
  return ops.log(ops.sum(ops.exp(t - top))) + top
end
return function(emit, move)
  local function likelihood(e)
    local alpha = e[0] * 1.0
    for t = 1, 2 do
      local old = alpha * 1.0
      for j = 0, 1 do alpha[j] = logsumexp(old + move["..., " .. j]) + e[{ t, j }] end
    end
    return logsumexp(alpha)
  end
  local y, g = ms.value_and_grad(likelihood)(emit)
  local hv = ms.grad(function(e) return ops.sum(ms.grad(likelihood)(e) * e) end)(emit)
  return y, g, hv
end
""", [[[[0.1, 1.2], [0.8, -0.4], [-0.2, 0.9]], [[0.5, -0.2], [0.3, 0.4]]]])
def forward_algorithm(emit, move):
    def likelihood(e):
        alpha = e[0]
        for row in e[1:]:
            alpha = torch.logsumexp(alpha[:, None] + move, 0) + row
        return torch.logsumexp(alpha, 0)

    y, g = value_and_grads(likelihood, emit)
    e = emit.detach().requires_grad_(True)
    inner = torch.autograd.grad(likelihood(e), e, create_graph=True)[0]
    return [y, g, torch.autograd.grad((inner * e).sum(), e)[0]]


@program("soft_edit_distance", ["dynamic-programming", "strings", "memo"], """
return function(costs)
  local function distance(c, a, b)
    local memo = {}
    local function d(i, j)
      if i == 0 then return j * c[0] end
      if j == 0 then return i * c[1] end
      local key = i .. "," .. j
      if not memo[key] then
        local change = a:sub(i, i) == b:sub(j, j) and 0 or c[2]
        local ways = { d(i - 1, j) + c[1], d(i, j - 1) + c[0], d(i - 1, j - 1) + change }
        local sum = 0
        for _, way in ipairs(ways) do sum = sum + ops.exp(-4 * way) end
        memo[key] = -ops.log(sum) / 4
      end
      return memo[key]
    end
    return d(#a, #b)
  end
  return ms.value_and_grad(function(c) return distance(c, "kitten", "sitting") end)(costs)
end
""", [[[1.0, 1.1, 0.9]]])
def soft_edit_distance(costs):
    def distance(c):
        a, b = "kitten", "sitting"
        table = [[j * c[0] for j in range(len(b) + 1)]]
        for i in range(1, len(a) + 1):
            row = [i * c[1]]
            for j in range(1, len(b) + 1):
                change = 0 if a[i - 1] == b[j - 1] else c[2]
                ways = torch.stack([table[i - 1][j] + c[1], row[j - 1] + c[0], table[i - 1][j - 1] + change])
                row.append(-torch.logsumexp(-4 * ways, 0) / 4)
            table.append(row)
        return table[-1][-1]

    return value_and_grads(distance, costs)


@program("prefix_sums_in_place", ["in-place", "for", "order2"], """
return function(x)
  local function f(v)
    local y = v * v
    local same = y
    for i = 1, 4 do y[i] = y[i] + same[i - 1] end
    for i = 3, 0, -1 do same[i] = y[i] * y[i + 1] end
    return ops.sum(same)
  end
  local h = ms.hessian(f)(x)
  return f(x), ms.grad(f)(x), h
end
""", [[[0.5, -1.0, 0.3, 0.8, -0.2]]])
def prefix_sums_in_place(x):
    def f(v):
        y = list(torch.cumsum(v * v, 0))
        for i in range(3, -1, -1):
            y[i] = y[i] * y[i + 1]
        return sum(y)

    return [*value_and_grads(f, x), torch.autograd.functional.hessian(f, x.detach())]


@program("insertion_sort", ["in-place", "while", "sorting"], """
return function(x)
  local function f(v)
    local t = v * 1.0
    for i = 1, 4 do
      local j = i
      while j > 0 and t[j - 1] > t[j] do
        local keep = t[j]
        t[j] = t[j - 1]
        t[j - 1] = keep
        j = j - 1
      end
    end
    local sum = 0
    for i = 0, 4 do sum = sum + (i + 1) * t[i] * t[i] end
    return sum
  end
  return ms.value_and_grad(f)(x)
end
""", [[[0.5, -1.0, 0.3, 0.8, -0.2]], [[5.0, 4.0, 3.0, 2.0, 1.0]]])
def insertion_sort(x):
    return value_and_grads(lambda v: (torch.sort(v).values ** 2 * torch.arange(1, 6)).sum(), x)


@program("convolution_by_loops", ["in-place", "nested-for", "argnums"], """
return function(x, w)
  local function f(v, k)
    local n, m = v.shape[1], k.shape[1]
    local y = ops.zeros({ n - m + 1 }, v.dtype)
    for i = 0, n - m do
      for j = 0, m - 1 do y[i] = y[i] + v[i + j] * k[j] end
    end
    y:tanh_()
    return ops.sum(y * y * y)
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(x, w)
  return y, g[1], g[2]
end
""", [[[0.5, -1.0, 0.3, 0.8, -0.2, 1.4], [0.7, -0.3, 0.2]]])
def convolution_by_loops(x, w):
    def f(v, k):
        y = torch.nn.functional.conv1d(v[None, None], k[None, None])
        return (torch.tanh(y) ** 3).sum()

    return value_and_grads(f, x, w)


@program("online_softmax", ["in-place", "for", "numerics"], """
return function(x, v)
  local function attend(scores, values)
    local top, sum = ms.tensor(-1e30, scores.dtype), ops.zeros({}, scores.dtype)
    local out = ops.zeros({ 2 }, scores.dtype)
    for i = 0, 3 do
      local s = scores[i]
      local new = s > top and s or top
      local scale = ops.exp(top - new)
      sum:mul_(scale):add_(ops.exp(s - new))
      out:mul_(scale):add_(ops.exp(s - new) * values[i])
      top = new
    end
    return ops.sum(ops.square(out / sum))
  end
  local y, g = ms.value_and_grad(attend, { 0, 1 })(x, v)
  return y, g[1], g[2]
end
""", [[[0.5, 20.0, -3.0, 19.0], [[1.0, 2.0], [-0.5, 0.3], [0.7, 0.7], [2.0, -1.0]]]])
def online_softmax(x, v):
    return value_and_grads(lambda s, w: ((torch.softmax(s, 0) @ w) ** 2).sum(), x, v)
