-- Optional arguments go by position or in one trailing table of names, in every public function of the library: both give the same, and
-- an unknown name is an error that lists those that there are.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local registry = require "lunaria.registry"
local entries = require "lunaria.help.entries"
local ops = ms.ops

-- The functions that read their arguments through these take such a table.
local binders = { "named%(", "bind%(", "bound%(", "by_name%(", "options%(", "options_for%(", "options_of%(", "take%(", "check_keys%(",
  "there is no option", "settings%(" }

-- What the sources below cannot show: the function hands its arguments on as they are, or what may be left out is itself a table of
-- names, or is no argument of the user's.
local handed_on = {}
for name in ([[ms.vjp ms.jvp ms.custom_vjp ms.numpy.where ms.dataset.deserialize ms.boost.SWA:update_bn ms.train.SummaryRecord:add_hparams
  ms.train.SummaryRecord:add_graph ms.train.RunContext:init ms.train.get_metrics ms.train.get_metric_fn
  ms.ascend.estimate ms.mindrecord.set_enc_key ms.mindrecord.set_enc_mode ms.mindrecord.set_dec_mode
  ms.numpy.apply_over_axes ms.issubclass_ ms.parallel_report]]):gmatch "%S+" do
  handed_on[name] = true
end

local function has_binder(text)
  for _, pattern in ipairs(binders) do
    if text:find(pattern) then return true end
  end
  return false
end

-- Whether the text treats the parameter as one that may be missing.
local function may_be_missing(text, name)
  for _, pattern in ipairs { "%f[%w_]NAME or%f[%W]", "%f[%w_]NAME == nil", "%f[%w_]NAME ~= nil" } do
    if text:find((pattern:gsub("NAME", name))) then return true end
  end
  return false
end

