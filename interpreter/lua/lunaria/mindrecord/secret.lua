-- Keys of MindRecord files: ms.mindrecord.set_enc_key, set_enc_mode and set_dec_mode, and what readers and writers do by them.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe
local builtin = "AES-GCM"
local secret = {}
local key, encrypts, decrypts = nil, builtin, nil

-- How files say that a program's own function encrypted them.
local own_mark = "UDF-ENC"

local function check_mode(where, name, mode)
  if mode ~= builtin and not arguments.is_callable(mode) then
    fail(where, ("%s must be \"%s\" or a function, got %s"):format(name, builtin, describe(mode)))
  end
  return mode
end

--- The key of MindRecord files that are written and read from now on: a text enc_key of 16, 24 or 32 bytes, or nil for plain files.
--- Writers encrypt files and their indexes when they are committed; readers need the key of encrypted files, and read plain ones as ever.
---     > ms.mindrecord.set_enc_key("0123456789012345")
---     > w = ms.mindrecord.FileWriter("/tmp/lunaria_help7.mindrecord", 1, true)
---     > w:add_schema({ label = { type = "int32" } }) --> 0
---     > w:write_raw_data { { label = 3 } }
---     > w:commit() --> 1
---     > ms.mindrecord.FileReader("/tmp/lunaria_help7.mindrecord"):get_next()().label --> 3
---     > ms.mindrecord.set_enc_key(nil)
---     > (pcall(ms.mindrecord.FileReader, "/tmp/lunaria_help7.mindrecord")) --> false
---     > (os.remove("/tmp/lunaria_help7.mindrecord") and os.remove("/tmp/lunaria_help7.mindrecord.db")) --> true
function secret.set_enc_key(enc_key)
  key = arguments.check.optional_key("set_enc_key", "enc_key", enc_key)
end

--- How files are encrypted where there is a key: enc_mode is "AES-GCM", or a function that gets the plain file, its number of bytes, the
--- file that it writes the encrypted content to, and the key; ms.mindrecord.set_dec_mode then needs one that undoes it.
---     > ms.mindrecord.set_enc_mode("AES-GCM")
---     > (pcall(ms.mindrecord.set_enc_mode, "ROT13")) --> false
function secret.set_enc_mode(enc_mode)
  encrypts = check_mode("set_enc_mode", "enc_mode", enc_mode == nil and builtin or enc_mode)
end

--- How files are decrypted where there is a key: dec_mode is "AES-GCM", a function that gets the encrypted file, its number of bytes, the
--- file that it writes the plain content to, and the key, or nil for what ms.mindrecord.set_enc_mode says.
---     > ms.mindrecord.set_dec_mode("AES-GCM")
---     > ms.mindrecord.set_dec_mode(nil)
function secret.set_dec_mode(dec_mode)
  decrypts = dec_mode ~= nil and check_mode("set_dec_mode", "dec_mode", dec_mode) or nil
end

-- Encrypts a file that was written, where there is a key.
function secret.close(path)
  if not key then return end
  if encrypts == builtin then return data.mindrecord_encrypt(path, key) end
  local input <close> = assert(io.open(path, "rb"))
  local size = input:seek("end")
  input:seek("set")
  local draft <close> = ms.io.draft(path)
  do
    local output <close> = assert(io.open(draft.path, "wb"))
    encrypts(input, size, output, key)
    assert(output:write("\0\0\0\0", own_mark, "ENCRYPT"))
  end
  draft:commit()
end

-- The path of the plain content of a file; one that is made for it, which never gets a name, is added to the drafts.
local function plain(where, path, drafts)
  local mark = data.mindrecord_encryption(path)
  if not mark then return path end
  if not key then fail(where, ("%s is encrypted"):format(path), "ms.mindrecord.set_enc_key sets the key") end
  local mode = decrypts or encrypts
  if (mode == builtin) ~= (mark == builtin) then
    fail(where, ("%s is encrypted by %s"):format(path, mark == builtin and builtin or "a function of the program that wrote it"),
      "ms.mindrecord.set_dec_mode says how it is decrypted")
  end
  local draft = ms.io.draft()
  drafts[#drafts + 1] = draft
  if mode == builtin then
    data.mindrecord_decrypt(path, draft, key)
  else
    local input <close> = assert(io.open(path, "rb"))
    local size = input:seek("end") - 18
    input:seek("set")
    local output <close> = assert(io.open(draft.path, "wb"))
    mode(input, size, output, key)
  end
  return draft.path
end

-- What open(paths, whole) gives for the plain content of the files; `whole`: of all that belong to the first one.
function secret.with_plain(where, paths, whole, open)
  local drafts <close> = setmetatable({}, { __close = function(list) for _, draft in ipairs(list) do local _ <close> = draft end end })
  if not data.mindrecord_encryption(paths[1]) and whole then return open(paths, true) end
  local names = { plain(where, paths[1], drafts) }
  if whole then
    local folder, first = paths[1]:match("^(.*/)[^/]*$") or "", paths[1]:match("[^/]*$")
    local siblings = data.mindrecord_header(names[1]).siblings
    if #siblings > 1 then
      local all = {}
      for i, sibling in ipairs(siblings) do
        if sibling:find("/", 1, true) or sibling == ".." then
          fail(where, paths[1] .. ": the header names a shard outside of the folder")
        end
        all[i] = sibling == first and names[1] or plain(where, folder .. sibling, drafts)
      end
      names = all
    end
  else
    for i = 2, #paths do names[i] = plain(where, paths[i], drafts) end
  end
  -- What it gives has opened the files.
  local results = table.pack(open(names, false))
  return table.unpack(results, 1, results.n)
end

-- Appending would leave plain rows behind encrypted ones.
function secret.refuse(where, path)
  if not data.mindrecord_encryption(path) then return end
  fail(where, path .. " is encrypted: it cannot be appended to", "write its rows to a new file")
end

return secret
