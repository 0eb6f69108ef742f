-- Arguments as Lua expressions, so that a call can be printed as a program. What they refer to are `ms` and the
-- functions of `given`.
local given = {}

function given.self_containing()
  local t = { 1 }
  t[2], t.t = t, t
  return t
end

function given.mutual()
  local a, b = {}, {}
  a[1], b[1] = b, a
  return a
end

function given.deep(n)
  local t = {}
  for _ = 1, n do
    t = { t }
  end
  return t
end

function given.deep_names(n)
  local t = 1.0
  for _ = 1, n do
    t = { t = t }
  end
  return t
end

function given.list(n, item)
  local t = {}
  for i = 1, n do
    t[i] = item or i
  end
  return t
end

local function refuse() error("refused") end

-- Every use of it raises an error.
function given.raising()
  local metatable = { __name = "raising" }
  for _, event in ipairs {
    "index", "newindex", "len", "call", "tostring", "pairs", "eq", "lt", "le", "concat", "unm", "add", "sub", "mul", "div", "mod",
    "pow", "idiv", "close", "gc", "band", "mime",
  } do
    metatable["__" .. event] = refuse
  end
  return setmetatable({}, metatable)
end

function given.lying() return setmetatable({}, { __len = function() return 1 << 62 end, __index = function() return 1 end }) end

function given.endless() return setmetatable({}, { __pairs = function(t) return function(_, i) return (i or 0) + 1, t end, t end }) end

function given.dead()
  local c = coroutine.create(refuse)
  coroutine.resume(c)
  return c
end

function given.suspended()
  local c = coroutine.create(function(...)
    while true do
      coroutine.yield(...)
    end
  end)
  coroutine.resume(c)
  return c
end

function given.closed()
  local file = io.tmpfile()
  file:close()
  return file
end

function given.nested_grad(n)
  local ms, f = require "lunaria", function(x) return x * x end
  for _ = 1, n do
    f = ms.grad(f)
  end
  return f
end

function given.network()
  local ms = require "lunaria"
  return ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.ReLU(), ms.nn.Dense(3, 2))
end

function given.optimizer()
  local ms = require "lunaria"
  return ms.nn.SGD({ ms.Parameter(ms.ones { 2 }, "w") }, 0.1)
end

-- Five rows of two columns.
function given.rows()
  local ms = require "lunaria"
  return ms.dataset.NumpySlicesDataset({ ms.ones { 5, 2 }, ms.arange(5) }, { column_names = { "x", "y" }, shuffle = false })
end

function given.model()
  local ms = require "lunaria"
  local net = given.network()
  return ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.1), { metrics = { "mae" } })
end

local arguments = { given = given }

arguments.numbers = {
  "0", "1", "2", "3", "-1", "-2", "7", "100", "0.0", "-0.0", "0.5", "1.5", "-1.5", "1e300", "1e-300", "-1e300", "0/0", "1/0", "-1/0",
  "2^53", "2^62", "2^63", "-2^63", "1 << 31", "(1 << 31) - 1", "1 << 32", "1 << 40", "1 << 53", "1 << 61", "1 << 62",
  "math.maxinteger", "math.mininteger", "-(1 << 62)", "math.maxinteger - 1", "1 << 24", "1000000",
}

arguments.lists = {
  "{}", "{ 0 }", "{ 1 }", "{ 2, 3 }", "{ 0, 0 }", "{ -1 }", "{ -1, -1 }", "{ 1 << 62 }", "{ 1 << 31, 1 << 31 }", "{ 1 << 32, 1 << 32 }",
  "{ 0, 1 << 62 }", "{ 1 << 62, 0 }", "{ 1, 1, 1, 1, 1, 1, 1, 1, 1 }", "{ 2, 2, 2, 2, 2, 2, 2, 2 }", "{ 0/0 }", "{ 1/0 }", "{ 1.5 }",
  "{ math.mininteger }", "{ math.maxinteger, math.maxinteger }", "{ 3, 1 << 40 }", "{ true }", "{ 'x' }", "{ {}, {} }",
  "{ { 1, 2 }, { 3 } }",
  "{ {} }", "{ { 1, 2 }, { 3, 4 } }", "{ 1, nil, 3 }", "{ ms.ones({ 2 }) }", "{ ms.ones({ 2 }), ms.ones({ 3 }) }", "{ ms.float32 }",
  "{ axis = 0 }", "{ axis = 1 << 62 }", "{ axis = {} }", "{ dtype = ms.float16 }", "{ nonsense = 1 }", "{ [1.5] = 2 }", "{ [0] = 1 }",
  "given.list(1000)", "given.list(3, 1 << 62)", "given.list(9, 1)", "{ print }", "{ 5, { 1 } }", "{ kernel_size = 1 << 62 }",
  "{ 1, 2, x = 3 }",
}

