-- What is known of names that are no functions: constants, modules, commands, options, variables of the environment,
-- commands of the debugger, globals.
-- luacheck: no max line length
local ms = require "lunaria"
local registry = require "lunaria.registry"
local known = require "lunaria.help.index"
local typed = require "lunaria.help.typed_examples"

local topics = {}

local function dtype(text) return { kind = "dtype", doc = text, source = "core/tensor/dtype.h" } end
local function module(text, source) return { kind = "module", doc = text, source = source } end

topics.values = {
  ["ms.GRAPH_MODE"] = { doc = "The mode in which functions that are called often are compiled: ms.set_context{ mode = ms.GRAPH_MODE }." },
  ["ms.PYNATIVE_MODE"] = { doc = "The mode in which operators run one at a time, as at the start; also called eager mode." },
  ["ms.context"] = module("What MindSpore's first releases set the mode, the device and the kind of parallel training with.",
    "interpreter/lua/lunaria/context.lua"),
  ["ms.context.GRAPH_MODE"] = { doc = "The same as ms.GRAPH_MODE.", source = "interpreter/lua/lunaria/context.lua" },
  ["ms.context.PYNATIVE_MODE"] = { doc = "The same as ms.PYNATIVE_MODE.", source = "interpreter/lua/lunaria/context.lua" },
  ["ms.context.ParallelMode"] = { kind = "constant", doc = "The kinds of parallel training: STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL. Also called ms.ParallelMode.",
    source = "interpreter/lua/lunaria/context.lua" },
  ["ms.version"] = { doc = "The version of the program, as text." },
  ["ms.newaxis"] = { doc = "In an index: a new axis of size 1." },
  ["ms.json.null"] = { doc = "What null of JSON is, since nil in a Lua table is no entry.", source = "interpreter/bindings/bind_json.cpp" },
  ["ms.bool_"] = dtype "True and false, one byte each. Also called ms.bool.",
  ["ms.bool"] = dtype "True and false, one byte each.",
  ["ms.uint8"] = dtype "Integers from 0 to 255.",
  ["ms.int8"] = dtype "Integers from -128 to 127. Also called ms.byte.",
  ["ms.byte"] = dtype "The same as ms.int8, as MindSpore has it; the method x:byte() gives uint8, as PyTorch has it.",
  ["ms.int16"] = dtype "Integers from -32768 to 32767. Also called ms.short.",
  ["ms.short"] = dtype "The same as ms.int16.",
  ["ms.int32"] = dtype "Integers of 32 bits.",
  ["ms.int64"] = dtype "Integers of 64 bits, what integers of Lua become. Also called ms.int_ and ms.long.",
  ["ms.int_"] = dtype "The same as ms.int64.",
  ["ms.long"] = dtype "The same as ms.int64.",
  ["ms.float16"] = dtype "Floating point with 11 bits of precision, up to 65504. Also called ms.half.",
  ["ms.half"] = dtype "The same as ms.float16.",
  ["ms.bfloat16"] = dtype "Floating point with 8 bits of precision and the range of float32.",
  ["ms.float32"] = dtype "Floating point with 24 bits of precision, what floats of Lua become in tensors. Also called ms.float_ and ms.single.",
  ["ms.float_"] = dtype "The same as ms.float32.",
  ["ms.single"] = dtype "The same as ms.float32.",
  ["ms.float64"] = dtype "Floating point with 53 bits of precision, as numbers of Lua have. Also called ms.double.",
  ["ms.double"] = dtype "The same as ms.float64.",
  ["ms.intp"] = dtype "The same as ms.int64.",
  ["ms.intc"] = dtype "The same as ms.int32.",
  ["ms.uint16"] = dtype "Integers from 0 to 65535. Also called ms.ushort.",
  ["ms.uint32"] = dtype "Integers of 32 bits without a sign. Also called ms.uintc.",
  ["ms.uint64"] = dtype "Integers of 64 bits without a sign. Those beyond math.maxinteger are negative as integers of Lua. Also called ms.uint and ms.uintp.",
  ["ms.ubyte"] = dtype "The same as ms.uint8.",
  ["ms.ushort"] = dtype "The same as ms.uint16.",
  ["ms.uintc"] = dtype "The same as ms.uint32.",
  ["ms.uintp"] = dtype "The same as ms.uint64.",
  ["ms.uint"] = dtype "The same as ms.uint64.",
  ["ms.float8_e4m3fn"] = dtype "Floating point of 8 bits to store numbers in: 4 bits of precision, up to 448, without infinity. Nothing is computed in it; x:float() converts.",
  ["ms.float8_e5m2"] = dtype "Floating point of 8 bits to store numbers in: 3 bits of precision, up to 57344. Nothing is computed in it; x:float() converts.",
  ["ms.qint4x2"] = dtype "Two integers of 4 bits with a sign in a byte, to store quantised weights in: as a number it is the byte, from -128 to 127. Nothing is computed in it.",
  ["ms.complex64"] = dtype "Complex numbers of two float32. Also called ms.cfloat.",
  ["ms.cfloat"] = dtype "The same as ms.complex64.",
  ["ms.complex128"] = dtype "Complex numbers of two float64. Also called ms.cdouble.",
  ["ms.cdouble"] = dtype "The same as ms.complex128.",
  ["ms.number"] = { doc = "The kind of all dtypes, for ms.issubclass_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.Int"] = { doc = "The kind of the dtypes of signed integers, for ms.issubclass_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.tensor_type"] = { doc = "The kind of tensors, for ms.issubclass_. Also called ms.TensorType.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.TensorType"] = { doc = "The same as ms.tensor_type.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.string"] = { doc = "The kind of strings, for ms.issubclass_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.list_"] = { doc = "The kind of tables, for ms.issubclass_. Also called ms.tuple_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.tuple_"] = { doc = "The kind of tables, as ms.list_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.QuantDtype"] = { doc = "Widths of quantised numbers: QuantDtype.INT1 to INT16 and UINT1 to UINT16, each with its num_bits and its number, value.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.type_none"] = { doc = "The kind of nil, for ms.issubclass_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.Type"] = { doc = "The kind of dtypes and kinds, for ms.issubclass_.", source = "interpreter/lua/lunaria/common/kinds.lua" },
  ["ms.ops"] = module("The operators: functions of tensors and numbers. Their arguments are given by position or in a trailing table by name.", "core/ops"),
  ["ms.nn"] = module("Cells, layers, losses and optimizers.", "interpreter/lua/lunaria/nn/init.lua"),
  ["ms.nn.optim"] = module("The optimizers with PyTorch's rules and names of arguments.", "interpreter/lua/lunaria/nn/optim.lua"),
  ["ms.experimental.optim"] = module("The optimizers with PyTorch's rules and the schedulers of their learning rates.",
    "interpreter/lua/lunaria/experimental/init.lua"),
  ["ms.mint"] = module("What follows PyTorch's rules and names of arguments: mint.optim.", "interpreter/lua/lunaria/mint/init.lua"),
  ["ms.mint.optim"] = module("The optimizers with PyTorch's rules and names of arguments.", "interpreter/lua/lunaria/nn/optim.lua"),
  ["ms.json"] = module("JSON texts: encode, decode, array, null.", "interpreter/bindings/bind_json.cpp"),
  ["ms.random"] = module("The operators that draw random numbers, and their seed.", "core/ops/random.cpp"),
  ["ms.io"] = module("Files of one format each; ms.load and ms.save choose it by the file's name.", "interpreter/bindings/bind_io.cpp"),
  ["ms.boost"] = module("Algorithms of training: Adasum, few dimensions, freezing, averages.", "interpreter/lua/lunaria/boost/init.lua"),
  ["ms.ascend"] = module("The simulated Ascend: kernels of its cores, and how long networks would take on it.",
    "interpreter/lua/lunaria/ascend/init.lua"),
  ["ms.probability"] = module("Distributions, bijectors and Bayesian layers.", "interpreter/lua/lunaria/probability/init.lua"),
  ["ms.probability.distribution"] = module("Distributions: densities, moments, divergences, samples.",
    "interpreter/lua/lunaria/probability/init.lua"),
  ["ms.probability.bijector"] = module("Functions that can be turned round, for transformed distributions.",
    "interpreter/lua/lunaria/probability/bijector.lua"),
  ["ms.probability.bnn_layers"] = module("Layers whose weights are distributions, and their loss.",
    "interpreter/lua/lunaria/probability/bnn_layers.lua"),
  ["ms.numpy"] = module("numpy's functions over tensors, numbers and tables, with numpy's broadcasting and dtypes.",
    "interpreter/lua/lunaria/numpy/init.lua"),
  ["ms.numpy.fft"] = module("Discrete Fourier transforms with numpy's names.", "interpreter/lua/lunaria/numpy/linalg.lua"),
  ["ms.scipy"] = module("scipy's functions: linalg, fft, optimize, special, stats, signal, sparse.", "interpreter/lua/lunaria/scipy/init.lua"),
  ["ms.scipy.linalg"] = module("Linear algebra with scipy's names.", "interpreter/lua/lunaria/scipy/linalg.lua"),
  ["ms.scipy.fft"] = module("Fourier, cosine and sine transforms.", "interpreter/lua/lunaria/scipy/fft.lua"),
  ["ms.scipy.optimize"] = module("Minima, line search, assignment.", "interpreter/lua/lunaria/scipy/optimize.lua"),
  ["ms.scipy.special"] = module("Special functions.", "interpreter/lua/lunaria/scipy/special.lua"),
  ["ms.scipy.stats"] = module("Statistics and distributions.", "interpreter/lua/lunaria/scipy/stats.lua"),
  ["ms.scipy.signal"] = module("Convolutions, filters, trends.", "interpreter/lua/lunaria/scipy/signal.lua"),
  ["ms.scipy.sparse"] = module("Linear systems by iteration: scipy.sparse.linalg.", "interpreter/lua/lunaria/scipy/sparse.lua"),
  ["ms.scipy.sparse.linalg"] = module("Linear systems by iteration: cg, bicgstab, gmres.", "interpreter/lua/lunaria/scipy/sparse.lua"),
  ["ms.sparse"] = module("Sparse matrices, as coordinates and as rows.", "interpreter/lua/lunaria/sparse.lua"),
  ["ms.plot"] = module("Pictures of numbers: lines, points, bars, histograms, heatmaps, contours, images.", "interpreter/lua/lunaria/plot/init.lua"),
  ["ms.comm"] = module("Lines between a cell and a program in the page that shows it.", "interpreter/lua/lunaria/comm.lua"),
  ["ms.widgets"] = module("Controls in a notebook: sliders, progress bars, buttons.", "interpreter/lua/lunaria/widgets.lua"),
  ["ms.common"] = module("What MindSpore keeps there: the initializers.", "interpreter/lua/lunaria/common/init.lua"),
  ["ms.common.initializer"] = module("Ways to fill new parameters, and the function initializer, which is ms.initializer.",
    "interpreter/lua/lunaria/common/initializer.lua"),
}

