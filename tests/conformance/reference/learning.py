"""Networks, optimizers and models of sequences."""
import torch
from reference import program, tensor, value_and_grads

X23 = [[0.5, -1.0, 0.3], [0.8, -0.2, 1.1]]


@program("attention_with_a_mask_in_place", ["attention", "in-place", "matrix"], """
return function(x, wq, wk, wv)
  local function attend(t, q, k, v)
    local queries, keys, values = ops.matmul(t, q), ops.matmul(t, k), ops.matmul(t, v)
    local scores = ops.matmul(queries, keys.T)
    scores:div_(2.0 ^ 0.5)
    for i = 0, 2 do
      for j = i + 1, 2 do scores[{ i, j }] = -1e9 end
    end
    local weights = ops.softmax(scores, -1)
    return ops.sum(ops.matmul(weights, values) * t["..., 0:2"])
  end
  local y, g = ms.value_and_grad(attend, { 0, 1, 2, 3 })(x, wq, wk, wv)
  return y, g[1], g[2], g[3], g[4]
end
""", [[[[0.5, -1.0, 0.3], [0.8, -0.2, 1.1], [-0.6, 0.4, 0.9]], [[0.2, 0.1], [0.5, -0.3], [0.4, 0.8]],
       [[-0.7, 0.6], [0.3, 0.2], [0.1, -0.5]], [[0.9, -0.1], [0.2, 0.7], [-0.4, 0.3]]]])
def attention_with_a_mask_in_place(x, wq, wk, wv):
    def attend(t, q, k, v):
        scores = (t @ q) @ (t @ k).T / 2**0.5
        mask = torch.ones(3, 3, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)
        return (weights @ (t @ v) * t[:, :2]).sum()

    return value_and_grads(attend, x, wq, wk, wv)


@program("multi_head_objects", ["attention", "class", "table-arg"], """
local Head = {}
Head.__index = Head
function Head.new(w) return setmetatable({ w = w, calls = 0 }, Head) end
Head.__call = function(self, x)
  self.calls = self.calls + 1
  local a = ops.softmax(ops.matmul(x, self.w), 1)
  return ops.matmul(a, a.T)
end
return function(x, weights)
  local function f(t, ws)
    local heads, out = {}, nil
    for i = 1, #ws do heads[#heads + 1] = Head.new(ws[i]) end
    for _, head in ipairs(heads) do
      local y = head(t) * head.calls
      if out then out:add_(y) else out = y end
    end
    return ops.sum(out * out)
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(x, weights)
  return y, g[1], g[2][1], g[2][2]
end
""", [[X23, {"__list__": [[[0.2, 0.1], [0.5, -0.3], [0.4, 0.8]], [[-0.7, 0.6], [0.3, 0.2], [0.1, -0.5]]]}]])
def multi_head_objects(x, weights):
    def f(t, a, b):
        out = 0
        for w in (a, b):
            p = torch.softmax(t @ w, 1)
            out = out + p @ p.T
        return (out * out).sum()

    return value_and_grads(f, x, *weights)


@program("unrolled_descent", ["meta-learning", "in-place", "nested", "order2"], """
return function(w, x, rate)
  local function inner(p) return ops.mean(ops.square(ops.tanh(ops.matmul(x, p)) - 0.5)) end
  local function outer(p, r)
    local fast = p * 1.0
    local last = fast
    for _ = 1, 4 do fast:sub_(r * ms.grad(inner)(fast)) end
    return inner(last) + 0.1 * ops.sum(fast * fast)
  end
  local y, g = ms.value_and_grad(outer, { 0, 1 })(w, rate)
  return y, g[1], g[2]
end
""", [[[0.3, -0.8, 0.5], X23, 0.4]])
def unrolled_descent(w, x, rate):
    def inner(p):
        return ((torch.tanh(x @ p) - 0.5) ** 2).mean()

    def outer(p, r):
        for _ in range(4):
            p = p - r * torch.autograd.grad(inner(p), p, create_graph=True)[0]
        return inner(p) + 0.1 * (p * p).sum()

    return value_and_grads(outer, w, rate)


