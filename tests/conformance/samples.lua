-- Reads files that other programs wrote and compares them with what their manifest says:
--   lunaria tests/conformance/samples.lua DIR [--verbose]
-- DIR/manifest.json lists the files; those marked for refusal must be refused with a message that names the file. Formats that
-- cannot be read yet are counted as waiting.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local D = ms.dataset

local folder, options = support.options("usage: lunaria samples.lua DIR [--verbose]", { verbose = true })

local function check(condition, ...)
  if not condition then error(select("#", ...) > 0 and (...):format(select(2, ...)) or "differs", 0) end
end

local function expected_number(value)
  if value == "nan" then return 0 / 0 end
  if value == "inf" then return math.huge end
  if value == "-inf" then return -math.huge end
  return value == true and 1 or value == false and 0 or value
end

local function compare_tensor(name, tensor, expected)
  check(ms.is_tensor(tensor), "%s is a %s", name, type(tensor))
  check(tostring(tensor.dtype):lower() == expected.dtype, "%s has dtype %s, not %s", name, tostring(tensor.dtype), expected.dtype)
  local shape = {}
  for i = 1, tensor.ndim do shape[i] = tensor.shape[i] end
  check(table.concat(shape, ",") == table.concat(expected.shape, ","), "%s has shape %s", name, tostring(tensor.shape))
  local values = expected.values
  if not values or expected.dtype:find("complex", 1, true) then return end
  local elements = support.elements(tensor)
  for i, value in ipairs(values) do
    local wanted, got = expected_number(value), elements[i]
    got = got == true and 1 or got == false and 0 or got
    check(got == wanted or (got ~= got and wanted ~= wanted), "%s: element %d is %s, not %s", name, i - 1, tostring(got),
      tostring(wanted))
  end
end

local function tensors(path, expected)
  local read = ms.load(path)
  if expected.dtype then return compare_tensor("the tensor", read, expected) end
  local count = 0
  for name, what in pairs(expected) do
    compare_tensor(name, read[name], what)
    count = count + 1
  end
  for _ in pairs(read) do count = count - 1 end
  check(count == 0, "there are %d tensors fewer than expected", count)
end

