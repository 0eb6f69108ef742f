-- Objects that functions give: what their methods are, and their fields. `methods` gives the table of them.
local ms = require "lunaria"

local function upvalue(f, name)
  for i = 1, 60 do
    local key, value = debug.getupvalue(f, i)
    if not key then return nil end
    if key == name or (name == "" and i == 1) then return value end
  end
end

local function none() return {} end

local function class_of(make)
  return function() return getmetatable(make()) end
end

return {
  { title = "tensor", variable = "x", source = "interpreter/bindings/bind_tensor.cpp",
    example = { "ms.tensor { { 1, 2 }, { 3, 4 } }:sum():item()", "10" },
    doc = "A tensor, as ms.tensor{1, 2} makes one. Operators are methods too, as in x:sum(). "
      .. "x[0] and x[\"1:3, ::2\"] are parts, counted from 0.",
    methods = function()
      local _ = ms.tensor(0.0).allclose  -- so that those written in Lua are in the table
      return upvalue(getmetatable(ms.tensor(0.0)).__index, "")
    end,
    properties = {
      { "shape", "The sizes of the axes in a table: x.shape[1] is the first, #x.shape how many there are; x:sizes(axis) counts from 0.",
        { { "ms.ones({ 2, 3 }).shape", "(2, 3)" } } },
      { "dtype", "The type of the elements: ms.float32 and so on.", { { "ms.ones({ 2 }).dtype", "Float32" } } },
      { "ndim", "The number of axes.", { { "ms.ones({ 2, 3 }).ndim", "2" } } },
      { "size", "The number of elements.", { { "ms.ones({ 2, 3 }).size", "6" } } },
      { "T", "The tensor with its axes in the opposite order.", { { "ms.ones({ 2, 3 }).T.shape", "(3, 2)" } } },
      { "mT", "The tensor with its last two axes swapped.", { { "ms.ones({ 4, 2, 3 }).mT.shape", "(4, 3, 2)" } } },
      { "mH", "The same as mT; complex tensors have none.", { { "ms.ones({ 4, 2, 3 }).mH.shape", "(4, 3, 2)" } } },
      { "H", "The same as mH.", { { "ms.ones({ 2, 3 }).H.shape", "(3, 2)" } } },
      { "data", "The elements as a plain tensor, also of a parameter.", { { "ms.ones({ 2, 3 }).data.shape", "(2, 3)" } } },
      { "itemsize", "The bytes of one element.", { { "ms.ones({ 2 }).itemsize", "4" } } },
      { "nbytes", "The bytes of all elements.", { { "ms.ones({ 2, 3 }).nbytes", "24" } } },
      { "device", "The name of the device that holds the elements.", { { "ms.ones({ 2 }).device", "CPU" } } },
      { "layout", "How the elements lie on the ranks of a mesh; nil where they are in one place.",
        { { 'ms.distribute(ms.ones({ 2, 3 }), ms.mesh({ 2 }, { "dp" })("dp")).layout', "[2@dp, 3]" } } },
      { "strides", "The bytes between neighbours along each axis.", { { "ms.ones({ 2, 3 }).strides", "(12, 4)" } } },
    } },
  { title = "parameter", variable = "p", source = "interpreter/bindings/bind_parameter.cpp",
    example = { 'ms.Parameter(ms.ones { 2 }, "w").name', 'w' },
    doc = "A tensor that training changes: ms.Parameter(data, name) makes one, layers make theirs. It has all that tensors have.",
    methods = none,
    properties = {
      { "name", "What it is called; cells give their parameters dotted names.", { { 'ms.Parameter(ms.ones { 2 }, "w").name', "w" } } },
      { "requires_grad", "Whether it is trained: p.requires_grad = false freezes it; net:trainable_params() leaves it out then.",
        { { 'ms.Parameter(ms.ones { 2 }, { requires_grad = false }).requires_grad', "false" } } },
    } },
  { title = "compiled function", variable = "f", source = "interpreter/lua/lunaria/graph.lua",
    example = { "ms.jit(function(x) return x * 2 end)(3.0)", "6.0" },
    doc = "What ms.jit gives: it is called like the function.",
    methods = function()
      require "lunaria.graph"
      return upvalue(getmetatable(ms.jit(function() end)).__index, "methods")
    end },
  { title = "lowered function", variable = "lowered", source = "interpreter/lua/lunaria/lowered.lua",
    example = { "ms.jit(function(x) return x * 2 end):lower(ms.ones { 2 }):compile()(ms.ones { 2 }):sum():item()", "4.0" },
    doc = "What f:lower(...) gives: a function compiled for certain arguments, to look at.",
    methods = function() return upvalue(require "lunaria.lowered", "Lowered") end },
  { title = "profile", variable = "profile", source = "interpreter/lua/lunaria/profiler/report.lua",
    example = { "#ms.profile(function(x) return x * 2 end, ms.ones { 4 }).events", "1" },
    doc = "What ms.profile gives; it prints as a table.",
    methods = function() return upvalue(ms.profile, "Profile") end },
  { title = "watch", variable = "watch", source = "interpreter/lua/lunaria/insight/watch.lua",
    example = { "#ms.insight.watch(function(x) return x * 2 end).points", "9" },
    doc = "What ms.insight.watch gives: a call is a step of the watched training.",
    methods = class_of(function() return ms.insight.watch {} end) },
  { title = "plot", variable = "plot", source = "interpreter/lua/lunaria/plot/init.lua",
    example = { 'ms.plot.line({ 1, 2 }):svg():match("^<svg")', '<svg' },
    doc = "What ms.plot.line and its kin give: a picture that a notebook and a terminal show.",
    methods = class_of(function() return ms.plot.line { 1, 2 } end) },
  { title = "image", variable = "image", source = "interpreter/lua/lunaria/image.lua",
    example = { "ms.image(ms.ones { 2, 2 }):png():sub(2, 4)", "PNG" },
    doc = "What ms.image gives: a picture that a notebook and a terminal show.",
    methods = class_of(function() return ms.image(ms.ops.ones { 2, 2 }) end) },
  { title = "display handle", variable = "handle", source = "interpreter/bindings/bind_display.cpp",
    example = { "type(display)", "table" },
    doc = "What display(value, {id = true}) gives.",
    methods = function() return debug.getregistry()["lunaria.display_handle"].__index end },
  { title = "comm", variable = "comm", source = "interpreter/lua/lunaria/notebook/comm.lua",
    example = { 'type(ms.notebook.comm.open("example", {}).id)', 'string' },
    doc = "What ms.notebook.comm.open gives: a line to a program in the front end.",
    methods = function() return upvalue(ms.notebook.comm.open, "Comm") or {} end },
  { title = "graph text", variable = "g", source = "interpreter/lua/lunaria/transforms.lua",
    example = { 'ms.ir(function(x) return x * x end):find("mul", 1, true) ~= nil', 'true' },
    doc = "What ms.ir gives: the graph of a function, which prints as text.",
    methods = function()
      local index = getmetatable(ms.ir(function(x) return x end)).__index
      return type(index) == "table" and index or {}
    end },
  { title = "data iterator", variable = "it", source = "interpreter/lua/lunaria/dataset/iterator.lua",
    example = { "ms.dataset.NumpySlicesDataset({ 5, 6 }, { shuffle = false }):create_tuple_iterator()():item()", "5" },
    doc = "What ds:create_tuple_iterator() and ds:create_dict_iterator() give: it() is the next row, nil the end of an epoch; "
      .. "for row in it do ... end goes through an epoch.",
    methods = class_of(function()
      return ms.dataset.NumpySlicesDataset({ 1, 2 }, { shuffle = false }):create_tuple_iterator()
    end) },
}
