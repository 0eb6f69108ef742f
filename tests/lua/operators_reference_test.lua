-- Operators against the results of independent programs: tests/data/operators/expected.json and more.json, which make.py and more.py
-- beside them write.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local env = { ms = ms, o = ms.ops, T = ms.tensor, select = select }

-- Numbers of nested lists, one after the other.
local function flat(list, into)
  if type(list) ~= "table" then
    into[#into + 1] = list
    return into
  end
  for _, item in ipairs(list) do flat(item, into) end
  return into
end

local function compare(row, result)
  if tostring(result.dtype):find "Complex" then result = ms.ops.view_as_real(result) end
  local got, wanted = flat(result:tolist(), {}), flat(row.expected, {})
  assert(#got == #wanted, ("%s: %d numbers instead of %d"):format(row.call, #got, #wanted))
  local largest = 0
  for _, w in ipairs(wanted) do
    if type(w) == "number" then largest = math.max(largest, math.abs(w)) end
  end
  for i, w in ipairs(wanted) do
    local g = got[i]
    if type(w) == "boolean" then
      assert(g == w, ("%s: number %d is %s instead of %s"):format(row.call, i, g, w))
    else
      -- Small numbers beside large ones are as good as these.
      local off = math.abs(g - w)
      local scale = row.whole and largest or math.abs(w)
      assert(off <= row.tolerance * scale + (row.tolerance > 1e-9 and 1e-6 or 1e-13) or g == w,
        ("%s: number %d is %.17g instead of %.17g"):format(row.call, i, g, w))
    end
  end
end

local rows = {}
for _, name in ipairs { "expected", "more" } do
  local file <close> = assert(io.open("tests/data/operators/" .. name .. ".json"))
  for _, row in ipairs(ms.json.decode(file:read "a")) do rows[#rows + 1] = row end
end

local calls = {}
for _, row in ipairs(rows) do
  calls[row.op] = calls[row.op] or {}
  table.insert(calls[row.op], row)
end
assert(#rows > 400)

-- Operators without a case here or in the conformance data, and where they are tested instead.
local elsewhere = {
  ["by what is drawn: tests/data/conformance/random.json, gpu/random, random_chains, and distributions_test"] = [[
    gumbel_softmax rand randn standard_normal rand_like randn_like uniform normal standard_laplace laplace random_gamma gamma
    random_poisson poisson randint randint_like randperm shuffle bernoulli multinomial random_categorical choice_with_mask
    dropout_with_mask dropout1d dropout2d dropout3d rrelu
  ]],
  ["by what they write: the layers and optimizers of the conformance data, the references of training"] = [[
    assign assign_add assign_sub batch_norm_update apply_momentum apply_adam apply_lamb print_ to_device to_device_of lay_out lay_out_as
    depend
  ]],
  ["on several ranks: tests/parallel/operators_test.cpp, tests/parallel/communication.lua"] = [[
    all_reduce all_gather reduce_scatter all_to_all all_to_all_v broadcast_from reduce_to gather_to scatter_from send recv barrier
    give_gradient
  ]],
  ["facts of tensors, and memory as it is"] = "shape rank size numel dtype is_tensor is_floating_point is_complex empty",
  ["against loops over their elements: placed_test"] = "fractional_max_pool2d fractional_max_pool3d deformable_conv2d",
  ["slopes, by central differences below"] = "log_igamma_slope log_betainc_slope zeta_slope",
  ["parts of gradients that have cases: grad_extremes_test"] = "sinc_slope cumprod_grad cofactor_slope reciprocal_gaps",
  ["against gguf and transformers: tests/core/io/gguf_test.cpp, lite/language_test"] = [[
    dequantize_blocks quantize_blocks block_dense cache_write cache_attention
  ]],
  ["against mpmath: special_test"] = "erfcx ndtr ndtri log_ndtr log_odds tgamma betaln betainc log_betainc log_igamma",
  ["parts of operators that have cases: ctc_loss, the losses of labels, the distributions, loss scaling"] = [[
    ctc_path valid_parameter without_overflow
  ]],
}

t.test("every operator has a case of an independent reference, or is known to be tested otherwise", function()
  local known, missing, superfluous = {}, {}, {}
  for _, names in pairs(elsewhere) do
    for name in names:gmatch "%S+" do known[name] = true end
  end
  local file <close> = assert(io.open("tests/data/conformance/cases.json"))
  local has = {}
  for name in file:read("a"):gmatch '"op": ?"([^"]+)"' do has[name] = true end
  for op in pairs(calls) do has[op] = true end
  for _, entry in ipairs(require("lunaria.registry").entries()) do
    local found = has[entry.name]
    for _, alias in ipairs(entry.aliases or {}) do found = found or has[alias] end
    if not found and not known[entry.name] then missing[#missing + 1] = entry.name end
    if found and known[entry.name] then superfluous[#superfluous + 1] = entry.name end
  end
  t.equal({ missing, superfluous }, { {}, {} })
end)

for op, list in pairs(calls) do
  t.test(op, function()
    for _, row in ipairs(list) do
      local f = assert(load("return " .. row.call, "=call", "t", env))
      compare(row, f())
      local compiled = ms.jit(f)
      for _ = 1, 3 do compare(row, compiled()) end
    end
  end)
end

-- The slopes by a parameter have no operator of their own in the references: central differences.
local sloping = {
  igamma = { { 0.3, 2.0, 25.0, 31.0, 500.0 }, { 0.5, 1.0, 30.0, 29.0, 480.0 } },
  igammac = { { 0.3, 2.0, 25.0, 31.0, 500.0 }, { 0.5, 1.0, 30.0, 29.0, 480.0 } },
  log_igamma = { { 0.3, 2.0, 25.0, 31.0, 500.0 }, { 0.5, 1.0, 30.0, 29.0, 480.0 } },
  zeta = { { 1.5, 2.0, 9.0 }, { 0.4, 3.0, 50.0 } },
}
for op, args in pairs(sloping) do
  t.test("slope of " .. op, function()
    local f = ms.ops[op]
    local a, x = ms.tensor(args[1], ms.float64), ms.tensor(args[2], ms.float64)
    local h = 1e-5
    local wanted = ((f(a + h, x) - f(a - h, x)) / (2 * h)):tolist()
    local function total(v) return f(v, x):sum() end
    for _, slope in ipairs { ms.grad(total), ms.jit(ms.grad(total)) } do
      for _ = 1, 3 do
        for i, g in ipairs(slope(a):tolist()) do
          assert(math.abs(g - wanted[i]) < 1e-8 + 1e-6 * math.abs(wanted[i]), ("%d: %g instead of %g"):format(i, g, wanted[i]))
        end
      end
    end
    -- The other operand is differentiated twice over all the same.
    local second = ms.grad(function(v) return ms.grad(function(u) return f(a, u):sum() end)(v):sum() end)
    local slope = function(v) return ms.grad(function(u) return f(a, u):sum() end)(v) end
    local by_x = ((slope(x + h) - slope(x - h)) / (2 * h)):tolist()
    for i, g in ipairs(second(x):tolist()) do
      assert(math.abs(g - by_x[i]) < 1e-8 + 1e-5 * math.abs(by_x[i]), ("%d: %g instead of %g"):format(i, g, by_x[i]))
    end
    t.fails("not known", ms.grad(function(v) return ms.grad(total)(v):sum() end), a)
  end)
end

t.finish()
