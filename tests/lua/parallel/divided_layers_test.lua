-- Layers whose work is divided among ranks: the same numbers for one, two and four processes. Cost: 5 seconds.
-- Eager mode only: the programs set their mode.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local program = arg[-1]
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- The lines that each rank wrote: names and numbers.
local function run(ranks, mode)
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  local pipe = assert(io.popen(("timeout -k 5 120 %s launch -n %d tests/lua/parallel/divided_layers.lua %s %s 2>&1 </dev/null"):format(
    quoted(program), ranks, quoted(folder), mode)))
  local said = pipe:read "a"
  local good = pipe:close()
  local found = {}
  for rank = 0, ranks - 1 do
    local lines = {}
    local file = io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks))
    for line in file and file:lines() or function() end do
      local numbers = {}
      for word in line:gmatch " (%S+)" do numbers[#numbers + 1] = assert(tonumber(word)) end
      lines[#lines + 1] = { line:match "^%S+", numbers }
    end
    if file then file:close() end
    found[#found + 1] = lines
  end
  os.execute("rm -r " .. quoted(folder))
  if not good then error(("%d ranks failed:\n%s"):format(ranks, said), 0) end
  return found
end

local alone = run(1, "eager")[1]

t.test("one rank writes all that is compared", function() t.equal(#alone, 3 * 8 + 3 * 5 + 2 * 4) end)

for _, settings in ipairs { { 2, "eager" }, { 4, "eager" }, { 1, "graph" }, { 2, "graph" } } do
  local ranks, mode = table.unpack(settings)
  t.test(("experts and attention on %d ranks, %s, give what they give on one"):format(ranks, mode), function()
    for rank, lines in ipairs(run(ranks, mode)) do
      t.equal(#lines, #alone)
      for i, line in ipairs(lines) do
        local wanted = alone[i]
        t.equal(line[1], wanted[1])
        t.equal(#line[2], #wanted[2])
        for j, number in ipairs(line[2]) do
          if not (math.abs(number - wanted[2][j]) <= 2e-5 * (1 + math.abs(wanted[2][j]))) then
            error(("rank %d: %s (line %d) differs at %d: %g, expected %g"):format(rank - 1, line[1], i, j, number, wanted[2][j]), 0)
          end
        end
      end
    end
  end)
end

t.test("the memory of ring attention depends on a rank's piece alone", function()
  local function most(ranks)
    local bytes = 0
    for _, lines in ipairs(run(ranks, "memory")) do bytes = math.max(bytes, lines[1][2][1]) end
    return bytes
  end
  local few, many = most(3), most(8)
  assert(few > 4 * 128 * 128 * 4, few) -- the weights of one piece
  -- Keys and values of the five other pieces would be as many times `pair`; when the collector comes makes a difference, too.
  local pair = 2 * 4 * 128 * 16 * 4
  if many > few + 3 * pair then error(("%d bytes on 8 ranks, %d on 3"):format(many, few)) end
end)

t.test("a mixture of experts is the weighted sum of what a token's experts give", function()
  local ops = ms.ops
  local moe = ms.nn.MixtureOfExperts(6, 10, 4, { top_k = 2, capacity_factor = 4, activation = "relu" })
  local x = ops.randn { 7, 6 }
  local y, balance = moe(x)
  local probabilities = ops.softmax(x:matmul(moe.gate), -1)
  local weights, chosen = ops.topk(probabilities, 2)
  weights = weights / weights:sum(-1, true)
  local share = ops.zeros { 4 }
  for row = 0, 6 do
    local sum = ops.zeros { 6 }
    for choice = 0, 1 do
      local e = chosen[{ row, choice }]:item()
      if choice == 0 then share[e] = share[e] + 1 / 7 end
      local hidden = ops.relu(x[row]:matmul(moe.weight1[e]) + moe.bias1[e])
      sum = sum + (hidden:matmul(moe.weight2[e]) + moe.bias2[e]):reshape { 6 } * weights[{ row, choice }]
    end
    assert((sum - y[row]):abs():max():item() < 1e-5)
  end
  assert(math.abs(balance:item() - 4 * (share * probabilities:mean(0)):sum():item()) < 1e-5)
end)

t.test("a table's rows change as those of an optimizer that has all of it, and others stay", function()
  local rows_of = ms.nn.RowTable(6, 3, { optimizer = "adagrad", learning_rate = 0.1 })
  local before = rows_of.embedding_table:copy()
  local weight = ms.Parameter(before:copy(), "weight")
  local plain = ms.nn.Adagrad({ weight }, { learning_rate = 0.1, accum = 0.0 })
  for step = 1, 3 do
    local rows, places, ticket = rows_of:pull(ms.tensor { 1, 4, 1 })
    rows_of:push(ticket, ms.grad(function(x) return (ms.ops.gather(x, places, 0) ^ 2):sum() end)(rows))
    plain { ms.grad(function(x) return (ms.ops.gather(x, ms.tensor { 1, 4, 1 }, 0) ^ 2):sum() end)(weight:copy()) }
    local _ = step
  end
  local here = rows_of.embedding_table
  assert((here - weight)[{ 1 }]:abs():max():item() < 1e-5 and (here - weight)[{ 4 }]:abs():max():item() < 1e-5)
  for _, row in ipairs { 0, 2, 3, 5 } do assert((here - before)[{ row }]:abs():max():item() == 0) end
end)

t.test("arguments that make no sense are told", function()
  t.fails("top_k is 3, and there are 2 experts", function() ms.nn.MixtureOfExperts(6, 10, 2, { top_k = 3 }) end)
  t.fails("none", function() ms.nn.MixtureOfExperts(6, 10, 2, { group = "none" }) end)
  local rows = ms.nn.RowTable(5, 2)
  t.fails("indices are 1 to 5; the table has the rows 0 to 4", function() rows:pull(ms.tensor { 1, 5 }) end)
  local _, _, ticket = rows:pull(ms.tensor { 1, 1 })
  t.fails("gradient must have the shape (1, 2) of the rows, got (2, 2)", function() rows:push(ticket, ms.ones { 2, 2 }) end)
  t.fails("ticket must be", function() rows:push(nil, ms.ones { 2, 2 }) end)
  local q = ms.ones { 1, 2, 4, 8 }
  t.fails("query has shape (1, 2, 4, 8) and value (1, 2, 5, 8)", function() ms.nn.RingAttention()(q, q, ms.ones { 1, 2, 5, 8 }) end)
  t.fails("value must have the axes", function() ms.nn.RingAttention()(q, q, ms.ones { 5 }) end)
end)

t.finish()