@program("unrolled_adam", ["meta-learning", "in-place", "class"], """
local Adam = {}
Adam.__index = Adam
function Adam.new(p, rate)
  return setmetatable({ p = p, rate = rate, m = ops.zeros_like(p), v = ops.zeros_like(p), t = 0 }, Adam)
end
function Adam:step(g)
  self.t = self.t + 1
  self.m:mul_(0.9):add_(0.1 * g)
  self.v:mul_(0.99):add_(0.01 * g * g)
  local m, v = self.m / (1 - 0.9 ^ self.t), self.v / (1 - 0.99 ^ self.t)
  self.p:sub_(self.rate * m / (ops.sqrt(v) + 1e-3))
end
return function(w, target, rate)
  local function outer(start, r)
    local p = start * 1.0
    local adam = Adam.new(p, r)
    local losses = 0
    for _ = 1, 5 do
      local loss, g = ms.value_and_grad(function(q) return ops.sum(ops.square(q * q - target)) end)(p)
      losses = losses + loss
      adam:step(g)
    end
    return losses
  end
  local y, g = ms.value_and_grad(outer, { 0, 1 })(w, rate)
  return y, g[1], g[2]
end
""", [[[0.3, -0.8, 0.5], [1.0, 0.5, 0.2], 0.1]], 1e-3, 1e-4)
def unrolled_adam(w, target, rate):
    def outer(p, r):
        m = v = torch.zeros(3)
        losses = 0
        p = p * 1.0
        for t in range(1, 6):
            loss = ((p * p - target) ** 2).sum()
            g = torch.autograd.grad(loss, p, create_graph=True)[0]
            losses = losses + loss
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            p = p - r * (m / (1 - 0.9**t)) / (torch.sqrt(v / (1 - 0.99**t)) + 1e-3)
        return losses

    return value_and_grads(outer, w, rate)


LSTM = [[0.2, -0.1, 0.4, 0.3, -0.5, 0.6, 0.1, -0.2], [0.7, 0.2, -0.3, 0.1, 0.4, -0.6, 0.5, 0.3],
        [-0.4, 0.5, 0.1, -0.2, 0.3, 0.2, -0.1, 0.6]]


@program("lstm_with_its_state_in_place", ["rnn", "in-place", "class"], """
local Lstm = {}
Lstm.__index = Lstm
function Lstm.new(w)
  return setmetatable({ w = w, h = ops.zeros({ 2 }, w.dtype), c = ops.zeros({ 2 }, w.dtype) }, Lstm)
end
function Lstm:step(x)
  local z = ops.matmul(ops.concat({ ops.reshape(x, { 1 }), self.h }, 0), self.w)
  local i, f, g, o = ops.sigmoid(z["0:2"]), ops.sigmoid(z["2:4"]), ops.tanh(z["4:6"]), ops.sigmoid(z["6:8"])
  self.c:mul_(f):add_(i * g)
  self.h:copy_(o * ops.tanh(self.c))
  return self.h
end
return function(x, w)
  local function f(inputs, weights)
    local cell, sum = Lstm.new(weights), 0
    local seen = cell.h
    for t = 0, 3 do sum = sum + ops.sum(cell:step(inputs[t])) * ops.sum(seen) end
    return sum
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(x, w)
  return y, g[1], g[2]
end
""", [[[0.5, -1.0, 0.8, 0.3], LSTM]])
def lstm_with_its_state_in_place(x, w):
    def f(inputs, weights):
        h = c = torch.zeros(2)
        total = 0
        for v in inputs:
            z = torch.cat([v[None], h]) @ weights
            i, f_, g, o = z.chunk(4)
            c = torch.sigmoid(f_) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            total = total + h.sum() ** 2
        return total

    return value_and_grads(f, x, w)


@program("gru_of_closures", ["rnn", "closure", "higher-order"], """
local function gate(w, activation) return function(x, h) return activation(w[0] * x + w[1] * h + w[2]) end end
local function gru(w)
  local update, reset = gate(w[0], ops.sigmoid), gate(w[1], ops.sigmoid)
  local h = 0
  return function(x)
    local z, r = update(x, h), reset(x, h)
    local candidate = gate(w[2], ops.tanh)(x, r * h)
    h = (1 - z) * h + z * candidate
    return h
  end
end
return function(x, w)
  local function f(inputs, weights)
    local step, out = gru(weights), nil
    for i = 0, 4 do out = step(inputs[i]) end
    return out * out
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(x, w)
  return y, g[1], g[2]
end
""", [[[0.5, -1.0, 0.8, 0.3, 1.2], [[0.5, -0.3, 0.1], [0.2, 0.9, -0.4], [1.1, 0.6, 0.0]]]])
def gru_of_closures(x, w):
    def f(inputs, weights):
        h = tensor(0.0)
        for v in inputs:
            z = torch.sigmoid(weights[0] @ torch.stack([v, h, tensor(1.0)]))
            r = torch.sigmoid(weights[1] @ torch.stack([v, h, tensor(1.0)]))
            n = torch.tanh(weights[2] @ torch.stack([v, r * h, tensor(1.0)]))
            h = (1 - z) * h + z * n
        return h * h

    return value_and_grads(f, x, w)


