-- Answers of language models in the form of OpenAI's interface: chat completions and completions, whole or as server-sent events.
local ms = require "lunaria"
local core = require "lunaria.serving"
local predict = require "lunaria.lite.serving.predict"

local refuse = predict.refuse
local completions = {}

local null = ms.json.null

-- What a field of a request must be; `same`: values that mean that it is not used.
local function integer(least) return function(x) return math.type(x) == "integer" and x >= least end end
local function between(least, most) return function(x) return type(x) == "number" and x >= least and x <= most end end
local function is_text(x) return type(x) == "string" end
local function is_flag(x) return type(x) == "boolean" end
local function is_table(x) return type(x) == "table" end
local function one_of(...)
  local same = { ... }
  return function(x)
    for _, value in ipairs(same) do
      if x == value then return true end
    end
    return false
  end
end
local function is_plain_text(x) return type(x) == "table" and x.type == "text" end
local common = {
  model = { is_text, "a text" }, max_tokens = { integer(1), "a positive integer" },
  temperature = { between(0, 10), "a number from 0 to 10" },
  top_p = { between(0, 1), "a number from 0 to 1" }, top_k = { integer(0), "an integer that is not negative" },
  min_p = { between(0, 1), "a number from 0 to 1" }, repetition_penalty = { between(0.01, 100), "a positive number" },
  seed = { integer(0), "an integer that is not negative" }, stream = { is_flag, "true or false" }, stop = { function(x)
    return is_text(x) or is_table(x)
  end, "a text or a list of texts" },
  user = { is_text, "a text" }, n = { one_of(1), "1: one answer is given" }, stream_options = { is_table, "a table" },
  presence_penalty = { one_of(0), "0: it is not supported" }, frequency_penalty = { one_of(0), "0: it is not supported" },
  logprobs = { one_of(false), "false: it is not supported" },
}
local function with(more)
  for name, row in pairs(common) do more[name] = row end
  return more
end
local fields = {
  ["chat.completion"] = with {
    messages = { is_table, "a list of messages" }, max_completion_tokens = common.max_tokens, tools = { is_table, "a list of tables" },
    response_format = { is_plain_text, '{"type": "text"}: others are not supported' },
    chat_template_kwargs = { is_table, "a table" },
  },
  text_completion = with { prompt = { is_text, "a text" }, echo = { one_of(false), "false: it is not supported" } },
}

local function read(form, body)
  local fine, given = pcall(ms.json.decode, body, { ordered = true })
  if not fine then refuse(400, "the content is no JSON: %s", (predict.sentence_of(given))) end
  if type(given) ~= "table" or #given > 0 then refuse(400, "the content must be an object") end
  local values = {}
  for name, value in pairs(given) do
    local row = fields[form][name]
    if not row then refuse(400, "the field '%s' is not supported", tostring(name)) end
    if value ~= null then
      if not row[1](value) then refuse(400, "%s must be %s", name, row[2]) end
      values[name] = value
    end
  end
  return values
end

local roles = { system = true, user = true, assistant = true, tool = true, developer = true }
local function check_messages(messages)
  if #messages == 0 then refuse(400, "messages must have a message") end
  for i, message in ipairs(messages) do
    if type(message) ~= "table" or not roles[message.role] then
      refuse(400, "messages[%d] must have a role: system, user, assistant or tool", i - 1)
    end
    local content = message.content
    -- Parts of text may come as a list.
    if type(content) == "table" then
      local parts = {}
      for k, part in ipairs(content) do
        if type(part) ~= "table" or part.type ~= "text" or type(part.text) ~= "string" then
          refuse(400, "messages[%d].content[%d] must be a text: others are not supported", i - 1, k - 1)
        end
        parts[k] = part.text
      end
      message.content = table.concat(parts)
    elseif not is_text(content) and not (content == null or content == nil) then
      refuse(400, "messages[%d].content must be a text", i - 1)
    end
  end
end

