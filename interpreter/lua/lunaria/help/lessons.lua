-- lunaria lessons COMMAND: the words of the command line. The lessons are part of the program, as lessons/NAME.
local registry = require "lunaria.registry"
local ms = require "lunaria"

local usage = [==[
usage: lunaria lessons                      list the lessons
       lunaria lessons copy [DIR]           write them and the scripts that belong to them to DIR (default: lunaria-lessons);
                                            a file that is there already stays as it is
       lunaria lessons open LESSON [DIR]    the same, and open one in JupyterLab: its number or its name

lunaria DIR/01-tensors.ipynb runs a lesson in the terminal.]==]

local function fail(message, hint, ...)
  error("lunaria lessons: " .. message:format(...) .. "\n  hint: " .. (hint or "lunaria lessons --help"), 0)
end

local lessons = {}

--- The lessons in their order: {name = "01-tensors", title = "Tensors", text = what the notebook holds}, for example
--- #lessons.all() > 0.
function lessons.all()
  local list = {}
  for _, file in ipairs(registry.files "lessons/") do
    local name = file:match "^lessons/(.+)%.ipynb$"
    if name then
      local text = registry.text(file)
      list[#list + 1] = { name = name, title = text:match '"# ([^"\\]+)', text = text }
    end
  end
  return list
end

local function exists(path)
  local file <close> = io.open(path, "rb")
  return file ~= nil
end

-- Writes what is not there yet, and tells how much that was.
local function copy(folder)
  folder = folder or "lunaria-lessons"
  ms.io.make_folder(folder)
  local written, kept = 0, 0
  for _, file in ipairs(registry.files "lessons/") do
    local path = folder .. "/" .. file:match "[^/]+$"
    if exists(path) then
      kept = kept + 1
    else
      local out <close> = io.open(path, "wb") or fail("%s cannot be written", "name a folder of yours", path)
      if not out:write(registry.text(file)) or not out:close() then fail("%s cannot be written", "is the disk full?", path) end
      written = written + 1
    end
  end
  local others = kept > 0 and (", %d were there"):format(kept) or ""
  print(("%s: %d file%s written%s"):format(folder, written, written == 1 and "" or "s", others))
  return folder
end

local function lesson_of(word)
  local names = {}
  for i, lesson in ipairs(lessons.all()) do
    if tonumber(word) == i or word:gsub("%.ipynb$", "") == lesson.name then return lesson end
    names[i] = lesson.name
  end
  local near = require("lunaria.nn.arguments").nearest(word, names)
  fail("there is no lesson '%s'", near or "lunaria lessons lists them", word)
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function open(word, folder)
  local lesson = lesson_of(word or fail "the lesson is missing")
  local path = copy(folder) .. "/" .. lesson.name .. ".ipynb"
  if not os.execute "command -v jupyter >/dev/null 2>&1" then
    fail("there is no JupyterLab on this machine", "python3 -m pip install jupyterlab; or run it in the terminal: lunaria " .. path)
  end
  -- The kernel that was installed with this program.
  local place = quoted(registry.program():gsub("/[^/]*/[^/]*$", "") .. "/share/jupyter")
  local fine, _, code = os.execute(("JUPYTER_PATH=%s${JUPYTER_PATH:+:$JUPYTER_PATH} jupyter lab %s"):format(place, quoted(path)))
  if not fine then os.exit(code) end
end

local function list()
  for _, lesson in ipairs(lessons.all()) do print(("%-22s %s"):format(lesson.name, lesson.title)) end
  print "\nlunaria lessons open LESSON opens one in JupyterLab, lunaria lessons copy writes them all to a folder."
end

return setmetatable(lessons, { __call = function(_, command, ...)
  if command == nil then return list() end
  if command == "--help" or command == "-h" then return print(usage) end
  local most = ({ copy = 1, open = 2 })[command] or fail("there is no command '%s'", nil, command)
  if select("#", ...) > most then fail("'%s' is one word too many", nil, (select(most + 1, ...))) end
  if (...) and (...):find "^%-" then fail("'%s' is not understood", nil, (...)) end
  if command == "copy" then copy(...) else open(...) end
end })
