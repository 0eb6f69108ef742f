-- Keys, and the noise that privacy rests on, stay out of core dumps.
local secrets = {}

local is_kept = false

--- Called before a secret is held: from then on the system leaves the process's own memory out of dumps of it (Linux, core(5)). Where
--- there is no such setting nothing happens.
function secrets.keep()
  if is_kept then return end
  is_kept = true
  local filter = io.open("/proc/self/coredump_filter", "w")
  if not filter then return end
  -- Headers of libraries alone.
  filter:write "0x10"
  filter:close()
end

return secrets
