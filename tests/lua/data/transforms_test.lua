-- Transforms of any values, and those that consist of others.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local transforms, vision = D.transforms, D.vision

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

-- Results as MindSpore 2.10 gives them.
t.test("numbers of classes become rows", function()
  t.equal(transforms.OneHot(4)(ms.tensor(2, ms.int32)):tolist(), { 0, 0, 1, 0 })
  t.equal(tostring(transforms.OneHot(4)(ms.tensor(2, ms.int32)).dtype), "Int32")
  t.equal(transforms.OneHot(4)(ms.tensor({ 2, 1 })):tolist(), { { 0, 0, 1, 0 }, { 0, 1, 0, 0 } })
  local smooth = transforms.OneHot(4, 0.1)(ms.tensor(2)):tolist()
  for i, x in ipairs { 0.025, 0.025, 0.925, 0.025 } do assert(math.abs(smooth[i] - x) < 1e-6) end
  fails("OneHot: class 4 is out of range: num_classes is 4", transforms.OneHot(4), ms.tensor(4))
  fails("OneHot: numbers of classes must be integers, got float32", transforms.OneHot(4), ms.tensor(1.0))
end)
t.test("values are filled, masked, padded and joined", function()
  t.equal(transforms.Fill(3)(ms.tensor { 1, 2 }):tolist(), { 3, 3 })
  t.equal(transforms.Mask("GT", 2)(ms.tensor { 1, 2, 3 }):tolist(), { false, false, true })
  t.equal(transforms.Mask(transforms.Relational.LE, 2, ms.int32)(ms.tensor { 1, 2, 3 }):tolist(), { 1, 1, 0 })
  t.equal(transforms.PadEnd({ 2, 4 }, 7)(ms.tensor { { 1, 2, 3 }, { 3, 4, 5 }, { 5, 6, 7 } }):tolist(), { { 1, 2, 3, 7 }, { 3, 4, 5,
    7 } })
  t.equal(transforms.PadEnd({ -1, 2 })(ms.tensor { { 1, 2, 3 } }):tolist(), { { 1, 2 } })
  t.equal(transforms.Concatenate({ prepend = { 0 }, append = ms.tensor { 8, 9 } })(ms.tensor { 5, 6 }):tolist(), { 0, 5, 6, 8, 9 })
  t.equal(transforms.Concatenate(-1)(ms.ones { 2, 1 }, ms.zeros { 2, 2 }):tolist(), { { 1.0, 0.0, 0.0 }, { 1.0, 0.0, 0.0 } })
  fails("Concatenate: the parts have shapes", transforms.Concatenate(0), ms.ones { 2, 1 }, ms.ones { 2, 2 })
  fails("PadEnd: pad_shape has 2 sizes for a tensor of shape %(1%)", transforms.PadEnd { 1, 2 }, ms.ones { 1 })
  fails("Mask: constant is a text", transforms.Mask("EQ", "a"), ms.ones { 1 })
end)
t.test("texts are filled, masked, padded and cut", function()
  t.equal(transforms.Fill "q" { "x", "y" }, { "q", "q" })
  t.equal(transforms.Mask("EQ", "a") { "a", "b" }:tolist(), { true, false })
  t.equal(transforms.PadEnd({ 4 }, "z") { "x", "y" }, { "x", "y", "z", "z" })
  t.equal(transforms.Slice { 0, 2 } { "a", "b", "c" }, { "a", "c" })
end)
t.test("parts of values", function()
  local x = ms.arange(12):reshape { 3, 4 }
  t.equal(transforms.Slice(ms.slice(0, 2))(x):tolist(), x["0:2"]:tolist())
  t.equal(transforms.Slice({ 0, 2 }, 1)(x):tolist(), { { 1 }, { 9 } })
  t.equal(transforms.Slice(":", "::-2")(x):tolist(), { { 3, 1 }, { 7, 5 }, { 11, 9 } })
  t.equal(transforms.Slice("-2:", "1:100")(x):tolist(), { { 5, 6, 7 }, { 9, 10, 11 } })
  fails("Slice: index 3 is out of range for an axis of size 3", transforms.Slice(3), x)
  fails("Slice: there are more slices than axes", transforms.Slice(0, 0, 0), x)
  fails("Slice: slice 1 has the step 0", transforms.Slice, "0:2:0")
end)
t.test("values without repetition, a value twice, another dtype", function()
  local values, places, counts = transforms.Unique()(ms.tensor { { 3, 1 }, { 1, 2 } })
  t.equal({ values:tolist(), places:tolist(), counts:tolist() }, { { 3, 1, 2 }, { 0, 1, 1, 2 }, { 1, 2, 1 } })
  local a, b = transforms.Duplicate()(ms.tensor { 1 })
  t.equal(a:tolist(), b:tolist())
  t.equal(tostring(transforms.TypeCast(ms.float16)(ms.tensor { 1 }).dtype), "Float16")
  fails("TypeCast: data_type must be a dtype", transforms.TypeCast, "float31")
end)

