-- The table of lunaria/help/bits.lua in words.
local WHERE = { { "threads", "with other numbers of threads" }, { "graph", "compiled" }, { "avx2", "without AVX-512" },
  { "device", "on another device" } }

local lines = {}
for _, row in ipairs(require "lunaria.help.bits") do
  local places = {}
  for _, where in ipairs(WHERE) do
    if #(row[where[1]] or {}) > 0 then places[#places + 1] = where[2] .. " " .. table.concat(row[where[1]], ", ") end
  end
  if #places > 0 then lines[#lines + 1] = row.what .. " (" .. table.concat(places, "; ") .. ")" end
end
return table.concat(lines, "; ") .. ". A GPU adds up in an order of its own."
