-- Options and arguments of what compiles, of what shows what was compiled, and of the context: whatever else is given is
-- an error that says what was given where, and what there is, at the line of the user.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local function double(x) return x * 2 end
local x = ms.tensor { 1.0, 2.0 }
local net = ms.nn.Dense(2, 2)
local callable = setmetatable({}, { __call = function(_, y) return y end })
local object = setmetatable({}, {})

-- Values of every kind, in the words of messages.
local kinds = {
  { true, "true" }, { 1, "1" }, { 1.5, "1.5" }, { "x", "the string 'x'" }, { { 1 }, "a table" }, { {}, "an empty table" },
  { print, "a function" }, { x, "a tensor of shape (2,)" }, { net, "a cell (Dense)" }, { object, "an empty table" },
}

-- What the call says to each of the kinds; `fine` are those that it takes.
local function refuses(texts, fine, f)
  for _, kind in ipairs(kinds) do
    if not fine[kind[2]] then
      local wanted = { "graph_options_test.lua:", "got " .. kind[2], table.unpack(texts) }
      t.fails(wanted, function() f(kind[1]) end)
    end
  end
end
local function set(...)
  local all = {}
  for _, word in ipairs { ... } do all[word] = true end
  return all
end

t.test("ms.jit names its table of options", function()
  refuses({ "jit: a table of options is expected, such as { fullgraph = true }" }, set("a table", "an empty table"),
    function(v) ms.jit(double, v) end)
  t.fails({ "jit: a table of options is expected", "an empty table" }, function() ms.jit(double, object) end)
  t.fails({ "jit: the table of options has 1 as a name", "fullgraph" }, function() ms.jit(double, { true }) end)
  t.fails({ "jit: there is no option 'fullgraf'", "limit", "did you mean 'fullgraph'?" },
    function() ms.jit(double, { fullgraf = true }) end)
  t.fails("there is no option 'nonsense'", function() ms.jit { nonsense = true } end)
  t.equal(ms.jit(double, nil)(x), ms.tensor { 2.0, 4.0 })
  t.equal(ms.jit(double, {})(x), ms.tensor { 2.0, 4.0 })
end)

t.test("ms.jit checks each option", function()
  refuses({ "jit: fullgraph must be true or false" }, set("true"), function(v) ms.jit(double, { fullgraph = v }) end)
  refuses({ "jit: fullgraph must be true or false" }, set("true"), function(v) ms.jit { fullgraph = v } end)
  refuses({ "jit: limit must be a positive integer" }, set("1"), function(v) ms.jit(double, { limit = v }) end)
  refuses({ "jit: jit_level must be 'O0', 'O1' or 'auto'" }, {}, function(v) ms.jit(double, { jit_level = v }) end)
  refuses({ "jit: backend must be 'ms_backend'" }, {}, function(v) ms.jit(double, { backend = v }) end)
  for _, limit in ipairs { 0, -1, 0 / 0, math.huge } do
    t.fails("jit: limit must be a positive integer", function() ms.jit(double, { limit = limit }) end)
  end
  t.fails({ "jit: jit_level must be", "got the string 'O2'" }, function() ms.jit(double, { jit_level = "O2" }) end)
  t.fails({ "set_context: jit_level must be", "got the string 'O2'" }, function() ms.set_context { jit_level = "O2" } end)
  for _, level in ipairs { "O0", "O1", "auto" } do
    t.equal(ms.jit { jit_level = level, limit = 2.0, backend = "ms_backend" }(double)(x), ms.tensor { 2.0, 4.0 })
  end
end)

t.test("ms.jit takes what can be called", function()
  refuses({ "jit: a function or another callable is expected" },
    set("a table", "an empty table", "a function", "a cell (Dense)"), ms.jit)
  t.fails({ "jit: a function or another callable is expected", "got nil" }, function() ms.jit() end)
  t.fails("jit: a function or another callable is expected", function() ms.jit { fullgraph = true }(3) end)
  t.fails("jit: a function or another callable is expected", function() ms.jit(object) end)
  t.equal(ms.jit(callable)(5), 5)
  t.equal(ms.jit(ms.jit(double))(x), ms.tensor { 2.0, 4.0 })
end)

t.test("wrong options leave a cell as it was", function()
  refuses({ "compile: a table of options is expected" }, set("a table", "an empty table"), function(v) net:compile(v) end)
  t.fails("compile: there is no option 'nonsense'", function() net:compile { nonsense = 1 } end)
  t.fails("compile: limit must be a positive integer", function() net:compile { limit = 0 } end)
  t.fails({ "compile: is called on a cell, as net:compile()", "got nil" }, function() net.compile() end)
  t.fails("compile: is called on a cell", function() net.compile { fullgraph = true } end)
  t.fails("jit_report: a cell (Dense) was not compiled", function() ms.jit_report(net) end)
  t.equal(rawequal(net:compile { fullgraph = true }, net), true)
  net(x)
  t.equal(ms.jit_report(net).calls, 1)
end)

