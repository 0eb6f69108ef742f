-- Meshes and layouts: what they are called with, what they print, MindSpore's names of them.
-- Eager mode only: nothing is computed.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local layouts = require "lunaria.layouts"

local mesh = ms.mesh({ 4, 2 }, { "dp", "tp" })

t.test("a mesh tells its axes and ranks", function()
  t.equal(tostring(mesh), "Mesh(dp=4, tp=2)")
  t.equal(table.concat(mesh.shape, " "), "4 2")
  t.equal(table.concat(mesh.names, " "), "dp tp")
  t.equal(table.concat(mesh.ranks, " "), "0 1 2 3 4 5 6 7")
  t.equal(mesh.size, 8)
  t.equal(mesh == ms.mesh { sizes = { 4, 2 }, names = { "dp", "tp" } }, true)
  t.equal(mesh == ms.mesh({ 2, 4 }, { "dp", "tp" }), false)
  t.equal(table.concat(ms.mesh({ 2 }, { "x" }, { 5, 3 }).ranks, " "), "5 3")
end)

t.test("a call of a mesh gives a layout", function()
  t.equal(tostring(mesh("dp", nil)), "[@dp, *]")
  t.equal(tostring(mesh(nil, { "tp", "dp" })), "[*, @tp.dp]")
  t.equal(mesh("dp", nil) == mesh("dp", "None"), true)
  t.equal(mesh("dp", nil) == mesh("tp", nil), false)
  t.equal(mesh("dp", nil).ndim, 2)
  t.equal(mesh("dp").mesh == mesh, true)
  t.equal(mesh({ "dp", "tp" }).axes[1][2], "tp")
end)

t.test("pieces may be unequal", function()
  local layout = mesh({ "dp", "tp" }, nil)
  local offsets, sizes = layout:piece(3, { 10, 3 })
  t.equal(tostring(offsets) .. tostring(sizes), "(5, 0)(1, 3)")
  offsets, sizes = layout:piece(7, { 10, 3 })
  t.equal(tostring(offsets) .. tostring(sizes), "(10, 0)(0, 3)")
end)

t.test("a layout reads from what it prints", function()
  for _, text in ipairs { "[8@dp, 4@tp]", "[8@dp.tp, 4]", "[3, 5] +dp.tp", "[7@tp] max dp", "[]", "[@dp, *]" } do
    t.equal(tostring(layouts.parse(mesh, text)), text)
  end
  local layout = layouts.parse(mesh, "[7@tp] max dp")
  t.equal(layout.merge .. " " .. table.concat(layout.partial, " "), "max dp")
  for _, text in ipairs { "8@dp", "[8@dp", "[8@dp]]", "[8@dp] *tp", "[8 dp]", "[-1@dp]", "[8@dp] none tp" } do
    t.fails({ "layout: '" .. text .. "' is no layout" }, layouts.parse, mesh, text)
  end
end)

t.test("MindSpore's Layout gives its tensor map", function()
  local layout = ms.Layout({ 4, 2 }, { "dp", "mp" }, { 7, 6, 5, 4, 3, 2, 1, 0 })
  local dict = layout("None", { "mp", "dp" }, "None"):to_dict()
  t.equal(table.concat(dict.device_matrix, " "), "4 2")
  t.equal(dict.tensor_map[1], -1)
  t.equal(table.concat(dict.tensor_map[2], " "), "0 1")
  t.equal(layout("dp", "mp"):to_dict().tensor_map[1], 1)
  t.equal(dict.rank_list[1], 7)
end)

t.test("mistakes are told", function()
  t.fails({ "layout: the mesh (dp=4, tp=2) has no axis 'sp'" }, mesh, "sp")
  t.fails({ "layout: axis dp of the mesh is used twice" }, mesh, "dp", "dp")
  t.fails({ "layout: the name of an axis of the mesh is expected, got the integer 0" }, mesh, 0)
  t.fails({ "mesh: axis dp of the mesh has size 0" }, ms.mesh, { 0 }, { "dp" })
  t.fails({ "mesh: the mesh has 2 sizes and 1 names" }, ms.mesh, { 2, 2 }, { "dp" })
  t.fails({ "mesh: two axes of the mesh are named 'dp'" }, ms.mesh, { 2, 2 }, { "dp", "dp" })
  t.fails({ "mesh: 'a.b' cannot name an axis of a mesh" }, ms.mesh, { 2 }, { "a.b" })
  t.fails({ "mesh: the mesh has more than 1048576 ranks" }, ms.mesh, { 1 << 40, 1 << 40 }, { "a", "b" })
  t.fails({ "mesh: the mesh has 2 places and the list has 1 ranks" }, ms.mesh, { 2 }, { "dp" }, { 0 })
  t.fails({ "mesh: rank 1 occurs twice in the mesh" }, ms.mesh, { 2 }, { "dp" }, { 1, 1 })
  t.fails({ "Layout: the axis interleaved_parallel" }, ms.Layout, { 2, 2 }, { "dp", "interleaved_parallel" })
  t.fails({ "Layout: 'None' cannot name an axis" }, ms.Layout, { 2 }, { "None" })
  t.fails({ "split: layout [@dp, *] is for 2 axes, and the tensor has 1" }, layouts.split, ms.ones { 4 }, mesh("dp", nil))
  t.fails({ "split: layout must be a layout, got the integer 3" }, layouts.split, ms.ones { 4 }, 3)
end)

t.test("a plan tells its steps and the memory that they take", function()
  local all, one = mesh(nil, nil), mesh("dp", nil)
  local plan = layouts.plan(one, mesh(nil, "dp"), { 1024, 1024 }, ms.float32)
  t.equal(plan.text, "all_to_all(dp_0.dp_1) 786432 B")
  t.equal(plan.total_bytes, 8 * 786432)
  t.equal(plan.least_total, plan.total_bytes)
  t.equal(#layouts.plan(one, one, { 64, 64 }, ms.float32).steps, 0)
  t.fails({ "redistribute: from Float32[64@dp, 64] to Float32[64, 64] takes 20480 bytes on one rank, and the limit is 18000" },
    layouts.plan, one, all, { 64, 64 }, ms.float32, { memory_limit = 18000 })
  local sums = layouts.parse(mesh, "[8, 8] +dp")
  t.equal(layouts.plan(sums, all, { 8, 8 }, ms.float32).steps[1].kind, "all_reduce")
  t.fails({ "redistribute: values of dtype bool have no sum" }, layouts.plan, sums, all, { 8, 8 }, ms.bool_)
end)

t.finish()
