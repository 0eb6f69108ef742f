-- Secure sums with given secrets and dropouts: masks and sums. Secrets are the key stream (AES-256 in counter mode) under
-- the SHA-256 of a text of each client; 64-bit numbers stand as hexadecimal texts.
local ms = require "lunaria"
local secure = ms.federated.secure

local function numbers(list)
  local values = {}
  for i, text in ipairs(list) do values[i] = math.tointeger(tonumber("0x" .. text)) end
  return ms.tensor(values, ms.int64)
end

local function bytes(hex) return (hex:gsub("..", function(pair) return string.char(tonumber(pair, 16)) end)) end

-- A number of the ring as it is given: from -2^(bits - 1) on.
local function in_ring(value, bits)
  if bits == 64 then return value end
  value = value & ((1 << bits) - 1)
  return value >= 1 << (bits - 1) and value - (1 << bits) or value
end

return function(section, case)
  for i, row in ipairs(section.cases) do
    case(("secure_sums/%d"):format(i), function()
      local vectors, secrets = {}, {}
      for id, client in pairs(row.clients) do vectors[id], secrets[id] = numbers(client.vector), client.secret end
      local sum, ids, updates = secure.sum(vectors, { threshold = row.threshold, neighbours = row.neighbours, bits = row.bits,
        job = row.job, iteration = row.iteration, dropouts = row.dropouts, secrets = secrets })
      if table.concat(ids, " ") ~= table.concat(row.survivors, " ") then return "survivors are " .. table.concat(ids, " ") end
      local expected = numbers(row.sum):tolist()
      for j, value in ipairs(sum:tolist()) do
        if value ~= in_ring(expected[j], row.bits) then return ("element %d of the sum is %d"):format(j - 1, value) end
      end
      for id, hex in pairs(row.updates) do
        -- The first 32 bytes are a digest.
        if updates[id]:sub(33) ~= bytes(hex) then return "the masked update of " .. id .. " differs" end
      end
    end)
  end
end
