-- Remedies by the class of an error: what a message says is wrong, whatever operator, layer or function says it. hints.lua asks for one
-- where none of its own rules fits.
-- luacheck: no max line length
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local habits = require "lunaria.help.habits"

local remedies = {}

--- What another language's method or function is in Lua, or a name of the same module that is near; nil where neither is known.
function remedies.habit(name, line)
  local module = line:match("%f[%w_](%a+)[%.:]" .. name .. "%f[^%w_]")
  local std = module and ({ math = math, string = string, table = table, os = os, io = io, coroutine = coroutine, utf8 = utf8 })[module]
  local names = {}
  for key in pairs(std or {}) do names[#names + 1] = key end
  table.sort(names)
  return type(habits[name]) == "string" and habits[name] or std and arguments.nearest(name, names) or nil
end

-- What is called so: "nn.ReLU" of a class of layers.
local function is_layer(name)
  local found, class = pcall(function() return ms.nn[name] end)
  return found and type(class) == "table" and rawget(class, "_is_class") ~= nil
end

local function operator_of(name)
  for _, lower in ipairs { name:lower(), (name:gsub("(%l)(%u)", "%1_%2"):lower()) } do
    local found, op = pcall(function() return ms.ops[lower] end)
    if found and op then return "; the operator is ops." .. lower .. "(x)" end
  end
  return ""
end

-- A value of this kind would do as that type of a parameter.
local function fits(got, type_text)
  if got:find "^a cell" then return type_text:find "cell" end
  if got:find "^the string" then return type_text:find "string" or type_text:find "path" end
  if got:find "^a tensor" then return type_text:find "tensor" end
  if got:find "^a table" or got:find "^an empty table" then return type_text:find "table" or type_text:find "list" end
  if got:find "^%-?%d" then return type_text:find "number" end
  if got:find "^a data set" then return type_text:find "data set" end
end

-- The value would do for another parameter: the arguments are in another order.
local function other_order(where, what, got)
  local entry = require "lunaria.help.entries".find(where)
  local own, other
  for i, p in ipairs(entry and entry.parameters or {}) do
    if i > 2 then break end
    if p.name == what then own = i elseif fits(got, p.type or "") then other = i end
  end
  if not own or not other or fits(got, entry.parameters[own].type or "") then return nil end
  local name = entry.name:gsub("^x:", "")
  return ("the order is another one: %s(%s, %s)"):format(name, entry.parameters[1].name, entry.parameters[2].name)
end

-- By what was wanted and what was given.
local function of_kinds(where, what, wanted, got)
  local class = got:match "^the class ([%w_]+)"
  if class then return ("%s is a class: %s() makes an object of it"):format(class, is_layer(class) and "nn." .. class or class) end
  if got:find "^a tensor" and is_layer(where) and not what:find "input" then
    return ("a layer is made first and called then: nn.%s(...)(x)%s"):format(where, operator_of(where))
  end
  local order = other_order(where, what, got)
  if order then return order end
  if got:find "^a tensor" and (wanted:find "list of batches" or wanted:find "data set") then
    return "batches of tensors: ms.dataset.NumpySlicesDataset({ x, y }):batch(32), or a list { { x, y } }"
  end
  if got:find "^a cell" and wanted:find "tensor" then return "a network is called with its input: net(x)" end
  if got:find "^a cell" and wanted:find "parameters" then return "net:trainable_params() gives those of a network" end
  if got:find "^a function" and wanted:find "tensor" then return "a function is called: f(x)" end
  local whole, number = wanted:find "integer", wanted:find "number" or wanted:find "integer"
  local text = number and got:match "^the string '(.*)'$"
  if text and tonumber(text) then return ("a number stands without quotes: %s"):format(text) end
  if number and got:find "^a tensor" and not wanted:find "tensor" then return "the number of a tensor of one element is x:item()" end
  if whole and (got:find "^the number" or got:find "^%-?%d+%.%d") then return "x // 1 and math.floor(x) are whole numbers" end
  if wanted:find "^a table" and (got:find "^%-?%d" or got:find "^the %w+ %-?%d") then return "a list stands in braces, also one of a single element: { 2 }" end
end

local function sizes_of(shape)
  local list = {}
  for size in shape:gmatch "%d+" do list[#list + 1] = tonumber(size) end
  return list
end

-- The divisors of n, as sizes of an axis.
local function divisors(n)
  local list = {}
  for i = 1, math.min(n, 10000) do
    if n % i == 0 then list[#list + 1] = tostring(i) end
  end
  return #list <= 8 and table.concat(list, ", ") or table.concat(list, ", ", 1, 7) .. " ..."
end

local function of_reshape(count, shape)
  count = tonumber(count)
  if shape:find "%?" then return ("the sizes must multiply to %d: an axis beside -1 can have the size %s"):format(count, divisors(count)) end
  local known = sizes_of(shape)
  local product = 1
  for i = 1, #known - 1 do product = product * known[i] end
  if #known > 1 and product > 0 and count % product == 0 then
    known[#known] = count // product
    return ("the sizes must multiply to %d, as x:reshape(%s) does; one of them can be -1, which is then computed"):format(count, table.concat(known, ", "))
  end
  return ("the sizes must multiply to %d; one of them can be -1, which is then computed: x:reshape(-1)"):format(count)
end

local function of_axes(wanted, shape, rank)
  wanted, rank = tonumber(wanted), tonumber(rank)
  if rank < wanted then
    return wanted == 4 and "pictures are (N, C, H, W): x:expand_dims(0) adds the axis of the batch, x:expand_dims(1) one of channels"
      or ("x:expand_dims(0) adds an axis of size 1 in front%s"):format(wanted == 3 and rank == 2 and "; ops.matmul multiplies matrices" or "")
  end
  return shape:find "%f[%d]1%f[^%d]" and "x:squeeze(axis) drops an axis of size 1" or "x:flatten{ start_dim = 1 } joins the axes behind the first"
end

local function of_pair(a, b)
  local first, second = sizes_of(a), sizes_of(b)
  if #first == #second + 1 and first[#first] == 1 then return "the first has an axis of size 1 more: x:squeeze(-1) drops it" end
  if #second == #first + 1 and second[#second] == 1 then return "the second has an axis of size 1 more: y:squeeze(-1) drops it" end
  return "print(x.shape, y.shape) before this line shows where they part; x:reshape(...) gives another shape to the same elements"
end

local of_fields = {
  shape = "x:reshape(...) gives a tensor of another shape", dtype = "x:astype(ms.float32) gives a tensor of another dtype",
  device = "x:to \"GPU\" gives a tensor on another device", size = "x:reshape(...) gives a tensor of other sizes",
  T = "x.T is the transpose itself", ndim = "x:expand_dims(0) and x:squeeze() give tensors of more or fewer axes",
}

-- A module that was called: its first functions.
local function of_module(name)
  local module = rawget(ms, name) or select(2, pcall(function() return ms[name] end))
  if type(module) ~= "table" then return nil end
  local names = {}
  for key, value in pairs(module) do
    if type(key) == "string" and not key:find "^_" and (type(value) == "function" or type(value) == "table") then names[#names + 1] = key end
  end
  table.sort(names)
  for i, key in ipairs(names) do names[i] = ("ms.%s.%s"):format(name, key) end
  return #names > 0 and ("ms.%s holds functions: %s"):format(name, table.concat(names, ", ", 1, math.min(#names, 5))) or nil
end

local dtypes = { "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64" }

--- What a dtype may be.
remedies.dtypes = "dtypes are " .. table.concat(dtypes, ", ")

local rates = "a learning rate is given when the optimizer is made: a number, a list, or a function of the step (help \"guide.learning_rates\")"

local rows_in_time = "sequences are (time, batch, features), or (batch, time, features) with batch_first = true: x:expand_dims(1) adds the axis of the batch"

local pairs_of_loss = "a loss takes the outputs and the targets: loss(net(x), y); a data set for training has two columns"

local matrix = "a matrix is wanted: ops.diag(x) makes one of a vector, x:reshape(n, m) of its elements"

local weights = { weight = true, bias = true, gamma = true, beta = true, kernel = true, weights = true, parameters = true }

-- { pattern of the first line without its place, the remedy, or a function of the captures and the line, whether it takes the place of what
-- the message has }. The first that fits counts.
local classes = {
  { "^expand_as: other must be .*got a table", "sizes go to x:expand(2, 3); expand_as takes a tensor of the shape that is wanted", true },
  { "has an unknown format; a checkpoint", "the end of the name says the format: \"net.ckpt\" or \"net.safetensors\"" },
  { "bytes are no JPEG, PNG or BMP", "it takes the bytes of a file: ms.dataset.vision.read_image(path) reads and decodes one" },
  { "the function must return a tensor or a number, got the string", "a text becomes a number by tonumber(text): the result is what is differentiated" },
  { "^item: index %-?%d+ is out of range for axis %-?%d+ with size (%d+)", function(size) return ("indices count from 0: the last is %d"):format(size - 1) end },
  { "^to: dtype must be", "it takes a dtype or the name of a device: x:to(ms.float16), x:to \"CPU\"", true },
  { "must have at least 1 axes, not shape %(%)", "a number is no vector: ms.tensor{ 3.0, 4.0 }" },
  { "^det: .*at least 2 axes", matrix }, { "^inverse: .*at least 2 axes", matrix }, { "^eigh?: .*at least 2 axes", matrix }, { "^svd: .*at least 2 axes", matrix },
  { "attempt to mod a 'string'", "values go into a text by: (\"loss %g\"):format(x)" },
  { "attempt to mul a 'string' with a 'number'", "a text several times is (\"=\"):rep(20); a text becomes a number by tonumber(text)" },
  { "attempt to mul a 'number' with a 'string'", "a text several times is (\"=\"):rep(20); a text becomes a number by tonumber(text)" },
  { "attempt to %a+ a '%a+' with a 'string'", "texts are joined by ..: \"epoch \" .. n; a text becomes a number by tonumber(text)" },
  { "attempt to %a+ a 'string' with", "texts are joined by ..: \"epoch \" .. n; a text becomes a number by tonumber(text)" },
  { "attempt to perform arithmetic on a string", "texts are joined by ..: \"epoch \" .. n; a text becomes a number by tonumber(text)" },
  { "attempt to index a function value", function(line)
    return line:find "[%.:]at%[" and "x[1] = 5 writes in place; y = x:clone() before it keeps x"
  end },
  { "attempt to index a function value %(%a+ '([%w_]+)'%)", function(name)
    return ("%s is a function, which has no fields: it is called, %s(...)"):format(name, name)
  end },
  { "attempt to call a table value %(field '([%w_]+)'%)", function(name, line) return line:find("%f[%w_]ms%." .. name) and of_module(name) end },
  { "attempt to %a+ a nil value %(field '([%w_]+)'%)", function(name, line)
    if name == "path" then return "paths are texts: folder .. \"/\" .. name; ms.io.kind(path) says what is there" end
    if name == "lr" or name == "learning_rate" then return rates end
    if line:find("%f[%w_]self%." .. name .. "%s*[%(%.:%[]") then return ("init sets the fields of a cell: self.%s = ..."):format(name) end
    return weights[name] and "weights belong to layers: net[1].weight of the first layer, net.fc.weight of the layer fc; net:parameters_dict() has all by name"
  end },
  { "^([%w_]+): takes at most (%d+) arguments?, got", function(where, most, line)
    return is_layer(where) and (most == "0" or most == "1") and ("it is made first and called then: nn.%s()(%s)%s"):format(where, most == "0" and "x" or "x, y",
      line:find(where .. "%(") and operator_of(where) or "")
  end, true },
  { "^extend: is called on a class", "local Net = nn.Cell:extend(\"Net\"), with a colon" },
  { "^SequentialCell: takes 1 input", "its layers pass on one value; a network of several inputs is a class: function Net:construct(a, b) ... end", true },
  { "^index: the position must be an integer", "positions are whole numbers: x[i // 1]; several are a list: x[{ { 0, 2 } }]" },
  { "field '([%w_]+)' of a tensor cannot be set", function(name) return of_fields[name] end, true },
  { "^attempt to index a nil value %(the result of a call%)", function(line)
    return line:find "io%.p?open" and "io.open gives nil and the reason where it cannot open a file: local file = assert(io.open(path))"
  end },
  { "^attempt to index a nil value %(the result of a call%)", "the call gave nothing: does its function, or construct, end with return?" },
  { "^[%w_]+: a table of gradients is expected, got a tensor of shape %(%)$", "it takes the gradients, not the loss: local loss, grads = ms.value_and_grad(f, { weights = params })(x)", true },
  { "^index: malformed index", "an index is a text such as \"0\", \"1:3\" or \":, -1\"; numbers of variables go in by ..: x[a .. \":\" .. b], or x[{ ms.slice(a, b) }]" },
  { "^vmap: no argument is mapped", "it maps over the first axis of tensors: ms.vmap(f)(ms.tensor{ 1.0, 2.0 })" },
  { "^(%w+): the input has shape .* must be ([%w_]+) %((%d+)%), got (%d+)", function(where, what, _, given)
    return ("%s is the size of the input's axis: nn.%s(%s, ...)"):format(what, where, given)
  end },
  { "^(%w+): dtype must be a dtype .* got the %w+ %-?[%d%.]+$", function(where, line)
    if line:find "dtype%s*=" then return "dtypes are ms.float32, ms.int32, ms.bool and so on" end
    return where ~= "tensor" and ("sizes stand in a table: %s"):format(where == "full" and "ops.full({ 2, 3 }, 7.0)" or ("ops.%s{ 2, 3 }"):format(where))
  end, true },
  { "^tensor: data must be .* got the string", "numbers go in as a table: ms.tensor{ 1, 2, 3 }; a text becomes a number by tonumber(text)" },
  { "there is no f%a+ ", "is the folder the right one? its name counts from the folder that the program was started in; %ls lists files" },
  { "^fit: epoch must be an integer, got a", "the number of epochs comes first: model:fit(3, train, valid)" },
  { "^train: epoch must be an integer, got a", "the number of epochs comes first: model:train(3, dataset)" },
  { "^write_%w+: the value under .* got a cell", "net:parameters_dict() has the tensors of a network by name" },
  { "must be a parameter, got a cell", "net:trainable_params() gives those of a network" },
  { "^%w+: params must be a table of parameters, got %-?[%d%.]+$", function(line)
    return ("the parameters come first, the rate second: %s(net:trainable_params(), 0.1)"):format(line:match "([%w_%.]+)%s*%(" or "nn.SGD")
  end, true },
  { "must be true or false, got the string '(%l+)'", function(word)
    return (word == "true" or word == "false") and ("a truth value stands without quotes: %s"):format(word)
  end, true },
  { "must be one of (.*), got the string '(.-)'", function(list, given)
    local names = {}
    for name in list:gmatch "'(.-)'" do
      names[#names + 1] = name
      if name:lower() == given:lower() then return ("it is spelt '%s'"):format(name) end
    end
    for _, name in ipairs(names) do
      if #given > 2 and #name > 1 and (given:find(name, 1, true) == 1 or name:find(given, 1, true) == 1) then return ("did you mean '%s'?"):format(name) end
    end
    return arguments.nearest(given, names)
  end, true },
  { "^image: a tensor is expected, got the string", "ms.image(ms.dataset.vision.read_image(path)) shows the picture of a file" },
  { "normalized_shape %b() must be the last axes of the input, whose shape is %(.-(%d+)%)", function(size)
    return ("the layer's argument is the size of those axes: nn.LayerNorm({ %s })"):format(size)
  end },
  { "the sizes of the parts sum to %d+, but axis %-?%d+ of shape %b() has size (%d+)", function(size)
    return ("they add up to %s; one number is the size of each part: ops.split(x, 1)"):format(size)
  end },
  { "^permute: axis must name each", "all axes in their new order: x:permute(1, 0); x:transpose(0, 1) swaps two" },
  { "^export: file_format '.-' is not available", "file_format = \"ONNX\" is what other programs read" },
  { "^export: the last argument must be", "the inputs come second, the file last: ms.export(net, x, { file_name = \"net\", file_format = \"ONNX\" })" },
  { "^save: path must be a string, got a cell", "the file comes first: ms.save(\"net.safetensors\", net:parameters_dict()); or ms.save_checkpoint(net, \"net.ckpt\")", true },
  { "^pad: padding has %d+ entr", "two sizes for each axis, the last axis first: ops.pad(x, { 1, 1, 1, 1 }) adds one on each side of the last two" },
  { "^tensor: element .* is nil; a number", "a number that is missing is written 0 / 0, which is nan" },
  { "the function must return a tensor or a number, got nil", "does it end with return?" },
  { "^set_context: jit_level must be .*'O2'", "MindSpore's \"O2\", whole graphs, is \"O1\" here" },
  { "^%w+: jit_level must be .*'O[23]'", "MindSpore's \"O2\", whole graphs, is \"O1\" here", true },
  { "^Model: loss_fn must be", "a loss is a layer: nn.MSELoss(), nn.CrossEntropyLoss()" },
  { "^LSTM: the input must be a tensor of three axes", rows_in_time }, { "^GRU: the input must be a tensor of three axes", rows_in_time },
  { "^RNN: the input must be a tensor of three axes", rows_in_time },
  { "^([%w_%.]+): (.-) must be (.-), got (.+)$", of_kinds },
  { "must be a cell, got the string", "a layer is an object: nn.ReLU(); nn.get_activation(\"relu\") makes one of a name" },
  { "must have (%d+) axes, got shape (%b())", function(wanted, shape) return of_axes(wanted, shape, #sizes_of(shape)) end },
  { "is a directory, not a regular file", "the name of a file is wanted; ms.io.list_folder(path) lists those of a folder" },
  { "^%w+: got %d+ gradients? for %d+ parameters?", "ms.value_and_grad(f, { weights = params }) gives one for each parameter, in their order" },
  { "column_names has %d+ names? for %d+ columns?", "one name for each column: { \"x\", \"y\" }" },
  { "only one size can be %-1", "all sizes but one are given: x:reshape(2, -1)" },
  { "^[%w_]+: takes %d+ inputs?, got %d+", function(line)
    local field = line:match "%f[%w_]self:([%w_]+)%s*%("
    return field and ("a layer in a field is called with a dot: self.%s(x)"):format(field)
  end, true },
  { "bad argument #%d+ to '(%a+)' %(number expected, got Tensor%)", function(name)
    return name ~= "format" and operator_of(name) ~= "" and ("of a tensor it is x:%s(); its number is x:item()"):format(name)
  end },
  { "bad argument #%d+ to '%a+' %(number expected, got string%)", "a text becomes a number by tonumber(text)" },
  { "^bad 'for' %a+ %(number expected, got Tensor%)", "a loop goes to a number: #x for the rows of a tensor, x:item() for the number of one" },
  { "^attempt to perform arithmetic on a nil value$", function(line)
    if line:find "tonumber" then return "tonumber gives nil for what is no number; of a tensor x:item() is the number" end
    return not line:find "%[0%]" and "a value of this line is nil: is an argument missing, or the return of a function?"
  end },
  { "invalid value .* for 'concat'", "texts and numbers are joined; of tensors ops.concat({ a, b }) makes one, and tostring(x) is the text" },
  { "wrong number of arguments to 'insert'", "table.insert(t, value) or table.insert(t, position, value)" },
  { "argument (%d+) must be (.-), got the class ([%w_]+)", function(_, _, class) return ("%s is a class: nn.%s() makes a layer of it"):format(class, class) end },
  { "has (%d+) elements and does not fit shape (%b())", of_reshape },
  { "^dense: input is .* last axis of input %((%d+)%) must equal", function(size)
    return ("the layer's first argument is the size of that axis: nn.Dense(%s, ...)"):format(size)
  end, true },
  { "^conv%dd?: input is .*: the (%d+) channels of input must equal axis 1", function(channels)
    return ("the layer's first argument is the number of channels of its input: %s"):format(channels)
  end },
  { "a tensor has no field or method '(%a+)'", function(name)
    if name == "values" or name == "indices" then return "max, min, sort and topk give two results: local values, indices = x:topk(3)" end
    if name == "length" or name == "len" then return "#x is the size of the first axis, x.size the number of elements" end
    return name ~= "grad" and operator_of(name) ~= "" and ("it is a function: ops.%s(...)%s"):format(name, name:find "cat$" and ", of a list of tensors" or name:find "stack" and ", of a list of tensors" or "")
  end, true },
  { "cannot squeeze axis", "x:squeeze() drops the axes of size 1 alone; x:flatten() and x:reshape(...) change the others" },
  { "%((%d+)%) must be divisible by ([%w_]+) %(%d+%)", function(size, what) return ("%s can be %s"):format(what, divisors(tonumber(size))) end },
  { "^(%w+): params is empty", "has the network weights? layers in a plain table of a cell are not found: nn.CellList holds them" },
  { "the function returned %d+ values? for %d+ columns", "it gives one value for each column; input_columns says which it gets: ds:map(f, { \"x\" })" },
  { "attempt to perform arithmetic on a table value", "tables do not compute, tensors do: ms.tensor{ 1, 2, 3 } + 1; two lists become one by table.move(b, 1, #b, #a + 1, a)" },
  { "must have (%d+) axes.-, not shape (%b()) %(rank (%d+)%)", of_axes },
  { "must have at least (%d+) axes, not shape (%b()) %(rank (%d+)%)", of_axes },
  { "embedding: index (%d+) is out of range", function(index)
    return ("the layer needs a row for each index: nn.Embedding(%d, ...), or indices below that; they count from 0"):format(index + 1)
  end },
  { "index %-?%d+ is out of range for an? axis of size (%d+)", function(size) return ("indices count from 0: the last is %d"):format(size - 1) end },
  { "index %-?%d+ is out of range for axis %-?%d+ of size (%d+)", function(size) return ("indices count from 0: the last is %d"):format(size - 1) end },
  { "k = %d+ is out of range: the axis has (%d+)", function(size) return ("k is at most %s here; the axis is the last one where none is given"):format(size) end },
  { "^matrix_power: .*square matrix", "only square matrices have powers: a:matmul(a:t()) is one, x ^ n takes each element" },
  { "^%w+: .*square matrix", function(line)
    return line:find "det" and "only square matrices have a determinant" or line:find "eig" and "only square matrices have eigenvalues; ops.svd takes all" or nil
  end },
  { "square matrix", "ops.pinv and ops.lstsq take matrices that are not square" },
  { "tensor 0 has shape %b() and tensor %d+ has shape %b(): they must be equal", "only tensors of one shape are stacked; ops.concat joins those of different sizes along an axis that they have" },
  { "must end in %.%w+", "the end of the name says the format: the first of them is the usual one" },
  { "is not an? %.?[%w%.]+ file", "is the file whole, and of the format that the end of its name says? a download that broke off is the usual reason" },
  { "have a gradient$", "numbers and tensors have one: a text becomes a number by tonumber(text)" },
  { ": corrupt: ", "is the file whole, and of the format that the end of its name says? a download that broke off is the usual reason" },
  { "^embedding: input must be .*got the string", "words become numbers by a vocabulary: ms.dataset.text.Vocab, or a table { cat = 0, dog = 1 }" },
  { "cannot concat along axis", "only the sizes of the joined axis may differ; ops.stack joins tensors of one shape along a new axis" },
  { "the labels have shape %((.-)%): with classes .* shape %((.-)%)", function(given, wanted)
    if given == "" then return "labels are a tensor of integers, one for each row: ms.tensor{ 0, 1 }" end
    if given == wanted .. ", 1" then return "labels have no axis of their own: labels:squeeze(1)" end
    return "labels are integers, one for each row; of one-hot labels labels:argmax(1) gives them"
  end },
  { "has shape (%b()) and [%w_]+ has shape (%b()): they must be equal", of_pair },
  { "has subscripts for (%d+) operands?, but there", function(count) return ("the operands stand in one list, as many as the equation has parts: ops.einsum(\"...\", { a%s })"):format(count == "1" and "" or ", b") end },
  { "too many indices: %d+ for a tensor of", "at most one index for each axis: x.shape says how many there are" },
  { "must hold integers, not", "x:long() makes integers of floats" },
  { "must be a float tensor, not", "x:float() makes floats of integers" },
  { "must be a bool tensor, not", "a comparison gives one: ops.greater(x, 0); x:bool() makes one of numbers" },
  { "element [%w_%[%]]+ is the string", "a text becomes a number by tonumber(text); names of classes become integers by a table: { cat = 0, dog = 1 }" },
  { "column '.-' has %d+ rows? and column '.-' has %d+", "all columns have one row for each sample: print(#x, #y) shows how many there are" },
  { "must be a probability", "a probability is between 0 and 1" },
  { "must be in 0 %.%. 1", "a share is between 0 and 1, such as 0.1" },
  { "must be positive, not", "a number above 0" }, { "must be positive, got", "a number above 0" },
  { "must not be negative, got", "a number from 0 on" },
  { "cannot broadcast shape (%b()) to (%b())", function(from, to)
    local own, wanted = sizes_of(from), sizes_of(to)
    for i = 1, #own do
      local at = #wanted - #own + i
      if own[i] ~= 1 and at > 0 then wanted[at] = own[i] end
    end
    return ("only axes of size 1 grow, the others keep their size: (%s)"):format(table.concat(wanted, ", "))
  end },
  { "the kernel is larger than the input: axis %d+ has size (%d+)", function(size)
    return ("a kernel of at most %s, or padding: the layer's argument padding"):format(size)
  end },
  { "as many rows", "print(a.shape, b.shape) shows them: b has a row for each row of a" },
  { "^[%w_%.]+: (%w+) has %d+ values and (%w+) has %d+: they must", function(a, b) return ("one value of %s for each of %s"):format(b, a) end },
  { "^%w+_loss: target must be .*got nil", pairs_of_loss }, { "^[%w_]+: labels? must be .*got nil", pairs_of_loss },
  { "^cross_entropy: target must be .*got nil", pairs_of_loss }, { "^binary_[%w_]+: label must be .*got nil", pairs_of_loss },
  { "^(%w+): takes at most 0 arguments, got 1", function(where) return ("an object is made of the class first: %s()"):format(where) end, true },
  { "in_axes%[%d+%] is %-?%d+, out of range", "axes count from 0: the first is 0, the last -1" },
  { "^index: data must be a number", "a number or a tensor is written: x[0] = 1.5, x[0] = ms.tensor{ 1, 2 }" },
  { "the operands are %b() and %b(): axis %-?%d+ %(%d+%) and axis %-?%d+ %(%d+%) must be equal", "transpose one of them, for example with b:t(); print(a.shape, b.shape) shows them" },
  { "^[%w_]+: gradient %d+ has shape", "they are the gradients of other parameters: grads of ms.value_and_grad(f, { weights = params }) fit an optimizer that was made with the same params" },
  { "^[%w_]+: [%w_%.]+ has shape %b() in the network and %b() in the checkpoint", "the file is of a network of other sizes: make the network with those, or take that name out of the table: params.weight = nil" },
  { "the shares must sum up to 1", "shares are such as { 0.8, 0.2 }, numbers of rows such as { 80, 20 }" },
  { "an image %(height, width%) or .* is expected, got", "a picture has rows and columns: x:reshape(height, width); read_image gives one of a file" },
  { "a text or a list of texts is expected", "it takes a text: tokenizer(\"some words\"); tostring(n) makes one of a number" },
  { "^plot%.%w+: [xy] must be .*got the string '%a", "options stand in a table by name: { color = \"red\", title = \"loss\" }" },
  { "must be a tensor or a list of numbers, got the string", "numbers stand in a table: { 1, 2, 3 }" },
  { "^[%w_%.]+: ([%w_]+) must be [\"']([%w_]+)[\"'].*got ", function(what, first) return ("write %s = \"%s\", or another of these"):format(what, first) end },
  { "^vmap: the mapped axes have different lengths", "an argument that is not mapped over is false in in_axes: ms.vmap(f, { 0, false })(x, y)" },
  { "grad_position %-?%d+ is out of range: the function was called with (%d+) arg", function(count)
    if count == "0" then return "the function's arguments are missing: ms.grad(f)(x)" end
    return ("the first argument is 0, the last %d: ms.grad(f, %d)"):format(count - 1, count - 1)
  end },
  { "not positive definite", "a:matmul(a:t()) + 1e-6 * ops.eye(n) is one; of a symmetric matrix ops.eigh gives the eigenvalues" },
  { "singular", "ops.pinv(a) and ops.lstsq(a, b) take matrices that have no inverse" },
  { "takes integers or bools, not %a", "x:int() makes integers of floats; of truth values ops.logical_and, ops.logical_or and ops.logical_not" },
  { "takes integers, not %a", "x:int() makes integers of floats" },
  { "dtype must be a dtype .*got the string '(%w+)'", function(name) return arguments.nearest(name, dtypes) or remedies.dtypes end, true },
  { "step must not be 0", "a step of 1 gives all numbers, of -1 those backwards" },
}

--- The first remedy of some rows, as of `classes`, for a text; its function gets the captures and `at`. has_hint: rows that take the place
--- of a hint are asked alone.
function remedies.first(rows, text, at, has_hint)
  for _, row in ipairs(rows) do
    local found = table.pack(text:find((not has_hint or row[3]) and row[1] or "^$"))
    if found[1] then
      local remedy = row[2]
      if type(remedy) == "function" then
        found[found.n + 1] = at
        remedy = remedy(table.unpack(found, 3, found.n + 1))
      end
      if remedy then return remedy end
    end
  end
end

--- The remedy for the first line of an error without its place; nil where its class is not known. line: the line of the program;
--- has_hint: the message has one, and only what takes its place is looked for.
function remedies.of(text, line, has_hint) return remedies.first(classes, text, line, has_hint) end

return remedies