local double = transforms.Compose { vision.Rescale(2.0, 0.0) }
local more = vision.Rescale(1.0, 1.0)
local x = ms.ones { 2, 2 }

t.test("transforms consist of others", function()
  t.equal(transforms.Compose({ double, more })(x):tolist()[1][1], 3.0)
  t.equal(transforms.RandomApply({ double }, 0.0)(x):tolist()[1][1], 1.0)
  t.equal(transforms.RandomApply({ double }, 1.0)(x):tolist()[1][1], 2.0)
  ms.set_seed(1)
  local seen = {}
  for _ = 1, 200 do
    seen[transforms.RandomOrder({ double, more })(x):tolist()[1][1]] = true
    seen[transforms.RandomChoice({ double, transforms.Fill(9) })(x):tolist()[1][1]] = true
  end
  t.equal(seen, { [2.0] = true, [3.0] = true, [4.0] = true, [9.0] = true })
  fails("RandomApply: Duplicate makes 2 values of 1", transforms.RandomApply({ transforms.Duplicate() }), x)
  fails("Compose: transforms%[2%] must be a transform or a function, got 3", transforms.Compose, { double, 3 })
  fails("Compose: transforms must be a list of transforms, got an empty table", transforms.Compose, {})
end)
t.test("functions may be among them", function()
  local function third(value) return value * 3 end
  t.equal(transforms.Compose({ double, third })(x):tolist()[1][1], 6.0)
  t.equal(transforms.RandomApply({ third }, 0.0)(x):tolist()[1][1], 1.0)
  ms.set_seed(1)
  local seen = {}
  for _ = 1, 200 do
    seen[transforms.RandomOrder({ more, third })(x):tolist()[1][1]] = true
    seen[transforms.RandomChoice({ double, third })(x):tolist()[1][1]] = true
  end
  t.equal(seen, { [2.0] = true, [3.0] = true, [4.0] = true, [6.0] = true })
  local ds = D.NumpySlicesDataset({ 1.0, 2.0 }, { "x" }, { shuffle = false }):map(transforms.Compose { third }, "x")
  t.equal(ds:create_tuple_iterator()():item(), 3.0)
end)
t.test("a pipeline makes more columns and fewer", function()
  local ds = D.NumpySlicesDataset({ x = { 1, 2 } }, { shuffle = false }):map(transforms.Duplicate(), "x", { "a", "b" })
  ds = ds:map(transforms.Concatenate(), { "a", "b" }, { "c" }, { num_parallel_workers = 2 })
  fails("Concatenate: a tensor with axes is expected, got a scalar", function() ds:create_tuple_iterator()() end)
  local labels = D.NumpySlicesDataset({ y = { 1, 0 } }, { shuffle = false }):map(transforms.OneHot(2), "y"):batch(2)
  t.equal(labels:create_tuple_iterator()():tolist(), { { 0, 1 }, { 1, 0 } })
end)

t.finish()
