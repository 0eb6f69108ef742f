-- Trainings that go on with more or fewer ranks than they had end with the bits of one that was not stopped.
-- Eager mode only: files are the same in both.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local here = os.getenv "PWD"
local program = arg[-1]:find "^/" and arg[-1] or here .. "/" .. arg[-1]
local folder = os.tmpname()
os.remove(folder)
ms.io.make_folder(folder)
local function at(name) return folder .. "/" .. name end

local function text_of(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

local function run(ranks, ...)
  local launch = ranks ~= 1 and ("launch -n %s "):format(ranks) or ""
  local pipe = io.popen(("TMPDIR='%s' timeout -k 5 100 '%s' %s'%s/tests/lua/parallel/resume_script.lua' %s 2>&1"):format(folder, program,
    launch, here, table.concat({ ... }, " ")))
  local text = pipe:read "a"
  assert(pipe:close(), text)
  return text
end

run(1, "none", at "plain", 0)
local expected = text_of(at "plain")
assert(#expected > 1000)

for i, chain in ipairs { { 2, 4, 1 }, { 1, 8, 2 } } do
  t.test("a training on " .. table.concat(chain, ", then ") .. " ranks", function()
    local backups = at("backups" .. i)
    for k, ranks in ipairs(chain) do run(ranks, backups, at("out" .. i), k < #chain and 6 * k + 1 or 0) end
    t.equal(text_of(at("out" .. i)), expected)
  end)
end

t.test("a rank that fails, and all of them started again", function()
  local text = run("2 --restarts 1", at "restarted", at "out", "fail")
  t.equal(text_of(at "out"), expected)
  assert(text:find("as asked", 1, true), text)
  for _, name in ipairs(ms.io.list_folder(at "restarted")) do assert(name:find "^step%-%d+$", name) end
  local job = text:match "lunaria ranks (%w+)"
  if job then os.execute("rm -f /dev/shm/lunaria-" .. job .. "-*") end
end)

os.execute(("rm -r '%s'"):format(folder))
t.finish()
