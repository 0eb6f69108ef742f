-- ms.image: shapes that are images, and the pixels that come out.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function pixels(x, options) return ms.image(x, options)._pixels:tolist() end

t.test("bytes are taken as they are, other numbers are spread", function()
  t.equal(pixels(ms.tensor({ { 0, 7 }, { 255, 1 } }, ms.uint8)), { { { 0 }, { 7 } }, { { 255 }, { 1 } } })
  t.equal(pixels { { 0, 0.5 }, { 1, 0.25 } }, { { { 0 }, { 128 } }, { { 255 }, { 64 } } })
  t.equal(pixels({ { -1, 3 } }, { low = 0, high = 2 }), { { { 0 }, { 255 } } })
  t.equal(pixels(ms.tensor({ { true, false } })), { { { 255 }, { 0 } } })
  t.equal(pixels(ms.tensor({ { 1.0, 0 / 0, math.huge, 3.0 } })), { { { 0 }, { 0 }, { 0 }, { 255 } } })
end)

t.test("channels stand last or first", function()
  local rgb = ops.arange(12):reshape({ 2, 2, 3 }):cast(ms.uint8)
  t.equal(ms.image(rgb)._pixels, rgb)
  t.equal(ms.image(rgb:transpose { 2, 0, 1 })._pixels, rgb)
  t.equal({ ms.image(ops.ones { 5, 7, 9 }).width, ms.image(ops.ones { 5, 7, 9 }).count }, { 3 * 9 + 2, 5 })
  t.equal(ms.image(ops.ones { 3, 4, 3 }, { layout = "CHW" }).width, 3)
end)

t.test("a batch becomes a grid", function()
  local i = ms.image(ops.zeros({ 3, 1, 2, 2 }, ms.uint8), { columns = 2 })
  t.equal({ i.width, i.height, i.count }, { 5, 5, 3 })
  local rows = i._pixels:tolist()
  t.equal({ rows[1][1][1], rows[1][3][1], rows[3][1][1], rows[5][5][1] }, { 0, 255, 255, 255 })
  t.equal(ms.image({ ops.zeros { 2, 2 }, ops.ones { 2, 2 } }).count, 2)
end)

t.test("it is drawn as PNG, as text and in colours", function()
  local i = ms.image(ops.rand { 6, 8 }, { cmap = "viridis" })
  for _, factor in ipairs { 1, 3 } do
    local png = i:png(factor)
    t.equal(png:sub(1, 8), "\x89PNG\r\n\x1a\n")
    t.equal({ (">I4I4"):unpack(png, 17) }, { 8 * factor, 6 * factor, 25 })
  end
  t.equal(#i:lines { width = 80, height = 12 }, 12)
  t.equal(#i:lines { width = 80, height = 12, color = true }, 12)
  assert(tostring(i):find("8 x 6", 1, true))
end)

t.test("mistakes are told", function()
  t.fails({ "image", "(3,)", "is no image" }, ms.image, ops.ones { 3 })
  t.fails({ "layout HWC" }, ms.image, ops.ones { 3, 3 }, { layout = "HWC" })
  t.fails({ "no pixels" }, ms.image, ops.ones { 0, 3 })
  t.fails({ "channels, got 5" }, ms.image, ops.ones { 2, 2, 5 }, { layout = "HWC" })
  t.fails({ "there is no option 'width'" }, ms.image, ops.ones { 2, 2 }, { width = 3 })
  t.fails({ "cmap" }, ms.image, ops.ones { 2, 2 }, { cmap = "jet" })
  t.fails({ "one shape" }, ms.image, { ops.ones { 2, 2 }, ops.ones { 2, 3 } })
  t.fails({ "a tensor is expected" }, ms.image, "x")
end)

t.finish()
