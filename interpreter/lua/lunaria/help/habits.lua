-- Functions and methods of other languages, by their names: what is written in Lua. Of values of the library `of_kind` says it first.
-- luacheck: no max line length
local loop = "a list is gone through by: for i, v in ipairs(t) do ... end"
local insert = "a list gets an element by table.insert(t, value)"
local found_in = "whether a text has a part: text:find(part, 1, true) ~= nil; whether a list has a value is seen by a loop"
local numbers = "of numbers in a table: ms.tensor(t):%s():item(); of a tensor x:%s()"
local length = "the length of a table or a text is #t, of a tensor #x"
local text_of, blanks = "a value as text is tostring(x)", "a text without blanks around: text:match \"^%s*(.-)%s*$\""
local caught = "errors are caught by: local ok, problem = pcall(function() ... end)"
local picture = "pictures are read by ms.dataset.vision.read_image(path)"
local asked = "a line is asked for by ms.input()"
local nothing, calling = "nothing is nil in Lua", "an object is made by calling its class: Net()"
local sorted = "table.sort(t) sorts a list in its place"
local forward = "a network is called itself: net(x)"
local error_of = "an error is raised by error(message)"
local through = "a data set is gone through by: for x, y in ds:create_tuple_iterator() do ... end"
local rows = "a tensor's rows are gone through by: for i, row in x:iter() do ... end"