@program("batch_norm_by_hand", ["normalisation", "in-place", "table"], """
return function(x, gamma, beta)
  local function f(t, g, b)
    local state = { mean = ops.zeros({ 3 }, t.dtype), var = ops.ones({ 3 }, t.dtype) }
    local running = state.mean
    local total = 0
    for k = 1, 3 do
      local batch = t * k
      local mean = ops.mean(batch, 0)
      local var = ops.mean(ops.square(batch - mean), 0)
      state.mean:mul_(0.9):add_(0.1 * mean)
      state.var:mul_(0.9):add_(0.1 * var)
      local y = (batch - mean) / ops.sqrt(var + 1e-3) * g + b
      total = total + ops.sum(y * y * y)
    end
    return total + ops.sum(running / ops.sqrt(state.var))
  end
  local y, g = ms.value_and_grad(f, { 0, 1, 2 })(x, gamma, beta)
  return y, g[1], g[2], g[3]
end
""", [[X23 + [[-0.6, 0.4, 0.9], [1.5, 0.2, -0.7]], [1.0, 0.5, 2.0], [0.1, 0.0, -0.3]]], 1e-3, 1e-4)
def batch_norm_by_hand(x, gamma, beta):
    def f(t, g, b):
        mean, var, total = torch.zeros(3), torch.ones(3), 0
        for k in range(1, 4):
            batch = t * k
            m, v = batch.mean(0), batch.var(0, unbiased=False)
            mean, var = 0.9 * mean + 0.1 * m, 0.9 * var + 0.1 * v
            y = torch.nn.functional.batch_norm(batch, None, None, g, b, True, 0.1, 1e-3)
            total = total + (y**3).sum()
        return total + (mean / torch.sqrt(var)).sum()

    return value_and_grads(f, x, gamma, beta)


@program("beam_search", ["search", "table", "strings"], """
return function(logits, move)
  local function best(l, m)
    local beams = { { score = 0, last = nil, text = "" } }
    for t = 0, 3 do
      local logp = ops.log_softmax(l[t], -1)
      local grown = {}
      for _, beam in ipairs(beams) do
        for k = 0, 2 do
          local score = beam.score + logp[k]
          if beam.last then score = score + m[{ beam.last, k }] end
          grown[#grown + 1] = { score = score, last = k, text = beam.text .. k }
        end
      end
      table.sort(grown, function(a, b) return a.score > b.score end)
      beams = { grown[1], grown[2] }
    end
    local named = {}
    for _, beam in ipairs(beams) do named[beam.text] = beam.score end
    return named[beams[1].text] + 0.5 * named[beams[2].text]
  end
  local y, g = ms.value_and_grad(best, { 0, 1 })(logits, move)
  return y, g[1], g[2]
end
""", [[[[0.1, 1.2, -0.3], [0.8, 0.05, 0.4], [-0.2, 0.9, 1.1], [0.33, 0.21, -0.5]],
       [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.7, 0.2]]]])
def beam_search(logits, move):
    def best(scores, m):
        logp = torch.log_softmax(scores, -1)
        beams = [(tensor(0.0), None)]
        for row in logp:
            grown = []
            for score, last in beams:
                for k in range(3):
                    grown.append((score + row[k] + (0 if last is None else m[last, k]), k))
            beams = sorted(grown, key=lambda b: -b[0].item())[:2]
        return beams[0][0] + 0.5 * beams[1][0]

    return value_and_grads(best, logits, move)


@program("embedding_and_counts", ["in-place", "indexing", "strings"], """
return function(table_of, text_weights)
  local function f(e, w)
    local counts, sum = {}, ops.zeros({ 2 }, e.dtype)
    for letter in ("abacab"):gmatch "%a" do
      local id = letter:byte() - 97
      counts[letter] = (counts[letter] or 0) + w[id]
      sum:add_(e[id] * counts[letter])
    end
    return ops.sum(sum * sum)
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(table_of, text_weights)
  return y, g[1], g[2]
end
""", [[[[0.5, -1.0], [0.3, 0.8], [-0.2, 1.1]], [0.4, 1.5, -0.6]]])
def embedding_and_counts(table, weights):
    def f(e, w):
        counts, total = {}, torch.zeros(2)
        for letter in "abacab":
            k = ord(letter) - 97
            counts[k] = counts.get(k, 0) + w[k]
            total = total + e[k] * counts[k]
        return (total * total).sum()

    return value_and_grads(f, table, weights)


