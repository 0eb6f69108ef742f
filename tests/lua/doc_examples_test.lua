-- The examples in the comments of the library's Lua files are true. An example is a transcript after `---`: a line with
-- `> ` is run as at the prompt, the lines below it, or what stands behind ` --> ` (\n is a new line), are what it prints.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local own_names = require "support.own_names"
rawset(_G, "ms", ms)
rawset(_G, "display", ms.display)

local function run(line)
  local f = load("return " .. line, "=example") or assert(load(line, "=example"))
  local lines, print = {}, print
  local function add(...)
    local texts = table.pack(...)
    for i = 1, texts.n do texts[i] = tostring(texts[i]) end
    lines[#lines + 1] = table.concat(texts, "\t")
  end
  _G.print = add -- luacheck: ignore 122
  local results = table.pack(pcall(f))
  _G.print = print -- luacheck: ignore 122
  if not results[1] then error(results[2], 0) end
  if results.n > 1 and results[2] ~= nil then add(table.unpack(results, 2, results.n)) end
  return table.concat(lines, "\n")
end

local function check(line, expected, place)
  while expected[#expected] == "" do
    expected[#expected] = nil
  end
  local got = {}
  for text in (run(line) .. "\n"):gmatch("(.-)\n") do
    got[#got + 1] = text:match("^(.-)%s*$") -- no line of a file ends in spaces
  end
  if #expected > 0 then
    t.equal(table.concat(got, "\n"), table.concat(expected, "\n"))
  end
  return place
end

local examples = 0
local function test_file(path)
  local block, number = nil, 0
  local function close()
    local example = block
    block = nil
    if not example then
      return
    end
    examples = examples + 1
    t.test(("%s:%d"):format(path, example.number), function()
      local line, expected
      for _, text in ipairs(example) do
        local input = text:match("^> (.*)$")
        if input then
          if line then check(line, expected, path) end
          local code, result = input:match("^(.-) %-%-> (.*)$")
          line, expected = code or input, {}
          for shown in ((result or ""):gsub("\\n", "\n") .. (result and "\n" or "")):gmatch("(.-)\n") do
            expected[#expected + 1] = shown
          end
        else
          expected[#expected + 1] = text
        end
      end
      check(line, expected, path)
    end)
  end
  for text in io.lines(path) do
    number = number + 1
    local example = own_names(text):match("^%s*%-%-%-     (.*)$")
    if example and (block or example:find("^> ")) then
      block = block or { number = number }
      block[#block + 1] = example
    elseif not text:find("^%s*%-%-%-%s*$") then
      close()
    end
  end
  close()
end

for path in io.popen("find interpreter/lua -name '*.lua' | sort"):lines() do
  test_file(path)
end
t.test("there are examples", function()
  assert(examples >= 10, examples)
end)

t.finish()
