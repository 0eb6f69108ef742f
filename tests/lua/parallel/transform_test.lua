-- Checkpoints of MindSpore's trainings on many ranks: strategy files that MindSpore wrote, and files of ranks that the test cuts.
-- Eager mode only: files are the same in both.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local strategies = require "lunaria.parallel.strategy_files"

local program = arg[-1]:find "^/" and arg[-1] or os.getenv "PWD" .. "/" .. arg[-1]
local folder = os.tmpname()
os.remove(folder)
if ms.io.kind "/dev/shm" == "folder" then folder = "/dev/shm/" .. folder:match "[^/]*$" end
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end

local function same(a, b) return tostring(a.shape) == tostring(b.shape) and a.dtype == b.dtype and ms.ops.equal(a, b):all():item() end

local function plain(matrix, map, step, size)
  return { dev_matrix = matrix, tensor_map = map, param_split_shape = {}, indices_offset = {}, field = 0, opt_weight_shard_step = step or 0,
    opt_weight_shard_size = size or 0 }
end

local function strategy_of(layouts, stage)
  local list, names = {}, {}
  for name in pairs(layouts) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { name = name, layout = layouts[name] } end
  return { items = { { name = "MatMul-op0", stage = stage or 0, strategies = { { 1, 1 }, { 1, 1 } } } }, layouts = list }
end

-- What the rank of a layout has, by the words of the format: coordinates of the rank in dev_matrix, and for each axis those that cut
-- it; then again along what is left.
local function cut(value, layout, rank)
  local matrix, count = layout.dev_matrix, #layout.dev_matrix
  local at_, left = {}, rank
  for i = count, 1, -1 do at_[i], left = left % matrix[i], left // matrix[i] end
  local used = {}
  for axis, entry in ipairs(layout.tensor_map) do
    for _, number in ipairs(type(entry) == "table" and entry or { entry }) do
      if number >= 0 then
        local i = count - number
        used[i] = true
        local size = value.shape[axis] // matrix[i]
        value = value:narrow(axis - 1, at_[i] * size, size)
      end
    end
  end
  if layout.opt_weight_shard_size ~= 0 then
    local index, total = 0, 1
    for i = 1, count do
      if not used[i] then index, total = index * matrix[i] + at_[i], total * matrix[i] end
    end
    local parts = layout.opt_weight_shard_size > 0 and layout.opt_weight_shard_size or total
    local size = value.shape[1] // parts
    value = value:narrow(0, index % parts * size, size)
  end
  return value:copy()
end

-- A training's files: values by name, layouts, and what every rank has beside them.
local function save_ranks(path, values, layouts, ending, stage_of)
  local _, first = next(layouts)
  for rank = 0, strategies.ranks_of(first) - 1 do
    ms.io.make_folder(("%s/rank_%d"):format(path, rank))
    local own = { global_step = ms.tensor { 7 } }
    for name, value in pairs(values) do
      if not stage_of or stage_of(name, rank) then own[name] = cut(value, layouts[name], rank) end
    end
    ms.save_checkpoint(own, ("%s/rank_%d/net-1_%d.%s"):format(path, rank, rank, ending or "ckpt"))
  end
end

