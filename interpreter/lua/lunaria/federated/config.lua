-- Configurations of federated jobs: YAML, JSON or a table, every key checked by its row in config_keys.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local keys = require "lunaria.federated.config_keys"

local fail, describe = arguments.fail, arguments.describe

local M = {}

local rows, names, sections = {}, {}, {}
for _, row in ipairs(keys) do
  rows[row[1]], names[#names + 1] = row, row[1]
  local section = row[1]:match "^(.*)%."
  while section do
    sections[section] = true
    section = section:match "^(.*)%."
  end
end

-- A configuration while it is read: where its keys stand.
local function place(source, path)
  local line = source.lines[path]
  return line and ("%s:%d"):format(source.name, line) or source.name
end

local function wrong(source, row, value)
  local kind, low, high = row[2], row[3], row[4]
  local what
  if kind == "choice" then
    what = table.concat(row[3], ", ")
  elseif kind == "boolean" then
    what = "true or false"
  elseif kind == "integer" then
    what = ("an integer from %d to %d"):format(low, high)
  elseif kind == "number" then
    local above = (row.open == "low" or row.open == "both") and "above" or "from"
    local to = row.open == "both" and "below" or "to"
    what = high == math.huge and ("a number %s %g"):format(above, low) or ("a number %s %g %s %g"):format(above, low, to, high)
  elseif kind == "levels" then
    what = "two rising numbers such as 5,15"
  elseif kind == "name" then
    what = "a text of 1 to 256 bytes"
  else
    what = kind == "strategy" and "a strategy's name, or a map with name and its options" or "a text"
  end
  fail(place(source, row[1]), ("%s must be %s, got %s"):format(row[1], what, describe(value)))
end

local function is_choice(row, value)
  for _, choice in ipairs(row[3]) do
    if value == choice then return true end
  end
  return false
end

local is = {}
function is.name(_, value) return type(value) == "string" and #value >= 1 and #value <= 256 and not value:find "%c" end
function is.text(_, value) return type(value) == "string" and not value:find "%z" end
function is.boolean(_, value) return type(value) == "boolean" end
function is.choice(row, value) return is_choice(row, value) end
function is.integer(row, value) return math.type(value) == "integer" and value >= row[3] and value <= row[4] end
function is.number(row, value)
  if not math.type(value) or value ~= value then return false end
  local low = (row.open == "low" or row.open == "both") and value > row[3] or row.open == nil and value >= row[3]
  local high = row.open == "both" and value < row[4] or row.open ~= "both" and value <= row[4]
  return low and high
end
function is.levels(_, value)
  if type(value) ~= "string" then return false end
  local low, high = value:match "^%s*(%d+%.?%d*)%s*,%s*(%d+%.?%d*)%s*$"
  return low ~= nil and tonumber(low) < tonumber(high)
end
function is.strategy(_, value)
  if type(value) == "string" then return true end
  return type(value) == "table" and (getmetatable(value) ~= nil or type(value.name) == "string" or arguments.is_callable(value.aggregate))
end

local function unknown(source, path, names_there)
  fail(place(source, path), ("%s: there is no such key"):format(path), arguments.nearest(path, names_there))
end

-- Puts the values of a table at their paths.
local function flatten(source, given, prefix, to)
  for key, value in pairs(given) do
    if type(key) ~= "string" then
      fail(place(source, prefix:sub(1, -2)), ("a key is a text, got %s"):format(describe(key)))
    end
    local path = prefix .. key
    if rows[path] then
      if value ~= ms.json.null then to[path] = value end
    elseif not sections[path] then
      local all = {}
      for _, name in ipairs(names) do all[#all + 1] = name end
      for name in pairs(sections) do all[#all + 1] = name end
      unknown(source, path, all)
    elseif type(value) == "table" and getmetatable(value) == nil then
      flatten(source, value, path .. ".", to)
    elseif value ~= ms.json.null then
      fail(place(source, path), ("%s must be a map of keys, got %s"):format(path, describe(value)))
    end
  end
end

local function put(config, path, value)
  local at = config
  for part in path:gmatch "([^.]+)%." do
    at[part] = at[part] or {}
    at = at[part]
  end
  at[path:match "[^.]+$"] = value
end

local function refuse(source, path, message, hint) fail(place(source, path), message, hint) end

-- What single keys cannot say.
local function check_together(source, config)
  local encrypt = config.encrypt
  if encrypt.encrypt_train_type then encrypt.encrypt_type = encrypt.encrypt_train_type end
  local kind = encrypt.encrypt_type
  local masked = kind == "PW_ENCRYPT" or kind == "STABLE_PW_ENCRYPT"
  if config.compression.upload_compress_type ~= "NO_COMPRESS" and (masked or kind == "SIGNDS") then
    local path = "compression.upload_compress_type"
    refuse(source, path, ("%s must be NO_COMPRESS with encrypt_type %s: sums of what is hidden cannot be decompressed"):format(path, kind))
  end
  if config.round.asynchronous and masked then
    local message = "an asynchronous job cannot have encrypt_type %s: its updates do not belong together"
    refuse(source, "round.asynchronous", message:format(kind))
  end
  if kind == "PW_ENCRYPT" and encrypt.pw_encrypt.reconstruct_secrets_threshold > config.round.start_fl_job_threshold then
    refuse(source, "encrypt.pw_encrypt.reconstruct_secrets_threshold",
      ("encrypt.pw_encrypt.reconstruct_secrets_threshold is %d, and round.start_fl_job_threshold %d: so many clients are never there")
        :format(encrypt.pw_encrypt.reconstruct_secrets_threshold, config.round.start_fl_job_threshold))
  end
  if config.enable_ssl and not config.ssl.server_cert_path then
    refuse(source, "enable_ssl", "ssl.server_cert_path is missing: enable_ssl needs the server's certificate")
  end
  local verify = config.client_verify
  if verify.pki_verify and not verify.root_first_ca_path then
    refuse(source, "client_verify.pki_verify", "client_verify.root_first_ca_path is missing: pki_verify needs an authority")
  end
  if config.client.http_url_prefix ~= "" and not config.client.http_url_prefix:find "^/[%w_.%-/]+$" then
    refuse(source, "client.http_url_prefix", "client.http_url_prefix must be such as /lenet, got '" .. config.client.http_url_prefix .. "'")
  end
end

--- A configuration from a table: all keys checked, with their defaults. name: for messages; lines: of keys, by path.
function M.checked(given, name, lines)
  local source = { name = name, lines = lines or {} }
  if type(given) ~= "table" or getmetatable(given) ~= nil then
    fail(name, "a configuration is a map of keys such as fl_name, got " .. describe(given))
  end
  local values, config = {}, {}
  flatten(source, given, "", values)
  for _, row in ipairs(keys) do
    local path, value = row[1], values[row[1]]
    if value == nil then
      if row.required then fail(name, ("%s is missing: %s"):format(path, row.doc)) end
      value = row.default
    elseif not is[row[2]](row, value) then
      wrong(source, row, value)
    end
    -- Sections are there, whatever is in them.
    if path:find "%." then put(config, path, value) end
    config[path] = not path:find "%." and value or nil
  end
  check_together(source, config)
  return config
end

local function contents(where, path)
  local file, problem = io.open(path, "rb")
  if not file then fail(where, problem) end
  local text = file:read "a"
  file:close()
  if not text then fail(where, path .. ": it cannot be read") end
  return text
end

--- The configuration of a federated job, checked: every key that there is, with its type and its range. source: the path of a YAML file,
--- of a JSON file (.json), or a table of keys as MindSpore's YAML has them. A key that is unknown, missing, of another type or out of its
--- range is an error with the line and the nearest key. Gives a table of sections, with the defaults of what was left out.
---     > path = os.tmpname()
---     > f = io.open(path, "w")
---     > _ = f:write("fl_name: lenet\nfl_iteration_nun: 3\n"), f:close()
---     > _, problem = pcall(ms.federated.read_config, path)
---     > problem:match ":2: [^\n]*" --> :2: fl_iteration_nun: there is no such key
function M.read(source)
  if type(source) ~= "string" then return M.checked(source, "config") end
  local text = contents("read_config", source)
  if source:find "%.json$" then return M.checked(ms.json.decode(text), source) end
  local json, lines = require("lunaria.federated_server_core").yaml(text, source)
  return M.checked(ms.json.decode(json), source, lines)
end

M.read_config = M.read

return M