arguments.tensors = {
  "ms.tensor(1.5)", "ms.tensor(2)", "ms.tensor(true)", "ms.zeros({ 0 })", "ms.zeros({ 0, 3 })", "ms.zeros({ 3, 0, 2 })",
  "ms.ones({ 2, 3 })",
  "ms.ones({ 3 })", "ms.ones({ 1 })", "ms.ones({ 2, 3, 4 })", "ms.ones({ 1, 2, 3, 4 })", "ms.ones({ 1, 1, 2, 3, 4 })",
  "ms.ones({ 1, 1, 1, 1, 1, 1, 1, 2 })", "ms.tensor({ 0/0, 1.0, 1/0 })", "ms.tensor({ -1/0, -0.0, 1e38 })", "ms.arange(6)",
  "ms.tensor({ -1, 0, 1 << 62 })", "ms.tensor({ { math.mininteger, math.maxinteger } })", "ms.ones({ 2, 2 }, ms.int32)",
  "ms.ones({ 2, 2 }, ms.uint8)",
  "ms.ones({ 3, 3 }, ms.float16)", "ms.ones({ 3, 3 }, ms.float64)", "ms.ones({ 2, 3 }, ms.bfloat16)", "ms.ones({ 2, 2 }, ms.complex64)",
  "ms.tensor({ true, false })", "ms.ones({ 4, 6 }):t()", "ms.ones({ 1 }):broadcast_to({ 1000 })",
  "ms.arange(24).reshape and ms.arange(24):reshape({ 2, 3, 4 })",
  "ms.ones({ 5, 6 })['1:4, ::2']", "ms.ones({ 1 }):broadcast_to({ 1 << 40 })", "ms.zeros({ 0 }):broadcast_to({ 1 << 62, 0 })",
  "ms.Parameter(ms.ones({ 2, 3 }), 'w')", "ms.zeros({ 2, 3 }, ms.int8)",
}

arguments.others = {
  "nil", "true", "false", "''", "'x'", "'\\0'", "'mean'", "'sum'", "'none'", "'same'", "'float32'", "'ij,jk->ik'", "'0, ::2'",
  "'::0'", "'...'",
  "('x'):rep(10000)", "('('):rep(1000)", "'%'", "'\\xff\\xfe'", "'return 1'", "'file'", "'fifo'", "'.'", "'/dev/null'",
  "'nowhere/file'", "'1e400'", "'0x10'",
  "print", "error", "function(...) return ... end", "function() end", "function(x) return x * x end", "function(x) return x:sum() end",
  "function() error({}) end", "function() error('thrown') end", "function(x, y) return { x, y } end",
  "coroutine.wrap(function() end)", "given.nested_grad(2)",
  "coroutine.yield", "given.self_containing()", "given.mutual()", "given.deep(100)", "given.deep(20000)",
  "given.deep_names(3000)", "given.raising()",
  "given.lying()", "given.dead()",
  "given.rows()", "given.rows():batch(2):create_tuple_iterator()", "given.network()",
  "given.optimizer()", "given.model()", "{ given.rows(), given.rows() }", "ms.train.Accuracy()", "ms.nn.CosineDecayLR(0.0, 0.1, 10)",
  "ms.train.LossMonitor", "{ ms.train.History() }", "{ 'x' }", "{ 'x', 'y' }", "{ 'x', 'x' }", "{ column_names = { 'x' } }",
  "given.suspended()", "coroutine.running()", "io.stdout", "given.closed()", "ms.float32",
  "ms.complex64", "ms.bool",
  "ms.slice(1, 3)", "ms.slice(0, 1 << 62, 1 << 62)", "ms.newaxis", "ms.nn.Dense(2, 3)", "ms.nn.ReLU()", "ms.nn.Dense", "ms",
  "ms.ops", "_G", "ms.json.array({ 1 })",
  "setmetatable({}, { __index = {} })", "setmetatable({}, { __metatable = false })", "ms.nn.SequentialCell(ms.nn.Dense(3, 3))",
  "ms.jit(function(x) return x end)",
  "ms.grad(function(x) return x:sum() end)", "{ w = ms.ones({ 2 }) }", "math.sin", "string.rep",
  "setmetatable({}, { __call = function(_, x) return x end })",
}

return arguments
