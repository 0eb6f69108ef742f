-- usage: lunaria words_check.lua FOLDER LINES.json     writes FOLDER/NAME.out for every FOLDER/NAME.json: what each line of the
-- list gives, as JSON that tests/peers/words_test.py compares.
local ms = require "lunaria"
local folder, path = arg[1], arg[2]

local function read(name)
  local file <close> = assert(io.open(name, "rb"))
  return file:read "a"
end

local lines = ms.json.decode(read(path))
for _, name in ipairs(ms.io.list_folder(folder)) do
  local stem = name:match "^(.*)%.json$"
  if stem then
    local tokenizer = ms.lite.Tokenizer(folder .. "/" .. name)
    local out <close> = assert(io.open(("%s/%s.out"):format(folder, stem), "wb"))
    for i, line in ipairs(lines) do
      -- Every seventh line is a pair with the line before.
      local pair = i % 7 == 0 and lines[i - 1] or nil
      local made = tokenizer:encoding(line, pair)
      local stream, parts = tokenizer:stream(), {}
      for k, id in ipairs(made.ids) do parts[k] = stream:next(id) end
      parts[#parts + 1] = stream:rest()
      out:write(ms.json.encode { ids = ms.json.array(made.ids), begins = ms.json.array(made.begins), ends = ms.json.array(made.ends),
        types = ms.json.array(made.type_ids), decoded = tokenizer:decode(made.ids), whole = tokenizer:decode(made.ids, false),
        streamed = table.concat(parts) }, "\n")
    end
  end
end
