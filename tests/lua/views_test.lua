-- A result is a tensor of its own, whatever memory it shares: what is written into it in place shows in no operand, and
-- the other way round. Only what writes into its operand gives that one, by the same handle. So in every mode, for every
-- operator that has it among its calls to change nothing.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local registry = require "lunaria.registry"
local today = require "support.today"
local ops = ms.ops

-- Tensors by the kinds of parameters that take them.
local function operands(kind)
  if kind == "index" then return { ms.tensor { 0, 1 }, ms.tensor(0), ms.tensor { { 0, 1 }, { 1, 0 } } } end
  if kind == "mask" then return { ms.tensor { true, false }, ms.tensor { { true, true }, { false, true } } } end
  local list = {
    ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, ms.tensor { 1.0, 2.0, 3.0 }, ms.tensor(2.0), ms.tensor { { { { 1.0, 2.0 }, { 3.0, 4.0 } } } },
    ms.tensor { { 1, 2 }, { 3, 4 } }, ms.tensor { true, false }, ms.tensor { { { 1.0 }, { 2.0 } } }, ms.tensor { 5.0 },
  }
  if kind == "tensors" then
    local lists = {}
    for i, x in ipairs(list) do lists[i] = { x } end
    lists[#lists + 1] = { list[2], list[2] + 1.0 }
    return lists
  end
  return list
end

-- Values for attributes, those among them with which an operator changes nothing.
local function attributes(parameter, x)
  local kind = parameter.type
  local shape = ms.is_tensor(x) and { table.unpack(x.shape) } or {}
  local dtype = ms.is_tensor(x) and x.dtype or ms.float32
  if #parameter.choices > 0 then return parameter.choices end
  if kind == "bool" then return { false, true } end
  if kind == "int" then return { 0, 1, -1, 2 } end
  if kind == "number" or kind == "scalar" then return { 0, 1, 0.5 } end
  if kind == "dtype" then return { dtype } end
  if kind == "string" then return { "ij->ij", "i->i", "none", "host", "same" } end
  if kind == "ints" or kind == "shape" or kind == "numbers" then
    local whole, order, zeros = {}, {}, {}
    for i = 1, #shape do whole[i], order[i], zeros[i] = 1, i - 1, 0 end
    return { shape, order, zeros, whole, {}, { 0, 0 }, 0, 1, -1 }
  end
  return { 0, 1, x, shape }
end

local is_operand = { same = true, float = true, tensor = true, tensors = true, index = true, mask = true }
local function choices(parameter, x)
  local kind = parameter.type
  if not is_operand[kind] then return attributes(parameter, x) end
  if kind == "tensors" then return { { x } } end
  if kind == "index" or kind == "mask" then return operands(kind) end
  return { x, 0, 1, ms.tensor(1.0), ops.zeros_like(x), ops.ones_like(x) }
end

-- Calls of the operator as lists of an operand and a table of names: each choice of the arguments that must be given, and
-- beside the first of them each choice of one that may be left out.
local function calls_of(entry)
  local calls, first = {}, entry.parameters[1]
  if not first or not is_operand[first.type] then return calls end
  for _, x in ipairs(operands(first.type)) do
    local sample = first.type == "tensors" and x[1] or x
    local needed = { {} }
    local function with(list, parameter)
      local more = {}
      for _, given in ipairs(list) do
        for _, value in ipairs(choices(parameter, sample)) do
          local one = { [parameter.name] = value }
          for k, v in pairs(given) do one[k] = v end
          more[#more + 1] = one
        end
      end
      return more
    end
    local optional = {}
    for i = 2, #entry.parameters do
      local parameter = entry.parameters[i]
      if parameter.has_default or parameter.optional then
        optional[#optional + 1] = parameter
      elseif #needed < 1000 then
        needed = with(needed, parameter)
      end
    end
    for _, given in ipairs(needed) do calls[#calls + 1] = { x, given } end
    for _, parameter in ipairs(optional) do
      for _, given in ipairs(with({ table.unpack(needed, 1, 8) }, parameter)) do calls[#calls + 1] = { x, given } end
    end
  end
  return calls
end

local function tensors(value, into)
  if ms.is_tensor(value) then
    into[#into + 1] = value
  elseif type(value) == "table" then
    for i = 1, #value do tensors(value[i], into) end
  end
  return into
end
local function text(x)
  local list = ops.reshape(x, { -1 }):tolist()
  for i, v in ipairs(list) do list[i] = type(v) == "table" and table.concat(v, "i") or tostring(v) end
  return tostring(x.dtype) .. tostring(x.shape) .. " " .. table.concat(list, " ")
end
local function told(...)
  local list = {}
  for i = 1, select("#", ...) do list[i] = text((select(i, ...))) end
  return table.concat(list, "|")
end

-- The operand anew, as something that depends on w.
local function anew(x, w)
  if type(x) == "table" then
    local list = {}
    for i = 1, #x do list[i] = anew(x[i], w) end
    return list
  end
  if x.dtype == ms.bool_ then return ops.logical_not(ops.logical_not(x)) end
  return x:is_floating_point() and x * w or x * 1
end

-- A program that writes into the results, then into the operands: which of them are the same tensors, what the operands
-- are after the first write and the results after the second one.
local function program(f, x, given)
  return function(w)
    local first = anew(x, w)
    local operand, result, report = tensors(first, {}), tensors({ f(first, given) }, {}), {}
    for i, y in ipairs(result) do
      for _, z in ipairs(operand) do report[#report + 1] = ops.zeros_like(w) + (rawequal(y, z) and 1.0 or 0.0) end
      for k = 1, i - 1 do report[#report + 1] = ops.zeros_like(w) + (rawequal(y, result[k]) and 1.0 or 0.0) end
    end
    for i, y in ipairs(result) do y["..."] = i + 20 end
    for _, z in ipairs(operand) do report[#report + 1] = z:copy() end
    for i, z in ipairs(operand) do z["..."] = i + 40 end
    for _, y in ipairs(result) do report[#report + 1] = y:copy() end
    return table.unpack(report)
  end
end

-- What the program has to give, computed without a write.
local function expected(f, x, given)
  local operand, result, report = tensors(x, {}), tensors({ f(x, given) }, {}), {}
  for i = 1, #result do
    for _ = 1, #operand + i - 1 do report[#report + 1] = ms.tensor(0.0) end
  end
  for _, z in ipairs(operand) do report[#report + 1] = z end
  for i, y in ipairs(result) do report[#report + 1] = ops.full_like(y, i + 20) end
  return told(table.unpack(report))
end

-- Whether a result has the type and the elements of an operand: only such a one can be handed on.
local function hands_on(f, x, given)
  local ok, result = pcall(function() return tensors({ f(x, given) }, {}) end)
  if not ok then return false end
  for _, y in ipairs(result) do
    for _, z in ipairs(tensors({ x, given }, {})) do
      if y.size > 0 and text(y) == text(z) then return true end
    end
  end
  return false
end

local file = os.tmpname() .. ".mindir"
local one = ms.tensor(1.0)
-- What the program tells in each mode; nil where the mode has no such program. An operator's calls take turns in those that
-- are marked, which take longest.
local modes = {
  { "eager", function(p) return told(p(one)) end },
  { "compiled", slow = true, function(p)
    local f = ms.jit(p)
    local first = told(f(one))
    for _ = 1, 2 do
      local again = told(f(one))
      if again ~= first then return "then " .. again end
    end
    return first
  end },
  { "differentiated", function(p)
    local seen
    ms.grad(function(w)
      seen = table.pack(p(w))
      return w * 1.0
    end)(one)
    return told(table.unpack(seen, 1, seen.n))
  end },
  { "differentiated and compiled", slow = true, function(p)
    local f = ms.jit(ms.value_and_grad(function(w) return w * 1.0, p(w) end, { has_aux = true }))
    local seen
    for _ = 1, 2 do
      seen = f(one)
      table.remove(seen, 1)
    end
    return told(table.unpack(seen))
  end },
  { "vmap", function(p)
    local all = { ms.vmap(p)(ops.stack { one, one }) }
    for i, v in ipairs(all) do all[i] = v[1] end
    return told(table.unpack(all))
  end },
  { "saved", slow = true, function(p)
    local ok = pcall(ms.export, p, one, { file_name = file, file_format = "MINDIR" })
    return ok and told(ms.load(file)(one)) or nil
  end },
}

local function described(given)
  local list = {}
  for k, v in pairs(given) do
    list[#list + 1] = k .. "=" .. (ms.is_tensor(v) and tostring(v.shape) or type(v) == "table" and "{" .. #v .. "}" or tostring(v))
  end
  return "{" .. table.concat(list, ", ") .. "}"
end

local counts = { calls = 0 }
-- nil, or what is wrong in the first mode that differs.
local function differs(f, x, given, all)
  local wanted, p = expected(f, x, given), program(f, x, given)
  for i, mode in ipairs(modes) do
    local ok, got = true, nil
    if all or not mode.slow or (counts.calls + i) % 3 == 0 then ok, got = pcall(mode[2], p) end
    local refused = not ok and got:find "has no gradient with respect to"
    if not refused and (not ok or (got and got ~= wanted)) then
      return ("%s: %q instead of %q"):format(mode[1], tostring(got), wanted)
    end
    if ok and got then counts[mode[1]] = (counts[mode[1]] or 0) + 1 end
  end
  counts.calls = counts.calls + 1
end

-- So many calls of each operator are made in all modes.
local EACH = tonumber(os.getenv "LUNARIA_TEST_EACH" or 1)
-- A quarter of the operators a day.
t.test("no operator hands on an operand", function()
  local wrong, operators = {}, 0
  for number, entry in ipairs(registry.entries()) do
    if today.has(number, 4) and entry.effect == "none" and not entry.host and entry.name:find(os.getenv "LUNARIA_TEST_ONLY" or "") then
      local function f(x, given) return ops[entry.name](x, given) end
      local done, kinds = 0, {}
      for _, call in ipairs(calls_of(entry)) do
        local x, given = call[1], call[2]
        local kind = described(given)
        if done < EACH and not kinds[kind] and hands_on(f, x, given) then
          kinds[kind] = true
          done = done + 1
          local what = differs(f, x, given)
          if what then wrong[#wrong + 1] = entry.name .. kind .. ": " .. what end
        end
      end
      operators = operators + math.min(done, 1)
    end
  end
  if #wrong > 0 then error(#wrong .. " calls:\n" .. table.concat(wrong, "\n"), 0) end
  -- Some 250 operators have a call that changes nothing.
  if not os.getenv "LUNARIA_TEST_ONLY" then assert(operators > (today.whole and 200 or 30), operators) end
  for _, mode in ipairs(modes) do assert((counts[mode[1]] or 0) > operators * (mode.slow and 0.3 or 0.9), mode[1]) end
end)

-- Methods, indices and functions of the library that are no operators: of a tensor and arguments that change nothing.
local others = {
  ["x[\"...\"]"] = function(x) return x["..."] end,
  ["x[{}]"] = function(x) return x[{}] end,
  ["x[{\"...\"}]"] = function(x) return x[{ "..." }] end,
  ["x[\":\"]"] = function(x) return x[":"] end,
  ["x:to(here)"] = function(x) return x:to(x.device) end,
  ["x:to(dtype)"] = function(x) return x:to(x.dtype) end,
  ["x:move_to"] = function(x) return x:move_to(x.device) end,
  ["x:type_as"] = function(x) return x:type_as(x) end,
  ["x:float"] = function(x) return x:float() end,
  ["x:value"] = function(x) return x:value() end,
  ["x:copy"] = function(x) return x:copy() end,
  ["x:contiguous"] = function(x) return x:contiguous() end,
  ["x:view"] = function(x) return x:view(x.shape) end,
  ["x:pin_memory"] = function(x) return x:pin_memory() end,
  ["x:sum_to_size"] = function(x) return x:sum_to_size(x.shape) end,
  ["x:triangular_solve"] = function(x) return select(2, ops.ones_like(x):triangular_solve(x)) end,
  ["ms.stop_gradient"] = function(x) return ms.stop_gradient(x) end,
  ["ms.tensor"] = function(x) return ms.tensor(x) end,
  ["nn.Identity"] = function(x) return ms.nn.Identity()(x) end,
  ["nn.Flatten"] = function(x) return ms.nn.Flatten()(x) end,
  ["nn.ReLU"] = function(x) return ms.nn.ReLU()(x) end,
  ["nn.Dropout"] = function(x) return ms.nn.Dropout({ p = 0.5 }):set_train(false)(x) end,
  ["nn.Dropout1d"] = function(x) return ms.nn.Dropout1d({ p = 0.5 }):set_train(false)(x) end,
  ["nn.ZeroPad2d"] = function(x) return ms.nn.ZeroPad2d(0)(ops.reshape(x, { 1, 1, 2, 2 })):reshape(2, 2) end,
  ["a loss without reduction"] = function(x) return ms.nn.LossBase("none"):get_loss(x) end,
  ["np.array"] = function(x) return ms.numpy.array(x) end,
  ["np.asarray"] = function(x) return ms.numpy.asarray(x) end,
  ["np.squeeze"] = function(x) return ms.numpy.squeeze(x) end,
  ["np.expand_dims"] = function(x) return ms.numpy.expand_dims(x, {}) end,
  ["np.sum over no axis"] = function(x) return ms.numpy.sum(x, {}) end,
  ["np.diff"] = function(x) return ms.numpy.diff(x, 0) end,
  ["np.pad"] = function(x) return ms.numpy.pad(x, 0) end,
  ["np.positive"] = function(x) return ms.numpy.positive(x) end,
  ["np.flip"] = function(x) return ms.numpy.flip(x, {}) end,
  ["scipy.fft.dctn over no axis"] = function(x) return ms.scipy.fft.dctn(x, 2, nil, {}) end,
}
t.test("nor do methods, indices, cells and the library's functions", function()
  local x, wrong = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, {}
  for name, f in pairs(others) do
    local what = differs(f, x, {}, true)
    if what then wrong[#wrong + 1] = name .. ": " .. what end
  end
  if #wrong > 0 then error(table.concat(wrong, "\n"), 0) end
end)

t.test("what writes gives the tensor itself, in every mode", function()
  local writers = {
    function(x) return x:add_(1) end, function(x) return x:zero_() end, function(x) return x:fill_(2) end,
    function(x) return x:copy_(x * 2) end,
    function(x) return x:set_data(x * 2) end, function(x) return ops.assign(x, 1) end, function(x) return ops.assign_add(x, 1) end,
    function(x) return ops.assign_sub { value = 1, variable = x } end,
    function(x) return x:assign_value(2) end, function(x) return x:clamp_(0, 1) end,
  }
  for i, write in ipairs(writers) do
    local function f(w)
      local x = ms.ones { 2 } * w
      local ok, y = pcall(write, x)
      return ops.zeros_like(w) + ((ok and rawequal(x, y)) and 1.0 or ok and 0.0 or -1.0)
    end
    local wanted = told(f(one))
    for _, mode in ipairs(modes) do
      local got = mode[2](f)
      if got and got ~= wanted then error(("%d: %s: %s instead of %s"):format(i, mode[1], got, wanted), 0) end
    end
    if wanted:find " 0.0" then error(i .. " gives another tensor", 0) end
  end
  for _, entry in ipairs(registry.entries()) do
    t.equal(entry.gives_operand, entry.name:find "^assign" ~= nil or entry.name == "cache_write")
  end
end)

t.test("gradients are tensors of their own", function()
  local a, b = ms.tensor { 1.0, 2.0 }, ms.tensor { 3.0, 4.0 }
  local p, q = ms.Parameter(a, "p"), ms.Parameter(b, "q")
  local function apart(list, ...)
    for i, x in ipairs(list) do
      for k = 1, i - 1 do t.equal(rawequal(x, list[k]), false) end
      for k = 1, select("#", ...) do t.equal(rawequal(x, (select(k, ...))), false) end
    end
    local before = list[#list]:tolist()
    list[1]:add_(5)
    t.equal(list[#list]:tolist(), before)
  end
  for _, make in ipairs { function(f) return f end, ms.jit } do
    for _ = 1, 3 do
      apart(make(ms.grad(function(x, y) return (x + y):sum() end, { 0, 1 }))(a, b), a, b)
      apart(make(ms.grad(function(x) return (x + p + q):sum() end, nil, { p, q }))(a), a, p, q)
      local c = ms.tensor { 1.0, 1.0 }
      local x, y = make(function(u, v, w) return select(2, ms.vjp(function(m, n) return m + n end, u, v))(w) end)(a, b, c)
      apart({ x, y }, a, b, c)
      local fields = make(ms.grad(function(o) return (o.x + o.y):sum() end))({ x = a, y = b })
      apart({ fields.x, fields.y }, a, b)
      local given = make(ms.grad(function(u) return ms.custom_vjp(function(v) return v:sum() end, function() return b end)(u) end))(a)
      given:add_(1)
      t.equal(b:tolist(), { 3.0, 4.0 })
    end
  end
end)
os.remove(file)
t.finish()
