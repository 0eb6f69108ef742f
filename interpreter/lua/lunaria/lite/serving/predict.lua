-- Predictions of networks: contents of requests as tensors, runs of several requests together, tensors as contents of answers.
local ms = require "lunaria"
local core = require "lunaria.serving"

local ops = ms.ops
local predict = {}

local json_type, binary_type, npy_type = "application/json", "application/x-safetensors", "application/x-npy"
predict.types = { json_type, binary_type, npy_type, "application/octet-stream" }

-- A request that is not understood: its status and a sentence.
local function refuse(status, message, ...) error({ status = status, sentence = message:format(...) }, 0) end
predict.refuse = refuse

-- The message of an error without the place in the library.
function predict.sentence_of(problem)
  if type(problem) == "table" and problem.sentence then return problem.sentence, problem.status end
  return (tostring(problem):gsub("^lunaria:[^:]*:%d+: ", "")), nil
end

local function tensor_of_json(input, value)
  local fine, tensor = pcall(ms.tensor, value, input.dtype or "float32")
  if not fine then refuse(400, "input '%s': %s", input.name, (predict.sentence_of(tensor))) end
  return tensor
end

local function tensors_by_name(model, given, make)
  local tensors, known = {}, {}
  for i, input in ipairs(model.inputs) do
    local value = given[input.name]
    if value == nil then refuse(400, "the input '%s' is missing", input.name) end
    tensors[i], known[input.name] = make(input, value), true
  end
  for name in pairs(given) do
    if not known[name] then refuse(400, "the model has no input '%s'", tostring(name)) end
  end
  return tensors
end

local function from_json(model, body)
  local fine, tree = pcall(ms.json.decode, body)
  if not fine then refuse(400, "the content is no JSON: %s", (predict.sentence_of(tree))) end
  local given = type(tree) == "table" and tree.inputs
  if type(given) ~= "table" then refuse(400, 'the content must be {"inputs": {name: numbers, ...}} or {"inputs": [numbers, ...]}') end
  if getmetatable(given) == getmetatable(ms.json.array {}) then
    if #given ~= #model.inputs then refuse(400, "the model has %d inputs, got %d", #model.inputs, #given) end
    local tensors = {}
    for i, input in ipairs(model.inputs) do tensors[i] = tensor_of_json(input, given[i]) end
    return tensors
  end
  return tensors_by_name(model, given, tensor_of_json)
end

local function same(_, value) return value end
local function from_binary(model, body)
  local is_npy = body:sub(1, 6) == "\x93NUMPY"
  local fine, read = pcall(is_npy and core.tensor_of or core.tensors_of, body)
  if not fine then refuse(400, "%s", (predict.sentence_of(read))) end
  if not is_npy then return tensors_by_name(model, read, same), binary_type end
  if #model.inputs ~= 1 then refuse(400, "the model has %d inputs: an .npy file holds one", #model.inputs) end
  return { read }, npy_type
end

local function check_input(input, tensor)
  local shape = input.shape
  if input.dtype and tostring(tensor.dtype):lower() ~= input.dtype:lower() then
    refuse(400, "input '%s' must be of %s, got %s", input.name, input.dtype, tostring(tensor.dtype))
  end
  if not shape then return end
  local fits = tensor.ndim == #shape
  for axis, size in ipairs(shape) do fits = fits and (size < 0 or tensor:sizes(axis - 1) == size) end
  if not fits then
    local sizes = {}
    for axis, size in ipairs(shape) do sizes[axis] = size < 0 and "any" or tostring(size) end
    refuse(400, "input '%s' must have the shape (%s), got %s", input.name, table.concat(sizes, ", "), tostring(tensor.shape))
  end
end

-- What a run together needs to be the same, and the rows of a request; nothing where it cannot be run with others.
local function rows_of(tensors)
  local key, rows = {}, nil
  for i, tensor in ipairs(tensors) do
    if tensor.ndim == 0 or rows and tensor:sizes(0) ~= rows then return nil end
    rows = tensor:sizes(0)
    local sizes = { tostring(tensor.dtype) }
    for axis = 1, tensor.ndim - 1 do sizes[#sizes + 1] = tensor:sizes(axis) end
    key[i] = table.concat(sizes, ",")
  end
  return rows, table.concat(key, ";")
end

--- The inputs in a request: { tensors, type of the answer, rows, key of what can run together }. Raises a table with `status` and
--- `sentence` where it is not understood.
function predict.read(model, type, body)
  local tensors, answer_type
  if type:find("^" .. json_type) then
    tensors, answer_type = from_json(model, body), json_type
  else
    tensors, answer_type = from_binary(model, body)
  end
  for i, input in ipairs(model.inputs) do check_input(input, tensors[i]) end
  local rows, key = rows_of(tensors)
  return { tensors = tensors, type = answer_type, rows = rows, key = key }
end

-- One run for several requests: their rows after each other. Nothing where an output does not have a row for each.
local function run_together(model, requests, total)
  local joined = {}
  for i in ipairs(model.inputs) do
    local parts = {}
    for k, request in ipairs(requests) do parts[k] = request.tensors[i] end
    joined[i] = ops.concat(parts, 0)
  end
  local fine, outputs = pcall(model.run, joined)
  if not fine then return nil end
  for _, output in ipairs(outputs) do
    if not ms.is_tensor(output) or output.ndim == 0 or output:sizes(0) ~= total then return nil end
  end
  local first = 0
  for _, request in ipairs(requests) do
    request.outputs = {}
    for i, output in ipairs(outputs) do request.outputs[i] = ops.narrow(output, 0, first, request.rows) end
    first = first + request.rows
  end
  return true
end

--- Runs requests: sets `outputs`, or `problem`, of each.
function predict.run(model, requests)
  if #requests > 1 then
    local total = 0
    for _, request in ipairs(requests) do total = total + request.rows end
    if run_together(model, requests, total) then return end
  end
  for _, request in ipairs(requests) do
    local fine, outputs = pcall(model.run, request.tensors)
    if fine then request.outputs = outputs else request.problem = predict.sentence_of(outputs) end
  end
end

local function names_of(model, outputs)
  local names = {}
  for i in ipairs(outputs) do names[i] = model.outputs[i] and model.outputs[i].name or ("output_%d"):format(i - 1) end
  return names
end

--- The content of the answer to a request that has run, and its type.
function predict.written(model, request)
  local names = names_of(model, request.outputs)
  if request.type == npy_type then return core.npy(request.outputs[1]), npy_type end
  if request.type == binary_type then return core.safetensors(names, request.outputs), binary_type end
  local outputs = {}
  for i, name in ipairs(names) do outputs[name] = request.outputs[i] end
  return ms.json.encode { outputs = outputs }, json_type
end

return predict
