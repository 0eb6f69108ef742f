-- Meshes of ranks, whose calls give layouts of tensors: ms.mesh, and MindSpore's Layout, which is the same with the names of its
-- arguments.
local arguments = require "lunaria.nn.arguments"
local layouts = require "lunaria.layouts"

local M = {}

--- A mesh: ranks in a grid whose axes have names. A call of it gives a layout: for each axis of a tensor the axis of the mesh along which
--- it is cut, nil where it is not cut, or a list of several, major to minor. Along the axes that it does not name all ranks hold the same.
--- sizes: a list. names: a list of as many names. ranks: the rank at each place of the grid, row by row; 0, 1, 2 ... without them.
---     > mesh = ms.mesh({ 4, 2 }, { "dp", "tp" })
---     > mesh("dp", nil) --> [@dp, *]
---     > mesh({ "dp", "tp" }) --> [@dp.tp]
---     > mesh.size --> 8
function M.mesh(sizes, names, ranks)
  sizes, names, ranks = arguments.named("mesh", { "sizes", "names", "ranks" }, sizes, names, ranks)
  return layouts.mesh("mesh", sizes, names, ranks)
end

--- A mesh of devices by MindSpore's names, whose calls give layouts of tensors. device_matrix: the sizes of its axes. alias_name: their
--- names. rank_list: the rank at each place, row by row. A call has a name for each axis of the tensor, a list of names, or "None".
---     > layout = ms.Layout({ 4, 2 }, { "dp", "mp" })
---     > layout("dp", "None") --> [@dp, *]
---     > layout("dp", "None"):to_dict().tensor_map[1] --> 1
function M.Layout(device_matrix, alias_name, rank_list)
  device_matrix, alias_name, rank_list =
    arguments.named("Layout", { "device_matrix", "alias_name", "rank_list" }, device_matrix, alias_name, rank_list)
  for _, name in ipairs(type(alias_name) == "table" and alias_name or {}) do
    if name == "interleaved_parallel" then
      arguments.fail("Layout", "the axis interleaved_parallel, which divides the work of one device in two, is not supported",
        "leave it out: nothing else changes")
    elseif name == "None" then
      arguments.fail("Layout", "'None' cannot name an axis: a call means by it that an axis is not cut")
    end
  end
  return layouts.mesh("Layout", device_matrix, alias_name, rank_list)
end

return M
