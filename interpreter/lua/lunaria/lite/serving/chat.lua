-- lunaria chat MODEL: a conversation with a language model in the terminal.
local ms = require "lunaria"
local core = require "lunaria.serving"
local models = require "lunaria.lite.serving.models"

local usage = [==[
usage: lunaria chat MODEL [options]       talk with a language model: the folder of one, or a GGUF file
  --system TEXT        what the model is told first
  --temperature T      default 0.7; 0: always the most probable token
  --top-k K, --top-p P, --min-p P, --repetition-penalty R, --seed S
  --max-tokens N       the longest answer (default 512)
  --length N           places of the caches (default: what the model was made for)
  --quantize F         weights in blocks: q8_0 or q4_0
  --raw                no chat template: each line is a text that the model goes on with
Ctrl-C ends an answer; Ctrl-D or /quit ends the conversation. /help lists what can be said to the program instead of the model.]==]

local help = [==[
/help               this text
/reset              forgets the conversation
/system TEXT        what the model is told first; forgets the conversation
/undo               forgets the last question and its answer
/again              another answer to the last question
/set NAME VALUE     changes temperature, top_k, top_p, min_p, repetition_penalty, seed or max_tokens; /set alone shows them
/history            shows the conversation
/save FILE          writes the conversation as JSON; /load FILE reads one
/quit               ends]==]

local function fail(message, ...) error("lunaria chat: " .. message:format(...) .. "\n  hint: lunaria chat --help", 0) end

-- The options of a generation and what they may be.
local settings = { temperature = "number", top_k = "integer", top_p = "number", min_p = "number", repetition_penalty = "number",
  seed = "integer", max_tokens = "integer" }
local function setting(name, text)
  local number = tonumber(text)
  if settings[name] == "integer" then number = math.tointeger(number) end
  local wanted = settings[name] == "integer" and "a whole number" or "a number"
  return number or nil, ("%s needs %s, got '%s'"):format(name, wanted, tostring(text))
end

local function parsed(words)
  local options, path = { temperature = 0.7, max_tokens = 512 }, nil
  local i = 1
  while i <= #words do
    local word = words[i]
    local name, value = word:match "^%-%-([%w%-]+)=(.*)$"
    name = (name or word:match "^%-%-([%w%-]+)$" or ""):gsub("%-", "_")
    if name == "help" then return nil end
    if name == "raw" then
      options.raw = true
    elseif settings[name] or name == "system" or name == "length" or name == "quantize" then
      if not value then
        i = i + 1
        value = words[i] or fail("option %s needs an argument", word)
      end
      if settings[name] then
        local number, problem = setting(name, value)
        value = number or fail("%s", problem)
      elseif name == "length" then
        value = math.tointeger(tonumber(value)) or fail("--length needs a whole number, got '%s'", value)
      end
      options[name] = value
    elseif word:find "^%-" or path then
      fail("'%s' is not understood", word)
    else
      path = word
    end
    i = i + 1
  end
  if not path then fail "the model is missing" end
  return options, path
end

local Chat = {}
Chat.__index = Chat

-- A conversation: `messages` with the system's first; `write(text)` shows a piece.
function Chat.new(model, options, write)
  local self = setmetatable({ model = model, options = options, messages = {}, write = write }, Chat)
  self:reset()
  return self
end

function Chat:reset(system)
  if system then self.options.system = system end
  self.messages = {}
  if self.options.system then self.messages[1] = { role = "system", content = self.options.system } end
end