@program("kalman_filter", ["filter", "in-place", "matrix"], """
return function(z, q)
  local function likelihood(seen, noise)
    local x, p = ops.zeros({ 2 }, seen.dtype), ops.eye(2, 2, seen.dtype)
    local a = ms.tensor({ { 1.0, 0.5 }, { 0.0, 1.0 } }, seen.dtype)
    local total = 0
    for t = 0, 4 do
      x:copy_(ops.mv(a, x))
      p:copy_(ops.matmul(ops.matmul(a, p), a.T))
      p[{ 0, 0 }] = p[{ 0, 0 }] + noise
      p[{ 1, 1 }] = p[{ 1, 1 }] + noise
      local s, v = p[{ 0, 0 }] + 0.3, seen[t] - x[0]
      local gain = p["..., 0"] / s
      x:add_(gain * v)
      p:sub_(ops.outer(gain, p[0]))
      total = total + ops.log(s) + v * v / s
    end
    return total
  end
  local y, g = ms.value_and_grad(likelihood, { 0, 1 })(z, q)
  return y, g[1], g[2]
end
""", [[[0.5, 1.1, 0.8, 1.9, 2.5], 0.2]])
def kalman_filter(z, q):
    def likelihood(seen, noise):
        x, p = torch.zeros(2), torch.eye(2)
        a = tensor([[1.0, 0.5], [0.0, 1.0]])
        total = 0
        for value in seen:
            x, p = a @ x, a @ p @ a.T + noise * torch.eye(2)
            s, v = p[0, 0] + 0.3, value - x[0]
            gain = p[:, 0] / s
            x, p = x + gain * v, p - torch.outer(gain, p[0])
            total = total + torch.log(s) + v * v / s
        return total

    return value_and_grads(likelihood, z, q)


@program("products_with_the_hessian", ["in-place", "jvp", "order2"], """
return function(x, v)
  local function f(p)
    local y = ops.sin(p)
    local also = y
    y:mul_(p)
    also[0] = y[1] * y[2]
    return ops.sum(ops.exp(also))
  end
  local value, slope = ms.jvp(f, x, v)
  local hv = ms.grad(function(p) return ops.sum(ms.grad(f)(p) * v) end)(x)
  return value, slope, hv, ms.hessian(f)(x)
end
""", [[[0.5, -1.0, 0.3], [0.2, 0.7, -0.4]]])
def products_with_the_hessian(x, v):
    def f(p):
        y = torch.sin(p) * p
        return torch.exp(torch.stack([y[1] * y[2], y[1], y[2]])).sum()

    value, slope = torch.func.jvp(f, (x,), (v,))
    hessian = torch.func.hessian(f)(x)
    return [value, slope, hessian @ v, hessian]


@program("mixture_of_gaussians", ["em", "in-place", "table-arg"], """
return function(x, model)
  local function f(seen, m)
    local mu, weight = m.mu * 1.0, ops.softmax(m.logits, 0) * 1.0
    for _ = 1, 3 do
      local d = ops.reshape(seen, { -1, 1 }) - mu
      local r = ops.softmax(ops.log(weight) - d * d, 1)
      local mass = ops.sum(r, 0)
      mu:copy_(ops.sum(r * ops.reshape(seen, { -1, 1 }), 0) / mass)
      weight:copy_(mass / 5)
    end
    return ops.sum(mu * mu * weight)
  end
  local y, g = ms.value_and_grad(f, { 0, 1 })(x, model)
  return y, g[1], g[2].logits, g[2].mu
end
""", [[[0.5, -1.0, 0.8, 1.9, -0.7], {"logits": [0.3, -0.2], "mu": [-0.5, 1.0]}]])
def mixture_of_gaussians(x, model):
    def f(seen, m):
        mu, weight = m["mu"], torch.softmax(m["logits"], 0)
        for _ in range(3):
            r = torch.softmax(torch.log(weight) - (seen[:, None] - mu) ** 2, 1)
            mass = r.sum(0)
            mu, weight = (r * seen[:, None]).sum(0) / mass, mass / 5
        return (mu * mu * weight).sum()

    return value_and_grads(f, x, model)
