-- The entries of what is typed elsewhere than in a program: commands, options, variables of the environment, commands of the debugger;
-- and of globals, Lua's own library and the guides.
-- luacheck: no max line length
local ms = require "lunaria"
local registry = require "lunaria.registry"
local known = require "lunaria.help.index"
local typed = require "lunaria.help.typed_examples"

local topics = {}

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
  { "ms.armour.attacks", function() return ms.armour.attacks end },
  { "ms.armour.defenses", function() return ms.armour.defenses end },
  { "ms.armour.detectors", function() return ms.armour.detectors end },
  { "ms.armour.evaluations", function() return ms.armour.evaluations end },
}
-- What is loaded when it is first used, and in no table before.
for _, name in ipairs(registry.parts()) do
  if not name:find "^_" then topics.first[#topics.first + 1] = { "ms." .. name, function() return ms[name] end } end
end
for name in ([[ForiLoop GradOperation HookBackward HyperMap InsertGradientOf Map MultitypeFuncGraph Partial Primitive Scan WhileLoop
  fori_loop partial scan while_loop]]):gmatch "%S+" do
  topics.first[#topics.first + 1] = { "ms.ops." .. name, function() return ms.ops[name] end }
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
  { "LUNARIA_JOB", "The name of the job of several ranks to which this process belongs; lunaria launch sets it, and LUNARIA_RANK and LUNARIA_RANKS. Set by hand: the same text in all ranks.",
    "core/parallel/environment.cpp" },
  { "LUNARIA_SECRET", "The text by which ranks of several machines know each other, the same on all of them.", "core/parallel/environment.cpp" },
  { "LUNARIA_MPI", "The library of MPI to open, by its path, where mpirun has started the ranks.", "core/parallel/mpi.cpp" },
  { "MS_ROLE", "MS_WORKER: this process is a rank that msrun has started; MS_SCHED: it is msrun's scheduler, which has nothing to do here.", "core/parallel/environment.cpp" },
  { "LUNARIA_ENGINE", "What connects the ranks of a program: shared (memory of one host), tcp or mpi; at first mpi where mpirun has started them, and shared on one host.", "core/parallel/connect.cpp" },
  { "LUNARIA_COMMUNICATION_TIMEOUT", "How many seconds a rank waits for another one that is alive, 600 without it; 0: for ever. ms.communication.set_timeout changes it later.",
    "core/parallel/partner.cpp" },
  { "LUNARIA_DEVICE_ENGINE", "What moves tensors that lie on GPUs from rank to rank: nccl (an error where NCCL cannot be used) or host, with copies; at first NCCL where it is installed and each rank has a GPU of its own.",
    "core/parallel/device_requests.cpp" },
  { "OMP_NUM_THREADS", "How many threads compute where LUNARIA_NUM_THREADS does not say.", "core/threads/threads.cpp" },
  { "XDG_CACHE_HOME", "The folder that holds lunaria/kernels, the compiled kernels; ~/.cache where it is not set.", "core/loops/kernel_files.cpp" },
  { "TMPDIR", "The folder for temporary files, such as the text for %edit; /tmp where it is not set.", "core/io/file.cpp" },
  { "XDG_STATE_HOME", "The folder that holds the history of the prompt; ~/.local/state where it is not set.", "interpreter/terminal/repl.cpp" },
  { "NO_COLOR", "Set to anything: the prompt shows no colours.", "interpreter/terminal/repl.cpp" },
  { "LUA_INIT", "Statements, or @ and the name of a file, that run before everything else. LUA_INIT_5_4 comes before it. Option -E ignores it.",
    "interpreter/terminal/main.cpp" },
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
      doc = command.text:gsub("^%l", string.upper) .. ".", source = "interpreter/session/debugger_prompt.cpp" }
  end
  for _, pair in ipairs(globals) do
    add { name = pair[1], kind = "global", head = pair[1] .. "(value)", doc = ("The same as %s, without a require."):format(pair[2]),
      source = "interpreter/session/session.cpp", parameters = { { name = "value", type = "any value", text = "what is shown" } } }
  end
  add { name = "breakpoint", kind = "global", head = "breakpoint()",
    doc = "Stops the program here and opens the debugger's prompt, as in pdb; h lists what can be typed there.", source = "interpreter/debugger/debugger.cpp" }
  for f, of in pairs(known) do
    if not of.name:find "^ms%." and not of.name:find "^x:" then
      add { name = of.name, kind = "lua", head = of.name .. of.list, doc = of.doc, value = f, source = "Lua 5.4" }
    end
  end
  for _, guide in ipairs(require "lunaria.help.guides") do
    add { name = guide.name, kind = "guide", head = guide.title, doc = guide.parts[1], parts = guide.parts, words = guide.words,
      source = "interpreter/lua/lunaria/help/guides.lua" }
  end
  local versions = {}
  for _, version in ipairs(require "lunaria.help.changelog") do
    versions[#versions + 1] = ("%s: %s\n- %s"):format(version.version, version.text, table.concat(version.changes, "\n- "))
  end
  add { name = "changelog", kind = "guide", head = "What is new in which version", doc = versions[1], parts = versions,
    words = "changes, news, release notes, history of versions, what is new, changelog", source = "interpreter/lua/lunaria/help/changelog.lua" }
  local others = require "lunaria.help.other_names"
  for _, from in ipairs { { "pytorch", "PyTorch", "torch" }, { "mindspore", "MindSpore", "mindspore" }, { "numpy", "numpy", "np" },
    { "jax", "JAX", "jax" }, { "tensorflow", "TensorFlow and Keras", "tf" },
    { "mindarmour", "MindArmour", "mindarmour" }, { "art", "the Adversarial Robustness Toolbox (ART)", "art" },
    { "opacus", "Opacus", "opacus" } } do
    add { name = "guide.from_" .. from[1], kind = "guide", head = "From " .. from[2],
      doc = ("What %s calls it, what it is called here, and the difference."):format(from[2]), rows = others[from[1]],
      words = ("from %s, coming from %s, %s users, %s names"):format(from[2], from[2], from[2], from[3]),
      source = "interpreter/lua/lunaria/help/other_names.lua" }
  end
  return list
end

return topics
