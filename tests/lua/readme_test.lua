-- Every block of code in README.md does what stands there: transcripts at a real prompt, with their output, programs as they are.
-- Blocks of the shell and drawings are known by how they begin.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local t = require "harness"

local program = arg[-1]
local not_lua = { "^%./dev ", "^lunaria ", "^jupyter ", "^core  <%-%-" }

-- What a block uses and the text around it leaves to the reader.
local setup = [[
nn, ops = ms.nn, ms.ops
images, labels = ms.randn(8, 784), ms.zeros({ 8 }, ms.int64)
x = ms.tensor{{1.0, 2.0}, {3.0, 4.0}}
batches = { { x }, { x * 2 } }
train_step = function(batch) return batch:sum() end
]]

local function blocks_of(path)
  local blocks, block, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    local code = line:match "^    (.*)$"
    if code then
      if not block then
        block = { line = number }
        blocks[#blocks + 1] = block
      end
      block[#block + 1] = code
    elseif line:find "%S" then
      block = nil
    elseif block then
      block[#block + 1] = ""
    end
  end
  return blocks
end

local function run(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local pipe = io.popen(("timeout 120 %s -i < %s 2>&1"):format(program, path))
  local output = pipe:read "a"
  pipe:close()
  os.remove(path)
  return output
end

-- The inputs of a transcript with what stands below each.
local function rows_of(block)
  local rows = {}
  for _, line in ipairs(block) do
    local input, more = line:match "^> (.*)$", line:match "^%.%. (.*)$"
    if input then
      rows[#rows + 1] = { input = input:gsub("%s+%-%-.*$", ""), output = {} }
    elseif more then
      rows[#rows].input = rows[#rows].input .. "\n" .. more
    elseif not line:find "^%$ " and #rows > 0 then
      table.insert(rows[#rows].output, line)
    end
  end
  return rows
end

-- Cells are counted otherwise here, and spaces between values may be tabs.
local function plain(text)
  return (text:gsub("In%[%d+%]", "In[n]"):gsub("[ \t]+", " "):gsub(" ?\n ?", "\n"):gsub("^%s+", ""):gsub("%s+$", ""))
end

local function check_transcript(block)
  local rows, lines = rows_of(block), { setup }
  for i, row in ipairs(rows) do
    lines[#lines + 1] = ("local _ = io.stdout:write('#%d#'):flush()\n%s"):format(i, row.input)
  end
  lines[#lines + 1] = ("local _ = io.stdout:write('#%d#')\n"):format(#rows + 1)
  local text = run(table.concat(lines, "\n"))
  for i, row in ipairs(rows) do
    local got = text:match(("#%d#(.-)#%d#"):format(i, i + 1)) or error("no output: " .. text, 0)
    local expected = table.concat(row.output, "\n")
    if expected:find "%S" then
      t.equal(plain(got), plain(expected))
    elseif got:find "In%[%d+%]:%d+: " then
      error(row.input .. " gives " .. got, 0)
    end
  end
end

local count = 0
for _, block in ipairs(blocks_of "README.md") do
  t.test("README.md:" .. block.line, function()
    for _, pattern in ipairs(not_lua) do
      if block[1]:find(pattern) then return end
    end
    count = count + 1
    if block[1]:find "^> " or block[1]:find "^%$ build/lunaria" then return check_transcript(block) end
    local text = run(setup .. "do\n" .. table.concat(block, "\n") .. "\nend\nlocal _ = print('done')\n")
    assert(text:find("done", 1, true) and not text:find("In%[%d+%]:%d+: "), text)
  end)
end
t.test("there are blocks", function() assert(count >= 5, count) end)
t.finish()
