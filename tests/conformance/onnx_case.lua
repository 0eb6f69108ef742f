-- One case of the ONNX node tests: a folder with model.onnx and test_data_set_N/input_K.pb, output_K.pb.
local ms = require "lunaria"
local files = require "lunaria.onnx_files"

local ops = ms.ops

-- What these draw is not said by the standard.
local function is_random(name)
  return name:find "bernoulli" or (name:find "training_dropout" and not name:find "zero_ratio")
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local function flat(t) return ops.cast(ops.reshape(t, { -1 }), ms.float64):tolist() end

-- Two ulps of bfloat16, as the standard's own runner allows. Results of Fourier transforms come out of sums over all
-- elements: an element may be off by the rounding of the largest.
local function bounds(tolerance, name, dtype, wanted)
  local relative, absolute = tolerance[1], tolerance[2]
  if dtype == ms.bfloat16 then relative = math.max(relative, 2 ^ -6) end
  if name:find "dft" then
    for _, x in ipairs(wanted) do absolute = math.max(absolute, math.abs(x) * 2 ^ -23) end
  end
  return relative, absolute
end

local function compare(got, expected, tolerance, name, random)
  if expected == nil then return got ~= nil and "there should be no value" or nil end
  if not ms.is_tensor(expected) then
    if type(got) ~= "table" or ms.is_tensor(got) or #got ~= #expected then return "is no sequence of " .. #expected end
    for i = 1, #expected do
      local message = compare(got[i], expected[i], tolerance, name, random)
      if message then return ("item %d: %s"):format(i - 1, message) end
    end
    return nil
  end
  if not ms.is_tensor(got) then return "is " .. tostring(got) end
  if got.dtype ~= expected.dtype then return ("has dtype %s, not %s"):format(tostring(got.dtype), tostring(expected.dtype)) end
  if tostring(got.shape) ~= tostring(expected.shape) then
    return ("has shape %s, not %s"):format(tostring(got.shape), tostring(expected.shape))
  end
  if got.size == 0 or random then return nil end
  if ops.is_complex(got) then got, expected = ops.view_as_real(got), ops.view_as_real(expected) end
  local a, b = flat(got), flat(expected)
  local relative, absolute = bounds(tolerance, name, got.dtype, b)
  for i, wanted in ipairs(b) do
    local same = a[i] == wanted or (a[i] ~= a[i] and wanted ~= wanted)
    if not same and not (math.abs(a[i] - wanted) <= absolute + relative * math.abs(wanted)) then
      return ("element %d is %s, not %s"):format(i - 1, a[i], wanted)
    end
  end
  return nil
end

local function headline(message) return (tostring(message):gsub("\n.*", "")) end

--- "right", "refused", "random" or "wrong", and a message. `around` makes the function that is called of the loaded one.
return function(folder, name, tolerance, around)
  local ok, f, _, about = pcall(ms.load, folder .. "model.onnx")
  if not ok then return "refused", headline(f) end
  local turns = around and 3 or 1
  if around then f = around(f) end
  local random, set = is_random(name), 0
  while exists(("%stest_data_set_%d/output_0.pb"):format(folder, set)) do
    local data = ("%stest_data_set_%d/"):format(folder, set)
    local inputs, expected = {}, {}
    for i, input in ipairs(about.inputs) do inputs[i] = files.read_value(("%sinput_%d.pb"):format(data, i - 1), input.type) end
    for i, output in ipairs(about.outputs) do
      expected[i] = files.read_value(("%soutput_%d.pb"):format(data, i - 1), output.type)
    end
    for _ = 1, turns do
      local got = table.pack(pcall(f, table.unpack(inputs, 1, #about.inputs)))
      if not got[1] then return "wrong", "raises an error: " .. headline(got[2]) end
      for i, output in ipairs(about.outputs) do
        local message = compare(got[i + 1], expected[i], tolerance, name, random)
        if message then return "wrong", ("output '%s' %s"):format(output.name, message) end
      end
    end
    set = set + 1
  end
  return random and "random" or "right", ""
end