function Chat:_prompt()
  local tokenizer = self.model.tokenizer
  if self.options.raw then return tokenizer:encode(self.messages[#self.messages].content) end
  local text = tokenizer:apply_chat_template(self.messages, { add_generation_prompt = true })
  return tokenizer:encode(text, { add_special_tokens = false })
end

-- Has the model answer the last message. A Ctrl-C ends the answer, which stays as far as it came.
function Chat:answer()
  local options, parts = self.options, {}
  local given = { stop = self.model.stops, stream = function(piece)
    parts[#parts + 1] = piece
    self.write(piece)
  end }
  for name in pairs(settings) do given[name] = options[name] end
  local fine, problem = core.attempt(function() return self.model:generate(self:_prompt(), given) end)
  self.write "\n"
  -- nil: a Ctrl-C ended it.
  if fine == false then
    self.write((tostring(problem):gsub("^lunaria:[^:]*:%d+: ", "")) .. "\n")
    table.remove(self.messages)
    return false
  end
  self.messages[#self.messages + 1] = { role = "assistant", content = table.concat(parts) }
  return true
end

local commands = {}
function commands.help(chat) chat.write(help .. "\n") end
function commands.reset(chat)
  chat:reset()
  chat.write "the conversation is forgotten\n"
end
function commands.system(chat, text)
  chat:reset(text ~= "" and text or nil)
  chat.write((chat.options.system or "the model is told nothing first") .. "\n")
end
function commands.undo(chat)
  local list = chat.messages
  if #list == 0 or list[#list].role == "system" then return chat.write "there is nothing to forget\n" end
  if list[#list].role == "assistant" then table.remove(list) end
  if #list > 0 and list[#list].role == "user" then table.remove(list) end
end
function commands.again(chat)
  local list = chat.messages
  if #list > 0 and list[#list].role == "assistant" then table.remove(list) end
  if #list == 0 or list[#list].role ~= "user" then return chat.write "there is no question\n" end
  chat:answer()
end
function commands.set(chat, text)
  local name, value = text:match "^(%S+)%s+(%S+)$"
  if not name then
    local names = {}
    for known in pairs(settings) do names[#names + 1] = known end
    table.sort(names)
    for _, known in ipairs(names) do chat.write(("%s %s\n"):format(known, tostring(chat.options[known] or "-"))) end
  elseif not settings[name] then
    chat.write(("there is no setting '%s'; /set shows them\n"):format(name))
  else
    local number, problem = setting(name, value)
    if number then chat.options[name] = number else chat.write(problem .. "\n") end
  end
end
function commands.history(chat)
  for _, message in ipairs(chat.messages) do chat.write(("%s: %s\n"):format(message.role, message.content)) end
end
function commands.save(chat, path)
  local file, problem = io.open(path, "w")
  if not file then return chat.write(problem .. "\n") end
  file:write(ms.json.encode(ms.json.array(chat.messages), { indent = 2 }), "\n")
  file:close()
end
function commands.load(chat, path)
  local file, problem = io.open(path, "r")
  if not file then return chat.write(problem .. "\n") end
  local fine, list = pcall(ms.json.decode, file:read "a")
  file:close()
  for _, message in ipairs(fine and type(list) == "table" and list or { false }) do
    fine = fine and type(message) == "table" and type(message.role) == "string" and type(message.content) == "string"
  end
  if not fine then return chat.write(path .. " has no list of messages\n") end
  chat.messages = list
end

-- One line of the user's. False where it ends the conversation.
function Chat:line(text)
  local command, rest = text:match "^/(%w+)%s*(.-)%s*$"
  if command == "quit" or command == "exit" then return false end
  if command then
    local run = commands[command]
    if run then run(self, rest) else self.write(("there is no /%s; /help lists what there is\n"):format(command)) end
  elseif text:find "%S" then
    self.messages[#self.messages + 1] = { role = "user", content = text }
    self:answer()
  end
  return true
end

local function run(...)
  local options, path = parsed { ... }
  if not options then return print(usage) end
  if not (ms.io.kind(path) == "folder" or path:find "%.gguf$") then
    fail("'%s' is neither the folder of a language model nor a GGUF file", path)
  end
  local model = models.open(path, { length = options.length, quantize = options.quantize })
  if not options.raw and not model.tokenizer.chat_template then fail("the model has no chat template: --raw has it go on with texts") end
  local function write(text)
    io.write(text)
    io.flush()
  end
  local chat = Chat.new(model, options, write)
  local is_shown = ms.is_terminal()
  if is_shown then write(("%s; /help, Ctrl-D ends\n"):format(model.name)) end
  local read_line = require "lunaria.read_line"
  while true do
    local text = read_line(is_shown and "> " or "")
    -- false: Ctrl-C at the prompt.
    if text == nil or text and not chat:line(text) then break end
  end
  if is_shown then write "\n" end
end

return setmetatable({ Chat = Chat }, { __call = function(_, ...) return run(...) end })
