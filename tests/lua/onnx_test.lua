-- ONNX models as functions: they run, are compiled, differentiated and saved; damaged and hostile files are errors.
local ms = require "lunaria"
local proto = dofile "tests/lua/support/onnx_proto.lua"
local ops = ms.ops

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local function path(name) return folder .. "/" .. name end

local function write(name, bytes)
  local file = assert(io.open(path(name), "wb"))
  file:write(bytes)
  file:close()
  return path(name)
end

local function fails(parts, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error that mentions " .. tostring(parts))
  for _, part in ipairs(type(parts) == "table" and parts or { parts }) do
    assert(tostring(message):find(part, 1, true), ("'%s' is not in: %s"):format(part, message))
  end
  return tostring(message)
end

local function close(a, b, tolerance)
  assert(tostring(a.shape) == tostring(b.shape), tostring(a.shape) .. " is not " .. tostring(b.shape))
  local difference = a.size > 0 and ops.abs(a - b):max():item() or 0
  assert(difference <= (tolerance or 1e-6), "the results differ by " .. difference)
end

local node, graph, model, value, tensor = proto.node, proto.graph, proto.model, proto.value, proto.tensor

-- x W + b, relu, and a loop that doubles the sum as often as the second input says.
local body = graph {
  name = "body",
  inputs = { value("i", 7, {}), value("go", 9, {}), value("state", 1, {}) },
  outputs = { value("go", 9, {}), value("next", 1, {}), value("turn", 1, {}) },
  nodes = { node("Add", { "state", "state" }, { "next" }), node("Mul", { "next", "scale" }, { "turn" }) },
}
local file = write("loop.onnx", model {
  graph = graph {
    name = "main",
    inputs = { value("x", 1, { "n", 2 }), value("count", 7, {}) },
    outputs = { value("y", 1, {}), value("turns", 1, { "k" }) },
    initializers = { tensor("w", { 2, 2 }, { 1, 2, 3, 4 }), tensor("b", { 2 }, { 0.5, -0.5 }), tensor("scale", {}, { 10 }) },
    nodes = {
      node("Gemm", { "x", "w", "b" }, { "h" }, { name = "first" }),
      node("Relu", { "h" }, { "r" }),
      node("ReduceSum", { "r" }, { "sum" }, { attributes = { keepdims = 0 } }),
      node("Loop", { "count", "", "sum" }, { "y", "turns" }, { attributes = { body = body } }),
    },
  },
})
local f, weights, about = ms.load(file)
assert(#about.inputs == 2 and about.inputs[1].name == "x" and about.inputs[1].dtype == "float32")
assert(about.inputs[1].shape[1] == "n" and about.inputs[1].shape[2] == 2 and about.outputs[2].name == "turns")
assert(ms.is_parameter(weights.w) and weights.b.shape[1] == 2)
local x = ms.tensor { { 1.0, 2.0 }, { -3.0, 1.0 } }
local function same(v, n)
  local sum = ops.reduce_sum(ops.relu(ops.matmul(v, weights.w) + weights.b))
  return sum * 2 ^ n
end
local y, turns = f(x, ms.tensor(3))
close(y, same(x, 3))
assert(turns.shape[1] == 3)
close(turns[0], same(x, 1) * 10)
close((f(x, ms.tensor(0))), same(x, 0))
assert(select(2, f(x, ms.tensor(0))).shape[1] == 0)

-- Compiled, with other sizes and other numbers of turns.
local fast = ms.jit(f)
for _ = 1, 3 do
  close((fast(x, ms.tensor(3))), same(x, 3))
  close((fast(ops.ones { 5, 2 }, ms.tensor(2))), same(ops.ones { 5, 2 }, 2))
end

-- Gradients by the input and by the weights.
local n = ms.tensor(3)
close(ms.grad(function(v) return (f(v, n)) end)(x), ms.grad(function(v) return same(v, 3) end)(x))
local names = { weights.w, weights.b }
local got = ms.grad(function(v) return (f(v, n)) end, false, names)(x)
local wanted = ms.grad(function(v) return same(v, 3) end, false, names)(x)
close(got[1], wanted[1])
close(got[2], wanted[2])

-- Saved again, as MindIR.
local straight = write("straight.onnx", model {
  graph = graph {
    name = "main", inputs = { value("x", 1, { "n", 2 }) }, outputs = { value("y", 1, { "n", 2 }) },
    initializers = { tensor("w", { 2, 2 }, { 1, 2, 3, 4 }) },
    nodes = { node("MatMul", { "x", "w" }, { "h" }), node("Tanh", { "h" }, { "y" }) },
  },
})
local g, kept = ms.load(straight)
ms.export(g, x, { file_name = path "again" })
local again, weights_again = ms.load(path "again.mindir")
close(again(x), g(x), 0)
assert(weights_again.w)
close(ops.tanh(ops.matmul(x, kept.w)), g(x))

-- A graph that is chosen by its condition, with values from around it; a function of the model, with an attribute.
local function branch(op)
  return graph { name = op, inputs = {}, outputs = { value("z", 1, { 2, 2 }) }, nodes = { node(op, { "x", "x" }, { "z" }) } }
end
local chosen = ms.load(write("if.onnx", model {
  graph = graph {
    name = "main", inputs = { value("x", 1, { 2, 2 }), value("c", 9, {}) }, outputs = { value("y", 1, { 2, 2 }) },
    nodes = {
      node("If", { "c" }, { "h" }, { attributes = { then_branch = branch "Add", else_branch = branch "Mul" } }),
      node("Bent", { "h" }, { "y" }, { domain = "mine", attributes = { slope = 0.5 } }),
    },
  },
  opsets = { [""] = 17, mine = 1 },
  functions = {
    proto.func {
      name = "Bent", domain = "mine", inputs = { "v" }, outputs = { "w" }, attributes = { "slope" },
      nodes = { node("LeakyRelu", { "v" }, { "w" }, { references = { alpha = "slope" } }) },
    },
  },
}))
close(chosen(x, ms.tensor(true)), ops.leaky_relu(x + x, 0.5))
close(chosen(x, ms.tensor(false)), ops.leaky_relu(x * x, 0.5))
close(ms.grad(function(v) return chosen(v, ms.tensor(false)):sum() end)(x), x * 2)

-- Many values at once, more than Lua has variables for.
local nodes, outputs = {}, {}
for i = 1, 400 do
  nodes[i] = node("Add", { i == 1 and "x" or "v" .. i - 1, "x" }, { "v" .. i })
  nodes[400 + i] = node("Add", { "v" .. i, i == 1 and "x" or "s" .. i - 1 }, { "s" .. i })
end
outputs[1] = value("s400", 1, {})
local many = ms.load(write("many.onnx", model {
  graph = graph { name = "main", inputs = { value("x", 1, {}) }, outputs = outputs, nodes = nodes },
}))
close(many(ms.tensor(0.5)), ms.tensor(0.5 * (1 + 400 + 400 * 401 / 2)), 0)
close(ms.grad(many)(ms.tensor(0.5)), ms.tensor(1 + 400 + 400 * 401 / 2), 0)

-- What is not known is told at once, with its place.
local bad = write("bad.onnx", model {
  graph = graph {
    name = "main", inputs = { value("x", 1, { 2 }), value("u", 8, { 2 }) }, outputs = { value("y", 1, { 2 }) },
    nodes = {
      node("Frobnicate", { "x" }, { "a" }, { name = "odd" }),
      node("Relu", { "a" }, { "b" }, { attributes = { gamma = 3 } }),
      node("Softmax", { "b" }, { "c" }, { attributes = { axis = 1.5 } }),
      node("Add", { "c", "missing" }, { "d" }),
      node("Relu", { "d", "d" }, { "y" }),
    },
  },
})
local message = fails({ "bad.onnx", "node 0 (Frobnicate 'odd'): the operator is not known",
  "node 1 (Relu): the attribute 'gamma' is not known", "node 2 (Softmax): the attribute 'axis' is a number, not a integer",
  "node 3 (Add): the input 'missing' is made by no node before it", "node 4 (Relu): has 2 inputs, the operator 1",
  "the input 'u' has the type string" }, ms.load, bad)
assert(message:find("6 things", 1, true), message)

local function refused(parts, options)
  options.name = "main"
  options.inputs = options.inputs or { value("x", 1, { 2 }) }
  options.outputs = options.outputs or { value("y", 1, { 2 }) }
  fails(parts, ms.load, write("refused.onnx", model { graph = graph(options), opsets = options.opsets }))
end
local relu = { node("Relu", { "x" }, { "y" }) }
refused("version 999", { nodes = relu, opsets = { [""] = 999 } })
refused("version 0", { nodes = relu, opsets = { [""] = 0 } })
refused({ "node 0 (Relu)", "version" }, { nodes = relu, opsets = { other = 3 } })
refused("made by no node before it", { nodes = { node("Relu", { "b" }, { "a" }), node("Relu", { "a" }, { "b" }) } })
refused("has the name of another value", { nodes = { node("Relu", { "x" }, { "y" }), node("Tanh", { "x" }, { "y" }) } })
refused("the output 'y' is made by no node", { nodes = { node("Relu", { "x" }, { "z" }) } })
refused("there are no outputs", { nodes = relu, outputs = {} })
refused("the attribute 'direction' is missing", { nodes = { node("BitShift", { "x", "x" }, { "y" }) } })
refused("axis' twice", { nodes = { node("Softmax", { "x" }, { "y" }, { attributes = { axis = 0 }, twice = true }) } })
refused("its graphs have 2 and 1", {
  nodes = {
    node("If", { "x" }, { "y" }, {
      attributes = {
        then_branch = graph { name = "a", inputs = {}, outputs = { value("z", 1, {}), value("z", 1, {}) },
          nodes = { node("Relu", { "x" }, { "z" }) } },
        else_branch = graph { name = "b", inputs = {}, outputs = { value("w", 1, {}) }, nodes = { node("Relu", { "x" }, { "w" }) } },
      },
    }),
  },
})
refused({ "tensor 'w'", "has 8 bytes" }, { nodes = relu, initializers = { tensor("w", { 3 }, { 1, 2 }) } })
refused("has the type uint4", { nodes = relu, initializers = { tensor("w", { 2 }, "\1\2", 21) } })
refused("holds strings", { nodes = relu, initializers = { tensor("w", { 1 }, "a", 8) } })
refused("calls itself", { nodes = { node("Again", { "x" }, { "y" }, { domain = "mine" }) }, opsets = { [""] = 17, mine = 1 },
  functions = { { name = "Again", domain = "mine", inputs = { "a" }, outputs = { "b" }, attributes = {},
    nodes = { node("Again", { "a" }, { "b" }, { domain = "mine" }) } } } })

-- Wrong arguments.
fails({ "loop.onnx", "the input 'x' must be a tensor" }, f, "text", n)
fails("must have dtype Float32", f, ms.tensor { { 1, 2 } }, n)
fails("must have 2 axes", f, ms.tensor { 1.0, 2.0 }, n)

-- Data in other files.
local function external(location, more)
  return write("external.onnx", model {
    graph = graph {
      name = "main", inputs = { value("x", 1, { 2 }) }, outputs = { value("y", 1, { 2 }) },
      initializers = { proto.external("w", { 2 }, location, more) }, nodes = { node("Add", { "x", "w" }, { "y" }) },
    },
  })
end
write("weights.bin", string.pack("<ffff", 9, 1.5, 2.5, 9))
close(ms.load(external("weights.bin", { offset = 4, length = 8 }))(ms.tensor { 1.0, 1.0 }), ms.tensor { 2.5, 3.5 }, 0)
assert(os.execute(("cd %s && mkdir inner && cp weights.bin inner/w && ln -s weights.bin link && ln -s inner turn && ln inner/w hard"
  .. " && mkfifo pipe && mv inner/w inner/x && cp inner/x inner/w"):format(folder)))
close(ms.load(external("inner/w", { offset = 4 }))(ms.tensor { 0.0, 0.0 }), ms.tensor { 1.5, 2.5 }, 0)
fails("outside of its folder", ms.load, external "../weights.bin")
fails("outside of its folder", ms.load, external "inner/../../weights.bin")
fails("not relative", ms.load, external(path "weights.bin"))
fails("symbolic link", ms.load, external "link")
fails("symbolic link", ms.load, external "turn/w")
fails("hard links", ms.load, external "hard")
fails("no regular file", ms.load, external "pipe")
fails("no regular file", ms.load, external "inner")
fails("cannot be opened", ms.load, external "nowhere")
fails("no path", ms.load, external "")
fails("behind the end", ms.load, external("weights.bin", { offset = 12 }))
fails("has the place '-4'", ms.load, external("weights.bin", { offset = -4 }))
fails("is said to have", ms.load, external("weights.bin", { length = "9223372036854775808" }))

-- A file that is cut anywhere, or has any byte changed, is a function or an error.
local bytes = assert(io.open(file, "rb")):read "a"
for cut = 1, #bytes - 1, 7 do pcall(ms.load, write("cut.onnx", bytes:sub(1, cut))) end
for at = 1, #bytes, 3 do
  pcall(ms.load, write("cut.onnx", bytes:sub(1, at - 1) .. string.char(bytes:byte(at) ~ 0x55) .. bytes:sub(at + 1)))
end
fails("is no ONNX file", ms.load, write("other.onnx", "\8\3"))
fails("is empty", ms.load, write("nothing.onnx", ""))
fails("cannot be opened", ms.load, path "not_there.onnx")

-- The command.
assert(os.execute(("mkdir %s/in %s/out"):format(folder, folder)))
ms.save(path "in/inputs.safetensors", { x = x })
local program = arg and arg[-1] or "lunaria"
local function command(words)
  local pipe = assert(io.popen(("%s onnx-run %s 2>&1"):format(program, words)))
  local text = pipe:read "a"
  return pipe:close(), text
end
local ok, text = command(("%s --inputs %s/in --outputs %s/out"):format(straight, folder, folder))
assert(ok, text)
close(ms.load(path "out/outputs.safetensors").y, g(x), 0)
assert(os.execute(("mkdir %s/in2 && cp %s/out/output_0.pb %s/in2/input_0.pb"):format(folder, folder, folder)))
ok, text = command(("%s --inputs %s/in2 --outputs %s/out"):format(straight, folder, folder))
assert(ok, text)
close(ms.load(path "out/outputs.safetensors").y, g(g(x)), 1e-6)
ok, text = command(("%s --inputs %s --outputs %s/out"):format(straight, folder, folder))
assert(not ok and text:find("has no input 'x'", 1, true), text)
-- Sequences, and what may be missing, are one file each, as in the folders of the ONNX tests.
local parts = write("parts.onnx", model {
  graph = graph {
    name = "main",
    inputs = { value("x", 1, { "n", 2 }) },
    outputs = { proto.sequence("parts", 1, { "n", 2 }), proto.sequence("maybe", 1, { "n", 2 }, true) },
    nodes = { node("SplitToSequence", { "x" }, { "parts" }, { attributes = { axis = 0 } }), node("Optional", { "parts" }, { "maybe" }) },
  },
})
local joined = write("joined.onnx", model {
  graph = graph {
    name = "main",
    inputs = { proto.sequence("parts", 1, { "n", 2 }) },
    outputs = { value("y", 1, { "m", 2 }) },
    nodes = { node("ConcatFromSequence", { "parts" }, { "y" }, { attributes = { axis = 0 } }) },
  },
})
for i = 0, 1 do
  assert(os.execute(("rm -rf %s/out3 %s/in3; mkdir %s/out3 %s/in3"):format(folder, folder, folder, folder)))
  ok, text = command(("%s --inputs %s/in --outputs %s/out3"):format(parts, folder, folder))
  assert(ok, text)
  assert(not io.open(path "out3/output_0_0.pb"))
  -- An optional value has its content in the field of its own kind.
  if i == 0 then
    assert(os.execute(("cp %s/out3/output_0.pb %s/in3/input_0.pb"):format(folder, folder)))
    ok, text = command(("%s --inputs %s/in3 --outputs %s/out3"):format(joined, folder, folder))
    assert(ok, text)
    close(ms.load(path "out3/outputs.safetensors").y, x, 0)
  else
    local optional = assert(io.open(path "out3/output_1.pb", "rb")):read "a"
    assert(optional:find("maybe", 1, true) and optional:find("\16\3*", 1, true), "no sequence in the optional value")
  end
end

-- A model that needs what is not here has a status of its own.
local function status(words)
  local pipe = assert(io.popen(("%s onnx-run %s >/dev/null 2>&1; echo $?"):format(program, words)))
  local number = pipe:read "n"
  pipe:close()
  return number
end
local unknown = write("unknown.onnx", model {
  graph = graph {
    name = "main", inputs = { value("x", 1, { 2 }) }, outputs = { value("y", 1, { 2 }) }, nodes = { node("Nothing", { "x" }, { "y" }) },
  },
})
local folders = (" --inputs %s/in --outputs %s/out"):format(folder, folder)
assert(status(unknown .. folders) == 3)
assert(status(straight .. folders) == 0)
assert(status(path "not_there.onnx" .. folders) == 1 and status "--inputs" == 1)
assert(status(write("cut.onnx", bytes:sub(1, 40)) .. folders) == 1)
ok, text = command "--inputs"
assert(not ok and text:find("usage:", 1, true), text)

os.execute("rm -r " .. folder)
assert(dofile "tests/lua/support/compiled.lua".check())