local function rows_of(ds)
  local list = {}
  for row in ds:create_dict_iterator() do list[#list + 1] = row end
  return list
end

local function csv(path, expected)
  local rows = rows_of(D.CSVDataset(path, { shuffle = false }))
  local names = expected.rows[1]
  check(#rows == #expected.rows - 1, "there are %d rows", #rows)
  for i, row in ipairs(rows) do
    for c, name in ipairs(names) do check(row[name] == expected.rows[i + 1][c], "row %d, column %s: '%s'", i, name, row[name]) end
  end
end

local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

local function tfrecord(path, expected)
  local rows = rows_of(D.TFRecordDataset(path, { shuffle = false }))
  check(#rows == #expected, "there are %d records", #rows)
  for i, row in ipairs(rows) do
    for name, feature in pairs(expected[i]) do
      local kind, values = next(feature)
      if kind == "bytes_hex" then
        check(hex(row[name]) == values, "record %d, feature %s", i, name)
      else
        check(ms.json.encode(row[name]:tolist()) == ms.json.encode(values), "record %d, feature %s", i, name)
      end
    end
  end
end

-- A SequenceExample: values of the steps in a row, and how many each has.
local function sequence(path, expected)
  local rows = rows_of(D.TFRecordDataset(path, { shuffle = false }))
  check(#rows == 1, "there are %d records", #rows)
  local row = rows[1]
  for name, values in pairs(expected.context) do
    check(ms.json.encode(row[name]:tolist()) == ms.json.encode(values), "feature %s", name)
  end
  for name, steps in pairs(expected.feature_lists) do
    local all, lengths = {}, row[name .. ".lengths"]
    check(lengths.size == #steps, "feature %s has %d steps", name, lengths.size)
    for i, step in ipairs(steps) do
      check(lengths[i - 1]:item() == #step, "step %d of feature %s", i - 1, name)
      table.move(step, 1, #step, #all + 1, all)
    end
    check(ms.json.encode(row[name]:tolist()) == ms.json.encode(all), "feature %s", name)
  end
end

-- Checkpoints of MindSpore: parameters, and what was saved beside them.
local function checkpoint(path, expected)
  local read = ms.load_checkpoint(path)
  for name, what in pairs(expected.tensors or expected) do
    compare_tensor(name, read[name], what)
    read[name] = nil
  end
  for name, what in pairs(expected.append_dict or {}) do
    local got = read[name]
    if ms.is_tensor(got) then got = got:item() end
    check(got == what, "%s is %s, not %s", name, tostring(got), tostring(what))
    read[name] = nil
  end
  check(next(read) == nil, "there is a '%s' that was not saved", tostring(next(read)))
end

-- A network: its weights, and its answer.
local function mindir(path, expected)
  local f, weights = ms.load(path)
  for name, what in pairs(expected.parameters) do compare_tensor(name, weights[name], what) end
  local got = support.elements(f(ms.tensor(expected.input.values, ms.float32):reshape(expected.input.shape)))
  check(#got == #expected.output.values, "the output has %d elements", #got)
  for i, wanted in ipairs(expected.output.values) do
    check(math.abs(got[i] - wanted) <= 1e-5 + 1e-5 * math.abs(wanted), "element %d of the output is %.9g, not %.9g", i - 1,
      got[i], wanted)
  end
end

local function idx(path, expected)
  local tensor = ms.load_idx(path)
  check(tensor.shape[1] == expected.count, "there are %d items", tensor.shape[1])
  if tensor.ndim == 1 then
    for i, label in ipairs(expected.first_labels) do check(tensor[i - 1]:item() == label, "label %d", i - 1) end
  else
    check(tensor:astype(ms.int64):sum():item() == expected.pixel_sum, "the sum of the pixels")
  end
end

local function cifar10(path, expected)
  local rows = rows_of(D.Cifar10Dataset(path:match "^(.*)/", "train", { shuffle = false }))
  local sum = 0
  for i, row in ipairs(rows) do
    check(row.label:item() == expected.labels[i], "label %d", i)
    sum = sum + row.image:astype(ms.int64):sum():item()
  end
  check(#rows == #expected.labels and sum == expected.pixel_sum, "the sum of the pixels")
  check(ms.json.encode(rows[1].image[{ 0, 0 }]:tolist()) == ms.json.encode(expected.first_pixel_rgb), "the first pixel")
end

-- Integers little-endian, as the digests of the manifest are over them.
local function digest(tensor, format)
  local name = os.tmpname()
  local file <close> = assert(io.open(name, "wb"))
  for _, x in ipairs(tensor:reshape({ -1 }):tolist()) do file:write((format):pack(x)) end
  file:close()
  local pipe <close> = assert(io.popen("sha256sum " .. name))
  local text = pipe:read "a"
  os.remove(name)
  return text:match "^%x+"
end

local function img(path, expected)
  local image = D.vision.read_image(path)
  if expected.shape then
    local shape = {}
    for i = 1, image.ndim do shape[i] = image.shape[i] end
    check(table.concat(shape, ",") == table.concat(expected.shape, ","), "has shape %s", tostring(image.shape))
  end
  local wide = expected.dtype == "uint16"
  if expected.exact or expected.rgb_sha256 then
    local wanted = expected.pixels_sha256 or expected.rgb_sha256
    check(digest(image, wide and "<I2" or "B") == wanted, "the pixels differ")
  elseif expected.corner then
    local corner = image[{ 0, 0 }]
    local got = corner.ndim == 0 and { corner:item() } or corner:tolist()
    local wanted = type(expected.corner) == "table" and expected.corner or { expected.corner }
    for i, x in ipairs(wanted) do check(math.abs(got[i] - x) <= expected.tolerance_per_pixel, "the first pixel") end
  end
end

local function wav(path, expected)
  local samples, rate, bits = D.audio.read(path, true)
  check(rate == expected.rate and bits == expected.bits, "rate %d, %d bits", rate, bits)
  check(samples.shape[1] == expected.channels and samples.shape[2] == expected.frames, "has shape %s", tostring(samples.shape))
  for i, x in ipairs(expected.first) do
    local channel, frame = (i - 1) % expected.channels, (i - 1) // expected.channels
    check(samples[{ channel, frame }]:item() == x, "sample %d", i - 1)
  end
end

local function onnx(path, expected)
  local f, _, about = ms.load(path)
  local function tensor(t) return ms.tensor(t.values, t.dtype or "float32"):reshape(t.shape) end
  local inputs = {}
  for i, input in ipairs(about.inputs) do inputs[i] = tensor(expected.input or expected.inputs[input.name]) end
  local results = { f(table.unpack(inputs)) }
  for i, output in ipairs(expected.outputs or { expected.output }) do
    local wanted, got = tensor(output), results[i]
    check(tostring(got.shape) == tostring(wanted.shape), "output %d has shape %s", i, tostring(got.shape))
    local largest = math.max(1, ms.ops.abs(wanted):max():item())
    check(ms.ops.abs(got - wanted):max():item() <= 1e-5 * largest, "output %d differs", i)
  end
end

-- By the folder: how a file is read, and by what it is compared.
local readers = {
  npy = tensors, safetensors = tensors, torch = tensors, csv = csv, tfrecord = tfrecord, idx = idx, cifar10 = cifar10,
  img = img, wav = wav, onnx = onnx, ckpt = checkpoint, mindir = mindir,
}
-- By the path, where its folder does not tell.
local special = { ["ckpt/ms.safetensors"] = tensors, ["tfrecord/sequence.tfrecord"] = sequence }

local passed, failed, waiting = 0, 0, support.waiting_list()
for _, file in ipairs(support.read_json(folder .. "/manifest.json").files) do
  local kind, path = file.path:match "^[^/]+", folder .. "/" .. file.path
  local reader = special[file.path] or readers[kind]
  if not reader then
    waiting:add(kind)
  else
    local ok, message = pcall(reader, path, file.expect)
    local refused = not ok and tostring(message):find(file.path:match "[^/]+$", 1, true) ~= nil
    local fine = ok
    if file.reject == true then fine = refused elseif file.reject then fine = ok or refused end
    if fine then
      passed = passed + 1
      if options.verbose then print("pass " .. file.path .. (ok and "" or ": " .. support.headline(message))) end
    else
      failed = failed + 1
      print("FAIL " .. file.path .. ": " .. (ok and "was not refused" or support.headline(message)))
    end
  end
end
waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
