-- Tensors as a user meets them: making, printing, indexing, converting.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local T, o = ms.tensor, ms.ops

t.test("integers make int64, a float makes float32, booleans make bool", function()
  t.equal(T({ 1, 2 }).dtype, ms.int64)
  t.equal(T({ 1, 2.0 }).dtype, ms.float32)
  t.equal(T({ true, false }).dtype, ms.bool_)
  t.equal(T({ true, 2 }).dtype, ms.int64)
  t.equal(T(3).shape, T(2.5).shape)
  t.equal(T({}).dtype, ms.float32)
end)

t.test("a dtype is an object or a name, by position or in a table", function()
  t.equal(T({ 1 }, ms.float16).dtype, ms.float16)
  t.equal(T({ 1 }, "uint8").dtype, ms.uint8)
  t.equal(T({ 1 }, { dtype = "float64" }).dtype, ms.float64)
  t.equal(tostring(ms.float32), "Float32")
  t.equal("a " .. ms.int32, "a Int32")
  t.fails({ "dtype", "float99" }, T, { 1 }, "float99")
  t.fails("dtype", T, { 1 }, 12345)
  t.fails({ "dtyp", "did you mean 'dtype'" }, T, { 1 }, { dtyp = "float64" })
end)

t.test("int64 is exact to the last bit", function()
  t.equal(T({ math.maxinteger, math.mininteger }):tolist(), { math.maxinteger, math.mininteger })
  t.equal(T(math.maxinteger):item(), math.maxinteger)
end)

t.test("what does not fit an integer type is an error", function()
  t.fails({ "300", "uint8" }, T, { 1, 300 }, ms.uint8)
  t.fails({ "int32", "nan" }, T, 0 / 0, ms.int32)
  t.fails({ "int64" }, T, { 1e300 }, ms.int64)
  t.equal(T({ 2.9, -2.9 }, ms.int32):tolist(), { 2, -2 })
end)

t.test("ragged tables are errors that name the place", function()
  t.fails({ "ragged", "data[2]", "length 1" }, T, { { 1, 2 }, { 3 } })
  t.fails({ "ragged", "data[2]" }, T, { { 1, 2 }, 3 })
  t.fails({ "ragged", "data[2]" }, T, { 1, { 2 } })
  t.fails({ "data[1][2]", "string" }, T, { { 1, "x" } })
  t.fails({ "data[2]", "nil" }, T, { 1, nil, 3 })
  t.fails({ "key" }, T, { x = 1 }, ms.float32)
end)

t.test("cycles, endless nesting and odd metatables are errors", function()
  local cycle = {}
  cycle[1] = cycle
  t.fails("nested deeper", T, cycle)
  local deep = { 1 }
  for _ = 1, 1e5 do deep = { deep } end
  t.fails("nested deeper", T, deep)
  t.fails("boom", T, setmetatable({}, { __index = function() error("boom") end, __len = function() return 3 end }))
  t.fails("too large", T, setmetatable({}, { __len = function() return math.maxinteger end }))
  t.fails("negative", T, setmetatable({}, { __len = function() return -5 end }))
  t.equal(T(setmetatable({}, { __index = function(_, i) return i end, __len = function() return 3 end })), T { 1, 2, 3 })
end)

t.test("tensors in a table are stacked", function()
  t.equal(T({ T { 1, 2 }, T { 3, 4 } }), T { { 1, 2 }, { 3, 4 } })
  t.equal(T({ T { 1, 2 }, T { 3.5, 4 } }).dtype, ms.float32)
  t.fails({ "ragged", "(3)" }, T, { T { 1, 2 }, T { 1, 2, 3 } })
  local empty = T({}, ms.int32)
  t.equal(T({ empty, empty }).shape, T({ {}, {} }).shape)
end)