local added = "Adds to the plot what ms.plot.%s draws, with the same arguments. Gives the plot back."

-- Methods whose comment stands elsewhere.
topics.methods = {
  ["f:ir"] = "The graph of the function's records, as text.",
  ["f:kernels"] = "The kernels that were compiled for the function, as text.",
  ["f:report"] = "The same as ms.jit_report(f).",
  ["handle:update"] = "Replaces what was shown by value. options: metadata, raw, as display has them.",
  ["x:release"] = "Frees the tensor's memory now in place of when the collector finds it; the tensor cannot be used any more. A variable local x <close> does it at the end of its block.",
}
for _, kind in ipairs { "line", "scatter", "bar", "hist", "heatmap", "contour", "image" } do
  topics.methods["plot:" .. kind] = added:format(kind)
end

-- Methods that are the same wherever they are.
topics.common_methods = {
  state_dict = "What was counted so far, for a checkpoint: a table.",
  load_state_dict = "Takes up what state_dict gave.",
}

-- Names by which things are called first where several lead to them.
topics.first = {
  { "ms.grad", function() return ms.grad end },
  { "ms.jit", function() return ms.jit end },
  { "ms.probability", function() return ms.probability end },
  { "ms.initializer", function() return ms.initializer end },
  { "ms.set_seed", function() return ms.set_seed end },
  { "ms.tensor", function() return ms.tensor end },
  { "ms.load", function() return ms.load end },
  { "ms.nn.optim", function() return ms.nn.optim end },
}
-- What is loaded when it is first used, and in no table before.
for name in ([[JitConfig Generator constexpr derivative jet jit_class lazy_inline linearize mutable no_inline run_check saved_tensors_hooks
  shard ops.ForiLoop ops.GradOperation ops.HookBackward ops.HyperMap ops.InsertGradientOf ops.Map ops.MultitypeFuncGraph ops.Partial
  ops.Primitive ops.Scan ops.WhileLoop ops.fori_loop ops.partial ops.scan ops.while_loop]]):gmatch "%S+" do
  local of_ops = name:match "^ops%.(.*)$"
  topics.first[#topics.first + 1] = { "ms." .. name, function() return of_ops and ms.ops[of_ops] or ms[name] end }
end

-- The text of a file of the library up to its first line of code: what a module without a text above is.
function topics.head_of(name, part)
  local names = {}
  for loaded, value in pairs(package.loaded) do
    if rawequal(value, part) then names[#names + 1] = loaded end
  end
  table.sort(names)
  names[#names + 1] = name:gsub("^ms%.", "lunaria.")
  -- Several modules may give one table, and those in C have no text.
  for _, file in ipairs(names) do
    local path, lines = file:gsub("%.", "/"), {}
    local text = registry.text(path .. ".lua") or registry.text(path .. "/init.lua")
    for line in (text or ""):gmatch "[^\n]*" do
      local comment = line:match "^%-%-%-? ?(.*)$"
      if not comment then break end
      lines[#lines + 1] = comment
    end
    if #lines > 0 then return table.concat(lines, "\n") end
  end
  return ""
end

local environment = {
  { "LUNARIA_LOG", "What graph mode tells while it works, to standard error: compiles, recompiles, fallbacks, cache, or all, separated by commas; library: errors show the lines of the library too.",
    "core/base/log.cpp" },
  { "LUNARIA_DUMP", "What is printed of each compiled graph, to standard error: passes, kernels, llvm, times, separated by commas.", "jit/graph/passes.cpp" },
  { "LUNARIA_NUM_THREADS", "How many threads compute, 1 to 1024; ms.set_num_threads changes it later.", "interpreter/bindings/module.cpp" },
  { "LUNARIA_ISA", "The instruction set to compute with: v2, avx2 or avx512; at first the best that the processor has.", "backends/cpu/elementwise.cpp" },
  { "LUNARIA_GPU_WAIT", "1: the GPU is waited for behind every operator, so that an error names the one that failed.", "backends/gpu/queue.cpp" },
  { "LUNARIA_GPU_LIBRARIES", "0: products and convolutions on the GPU run by Lunaria's own kernels, not by cuBLASLt and cuDNN.", "backends/gpu/library.cpp" },
  { "LUNARIA_SEPARATE_MEMORY", "How many bytes the tensors of the test device may have; half of the machine's memory without it.", "backends/separate/device.cpp" },
  { "OMP_NUM_THREADS", "How many threads compute where LUNARIA_NUM_THREADS does not say.", "core/threads/threads.cpp" },
  { "XDG_CACHE_HOME", "The folder that holds lunaria/kernels, the compiled kernels; ~/.cache where it is not set.", "core/loops/kernel_files.cpp" },
  { "TMPDIR", "The folder for temporary files, such as the text for %edit; /tmp where it is not set.", "core/io/file.cpp" },
  { "XDG_STATE_HOME", "The folder that holds the history of the prompt; ~/.local/state where it is not set.", "interpreter/terminal/repl.cpp" },
  { "NO_COLOR", "Set to anything: the prompt shows no colours.", "interpreter/terminal/repl.cpp" },
  { "LUA_INIT", "Statements, or @ and the name of a file, that run before everything else. LUA_INIT_5_4 comes before it. Option -E ignores it.",
    "interpreter/main.cpp" },
  { "LUA_PATH", "Where require looks for Lua files, as in Lua. LUA_PATH_5_4 comes before it.", "interpreter/state.cpp" },
  { "LUA_CPATH", "Where require looks for modules written in C, as in Lua. LUA_CPATH_5_4 comes before it.", "interpreter/state.cpp" },
  { "EDITOR", "The editor that %edit opens; VISUAL comes before it.", "interpreter/lua/lunaria/commands.lua" },
}

local globals = {
  { "display", "ms.display" }, { "help", "ms.help" },
}

-- The options in what --help prints.
local function options(add)
  for line in registry.usage():gmatch "[^\n]+" do
    local usage, text = line:match "^  (%S.-)%s%s+(.*)$"
    if usage then
      add { name = "lunaria " .. usage:match "^%S+", kind = "option", head = "lunaria " .. usage, doc = text:gsub("^%l", string.upper) .. ".",
        source = "interpreter/session/command_line.cpp" }
    end
  end
end

local function commands(add)
  -- The commands take a session; here only what they say of themselves is asked for.
  local load_commands = package.searchers[2] "lunaria.commands"
  local list = load_commands({}).help
  for name, command in pairs(list) do
    add { name = command.usage:match "^%%*" .. name, kind = "command", head = command.usage, doc = command.text,
      source = "interpreter/lua/lunaria/commands.lua" }
  end
  add { name = "!COMMAND", kind = "command", head = "!COMMAND", doc = "Runs a command of the shell.", source = "interpreter/lua/lunaria/commands.lua" }
  add { name = "?NAME", kind = "command", head = "?NAME, NAME?, ??NAME",
    doc = "Prints what is known about a name; ??NAME its source as well. A part of a name lists what has it in its name or text.",
    source = "interpreter/lua/lunaria/commands.lua" }
end

--- Entries of what is not found by walking through ms.
function topics.all()
  local list = {}
  local function add(entry)
    entry.parameters, entry.notes = entry.parameters or {}, entry.notes or {}
    entry.examples = entry.examples or typed.of(entry.name)
    list[#list + 1] = entry
  end
  commands(add)
  options(add)
  for _, row in ipairs(environment) do
    add { name = row[1], kind = "environment variable", head = row[1] .. "=...", doc = row[2], source = row[3] }
  end
  for _, command in ipairs(registry.debugger_commands()) do
    add { name = "debug> " .. command.name, kind = "debugger command", head = command.usage,
      doc = command.text:gsub("^%l", string.upper) .. ".", source = "interpreter/debugger/debugger_prompt.cpp" }
  end
  for _, pair in ipairs(globals) do
    add { name = pair[1], kind = "global", head = pair[1] .. "(value)", doc = ("The same as %s, without a require."):format(pair[2]),
      source = "interpreter/session/session.cpp", parameters = { { name = "value", text = "any value" } } }
  end
  add { name = "breakpoint", kind = "global", head = "breakpoint()",
    doc = "Stops the program here and opens the debugger's prompt, as in pdb; h lists what can be typed there.", source = "interpreter/debugger/debugger.cpp" }
  for f, of in pairs(known) do
    if not of.name:find "^ms%." and not of.name:find "^x:" then
      local listing = registry.listing(of.declaration)
      add { name = of.name, kind = "lua", head = of.name .. (listing.signature:match "^function(%b())" or "(...)"), doc = listing.doc or "",
        value = f, source = "Lua 5.4" }
    end
  end
  for _, guide in ipairs(require "lunaria.help.guides") do
    add { name = guide.name, kind = "guide", head = guide.title, doc = guide.parts[1], parts = guide.parts, words = guide.words,
      source = "interpreter/lua/lunaria/help/guides.lua" }
  end
  local others = require "lunaria.help.other_names"
  for _, from in ipairs { { "pytorch", "PyTorch", "torch" }, { "mindspore", "MindSpore", "mindspore" }, { "numpy", "numpy", "np" } } do
    add { name = "guide.from_" .. from[1], kind = "guide", head = "From " .. from[2],
      doc = ("What %s calls it, what it is called here, and the difference."):format(from[2]), rows = others[from[1]],
      words = ("from %s, coming from %s, %s users, %s names"):format(from[2], from[2], from[2], from[3]),
      source = "interpreter/lua/lunaria/help/other_names.lua" }
  end
  return list
end

return topics