return {
  append = insert, push = insert, push_back = insert, add = insert, extend = "the elements of another list: table.move(other, 1, #other, #t + 1, t)",
  insert = "table.insert(t, position, value)", pop = "table.remove(t) takes off the last element", remove = "table.remove(t, position)",
  keys = "for key in pairs(t) do ... end", values = "for _, value in pairs(t) do ... end", items = "for key, value in pairs(t) do ... end",
  get = "an element of a table is t[key], or t[key] or default", join = "the texts of a list as one: table.concat(list, \", \")",
  split = "the words of a text: for word in text:gmatch(\"%S+\") do ... end", strip = blanks, trim = blanks, lstrip = blanks, rstrip = blanks,
  startswith = "text:sub(1, #start) == start", endswith = "text:sub(-#ending) == ending", capitalize = "text:sub(1, 1):upper() .. text:sub(2)",
  replace = "text:gsub(old, new)", contains = found_in, includes = found_in, map = "a loop gives a new list: for i, v in ipairs(t) do out[i] = f(v) end",
  filter = "a loop with if gives a part of a list", forEach = loop, foreach = loop, each = loop, reduce = loop, length = length, len = length,
  toString = text_of, str = text_of, repr = text_of, parseInt = "a text becomes a number by tonumber(text)", lower_case = "text:lower()",
  round = "math.floor(x + 0.5); of a tensor x:round()", pow = "powers are x ^ y", log10 = "math.log(x, 10)", log2 = "math.log(x, 2)",
  mean = numbers:format("mean", "mean"), sum = numbers:format("sum", "sum"), average = numbers:format("mean", "mean"), std = numbers:format("std", "std"),
  prod = numbers:format("prod", "prod"), max = "the larger number is math.max(a, b), of a tensor x:max()", min = "the smaller number is math.min(a, b), of a tensor x:min()",
  abs = "the absolute value of a number is math.abs(x), of a tensor x:abs()", sqrt = "the root of a number is math.sqrt(x), of a tensor x:sqrt()",
  exp = "of a number math.exp(x), of a tensor x:exp()", log = "of a number math.log(x), of a tensor x:log()", floor = "of a number math.floor(x), of a tensor x:floor()",
  listdir = "ms.io.list_folder(path)", glob = "files of a folder: ms.io.list_folder(path)", makedirs = "ms.io.make_folder(path)", mkdir = "ms.io.make_folder(path)",
  exists = "whether a file is there: ms.io.kind(path) ~= nil", isfile = "ms.io.kind(path) says what is there", sleep = "os.execute \"sleep 1\" waits",
  uniform = "math.random() is between 0 and 1", randint = "math.random(a, b), of a tensor ms.ops.randint(a, b, { n })", choice = "one of a list: t[math.random(#t)]",
  shuffle = "rows of a tensor in random order: x[ms.ops.randperm(#x)]", copy = "a copy of a list: table.move(t, 1, #t, 1, {})",
  slice = "a part of a list: table.move(t, first, last, 1, {}), of a text text:sub(first, last)", count = "a loop counts: if v == value then n = n + 1 end",
  indexOf = "a loop finds the position: for i, v in ipairs(t) do if v == value then ... end end", index = "a loop finds the position: for i, v in ipairs(t) do if v == value then ... end end",
  reverse = "a loop from the end: for i = #t, 1, -1 do ... end", reversed = "a loop from the end is: for i = #t, 1, -1 do ... end",
  update = "the fields of another table: for key, value in pairs(other) do t[key] = value end", setdefault = "t[key] = t[key] or default",
  call = forward, forward = forward, layers = "net:cells() are the layers", size = "#t is the length of a table, ds:get_dataset_size() the number of batches of a data set",
  new = calling, create = calling, sorted = sorted, sort = sorted, isnan = "x ~= x is true for nan alone", clear = "an empty table takes its place: t = {}",
  System = "output is print(x)", plot = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)", None = nothing, null = nothing, NULL = nothing, undefined = nothing, nullptr = nothing, True = "truth is true in Lua", False = "falsehood is false in Lua",
  range = "a loop over numbers is: for i = 0, n - 1 do ... end", enumerate = "a loop with positions is: for i, v in ipairs(list) do ... end",
  int = "a whole number is math.tointeger(x) or x // 1", float = "a text becomes a number by tonumber(x)", Number = "a text becomes a number by tonumber(x)",
  zip = "two lists are gone through by position: for i = 1, #a do ... a[i], b[i] ... end", iter = loop, any = "a loop with if says whether one is; of a tensor ops.any(x):item()",
  all = "a loop with if says whether all are; of a tensor ops.all(x):item()", isinstance = "the type of a value is type(x); of tensors ms.is_tensor(x) asks",
  hasattr = "a field that is not there is nil: t.name ~= nil", getattr = "a field by its name: t[name]", setattr = "a field by its name: t[name] = value",
  callable = "type(f) == \"function\"", id = "a == b says whether two names mean one object", dir = "for name in pairs(t) do print(name) end; help(x) says what there is",
  list = "a list is a table: {1, 2, 3}", dict = "a dictionary is a table: {name = value}", tuple = "several values are a table: {1, 2}", set = "a set is a table: {name = true}",
  Array = "a list is a table: {1, 2, 3}", Object = "a dictionary is a table: {name = value}", Map = "a dictionary is a table: {name = value}", bool = "truth of a value is not not x",
  defaultdict = "a missing field is nil: t[key] = (t[key] or 0) + 1", Counter = "a table counts: t[key] = (t[key] or 0) + 1", OrderedDict = "a list of pairs keeps an order: { { name, value }, ... }",
  super = "the class above is named: Parent.init(self, ...)", this = "the object is self in a method: function Net:construct(x) ... end",
  self = "a method is defined and called with a colon: function Net:construct(x) ... end", eval = "a text runs by load(text)()", exec = "a text runs by load(text)()",
  printf = "formatted output is print(string.format(...))", println = "output is print(x)", console = "output is print(x)", echo = "output is print(x)",
  format = "(\"loss %g\"):format(value)", try = caught, catch = caught, open = "files are opened by io.open", input = asked, raw_input = asked, exit = "a program ends by os.exit()",
  quit = "a program ends by os.exit()", Exception = error_of, ValueError = error_of, RuntimeError = error_of, TypeError = error_of, NotImplementedError = error_of, Error = error_of, raise = error_of, imread = picture, imshow = "a picture is shown by ms.image(x)",
  read_csv = "rows of a CSV file: ms.dataset.CSVDataset(path)", load_onnx = "ms.load(\"net.onnx\") reads an ONNX model", load_model = "ms.load(path) reads MindIR and ONNX, ms.load_weights(net, path) weights",
  throw = error_of,
  KeyError = error_of, random = "random numbers are math.random(a, b), of tensors ms.ops.rand and ms.ops.randint", sys = "the arguments of a program are arg[1], arg[2] ...",
  argparse = "the arguments of a program are arg[1], arg[2] ...", time = "the time is os.time(), in seconds, or ms.clock(), in nanoseconds",
  json = "JSON is read by ms.json.decode(text) and written by ms.json.encode(value)", plt = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)",
  pd = "tables come from ms.dataset.CSVDataset(path)", cv2 = picture, Image = picture, PIL = picture, re = "patterns of texts: text:match(pattern), text:gsub(pattern, new)",
  pickle = "values are kept by ms.save(path, values) and ms.load(path)", tqdm = "for i in ms.progress(n) do ... end shows a bar", datetime = "dates are os.date()",
  Path = "paths are texts: folder .. \"/\" .. name; ms.io.kind(path) says what is there", shutil = "os.execute(command), os.rename and os.remove work on files",
  logging = "a program prints with print or io.stderr:write", subprocess = "os.execute(command), or io.popen(command):read \"a\"", ["class"] = "a class of networks is made by: local Net = ms.nn.Cell:extend(\"Net\")",
  functools = "functions that are made by functions: local f = function(x) return g(x, 2) end", itertools = loop, collections = "lists and dictionaries are tables: {1, 2}, {name = value}",
  warnings = "ms.io.warn and print say something", gc = "collectgarbage() frees what is not needed; ms.empty_cache() gives a device's memory back", scipy = "ms.scipy has the functions of scipy",
  xlabel = "labels are options: ms.plot.line(y, { x_label = \"step\", y_label = \"loss\", title = \"run\" })", ylabel = "labels are options: ms.plot.line(y, { x_label = \"step\", y_label = \"loss\" })", pyplot = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)", plotly = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)", sns = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)", matplotlib = "curves are drawn by ms.plot.line(y), pictures by ms.image(x)",
  wandb = "ms.train.SummaryCollector writes what lunaria insight shows", SummaryWriter = "ms.train.SummaryRecord writes what lunaria insight shows", type_of = "the type of a value is type(x)",
  sklearn = "metrics are in ms.train, statistics in ms.scipy.stats; ds:split{0.8, 0.2} parts a data set", train_test_split = "a data set is parted by ds:split{0.8, 0.2}",
  require = "modules are loaded by local name = require \"name\"", divmod = "a // b and a % b", ord = "text:byte()", chr = "string.char(n)", hex = "(\"%x\"):format(n)", next = "an iterator is called: it()",

  of_kind = {
    ["data set"] = { enumerate = through .. ", with a counter of its own", iter = through, next = "the first batch: ds:create_tuple_iterator()()", list = through, zip = "data sets side by side: ms.dataset.zip{ a, b }",
      len = "#ds, or ds:get_dataset_size(), is the number of rows or batches", size = "ds:get_dataset_size() is the number of rows or batches", map = "ds:map(function(x) return ... end, { \"x\" })", iterator = through,
      ipairs = through, pairs = through, range = "the number of batches is ds:get_dataset_size()", tqdm = through .. "; ms.progress(n) shows a bar", head = "ds:take(5) has the first rows", get_next = through,
      columns = "ds:get_col_names() are the names of the columns", sample = "ds:shuffle(1000):take(5)", to_list = through, tolist = through, targets = "labels are a column: for x, y in ds:create_tuple_iterator() do ... end" },
    tensor = { enumerate = rows, iter = rows, list = "x:tolist() gives a table", zip = "two tensors are gone through by position: for i = 0, #a - 1 do ... a[i], b[i] ... end", len = "#x is the size of the first axis, x.size the number of elements",
      int = "the number of a tensor of one element is x:item() // 1; x:int() gives whole numbers", float = "the number of a tensor of one element is x:item(); x:float() gives floats", str = "tostring(x), or (\"%g\"):format(x:item())", bool = "x:item() ~= 0",
      sorted = "x:sort() gives the values and their places", range = "for i = 0, x:item() - 1 do ... end; #x is the number of rows", set = "x:unique() gives the distinct values", map = rows, tuple = "x:tolist() gives a table", reversed = "ops.flip(x, { 0 })",
      next = "the first row is x[0]", isnan = "x:isnan()" },
    cell = { len = "#net:cells() is the number of layers", list = "net:cells() are the layers", iter = "for name, cell in net:cells_and_names() do ... end", enumerate = "for name, cell in net:cells_and_names() do ... end",
      children = "net:cells() are the layers", freeze = "net:requires_grad_(false) freezes a network or a layer", unfreeze = "net:requires_grad_(true)", fit = "a network is trained by ms.Model(net, loss, optimizer):train(epochs, data)",
      backward = "local loss, grads = ms.value_and_grad(f, { weights = net:trainable_params() })(x)", loss = "a loss is a layer of its own: nn.CrossEntropyLoss()(net(x), y)", device = "net:to \"GPU\"; a parameter says p.device", float = "net:to_float(ms.float32)", double = "net:to_float(ms.float64)",
      call = forward, __call__ = forward, grad = "local loss, grads = ms.value_and_grad(f, { weights = net:trainable_params() })(x)" },
    optimizer = { lr = "opt:get_lr() gives the learning rate, opt:set_lr(0.01) sets it", learning_rate = "opt:get_lr() gives the learning rate, opt:set_lr(0.01) sets it", update = "optimizer(grads) makes a step", clip = "ops.clip_by_global_norm(grads, 1.0), before the step" },
    model = { net = "the network is the first argument of ms.Model: keep it in a variable", parameters = "net:trainable_params() gives those of the network", save = "ms.save_checkpoint(net, \"net.ckpt\") keeps the network", history = "ms.train.History() as a callback keeps the losses",
      score = "model:eval(data)", test = "model:eval(data)", optimizer = "the optimizer is an argument of ms.Model: keep it in a variable" },
  },
}