local function functions()
  local list = {}
  for _, entry in ipairs(entries.all()) do
    local f = entry.value
    if (entry.kind == "function" or entry.kind == "method") and type(f) == "function" then
      local listing = registry.listing(f)
      if listing.file and listing.file:find "^lunaria:" and listing.text then list[#list + 1] = { entry, f, listing.text } end
    end
  end
  return list
end

t.test("every function with an optional argument reads it through a binder of names", function()
  local missing, seen = {}, 0
  for _, item in ipairs(functions()) do
    local entry, _, text = table.unpack(item)
    seen = seen + 1
    if not has_binder(text) and not handed_on[entry.name] then
      for _, parameter in ipairs(entry.parameters) do
        if parameter.name ~= "..." and may_be_missing(text, parameter.name) then
          missing[#missing + 1] = entry.name .. " " .. parameter.name
        end
      end
    end
  end
  assert(seen > 700, seen)
  table.sort(missing)
  t.equal(missing, {})
end)

t.test("an unknown name is refused with the names that there are", function()
  local wrong, asked = {}, 0
  for _, item in ipairs(functions()) do
    local entry, f, text = table.unpack(item)
    local names, row = text:match "named%([^\n{]*{([^}]*)}", require("lunaria.numpy.rows").of[f]
    local first = names and names:match '"([%w_]+)"' or row and row.names and row.names[1]
    local at
    for i, parameter in ipairs(entry.parameters) do
      if parameter.name == first then at = i + (entry.name:find ":" and 1 or 0) end
    end
    if at then
      local given = {}
      given[at] = { no_such_name = 1 }
      local ok, message = pcall(f, table.unpack(given, 1, at))
      -- Some look at what must be given first.
      if not ok and tostring(message):find("no_such_name", 1, true) then
        asked = asked + 1
        if not tostring(message):find("there are: " .. first, 1, true) then wrong[#wrong + 1] = entry.name .. ": " .. message end
      elseif ok then
        wrong[#wrong + 1] = entry.name .. " takes anything"
      end
    end
  end
  t.equal(wrong, {})
  assert(asked > 150, asked)
end)

t.test("so it is in constructors", function()
  local wrong, asked = {}, 0
  for _, entry in ipairs(entries.all()) do
    local signature = entry.kind == "class" and rawget(entry.value, "_signature")
    -- A data set of named columns and slices are no names of arguments.
    local takes_names = entry.name:find "NumpySlicesDataset$" or entry.name:find "transforms%.Slice$"
    if signature and #signature > 0 and not takes_names then
      local ok, message = pcall(entry.value, { no_such_name = 1 })
      asked = asked + 1
      if ok or not tostring(message):find("no_such_name", 1, true) or not tostring(message):find(signature.names[1], 1, true) then
        wrong[#wrong + 1] = ("%s: %s"):format(entry.name, tostring(message):match "[^\n]*")
      end
    end
  end
  table.sort(wrong)
  t.equal(wrong, {})
  assert(asked > 200, asked)
end)

local x = ms.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 7.0 } }
local square = function(v) return (v * v):sum(), v end
local calls = {
  { "grad", function(...) return ms.grad(square, ...)(x) end, { 0, nil, true }, { "grad_position", "weights", "has_aux" } },
  { "value_and_grad", function(...) return ms.value_and_grad(square, ...)(x) end, { { 0 }, nil, true },
    { "grad_position", "weights", "has_aux" } },
  { "vmap", function(...) return ms.vmap(function(v) return v * 2 end, ...)(x) end, { 1, 1 }, { "in_axes", "out_axes" } },
  { "jacrev", function(...) return ms.jacrev(function(_, v) return v * v end, ...)(x, x[0]) end, { 1 }, { "grad_position" } },
  { "jacfwd", function(...) return ms.jacfwd(function(_, v) return v * v end, ...)(x, x[0]) end, { 1 }, { "grad_position" } },
  { "hessian", function(...) return ms.hessian(function(_, v) return (v * v * v):sum() end, ...)(x, x[0]) end, { 1 },
    { "grad_position" } },
  { "minimize", function(...)
    return ms.scipy.optimize.minimize(function(v, a) return ((v - a) ^ 2):sum() end, ms.zeros(2), ...).x
  end, { { 3.0 }, "L-BFGS", nil, 1e-3, { maxiter = 7 } }, { "args", "method", "jac", "tol", "options" } },
  { "line_search", function(...) return (ms.scipy.optimize.line_search(function(v) return (v ^ 4):sum() end, ms.tensor { 1.0 },
    ms.tensor { -1.0 }, ...)) end, { nil, nil, nil, nil, 1e-3, 0.5, 20 },
    { "jac", "gfk", "old_fval", "old_old_fval", "c1", "c2", "maxiter" } },
  { "softmax", function(...) return ops.softmax(x, ...) end, { 0 }, { "axis" } },
  { "sum", function(...) return x:sum(...) end, { 1, true }, { "dim", "keepdim" } },
  { "allclose", function(...) return x:allclose(x + 0.01, ...) end, { 0.0, 0.1, true }, { "rtol", "atol", "equal_nan" } },
  { "fill_diagonal", function(...) return ms.zeros({ 5, 2 }):fill_diagonal(3.0, ...) end, { true }, { "wrap" } },
  { "choose", function(...) return ms.tensor({ 0, 3 }):choose({ 10, 20 }, ...) end, { "wrap" }, { "mode" } },
  { "type", function(...) return x:type(...) end, { ms.int32 }, { "dtype" } },
  { "triangular_solve", function(...) return (x[{ ms.slice(), ms.slice(0, 2) }]:triangular_solve(ms.eye(2) + 1, ...)) end,
    { true, true, false }, { "upper", "transpose", "unitriangular" } },
  { "numpy.mean", function(...) return ms.numpy.mean(x, ...) end, { 1, true }, { "axis", "keepdims" } },
  { "numpy.select", function(...) return ms.numpy.select({ x:gt(2) }, { x }, ...) end, { 9 }, { "default" } },
  { "numpy.take_along_axis", function(...) return ms.numpy.take_along_axis(x, ms.tensor { { 0 }, { 2 } }, ...) end, { 1 }, { "axis" } },
  { "zeta", function(...) return ms.scipy.special.zeta(3.0, ...) end, { 2.0 }, { "q" } },
  { "Dense", function(...)
    ms.set_seed(1)
    return ms.nn.Dense(3, 2, ...)(x)
  end, { nil, nil, false }, { "weight_init", "bias_init", "has_bias" } },
  { "Adam", function(...) return tostring(ms.nn.Adam(ms.nn.Dense(2, 2):trainable_params(), ...)) end, { 0.25, 0.8 },
    { "learning_rate", "beta1" } },
  { "tensor", function(...) return ms.tensor({ 1, 2 }, ...) end, { ms.float16 }, { "dtype" } },
  { "zeros", function(...) return ms.zeros({ 2 }, ...) end, { ms.int8 }, { "dtype" } },
  { "set_train", function(...) return ms.nn.Dropout(0.5):set_train(...).training end, { false }, { "mode" } },
  { "repeat_", function(...)
    return ms.dataset.NumpySlicesDataset({ 1, 2 }, { shuffle = false }):repeat_(...):get_dataset_size()
  end, { 3 }, { "count" } },
  { "batch", function(...)
    return ms.dataset.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false }):batch(2, ...):get_dataset_size()
  end, { true }, { "drop_remainder" } },
  { "sparse.sum", function(...) return ms.COOTensor(ms.tensor { { 0, 1 }, { 1, 2 } }, ms.tensor { 1.0, 2.0 }, { 2, 3 }):sum(...) end, { 0 },
    { "axis" } },
  { "GELU", function(...) return ms.nn.GELU(...)(x) end, { false }, { "approximate" } },
  { "cosine_decay_lr", function(...) return ms.nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1, ...) end, { true }, { "is_stair" } },
  { "auc", function(...) return ms.train.auc({ 1, 0 }, { 1, 0 }, ...) end, { true }, { "reorder" } },
}

for _, call in ipairs(calls) do
  local name, f, values, names = table.unpack(call)
  t.test(name .. " takes its optional arguments in a table", function()
    local wanted, options = table.pack(f(table.unpack(values, 1, #names))), {}
    for i, key in ipairs(names) do options[key] = values[i] end
    t.equal(table.pack(f(options)), wanted)
    -- The first by position, the others by name.
    if #names > 1 and values[1] ~= nil then
      options[names[1]] = nil
      t.equal(table.pack(f(values[1], options)), wanted)
    end
    t.fails("no_such_name", function() f { no_such_name = 1 } end)
    t.fails(names[1], function() f { no_such_name = 1 } end)
  end)
end

t.test("where an argument before the table is nil", function()
  local w = ms.Parameter(ms.tensor { 1.0, 2.0 }, "w")
  local value, grads = ms.value_and_grad(function(v) return (v * w):sum(), v end, nil, { w }, { has_aux = true })(ms.tensor { 3.0, 4.0 })
  t.near(value[1], 11.0, 0)
  t.near(value[2], { 3, 4 }, 0)
  t.near(grads[1], { 3, 4 }, 0)
  t.near(ms.vmap(function(v) return v:sum() end, nil, { out_axes = 0 })(x), { 6, 16 }, 0)
end)

t.finish()