t.test("properties and sizes", function()
  local x = T({ { 1, 2, 3 }, { 4, 5, 6 } }, ms.float32)
  t.equal({ x.ndim, x.size, #x, x:dim(), x:numel(), x.itemsize, x.nbytes }, { 2, 6, 2, 2, 6, 4, 24 })
  t.equal(tostring(x.shape), "(2, 3)")
  t.equal(x.shape[2], 3)
  assert(x.shape == x:copy().shape and x.shape ~= x.T.shape)
  t.equal("shape " .. x.shape, "shape (2, 3)")
  t.equal(x.strides[1], 12)
  t.equal(x.T:tolist(), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  t.equal(tostring(T({ 7 }).shape), "(1,)")
end)

t.test("rows are counted from 0 and from the end", function()
  local x = T { { 1, 2, 3 }, { 4, 5, 6 } }
  t.equal(x[0]:tolist(), { 1, 2, 3 })
  t.equal(x[-1][-1]:item(), 6)
  t.fails({ "index 2 is out of range", "start at 0" }, function() return x[2] end)
  t.fails("-3", function() return x[-3] end)
  t.fails("rank 0", function() return T(1)[0] end)
end)

t.test("slices as text, as objects and in tables", function()
  local x = T { { 1, 2, 3 }, { 4, 5, 6 } }
  t.equal(x["1, ::2"]:tolist(), { 4, 6 })
  t.equal(x["..., -1"]:tolist(), { 3, 6 })
  t.equal(x[{ 0, ms.slice(1, 3) }]:tolist(), { 2, 3 })
  t.equal(x[{ ms.slice(nil, nil, 2) }]:tolist(), { { 1, 2, 3 } })
  t.equal(x[{ ms.newaxis, 0 }].shape, T({ { 1, 2, 3 } }).shape)
  t.equal(x[{ { 0, 1 }, 1 }]:tolist(), { 2, 5 })
  t.equal(tostring(ms.slice(1, 3)), "slice(1, 3, nil)")
  t.fails({ "step", "0" }, function() return x["::0"] end)
  t.fails("too many indices", function() return x["0, 0, 0"] end)
end)

t.test("masks and index tensors pick elements", function()
  local x = T { 10, 20, 30, 40 }
  t.equal(x[T { true, false, false, true }]:tolist(), { 10, 40 })
  t.equal(x[T { 3, 0, -1 }]:tolist(), { 40, 10, 40 })
  t.fails("integers or bools", function() return x[T { 0.5 }] end)
end)

t.test("writing through an index changes this tensor and no other", function()
  local x = T { { 1, 2 }, { 3, 4 } }
  local alias, copy, row = x, T(x), x[0]
  x[0] = 9
  t.equal(x:tolist(), { { 9, 9 }, { 3, 4 } })
  t.equal(alias:tolist(), x:tolist())
  t.equal(copy:tolist(), { { 1, 2 }, { 3, 4 } })
  t.equal(row:tolist(), { 1, 2 })
  row[0] = -1
  t.equal(x:tolist(), { { 9, 9 }, { 3, 4 } })
  x["1, :"] = { 7, 8 }
  x[{ 0, 1 }] = T(5)
  t.equal(x:tolist(), { { 9, 5 }, { 7, 8 } })
  x[o.greater(x, 6)] = 0
  t.equal(x:tolist(), { { 0, 5 }, { 0, 0 } })
  t.fails("foo", function() x.foo = 1 end)
  t.fails("2", function() x[2] = 1 end)
end)

t.test("results of operators do not share writes with operands", function()
  local x = T { 1.0, 2.0 }
  local same_shape, cast, dense = x:reshape(2), x:astype("float32"), x:contiguous()
  x[0] = 5
  t.equal({ same_shape[0]:item(), cast[0]:item(), dense[0]:item() }, { 1, 1, 1 })
end)

t.test("iteration gives rows or numbers with their index from 0", function()
  local seen = {}
  for i, row in T({ { 1, 2 }, { 3, 4 } }):iter() do seen[#seen + 1] = { i, row:tolist() } end
  t.equal(seen, { { 0, { 1, 2 } }, { 1, { 3, 4 } } })
  seen = {}
  local x = T { 5, 6 }
  for i, value in x:iter() do
    x[1] = 0
    seen[#seen + 1] = { i, value }
  end
  t.equal(seen, { { 0, 5 }, { 1, 6 } })
end)

t.test("export gives numbers, booleans and nested tables", function()
  t.equal(T({ { 1.5, 2 }, { 3, 4 } }):asnumpy(), { { 1.5, 2.0 }, { 3.0, 4.0 } })
  t.equal(T({ true, false }):totable(), { true, false })
  t.equal(T(7):tolist(), 7)
  t.equal(math.type(T({ 1 }):item()), "integer")
  t.equal(T({ { 1, 2 }, { 3, 4 } }):item(1, 0), 3)
  t.fails({ "item", "one element", "2" }, function() return T({ 1, 2 }):item() end)
  t.equal(T({ { 1, 2 }, { 3, 4 } }).T:tolist(), { { 1, 3 }, { 2, 4 } })
end)

t.test("conversions", function()
  local x = T { 1.7, -1.2, 0.0 }
  t.equal(x:int():tolist(), { 1, -1, 0 })
  t.equal(x:bool():tolist(), { true, true, false })
  for method, dtype in pairs { float = "float32", double = "float64", half = "float16", long = "int64", short = "int16" } do
    t.equal(x[method](x).dtype, ms[dtype])
  end
  t.equal(x:to("float64").dtype, ms.float64)
  t.equal(x:astype(ms.bfloat16).dtype, ms.bfloat16)
  t.equal(x:type_as(T { 1 }).dtype, ms.int64)
  t.fails("dtype", x.to, x, "complex999")
  t.equal(x:new_zeros(2, 2).shape, T({ { 0, 0 }, { 0, 0 } }).shape)
  t.equal(x:new_full({ 2 }, 3):tolist(), { 3, 3 })
  t.equal(x:new_ones({ 2 }, { dtype = ms.int32 }).dtype, ms.int32)
end)

t.test("methods that write in place", function()
  local x = T { 1.0, 2.0 }
  local before = x:copy()
  assert(x:add_(1) == x)
  t.equal(x:tolist(), { 2, 3 })
  t.equal(before:tolist(), { 1, 2 })
  t.equal(x:mul_(T { 2.0, 3.0 }):tolist(), { 4, 9 })
  t.equal(x:fill_(7):tolist(), { 7, 7 })
  t.equal(ms.zeros({ 1 }, ms.float64):fill_(0.1):item(), 0.1)
  t.equal(x:zero_():tolist(), { 0, 0 })
  t.equal(x:copy_({ 1, 2 }):tolist(), { 1, 2 })
  t.equal(x:copy_(5):tolist(), { 5, 5 })
  t.equal(x:set_dtype(ms.int32).dtype, ms.int32)
  t.fails({ "sum_", "shape" }, function() T({ 1, 2 }):sum_() end)
  t.fails({ "add_", "int64" }, function() T({ 1, 2 }):add_(0.5) end)
  t.fails("copy_", function() T({ 1, 2 }):copy_ { 1, 2, 3 } end)
end)

t.test("methods with rules of their own", function()
  local x = T { { 1.0, 2.0 }, { 3.0, 4.0 } }
  t.equal(x:where(T { { true, false }, { false, true } }, 0):tolist(), { { 1, 0 }, { 0, 4 } })
  t.equal(x:select(1, 0):tolist(), { 1, 3 })
  t.equal(x:select(T { { true, false }, { false, true } }, x * 10):tolist(), { { 1, 20 }, { 30, 4 } })
  t.fails({ "select", "out of range" }, x.select, x, 0, 2)
  t.equal(x[0]:repeat_(2):tolist(), { 1, 2, 1, 2 })
  t.equal(x[0]["repeat"](x[0], 2, 1).shape, x.shape)
  assert(not rawequal(x:value(), x) and rawequal(x:requires_grad_(), x))
  t.fails("stop_gradient", x.requires_grad_, x, false)
  ms.set_seed(1)
  local drawn = ms.ops.zeros(1000):uniform_(2, 3)
  assert(drawn:min():item() >= 2 and drawn:max():item() <= 3 and drawn:std():item() > 0.2)
  assert(math.abs(drawn:normal_():mean():item()) < 0.2)
  assert(drawn:long():random_(0, 10):max():item() == 9)
  t.equal(x.mH:tolist(), { { 1, 3 }, { 2, 4 } })
end)

t.test("a released tensor is an error, not a crash", function()
  local x = T { 1, 2 }
  x:release()
  t.fails("released", function() return x:item() end)
  t.fails("released", function() return x.shape end)
  t.fails("released", function() return x + 1 end)
  x:release()
  local y = T { 1 }
  local gc = getmetatable(y).__gc
  gc(y)
  gc(y)
  t.fails("released", function() return y:item() end)
  local z
  do
    local scoped <close> = T { 1 }
    z = scoped
  end
  t.fails("released", function() return z[0] end)
end)

t.test("other userdata is not taken for a tensor", function()
  t.fails("add: input must be a tensor or a number, got a file", o.add, io.stdout, T { 1 })
  t.fails("tensor", T({ 1 }).item, io.stdout)
  t.fails("tensor", T({ 1 }).item, {})
  local file = io.tmpfile()
  debug.setmetatable(file, getmetatable(T { 1 }))
  t.fails("tensor", function() return file:item() end)
  local other = io.tmpfile()
  local kept = debug.getmetatable(other)
  debug.setmetatable(other, debug.getmetatable(T { 1 }))
  t.fails("tensor", function() return other + 1 end)
  debug.setmetatable(other, kept)
  other:close()
end)

t.test("unknown names get a suggestion", function()
  t.fails({ "shap", "did you mean 'shape'" }, function() return T({ 1 }).shap end)
  t.fails({ "rellu", "did you mean 'relu'" }, function() return o.rellu end)
end)

t.finish()
