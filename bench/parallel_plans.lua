-- Plans for 1,024 and 4,096 devices of GPT-3 and PanGu-alpha: seconds from the name to the plan, and what was found.
--   lunaria bench/parallel_plans.lua
-- Wanted on an idle machine of two cores: below 3 seconds for 1,024 devices and 10 for 4,096, the first plan that fits within one.
local ms = require "lunaria"

for _, row in ipairs { { "gpt3", 1024, 1536 }, { "gpt3", 4096, 1536 }, { "pangu_alpha", 1024, 1024 }, { "pangu_alpha", 4096, 1024 } } do
  local name, devices, batch = table.unpack(row)
  local start = ms.clock()
  local plan = ms.ascend.estimate(name, { devices = devices, global_batch = batch, mesh = "auto" })
  local n = plan:numbers()
  print(("%-12s %5d devices: %.2f s, first after %.2f s of search; %d tried, %d fit; step %.2f s, %.1f %% of the peak, %.1f GB: %s"):format(
    name, devices, (ms.clock() - start) / 1e9, plan.first_seconds, n.tried, n.fitting, n.step_ms / 1e3, 100 * n.utilisation,
    n.memory / 1e9, n.plan))
end
