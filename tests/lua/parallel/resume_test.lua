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

t.test("parameters that are divided among ranks", function()
  for _, level in ipairs { "level1", "level3" } do
    local name = at(level)
    run(2, "none", name .. "plain", 0, level)
    run(2, name .. "backups", name .. "stopped", 7, level)
    -- Each rank has its rows: of eleven the first has six.
    local parts = require "lunaria.parallel.checkpoint".open(name .. "backups"):tensor("0.weight").parts
    t.equal({ parts[1].place, parts[2].place }, { "[0:6, 0:6]", "[6:11, 0:6]" })
    run(2, name .. "backups", name .. "out", 0, level)
    local got, want = ms.load_checkpoint(name .. "out"), ms.load_checkpoint(name .. "plain")
    for key, value in pairs(want) do assert(ms.ops.equal(got[key], value):all():item(), key) end
    -- More ranks take the rows of these.
    run(3, name .. "backups", name .. "three", 0, level)
    got = ms.load_checkpoint(name .. "three")
    for key, value in pairs(want) do assert(ms.ops.equal(got[key], value):all():item(), key) end
  end
end)

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