local function prompt_of(model, form, values)
  local tokenizer = model.tokenizer
  if form == "text_completion" then
    if not values.prompt then refuse(400, "the prompt is missing") end
    return tokenizer:encode(values.prompt)
  end
  if not values.messages then refuse(400, "the messages are missing") end
  check_messages(values.messages)
  if not tokenizer.chat_template then refuse(400, "the model has no chat template: ask for completions") end
  local fine, text = pcall(tokenizer.apply_chat_template, tokenizer, values.messages,
    { add_generation_prompt = true, tools = values.tools, values = values.chat_template_kwargs })
  if not fine then refuse(400, "%s", (predict.sentence_of(text))) end
  return tokenizer:encode(text, { add_special_tokens = false })
end

local function stops_of(model, stop)
  local stops = table.move(model.stops, 1, #model.stops, 1, {})
  for _, text in ipairs(type(stop) == "table" and stop or { stop }) do
    if not is_text(text) or text == "" then refuse(400, "stop must have texts that are not empty") end
    stops[#stops + 1] = text
  end
  return stops
end

local counter = 0
local function head_of(model, form)
  counter = counter + 1
  local prefix = form == "chat.completion" and "chatcmpl" or "cmpl"
  return { id = ("%s-%x-%d"):format(prefix, os.time(), counter), object = form, created = os.time(), model = model.name }
end

local function choice(form, text, reason)
  local one = { index = 0, finish_reason = reason or null }
  if form == "chat.completion" then one.message = { role = "assistant", content = text } else one.text = text end
  return one
end
local function delta(form, text, reason, is_first)
  local one = { index = 0, finish_reason = reason or null }
  if form == "chat.completion" then
    one.delta = { role = is_first and "assistant" or nil, content = text }
  else
    one.text = text or ""
  end
  return one
end

local function generate(model, values, ids, stream)
  local most = values.max_completion_tokens or values.max_tokens or 1024
  local new, text = model:generate(ids, {
    stop = stops_of(model, values.stop), max_tokens = most, temperature = values.temperature or 1.0,
    top_p = values.top_p, top_k = values.top_k, min_p = values.min_p, repetition_penalty = values.repetition_penalty,
    seed = values.seed, stream = stream,
  })
  local usage = { prompt_tokens = #ids, completion_tokens = #new, total_tokens = #ids + #new }
  return text, #new >= most and "length" or "stop", usage
end

local function streamed(exchange, model, form, values, ids)
  local head = head_of(model, form)
  if form == "chat.completion" then head.object = "chat.completion.chunk" end
  local is_first = true
  local function send(one, usage)
    head.choices, head.usage = ms.json.array { one }, usage
    is_first = false
    return core.add(exchange, "data: " .. ms.json.encode(head) .. "\n\n")
  end
  core.begin(exchange, "text/event-stream")
  local fine, problem, reason, usage = pcall(generate, model, values, ids, function(piece)
    if piece == "" then return end
    return send(delta(form, piece, nil, is_first))
  end)
  if fine then
    send(delta(form, nil, reason, is_first), values.stream_options and values.stream_options.include_usage and usage or nil)
  else
    core.add(exchange, "data: " .. ms.json.encode { error = { message = (predict.sentence_of(problem)), type = "server_error" } } .. "\n\n")
  end
  core.add(exchange, "data: [DONE]\n\n")
  core.finish(exchange)
end

--- Answers a request. form: "chat.completion" or "text_completion". Raises a table with `status` and `sentence` where it is not understood.
function completions.answer(exchange, model, form, body)
  local values = read(form, body)
  local ids = prompt_of(model, form, values)
  stops_of(model, values.stop)
  local most = model.decoder.config and model.decoder.config.length
  if #ids == 0 then refuse(400, "the prompt is empty") end
  if most and #ids > most then refuse(400, "the prompt has %d tokens, and the model takes %d", #ids, most) end
  if values.stream then return streamed(exchange, model, form, values, ids) end
  local text, reason, usage = generate(model, values, ids)
  local head = head_of(model, form)
  head.choices, head.usage = ms.json.array { choice(form, text, reason) }, usage
  core.answer(exchange, 200, "application/json", ms.json.encode(head))
end

return completions