t.test("strategy files of MindSpore are read and written", function()
  local path = "tests/data/parallel/strategy.ckpt"
  local strategy = strategies.read("test", path)
  t.equal(strategy.items, { { name = "MatMul-op0", stage = 0, strategies = { { 1, 4 }, { 4, 2 } } } })
  t.equal(#strategy.layouts, 3)
  t.equal(ms.build_searched_strategy(path).bias, plain({ 2, 4 }, { 0 }))
  t.equal(ms.build_searched_strategy(path).moments, plain({ 2, 4 }, { 0, -1 }, 4, 2))
  t.equal(ms.build_searched_strategy(path).nested.tensor_map, { { 1, 0 }, { -1 } })
  strategies.write(at "again.ckpt", strategy)
  t.equal(ms.io.read_text(at "again.ckpt"), ms.io.read_text(path))
  strategies.write(at "again.json", strategy)
  local again = strategies.read("test", at "again.json")
  t.equal(again.items, strategy.items)
  table.sort(strategy.layouts, function(a, b) return a.name < b.name end)
  t.equal(again.layouts, strategy.layouts)
  t.equal(ms.restore_group_info_list "tests/data/parallel/groups.pb", { 0, 4 })
end)

local values = { weight = ms.ops.randn { 16, 8 }, bias = ms.ops.randn { 16 }, kernel = ms.ops.randn { 8, 8, 4 }:astype(ms.bfloat16),
  mask = ms.ops.randn { 16, 8 }:gt(0) }
local all = {
  { weight = plain({ 8 }, { 0, -1 }), bias = plain({ 8 }, { 0 }), kernel = plain({ 8 }, { -1, 0, -1 }), mask = plain({ 8 }, { -1, -1 }) },
  { weight = plain({ 2, 4 }, { 0, 1 }), bias = plain({ 2, 4 }, { 1 }), kernel = plain({ 2, 2, 2 }, { 2, 0, 1 }),
    mask = plain({ 2, 4 }, { 0, -1 }, 4, 2) },
  { weight = plain({ 4 }, { -1, -1 }, 1, 4), bias = plain({ 4 }, { -1 }, 1, -1), kernel = plain({ 4 }, { 0, -1, -1 }),
    mask = plain({ 2, 2 }, { 0, 1 }) },
  { weight = plain({ 2, 2 }, { { 1, 0 }, { -1 } }), bias = plain({ 4 }, { -1 }), kernel = plain({ 2, 2 }, { -1, { 0, 1 }, -1 }),
    mask = plain({ 2, 2 }, { 1, 0 }) },
  { weight = plain({ 2 }, { -1, 0 }), bias = plain({ 2 }, { 0 }), kernel = plain({ 2 }, { -1, -1, 0 }), mask = plain({ 2 }, { 0, -1 }) },
}

t.test("checkpoints go from any strategy to any other", function()
  for i, layouts in ipairs(all) do
    local ending = i % 2 == 0 and "safetensors" or "ckpt"
    save_ranks(at("from" .. i), values, layouts, ending)
    strategies.write(at(("s%d.%s"):format(i, i % 2 == 0 and "json" or "ckpt")), strategy_of(layouts))
  end
  local function file(i) return at(("s%d.%s"):format(i, i % 2 == 0 and "json" or "ckpt")) end
  for i in ipairs(all) do
    for k, layouts in ipairs(all) do
      local target = at(("to%d%d"):format(i, k))
      ms.transform_checkpoints(at("from" .. i), target, "net", file(i), file(k), { output_format = k == 1 and "safetensors" or "ckpt" })
      local ranks = strategies.ranks_of(layouts.weight)
      t.equal(#ms.io.list_folder(target), ranks)
      for rank = 0, ranks - 1 do
        local got = ms.load_checkpoint(("%s/rank_%d/net%d.%s"):format(target, rank, rank, k == 1 and "safetensors" or "ckpt"))
        for name, value in pairs(values) do assert(same(got[name], cut(value, layouts[name], rank)), name) end
        t.equal(got.global_step:tolist(), { 7 })
      end
    end
    ms.transform_checkpoints(at("from" .. i), at("one" .. i), "net", file(i))
    local got = ms.load_checkpoint(at(("one%d/rank_0/net0.ckpt"):format(i)))
    for name, value in pairs(values) do assert(same(got[name], value), name) end
  end
end)

t.test("a rank needs the files of few others", function()
  local function list(rank, from, to)
    return ms.rank_list_for_transform(rank, from and { w = from }, to and { w = to })
  end
  t.equal(list(3), { 0 })
  t.equal(list(0, plain({ 4 }, { 0, -1 })), { 3, 2, 1, 0 })
  t.equal(list(0, plain({ 2, 4 }, { 0, -1 })), { 3, 2, 1, 0 })
  t.equal(list(1, plain({ 8 }, { 0, -1 }), plain({ 4 }, { 0, -1 })), { 3, 2 })
  t.equal(list(5, plain({ 2, 4 }, { -1, -1 }), plain({ 8 }, { 0, -1 })), { 5 })
  t.equal(list(1, plain({ 4 }, { 0, -1 }, 0, 0), plain({ 4 }, { 0, -1 })), { 1 })
  local from, to = { ["0-a"] = plain({ 2 }, { 0 }), ["1-b"] = plain({ 2 }, { 0 }) }, nil
  t.equal(ms.rank_list_for_transform(0, from, to), { 3, 2, 1, 0 })
  t.equal(ms.rank_list_for_transform(0, from, { ["0-a"] = plain({ 2 }, { 0 }), ["1-b"] = plain({ 2 }, { 0 }) }), { 0 })
  t.equal(ms.rank_list_for_transform(3, from, { ["0-a"] = plain({ 2 }, { 0 }), ["1-b"] = plain({ 2 }, { 0 }) }), { 3 })
  t.equal(ms.rank_list_for_convert(2, { w = plain({ 4 }, { 0, -1 }) }, { w = plain({ 4 }, { 0, -1 }) }), { 2 })
end)

t.test("stages of a pipeline are merged and taken apart", function()
  local stages = { { ["a.weight"] = plain({ 2 }, { 0, -1 }), ["shared"] = plain({ 2 }, { -1, -1 }) },
    { ["b.weight"] = plain({ 2 }, { -1, 0 }), ["shared"] = plain({ 2 }, { -1, -1 }) } }
  local own = { ["a.weight"] = ms.ops.randn { 4, 4 }, ["b.weight"] = ms.ops.randn { 4, 4 }, shared = ms.ops.randn { 2, 2 } }
  for _, ending in ipairs { "ckpt", "json" } do
    ms.io.make_folder(at("stages_" .. ending))
    for i, layouts in ipairs(stages) do
      strategies.write(at(("stages_%s/s%d.%s"):format(ending, i - 1, ending)), strategy_of(layouts, i - 1))
      strategies.write(at(("stages_%s/t%d.%s"):format(ending, i - 1, ending)), strategy_of(layouts, i - 1))
    end
    ms.merge_pipeline_strategys(at("stages_" .. ending), at("merged." .. ending))
    t.equal(#strategies.read("test", at("merged." .. ending)).layouts, 4)
    assert(ms.build_searched_strategy(at("merged." .. ending))["1-b.weight"])
  end
  for rank = 0, 3 do
    ms.io.make_folder(at("pipe/rank_" .. rank))
    local list = { global_step = ms.tensor { 9 } }
    for name, layout in pairs(stages[rank // 2 + 1]) do list[name] = cut(own[name], layout, rank % 2) end
    ms.save_checkpoint(list, at(("pipe/rank_%d/x.safetensors"):format(rank)))
  end
  ms.transform_checkpoints(at "pipe", at "pipe_one", "x", at "merged.ckpt")
  local got = ms.load_checkpoint(at "pipe_one/rank_0/x0.ckpt")
  for name, value in pairs(own) do assert(same(got[name], value), name) end
  -- And into a pipeline.
  ms.transform_checkpoints(at "pipe_one", at "pipe_again", "x", nil, at "merged.json")
  for rank = 0, 3 do
    local part = ms.load_checkpoint(at(("pipe_again/rank_%d/x%d.ckpt"):format(rank, rank)))
    t.equal(part["b.weight"] ~= nil, rank > 1)
    for name, layout in pairs(stages[rank // 2 + 1]) do assert(same(part[name], cut(own[name], layout, rank % 2)), name) end
  end
  -- One stage by itself gives parts of the ranks' files.
  ms.io.make_folder(at "half/rank_0")
  ms.io.make_folder(at "half/rank_1")
  for rank = 0, 1 do os.rename(at(("pipe/rank_%d/x.safetensors"):format(rank)), at(("half/rank_%d/x.safetensors"):format(rank))) end
  local whole = {}
  for _, layouts in ipairs(stages) do
    for name in pairs(layouts) do whole[name] = plain({ 2 }, { 0, -1 }) end
  end
  strategies.write(at "whole.ckpt", strategy_of(whole))
  ms.transform_checkpoints(at "half", at "parts", "x", at "stages_ckpt/s0.ckpt", at "whole.ckpt")
  t.equal(ms.io.list_folder(at "parts/rank_1"), { "x1_part0.ckpt" })
  assert(same(ms.load_checkpoint(at "parts/rank_1/x1_part0.ckpt")["a.weight"], own["a.weight"]:narrow(0, 2, 2)))
end)

t.test("slices are merged", function()
  local function slices(list)
    for i, value in ipairs(list) do list[i] = ms.Parameter(value, "w") end
    return list
  end
  local w = ms.ops.randn { 8, 6 }
  local merged = ms.merge_sliced_parameter(slices { w:narrow(0, 0, 5), w:narrow(0, 5, 3) })
  t.equal(merged.name, "w")
  assert(same(merged, w))
  local layout = plain({ 2, 2 }, { 0, 1 })
  local list = {}
  for rank = 0, 3 do list[rank + 1] = cut(w, layout, rank) end
  assert(same(ms.merge_sliced_parameter(slices(list), { w = layout }), w))
  -- Uneven slices of axis 0.
  local uneven = plain({ 2 }, { 0, -1 })
  uneven.param_split_shape = { 5, 3 }
  assert(same(ms.merge_sliced_parameter(slices { w:narrow(0, 0, 5), w:narrow(0, 5, 3) }, { w = uneven }), w))
  t.fails("slice 1 of w should have 3 rows, got 5", ms.merge_sliced_parameter, slices { w:narrow(0, 0, 5), w:narrow(0, 3, 5) },
    { w = uneven })
  -- Fields: rank r has the rows r, r + 1 ... of each of two fields.
  local fields = plain({ 2 }, { 0, -1 })
  fields.field = 2
  local rows = w:reshape { 2, 2, 2, 6 }
  local of_rank = {}
  for rank = 0, 1 do of_rank[rank + 1] = rows:narrow(1, rank, 1):reshape { 4, 6 } end
  assert(same(ms.merge_sliced_parameter(slices(of_rank), { w = fields }), w))
  t.fails("must have 4 slices", ms.merge_sliced_parameter, slices { w }, { w = layout })
  t.fails("must not be empty", ms.merge_sliced_parameter, {})
  t.fails("must be a parameter", ms.merge_sliced_parameter, { w })
  t.fails("the strategy has no layout of w", ms.merge_sliced_parameter, slices { w }, {})
end)

t.test("files of ranks are unified and loaded", function()
  local own = { weight = ms.ops.randn { 4, 8 }, bias = ms.ops.randn { 4 } }
  local layouts = { weight = plain({ 2, 2 }, { 0, 1 }), bias = plain({ 2, 2 }, { 0 }) }
  save_ranks(at "unify", own, layouts, "safetensors")
  strategies.write(at "unify.ckpt", strategy_of(layouts))
  ms.unified_safetensors(at "unify", at "unify.ckpt", at "united")
  t.equal(ms.io.list_folder(at "united"), { "hyper_param.safetensors", "param_name_map.json", "part0.safetensors" })
  local map = ms.json.decode(ms.io.read_text(at "united/param_name_map.json"))
  t.equal(map, { metadata = { total_size = 4 * 8 * 4 + 16 }, weight_map = { weight = "part0.safetensors", bias = "part0.safetensors" } })
  local net = ms.nn.Dense(8, 4)
  ms.load_distributed_checkpoint(net, { format = "safetensors", unified_safetensors_dir = at "united" })
  assert(same(net.weight, own.weight) and same(net.bias, own.bias))
  local other = { weight = plain({ 4 }, { 0, -1 }), bias = plain({ 4 }, { 0 }) }
  strategies.write(at "other.ckpt", strategy_of(other))
  ms.load_distributed_checkpoint(nil, { format = "safetensors", unified_safetensors_dir = at "united", dst_safetensors_dir = at "ranks",
    predict_strategy = at "other.ckpt" })
  for rank = 0, 3 do
    local got = ms.load_checkpoint(at(("ranks/rank_%d/net.safetensors"):format(rank)))
    for name, layout in pairs(other) do assert(same(got[name], cut(own[name], layout, rank)), name) end
    t.equal(got.global_step:tolist(), { 7 })
  end
  ms.unified_safetensors(at "unify", at "unify.ckpt", at "renamed", { choice_func = function(name) return name == "weight" and "w2" end })
  assert(same(ms.load_safetensors(at "renamed/part0.safetensors").w2, own.weight))
  -- .ckpt files, in the order of the ranks.
  save_ranks(at "loaded", own, layouts)
  local files = {}
  for rank = 0, 3 do files[rank + 1] = at(("loaded/rank_%d/net-1_%d.ckpt"):format(rank, rank)) end
  local again = ms.nn.Dense(8, 4)
  ms.load_distributed_checkpoint(again, files, nil, at "unify.ckpt")
  assert(same(again.weight, own.weight) and same(again.bias, own.bias))
  local part = ms.nn.Dense(8, 1)
  ms.load_distributed_checkpoint(part, files, { weight = { { 4 }, { 0, -1 }, {}, 0 }, bias = { { 4 }, { 0 }, {}, 0 } }, at "unify.ckpt")
  assert(same(part.weight, own.weight:narrow(0, 0, 1)))
  t.fails("must have a file of each of the 4 ranks, got 1", ms.load_distributed_checkpoint, again, { files[1] }, nil, at "unify.ckpt")
end)

t.test("wrong files are told", function()
  t.fails("No such file", ms.rank_list_for_transform, 0, at "none.ckpt")
  local file <close> = assert(io.open(at "wrong.ckpt", "wb"))
  file:write "\x0a\xff\xff"
  file:close()
  t.fails("is no strategy file", ms.build_searched_strategy, at "wrong.ckpt")
  t.fails("a tensor_map with 3, but a dev_matrix of 1 axes", ms.rank_list_for_transform, 0, { w = plain({ 2 }, { 3 }) })
  t.fails("which cannot be cut into 3 equal pieces", ms.transform_checkpoint_by_rank, 0, { [0] = at "from1/rank_0/net-1_0.ckpt" },
    at "x.ckpt", nil, { bias = plain({ 3 }, { 0 }) })
  os.remove(at "from1/rank_5/net-1_5.ckpt")
  t.fails("the checkpoint file of rank 5 is needed for that of rank 0, but it is missing", ms.transform_checkpoints, at "from1",
    at "x", "x", at "s1.ckpt")
  t.fails("both .ckpt and .safetensors", function()
    ms.save_checkpoint({ w = ms.ones { 1 } }, at "from1/rank_5/net.safetensors")
    ms.transform_checkpoints(at "from1", at "x", "x", at "s1.ckpt")
  end)
end)

t.test("the command lists, merges, splits, compares and verifies", function()
  local function run(line)
    local pipe = io.popen(("cd '%s' && '%s' checkpoint %s 2>&1"):format(folder, program, line))
    local text = pipe:read "a"
    local ok = pipe:close()
    return text, ok == true
  end
  local w = ms.ops.randn { 6, 4 }
  ms.save_checkpoint({ w = w, b = ms.ones { 3 }, note = "a text" }, at "whole.safetensors")
  t.equal(run "split whole.safetensors -o run --ranks 4 --step 3 --axis b=none", "run/step-00000003: 2 tensors for 4 ranks\n")
  t.equal((run "list run"):gsub("%d+%.%d KB", "N KB"), "step-00000003: complete, 4 ranks, 2 tensors, N KB\n")
  t.equal(run "list run --tensors", "b: Float32 (3,) in 1 file\nw: Float32[6@ranks, 4] on ranks=4 in 3 files\n")
  t.equal(run "verify run", "run/step-00000003: 2 tensors in 4 files are whole\n")
  t.equal(run "merge run -o merged.safetensors", "merged.safetensors: 2 tensors\n")
  t.equal({ run "diff whole.safetensors merged.safetensors" }, { "the same 2 tensors\n", true })
  t.equal(ms.load_checkpoint(at "merged.safetensors").note, "a text")
  t.equal(run "split run -o run --ranks 3 --step 4", "run/step-00000004: 2 tensors for 3 ranks\n")
  t.equal({ run "diff run merged.safetensors" }, { "the same 2 tensors\n", true })
  ms.save_checkpoint({ w = w + 1, b = ms.ones { 3 } }, at "other.safetensors")
  t.equal({ run "diff run other.safetensors --tolerance 2" }, { "the same 2 tensors\n", true })
  local text, ok = run "diff run other.safetensors"
  assert(text:find "w: differ by up to 1\n" or text:find "w: differ by up to 1%.?%d*\n", text)
  t.equal(ok, false)
  os.remove(at "run/step-00000003/rank-0001-of-0004.safetensors")
  text, ok = run "verify run"
  t.equal(ok, false)
  assert(text:find("rank-0001-of-0004.safetensors is not there\nw: the elements [2:4, 0:4] are in no file\n", 1, true), text)
  assert(text:find("step-00000004: 2 tensors in 3 files are whole", 1, true), text)
  assert((run "list none"):find "there is nothing at none")
  assert((run "merge loaded -o x.ckpt"):find "%-%-strategy FILE says how they were cut")
  t.equal(run "merge loaded -o all.ckpt --strategy unify.ckpt", "all.ckpt: 3 tensors\n")
  assert((run "nothing"):find "there are: diff, list, merge, split, verify")
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
