-- Every block of code in README.md does what stands there: transcripts at a real prompt, with their output, programs as they are, in both
-- modes. The blocks of the shell are lines of ./dev, which have to be known to it, or the installation, which tests/package runs.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local t = require "harness"

local program = arg[-1]

-- Lists of lines with the fields language and line.
local function blocks_of(path)
  local blocks, block, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    local fence = line:match "^```(.*)$"
    if block and fence then
      block = nil
    elseif fence then
      block = { line = number, language = fence }
      blocks[#blocks + 1] = block
    elseif block then
      block[#block + 1] = line
    end
  end
  return blocks
end

-- What the program prints, with the text as its last argument: a script, or what is typed where `prompt` is true.
local function run(text, prompt)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local pipe = io.popen(("timeout 120 %s %s %s 2>&1"):format(program, prompt and "-i <" or "", path))
  local output = pipe:read "a"
  local ended = pipe:close()
  os.remove(path)
  return output, ended
end

-- The inputs of a transcript with what stands below each.
local function rows_of(block)
  local rows = {}
  for _, line in ipairs(block) do
    local input, more = line:match "^> (.*)$", line:match "^%.%. (.*)$"
    if input then
      rows[#rows + 1] = { input = input, output = {} }
    elseif more then
      rows[#rows].input = rows[#rows].input .. "\n" .. more
    elseif not line:find "^%$ " then
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
  local rows, lines = rows_of(block), {}
  for i, row in ipairs(rows) do
    lines[#lines + 1] = ("local _ = io.stdout:write('#%d#'):flush()\n%s"):format(i, row.input)
  end
  lines[#lines + 1] = ("local _ = io.stdout:write('#%d#')\n"):format(#rows + 1)
  local text = run(table.concat(lines, "\n"), true)
  for i, row in ipairs(rows) do
    local got = text:match(("#%d#(.-)#%d#"):format(i, i + 1)) or error("no output: " .. text, 0)
    t.equal(plain(got), plain(table.concat(row.output, "\n")))
  end
end

local graph_line, first

local check = {
  console = check_transcript,
  lua = function(block)
    local text = table.concat(block, "\n")
    local output, ended = run(text:find("require", 1, true) and text or 'local ms = require "lunaria"\n' .. text)
    assert(ended, output)
    graph_line = text:find "^ms%.set_context" and text or graph_line
    first = first or { text = text, output = output }
  end,
  sh = function(block)
    for _, line in ipairs(block) do
      local command = line:match "^%./dev (%w+)"
      if command then assert(os.execute(("./dev help | grep -q '^\\./dev %s'"):format(command)), line) end
    end
  end,
}

local blocks = blocks_of "README.md"
for _, block in ipairs(blocks) do
  t.test("README.md:" .. block.line, function() (check[block.language] or error("what is " .. block.language))(block) end)
end
t.test("there are blocks", function() assert(#blocks >= 7, #blocks) end)
t.test("the first program learns, and gives the same bits in graph mode", function()
  assert(tonumber(first.output:match "([%d.]+)%s*$") > 0.95, first.output)
  t.equal(run((first.text:gsub("\n", function() return "\n" .. graph_line .. "\n" end, 1))), first.output)
end)
t.finish()