t.test("methods of compiled functions say what they are methods of", function()
  local f = ms.jit(double)
  for _, name in ipairs { "ir", "kernels", "report", "lower" } do
    t.fails({ name .. ": a function that ms.jit gave is expected, got nil", "call it as f:" .. name }, function() f[name]() end)
    t.fails({ name .. ": a function that ms.jit gave is expected", "tensor" }, function() f[name](x) end)
  end
  for _, kind in ipairs(kinds) do
    if kind[1] ~= print and kind[1] ~= net then t.fails("jit_report: " .. kind[2] .. " was not compiled", ms.jit_report, kind[1]) end
  end
  t.fails("jit_report: nil was not compiled", ms.jit_report, nil)
  t.fails("zeros: size must be", function() f:lower { shape = true } end)
  t.fails("zeros: dtype must be", function() f:lower { shape = { 2 }, dtype = 1 } end)
  t.fails("the specification of argument 1 has no 'size'", function() f:lower { shape = { 2 }, size = 1 } end)
  t.fails({ "lower: there is no stage 'x'", "optimized" }, function() f:lower(x):ir("x") end)
  t.fails({ "lower: there is no stage 'a table'", "optimized" }, function() f:lower(x):ir { 1 } end)
end)

t.test("ms.data_sink checks what it gets", function()
  local data = { x, x }
  refuses({ "data_sink: fn must be a function" }, set("a function", "a cell (Dense)"), function(v) ms.data_sink(v, data) end)
  refuses({ "data_sink: dataset must be a table of batches, a function or an iterator" },
    set("a table", "an empty table", "a function", "a cell (Dense)"), function(v) ms.data_sink(double, v) end)
  t.fails("data_sink: the dataset is an empty table", function() ms.data_sink(double, {}) end)
  refuses({ "data_sink: a table of options is expected, such as { sink_size = 100 }" },
    set("1", "1.5", "a table", "an empty table"), function(v) ms.data_sink(double, data, v) end)
  refuses({ "data_sink: sink_size must be a positive integer" }, set("1"),
    function(v) ms.data_sink(double, data, { sink_size = v }) end)
  refuses({ "data_sink: collect must be true or false" }, set("true"), function(v) ms.data_sink(double, data, { collect = v }) end)
  for _, size in ipairs { 0, -2, 1.5, 0 / 0 } do
    t.fails("data_sink: sink_size must be a positive integer", function() ms.data_sink(double, data, size) end)
  end
  t.fails({ "data_sink: there is no option 'sink_sizes'", "did you mean 'sink_size'?" },
    function() ms.data_sink(double, data, { sink_sizes = 1 }) end)
  t.equal(ms.data_sink(double, data, 2.0)(), ms.tensor { 2.0, 4.0 })
  t.fails("data_sink: sink_size is given twice", function() ms.data_sink(double, data, 2, { sink_size = 2 }) end)
end)

t.test("ms.data_sink calls datasets that are objects", function()
  local given = 0
  local batches = setmetatable({}, { __call = function()
    given = given + 1
    if given <= 3 then return ms.tensor { given + 0.0 } end
  end })
  t.equal(ms.data_sink(double, batches, -1)(), ms.tensor { 6.0 })
  t.fails("dense: input must be", function() ms.data_sink(double, net)() end)
end)

t.test("ms.profile checks what it gets", function()
  refuses({ "profile: a function or another callable is expected" }, set("a function", "a cell (Dense)"), ms.profile)
  t.fails({ "profile: a function or another callable is expected", "got nil" }, ms.profile)
  local profile = ms.profile(double, x)
  refuses({ "profile: rows can be sorted by seconds, count, bytes or flops" }, {}, function(v)
    local ok, message = pcall(profile.rows, profile, v)
    if not ok then error((message:gsub("not by", "got"))) end
  end)
  refuses({ "profile: save needs the name of a file" }, set("the string 'x'"), function(v) profile:save(v) end)
  t.fails("profile: cannot write the trace", function() profile:save("/proc/nonexistent/trace.json") end)
  t.equal(#ms.profile(callable, x).results, 1)
end)

t.test("ms.set_context checks every setting before it sets one", function()
  local names = { "mode", "device_target", "device_id", "deterministic", "runtime_num_threads" }
  local function settings()
    local all = {}
    for i, name in ipairs(names) do all[i] = ms.get_context(name) end
    return all
  end
  local before = settings()
  local other = ms.get_context("mode") == ms.GRAPH_MODE and ms.PYNATIVE_MODE or ms.GRAPH_MODE
  for _, value in ipairs { true, 1, "x", print, x } do
    t.fails("set_context: a table of settings is expected, such as { mode = ms.GRAPH_MODE }", ms.set_context, value)
    t.fails("set_context: device_id must be", ms.set_context, { mode = other, runtime_num_threads = 7, device_id = value })
    t.fails("set_context: device_target", ms.set_context, { mode = other, deterministic = "ON", device_target = value })
    if value ~= true then
      t.fails("set_context: deterministic must be true, false", ms.set_context, { mode = other, deterministic = value })
    end
    if value ~= 1 then
      t.fails("set_context: runtime_num_threads must be an integer", ms.set_context, { mode = other, runtime_num_threads = value })
      t.fails("set_context: mode must be an integer", ms.set_context, { runtime_num_threads = 7, mode = value })
    end
  end
  t.fails({ "set_context: a table of settings is expected", "got nothing" }, ms.set_context)
  t.fails({ "set_context: there is no option 'mod'", "did you mean 'mode'?" }, ms.set_context, { mod = other })
  t.fails("set_context: device_target must be a string, got a table", ms.set_context, { device_target = { 1 } })
  t.equal(settings(), before)
end)

t.finish()
