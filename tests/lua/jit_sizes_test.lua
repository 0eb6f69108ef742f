-- Compiled functions whose tensors have other sizes in each call: after the second size they are not recorded again.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local weight = ops.arange(0, 12):reshape { 3, 4 } * 0.25

local function rows(n) return (ops.arange(0, n * 3):reshape { n, 3 } * 0.5) end
local function square(n) return ops.ones { n, n + 1 } * n, ops.ones { n + 1, 2 } end

-- name = { function, arguments for a size, how many recordings at most (nil: they depend on the size) }
local functions = {
  ["elementwise"] = { function(x) return ops.relu(x * 2 + 1) - x end, rows, 2 },
  ["reductions"] = { function(x) return (x * 2):sum(), x:mean(0), ops.softmax(x), x:amax(1) end, rows, 2 },
  ["product"] = { function(x) return ops.relu(ops.matmul(x, weight) + 1):sum(1) end, rows, 2 },
  ["two matrices"] = { function(x, w) return ops.relu(ops.matmul(x, w) + 1):sum(1) end, square, 2 },
  ["two batches"] = { function(x, y) return ((x - y) * (x - y)):mean() end, function(n) return rows(n), rows(n) + 1 end, 2 },
  ["tables of batches"] = { function(q) return q.x * 2 + q.y end, function(n) return { x = rows(n), y = rows(n) } end, 3 },
  ["a network"] = { ms.nn.SequentialCell { ms.nn.Dense(3, 4), ms.nn.ReLU(), ms.nn.Dense(4, 2) }, rows, 2 },
  ["joined"] = { function(x, y) return ops.concat({ x, y * 2 }, 0) end, function(n) return rows(n), rows(n + 1) end, 2 },
  ["reshaped"] = { function(x) return x:reshape { -1 } * 2, x:dim(), x.dtype end, rows, 2 },
  ["decided upon"] = { function(x) if x:sum():item() > 20 then return x * 2 end return x end, rows, 3 },
  ["nonzero"] = { function(x) return ops.nonzero(x) * 2 end, rows, 2 },
  ["sizes that are read"] = { function(x) return x * x.shape[1], x.shape, #x.shape end, rows, 2 },
  ["sizes as a text"] = { function(x) return tostring(x.shape), "of " .. x.shape, tostring((x * 2).shape) end, rows },
  ["sizes that are compared"] = { function(x)
    local y = x * 2
    return x.shape == y.shape, x.shape == ops.ones({ 3, 3 }).shape, rawequal(x.shape, x.shape)
  end, rows },
  ["sizes that are gone through"] = { function(x)
    local n = 0
    for _, size in ipairs(x.shape) do n = n * 10 + size end
    return n, select("#", table.unpack(x.shape)), table.concat(x.shape, "x")
  end, rows },
  ["sizes that are written over"] = { function(x)
    local shape = x.shape
    shape[1] = shape[1] * 2
    shape[3] = 1
    return ops.ones(shape), shape
  end, rows },
  ["sizes that are counted"] = { function(x) return x * x.size, #x end, rows },
  ["sizes that are asked for"] = { function(x) if x.shape[2] ~= 3 or x.shape[1] > 6 then return x * 2 end return x end, rows, 3 },
  ["sizes for operators"] = { function(x)
    local s = x.shape
    local y = ops.reshape(x, { s[1], 1, s[2] }) * ops.ones { s[1], 2, 3 }
    return ops.broadcast_to(y:mean(1), { s[1], s[2] }), ops.reshape(y, { s[1] * 2, -1 }), s[1]
  end, rows, 2 },
  ["sizes of what is computed"] = { function(x)
    local y = ops.matmul(ops.relu(x), weight)
    return ops.reshape(y + 1, { y.shape[1] * 2, 2 }) * y.shape[2], y.shape
  end, rows, 2 },
  ["sizes in loops"] = { function(x)
    local s = 0
    for i = 1, x.shape[1] do s = s + x:sum() * i end
    return s
  end, rows, 6 },
  ["attention"] = { function(x)
    local q = ops.swapaxes(ops.reshape(ops.matmul(x, weight), { x.shape[1], 2, 2 }), 0, 1)
    local y = ops.matmul(ops.softmax(ops.matmul(q, q.mT) / math.sqrt(q.shape[3]), -1), q)
    return ops.reshape(ops.swapaxes(y, 0, 1), { x.shape[1], 4 })
  end, rows, 2 },
  ["the gradient of sizes"] = { function(x)
    local z = ops.reshape(x, { x.shape[1] * 3, 1 })
    return ms.grad(function(y) return (ops.reshape(y, { 3, y.shape[1] // 3 }) * z.shape[1]):mean() end)(z)
  end, rows },
  ["parts"] = { function(x) return x[0] * 2, x["1:"], x[-1], x["::2"] end, rows },
  ["parts but for the first"] = { function(x) return x["1:"] * 2 end, rows, 5 },
  ["one of each row"] = { function(x) return x["..., 1"], x["::-1"] end, rows, 5 },
  ["rows"] = { function(x) local s = 0 for _, r in x:iter() do s = s + r:sum() end return s end, rows },
  ["transposed"] = { function(x) return x.T * 2, x.mT, ops.transpose(x, { 1, 0 }) end, rows, 2 },
  ["gradient"] = { function(x) return ms.grad(function(y) return (y * y):mean() end)(x) end, rows },
  ["gradient of what was computed"] = { function(x)
    local z = x * 2
    return ms.grad(function(y) return (y * y * z):mean() end)(z)
  end, rows },
  ["gradient of what was found"] = { function(x)
    return ms.grad(function(y) return (y * y):mean() end)(ops.cast(ops.nonzero(x), ms.float32))
  end, rows },
  ["a single element"] = { function(x) return x[0] > 1, (x * 2):sum():item() end, function(n) return ops.ones { n } * n end },
  ["split"] = { function(x) return select("#", ops.split(x, 1, 0)), (ops.split(x, 1, 0)) end, rows },
  ["vmap"] = { function(x) return ms.vmap(function(r) return r:sum() * 2 end)(x) end, rows },
  ["written"] = { function(x) x[0] = 5 return x * 2 end, rows, 2 },
}

local names = {}
for name in pairs(functions) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local f, make, most = table.unpack(functions[name])
  t.test(name, function()
    local compiled = ms.jit(f)
    local sizes = most and { 2, 3, 3, 3, 4, 5, 6, 7, 1, 8, 9, 10, 11, 12, 3, 4, 4, 2 } or { 2, 3, 3, 3, 1, 4, 2 }
    for _, n in ipairs(sizes) do
      local a, b = { f(make(n)) }, { compiled(make(n)) }
      for i = 1, #a do
        if ms.is_tensor(a[i]) and a[i].dtype == ms.float32 then
          t.near(b[i], a[i], 1e-5)
          t.equal(table.concat(b[i].shape, ","), table.concat(a[i].shape, ","))
        else
          t.equal(b[i], a[i])
        end
      end
    end
    local report = ms.jit_report(compiled)
    if most and #report.recordings > most then error("recorded too often: " .. tostring(report)) end
    if report.eager then error(report.eager) end
  end)
end

t.test("sizes that an operator refuses are errors, and the list that they stood in keeps them", function()
  local function body(x, caught)
    local sizes = { x.shape[1], 3 }
    if not caught then return ops.reshape(x, sizes) end
    local ok = pcall(ops.reshape, x, sizes)
    return ok, sizes[1], x * sizes[1]
  end
  local f = ms.jit(body)
  for _, n in ipairs { 2, 3, 5, 4, 2, 6 } do
    t.equal(f(rows(n), false), rows(n))
    t.fails("reshape", f, ops.ones { n, 2 }, false)
    for _, x in ipairs { rows(n), ops.ones { n, 2 } } do
      local a, b = table.pack(body(x, true)), table.pack(f(x, true))
      for i = 1, 3 do t.equal(b[i], a[i]) end
    end
  end
end)

t.test("sizes that do not fit are errors, as without ms.jit", function()
  local f = ms.jit(function(x, w) return ops.matmul(x, w) + 1 end)
  for n = 1, 5 do f(ops.ones { n, 3 }, ops.ones { 3, 2 }) end
  t.fails("matmul", f, ops.ones { 2, 3 }, ops.ones { 4, 2 })
  t.equal(f(ops.ones { 1, 3 }, ops.ones { 3, 1 }), ms.tensor { { 4.0 } })
  local one = ms.jit(function(x) return x:item() + 1 end)
  for _ = 1, 2 do
    t.equal(one(ms.tensor { 1.0 }), 2.0)
    t.fails("item", one, ms.tensor { 1.0, 2.0 })
    t.fails("item", one, ms.tensor { 1.0, 2.0, 3.0 })
  end
end)

t.test("the report says which sizes came", function()
  local f = ms.jit(function(x) return x * 2 end)
  f(ops.ones { 2, 3 })
  f(ops.ones { 4, 3 })
  local because = ms.jit_report(f).recordings[2].because
  if not because:find("argument 1 is float32(?, ?) and was float32(2, 3) before", 1, true) then error(because) end
end)

t.test("beyond the bound on cases those that came last stay compiled", function()
  local f = ms.jit(function(x) return x * x.size end, { limit = 3 })
  for n = 1, 6 do t.equal(f(ops.ones { n }), ops.full({ n }, n + 0.0)) end
  local before = ms.jit_report(f).compiled_calls
  for n = 4, 6 do t.equal(f(ops.ones { n }), ops.full({ n }, n + 0.0)) end
  local report = ms.jit_report(f)
  t.equal(report.eager, nil)
  t.equal(report.compiled_calls - before, 3)
  t.equal(f(ops.ones { 2 }), ops.full({ 2 }, 2.0))
  t.equal(ms.jit_report(f).compiled_calls - before, 3)
end)

t.test("a training step over many batch sizes is recorded for three of them", function()
  local net = ms.nn.SequentialCell { ms.nn.Dense(8, 16), ms.nn.ReLU(), ms.nn.Dense(16, 4) }
  local step = ms.value_and_grad(function(x, y) return ops.cross_entropy(net(x), y) end, nil, net:trainable_params())
  local f = ms.jit(function(x, y) return step(x, y) end)
  for _ = 1, 10 do
    for k = 1, 12 do
      local x, y = ops.randn { 2 * k + 1, 8 }, ops.zeros({ 2 * k + 1 }, ms.int32)
      local loss, gradients = f(x, y)
      local want, wanted = step(x, y)
      t.near(loss, want, 1e-5)
      for i, g in ipairs(wanted) do t.near(gradients[i], g, 1e-5) end
    end
  end
  local report = ms.jit_report(f)
  if report.compiled_calls < 0.95 * report.calls then error(tostring(report)) end
end)

-- name = { function, arguments for a size, how many recordings at most (nil: they depend on the size) }
local derived = {
  ["mean of squares"] = { function(x) return (x * x):mean() end, rows, 4 },
  ["losses"] = { function(x) return ops.mse_loss(ops.softmax(x, -1), ops.sigmoid(x)) end, rows, 4 },
  ["normalised"] = { function(x)
    return (ops.layer_norm(x, { 3 }, ops.ones { 3 }, ops.zeros { 3 }) * ops.tanh(x)):sum()
  end, rows, 4 },
  ["a reshaped product"] = { function(x)
    return (ops.reshape(ops.matmul(x, weight), { -1, 2 }):sum(1):mean())
  end, rows, 4 },
  ["turned"] = { function(x) return (x.T * 2):mean(0):sum() + ops.matmul(x.T, x):mean() end, rows, 4 },
  ["two sizes"] = { function(x, w) return ops.matmul(x, w):mean() end, function(n)
    return ops.ones { n, 2 * n + 1 } * 0.5, ops.ones { 2 * n + 1, 2 }
  end },
  ["two sizes that are equal"] = { function(x, y) return (x * 2 + y):mean() * y:sum() end, function(n)
    return rows(n), rows(n) + 1
  end, 4 },
  ["two sizes that are equal only at first"] = { function(x, y) return x:mean() * (y * y):sum() end, function(n)
    return rows(n), rows(n < 12 and n or n + 3)
  end },
  ["spread out"] = { function(x, y) return ((x + y) * (x + y)):mean() end, function(n)
    return rows(n), rows(n % 4 == 0 and 1 or n)
  end },
  ["joined"] = { function(x) return (ops.concat({ x, x * 2 }, 0) ^ 2):mean() end, rows, 4 },
  ["filled up"] = { function(x) return (ops.pad(x, { 1, 2, 3, 1 }) * 2):mean() end, rows },
  ["added up"] = { function(x) return (ops.cumsum(x, 0) * x):mean() end, rows },
  ["spread of values"] = { function(x) return ops.var(x, 0):sum() + ops.std(x * x + x) end, rows },
  ["sorted"] = { function(x) return (ops.sort(x, 0) * x):sum() end, rows },
  ["chosen"] = { function(x) return ops.index_select(x, 0, ms.tensor({ 0, 1, 1 }, ms.int32)):sum() * x:mean() end,
    rows },
  ["parts"] = { function(x) return x["0:6"]:sum() * x:mean() + x[-1]:sum() + x["::2"]:mean() end, rows },
  ["rows at a time"] = { function(x)
    local s = 0
    for _, part in ipairs { ops.split(x, 4, 0) } do s = s + (part * part):mean() end
    return s
  end, rows },
  ["steps of two"] = { function(x)
    local signal = ops.reshape(x, { 1, 1, -1 })
    return ops.conv1d(signal, ops.ones { 2, 1, 3 }, nil, 2):mean() + ops.max_pool1d(signal, 2, 2):sum()
  end, function(n) return (ops.arange(0, n) * 0.5) end },
  ["sizes that are read"] = { function(x)
    if x.shape[1] > 10 then return (x * 3):sum() end
    return x:sum() / x.shape[1]
  end, rows },
  ["lengths that are read"] = { function(x) return x:sum() * math.min(#x, 8) end, rows },
  ["sizes for operators"] = { function(x)
    local n = x.shape[1]
    local y = ops.reshape(ops.matmul(x, weight), { n * 2, 2 })
    return (ops.broadcast_to(y:mean(0), { n, 2 }) * 2):sum() / #x
  end, rows, 4 },
  ["sizes that stand beside a number"] = { function(x, y)
    return ops.reshape(x, { x.shape[1], -1 }):mean() * y:sum() / y.shape[1]
  end, function(n) return rows(n), rows(n < 12 and n or 5) end },
  ["sizes within"] = { function(x)
    local y = ops.matmul(x, weight)
    return (y * (y.shape[1] > 8 and 2 or 3)):mean()
  end, rows },
  ["decompositions"] = { function(x) local q, r = ops.qr(x + ops.ones { 1, 3 }) return (q * q):mean() + r:sum() end,
    function(n) return ops.sin(ops.arange(0, n * 3):reshape { n, 3 }) end },
  ["a batch of products"] = { function(x)
    local y = ops.reshape(x, { -1, 1, 3 })
    return ops.bmm(y, ops.swapaxes(y, 1, 2)):mean()
  end, rows },
  ["one at a time"] = { function(x) return ms.vmap(function(r) return (r * r):mean() end)(x):sum() end, rows },
  ["second derivatives"] = { function(x)
    local g = ms.grad(function(y) return (y * y * y):mean() end)(x)
    return (g * g):sum()
  end, rows },
}
local derived_names = {}
for name in pairs(derived) do derived_names[#derived_names + 1] = name end
table.sort(derived_names)
for _, name in ipairs(derived_names) do
  local f, make, most = table.unpack(derived[name])
  t.test("derivatives over sizes: " .. name, function()
    local function both(...) return ms.value_and_grad(f, select("#", ...) > 1 and { 0, 1 } or nil)(...) end
    local compiled, fine = ms.jit(both), 0
    for _, n in ipairs { 3, 5, 7, 9, 6, 11, 4, 8, 2, 1, 16, 20, 33, 64, 10, 12, 13, 15, 20 } do
      local want = { pcall(both, make(n)) }
      local got = { pcall(compiled, make(n)) }
      t.equal(got[1], want[1])
      if want[1] then
        fine = fine + 1
        t.near(got[2], want[2], 1e-3)
        if ms.is_tensor(want[3]) then want[3], got[3] = { want[3] }, { got[3] } end
        for i, g in ipairs(want[3]) do
          t.equal(table.concat(got[3][i].shape, ","), table.concat(g.shape, ","))
          t.near(got[3][i], g, 1e-3)
        end
      end
    end
    assert(fine >= 15, "most calls have to have a result")
    assert(#compiled:ir() > 0)
    local report = ms.jit_report(compiled)
    if report.eager then error(report.eager) end
    if most and #report.recordings > most + 2 then error("recorded too often: " .. tostring(report)) end
  end)
end

t.test("parts of tensors of any sizes end where the tensors end", function()
  local parts = {
    function(x) return x[5] end, function(x) return x[-5] end, function(x) return x["0:6"] end,
    function(x) return x["-5:-3"] end, function(x) return x["::2"] end, function(x) return x["1::3"] end,
    function(x) return x["-6::2"] end, function(x) return x[{ ms.slice(2, -2), 1 }] end,
    function(x) return x[{ 3, 1 }] + x[{ -4, 0 }] end, function(x) return x["4:100"] end,
    function(x) return x["6:1:-2"] end, function(x) return (x * 2)["1:-1"]:sum() end,
    function(x) return x["2:5"]["1:"] end, function(x) return x[x:argmax(0)] end,
    function(x) local y = x + 0 y["1:3"] = 7 return y end,
  }
  for _, part in ipairs(parts) do
    local function slope(x) return ms.grad(function(y) return (part(y) * part(y)):sum() end)(x) end
    for _, f in ipairs { part, slope } do
      local compiled = ms.jit(f)
      for _, n in ipairs { 7, 9, 11, 13, 3, 5, 6, 8, 10, 4, 2, 1, 20, 33, 12 } do
        local ok, want = pcall(f, rows(n))
        if ok then
          local got = compiled(rows(n))
          t.equal(table.concat(got.shape, ","), table.concat(want.shape, ","))
          t.near(got, want, 1e-4)
        else
          t.fails(want:match(": (.*)"):match("^[^\n]*"), compiled, rows(n))
        end
      end
    end
  end
end)

t.test("what changes in a way for any sizes is recorded for the sizes of its call", function()
  local function make(state)
    return function(x)
      state.calls = state.calls + 1
      local loss, g = ms.value_and_grad(function(y)
        local z = (y * state.scale):mean()
        if state.twice then z = z * 2 end
        return z
      end)(x)
      if state.kept and g:sum():item() > state.limit then return loss * 0 end
      return loss, g * state.rate
    end
  end
  local function state() return { calls = 0, scale = 1.5, rate = 0.5, kept = true, limit = 100 } end
  local a, b = state(), state()
  local plain, compiled = make(a), ms.jit(make(b))
  local k = 0
  local function check(n)
    k = k + 1
    local x = ops.sin(ops.arange(0, n * 3):reshape { n, 3 } + k)
    local want, got = table.pack(plain(x)), table.pack(compiled(x))
    t.equal(got.n, want.n)
    for i = 1, want.n do t.near(got[i], want[i], 1e-5) end
    t.equal(b.calls, a.calls)
  end
  local function set(name, value) a[name], b[name] = value, value end
  for _, n in ipairs { 3, 5, 7, 9, 6, 4 } do check(n) end
  for _, change in ipairs { { "rate", 0.25 }, { "twice", true }, { "limit", -100 }, { "scale", 3 }, { "twice", false },
    { "kept", false }, { "limit", 1 }, { "kept", true } } do
    set(change[1], change[2])
    for _, n in ipairs { 6, 3, 8, 5, 12, 40, 1, 7, 6 } do check(n) end
  end
  local report = ms.jit_report(compiled)
  if report.eager then error(report.eager) end
end)

t.test("attention over many lengths stays compiled", function()
  local cell = ms.nn.MultiheadAttention(8, 2)
  local f = ms.jit(function(x) return (cell(x, x, x)) end)
  for _ = 1, 8 do
    for n = 1, 40 do
      local x = ops.randn { n, 2, 8 }
      t.near(f(x), (cell(x, x, x)), 1e-4)
    end
  end
  local report = ms.jit_report(f)
  if #report.recordings > 3 or report.interpreted_calls > 0 then error(tostring(report)) end
end)

-- A call that meets something new after an effect cannot be begun anew: what was computed before is stood for by
-- tensors of this call's sizes, whatever sizes were recorded.
t.test("calls that are taken up in the middle have their own sizes", function()
  local function close(a, b) return ops.all(ops.isclose(a, b, 1e-5, 1e-6)):item() end
  local bodies = {
    function(h, x, s)
      s.count = (s.count or 0) + 1
      local y = (1 - h.keep) * x * x
      s.y = y
      return x - h.rate * y
    end,
    function(h, x, s)
      s.count = (s.count or 0) + 1
      local a, b = ops.exp(x) * h.keep, ops.stack({ x, x + 1 })
      s.a = ops.sum(b, { axis = 0 }) * a
      local both = ops.concat({ a, s.a })
      return ops.sum(both * h.rate) / both.shape[1]
    end,
    function(h, x, s)
      s.count = (s.count or 0) + 1
      local a = ops.matmul(x:reshape { -1, 1 }, x:reshape { 1, -1 })
      s.a = a + ops.rand_like(a) * 0
      return ops.sum(a * h.rate * s.a, { axis = 1 }) + x
    end,
  }
  for which, body in ipairs(bodies) do
    local f, lists = ms.jit(body), {}
    local function both(h, n)
      local x = ops.randn { n }
      lists[n] = lists[n] or { {}, {} }
      local want, got = body(h, x, lists[n][1]), f(h, x, lists[n][2])
      if not close(got, want) then error(("body %d, %d elements"):format(which, n)) end
      for k, v in pairs(lists[n][1]) do
        local other = lists[n][2][k]
        assert(rawequal(v, other) or close(other, v), k)
      end
    end
    for _, rate in ipairs { 0.01, 0.003, 0.5, 0.25 } do
      local h = { rate = rate, keep = 0.9 }
      for _, n in ipairs { 10, 24, 7, 64, 3 } do
        for _ = 1, 3 do both(h, n) end
        lists[n] = nil
      end
    end
  end
end)

t.finish()
