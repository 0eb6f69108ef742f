-- Arguments that a program gives by mistake or on purpose: each call runs in a process of its own under a limit of memory and
-- of time, eagerly and compiled, and ends with a message.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"

local program = arg[-1]
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- What the code prints in a process that has 4 GB and some seconds; an interrupt comes after `seconds`.
local function run(code, seconds)
  -- A sanitizer's shadow takes more addresses than any limit.
  local memory = os.getenv "ASAN_OPTIONS" and "" or "ulimit -v 4000000; "
  local limits = (memory .. "ulimit -c 0; timeout -s INT -k 5 %d"):format(seconds or 20)
  local command = ("%s %s -e %s 2>&1"):format(limits, quoted(program), quoted(code))
  local pipe = assert(io.popen(command, "r"))
  local text = pipe:read("a")
  local _, how, status = pipe:close()
  return text, how, status
end

local HEAD = [[
local ms = require "lunaria"
local ops, nn, x = ms.ops, ms.nn, ms.ones { 2, 3, 8 }
local loop = {}
loop[1] = loop
local function call() %s end
if GRAPH then call = ms.jit(call) end
local ok, message = pcall(call)
print(ok and "done" or message)
]]

local FOREIGN = { "std::", "max_size", "bad_alloc", "length_error", "bad_cast" }

-- The code ends with a message that has the text; `text` false: it ends, whichever way.
local function says(text, code)
  for _, graph in ipairs { "false", "true" } do
    local out, how, status = run("GRAPH = " .. graph .. "\n" .. HEAD:format(code))
    assert(how == "exit" and status == 0, ("%s: %s %d: %s"):format(code, how, status, out))
    assert(not text or out:find(text, 1, true), ("%s: %s"):format(code, out))
    for _, word in ipairs(FOREIGN) do assert(not out:find(word, 1, true), ("%s: %s"):format(code, out)) end
  end
end

t.test("sizes are looked at before anything of that size is made", function()
  says("too large", "return ops.adaptive_avg_pool1d(x, 1 << 62)")
  says("not enough memory", "return ops.adaptive_avg_pool1d(x, 1 << 40)")
  says("too large", "return ops.adaptive_max_pool1d(x, 1 << 62)")
  says("RNN: num_layers must be at most 1000", "return nn.RNN(8, 5, 1 << 32)")
  says("too large", "return ops.cov(ms.zeros({ 0 }):broadcast_to({ 1 << 62, 0 }))")
  says("quantile: q holds 1099511627776 numbers", "return ops.quantile(ms.ones { 9 }, ms.ones({ 1 }):broadcast_to({ 1 << 40 }))")
  says("unbind: 1099511627776 parts", "return ops.unbind(ms.ones({ 1 }):broadcast_to({ 1 << 40 }), 0)")
  says("split: 1099511627776 parts", "return ops.split(ms.ones({ 1 }):broadcast_to({ 1 << 40 }), 1)")
  says("done", "return ops.logcumsumexp(ms.zeros({ 0 }):broadcast_to({ 1 << 62, 0 }), 0)")
  says("json: line 1, column 5: number overflow", "return ms.json.decode('1e400')")
  says("done", "local none = ms.zeros({ 0 }, ms.int64); return ops.ctc_loss(ms.zeros { 1 << 31, 0, 4 }, none:reshape { 0, 2 }, none, none)")
  says("too large", "return ops.kron(ms.zeros { 0, 1 << 62 }, ms.zeros { 2, 2 })")
  says("tolist: a tensor of shape", "return ms.zeros({ 0 }):broadcast_to({ 1 << 62, 0 }):tolist()")
end)

t.test("samplers end for parameters beyond all bounds", function()
  for _, alpha in ipairs { "1/0", "1e300", "1e38", "3e-38", "0" } do
    says("done", ("return ms.random.gamma({ 3 }, %s)"):format(alpha))
    says("done", ("return ms.random.poisson({ 3 }, ms.tensor(%s))"):format(alpha))
  end
  says("must not be negative", "return ms.random.gamma({ 3 }, 0/0)")
  says("must not be negative", "return ms.random.poisson({ 3 }, ms.tensor(-1.0))")
end)

t.test("tables that contain themselves end", function()
  says("vmap: argument 0 is nested deeper", "return ms.vmap(function(y) return y end)(loop)")
  says("vmap: the function's result is nested deeper", "return ms.vmap(function(y) return loop end)(ms.ones { 3 })")
  for _, transform in ipairs { "grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "jit", "checkpoint" } do
    says(false, ("return ms.%s(function(y) return y end)(loop)"):format(transform))
  end
  says(false, "return ms.vjp(function(y) return y end, loop)")
  says(false, "return ms.jvp(function(y) return y end, loop, loop)")
  says(false, "return ms.data_sink(function(y) return y end, loop)(1)")
  says(false, "return ms.export(function(y) return y end, loop, { file_name = os.tmpname() })")
  says(false, "return ms.tensor(loop)")
  says(false, "return x[loop]")
end)

t.test("an interrupt reaches a script that waits for a pipe", function()
  local pipe = os.tmpname()
  os.remove(pipe)
  assert(os.execute("mkfifo " .. quoted(pipe)))
  for _, code in ipairs { "io.open(PIPE)", "loadfile(PIPE)", "for _ in io.lines(PIPE) do end", "io.open(PIPE, 'r+'):read('a')" } do
    local out, how, status = run(("PIPE = %q while true do %s end"):format(pipe, code), 1)
    -- 124: it ended by itself; 137: it had to be killed.
    assert(how == "exit" and status == 124 and out:find("interrupted!", 1, true), ("%s: %s %d: %s"):format(code, how, status, out))
  end
  os.remove(pipe)
end)

t.test("derivatives nest to a depth that is told", function()
  local nested = "local f = function(y) return y * y end for _ = 1, %d do f = ms.grad(f) end return f(2.0)"
  says("done", nested:format(6))
  says("grad: derivatives are nested more than 10 deep", nested:format(11))
  says("grad: derivatives are nested more than 10 deep", nested:format(100))
end)

t.test("functions of internal modules check what they are given", function()
  says("number of samples is expected", "return require('lunaria.autodiff').batch(0, print)")
  says("number of samples is expected", "return require('lunaria.autodiff').batch(x, print)")
  says("a tensor of 3 samples is expected", "error((require('lunaria.autodiff').batch(3, print, 2)))")
  says("a name is expected", "return require('lunaria.autodiff').derivative(0, function(...) return ... end, 1)")
  says("a position or a table of them is expected",
    "return require('lunaria.autodiff').derivative('a', function(...) return ... end, 'b', nil, 1.0)")
  says(false, "return require('lunaria.custom_ops').define('a', 'b', {})")
  says("done", "require('lunaria.jit').metatable.__gc(1)")
end)

t.test("tables that are given away after recording has stopped", function()
  says("done", [[local f = ms.jit(function() local o = ms.dataset.GeneratorDataset({ 1, 2 }, { 'x' }) return 1 end)
    for _ = 1, 3 do f() end]])
  says("done", [[local made = {}
    local f = ms.jit(function(n)
      local t = setmetatable({ {}, function() return n end }, { __index = { n } })
      made[1] = t
      rawset(t, 3, {})
      return n
    end)
    for i = 1, 3 do f(i) end]])
end)

t.finish()
