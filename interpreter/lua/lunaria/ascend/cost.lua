-- The duration of a task on one chip: the slowest of its cube work, its moves to the cube, its vector work and its way to
-- memory, and what starting it costs.
local M = {}

local function ceil(a, b) return (a + b - 1) // b end

--- Cube work of m x k by k x n on all cores, `count` times: cycles of the cube, of the two moves to it, and the cycles for
--- the way from the cache, by the best split of rows and columns.
function M.product(chip, m, k, n, count)
  local best
  k = ceil(k, 16) * 16
  local shared = math.min(count, chip.cores)
  local each = ceil(count, shared)
  local cores = math.max(1, chip.cores // shared)
  local rows = 1
  while rows <= cores do
    local columns = cores // rows
    local part_m, part_n = ceil(ceil(m, rows), 16) * 16, ceil(ceil(n, columns), 16) * 16
    local tile_m, tile_n = math.min(part_m, part_n <= 256 and 256 or 128), math.min(part_n, 256)
    while tile_m * tile_n * 8 > chip.l0c and tile_m > 16 do tile_m = tile_m // 2 end
    local cube = part_m * part_n * k / chip.cube_macs * each
    local to_a = part_m * k * 2 * ceil(part_n, tile_n) / chip.l1_to_l0a * each
    local to_b = part_n * k * 2 * ceil(part_m, tile_m) / chip.l1_to_l0b * each
    local cache = (part_m * k * 2 + part_n * k * 2 * math.max(1, ceil(part_m, tile_m) // 8)) / chip.gm_per_core * each
    local cycles = math.max(cube / chip.cube_efficiency, to_a, to_b, cache)
    if not best or cycles < best.cycles then best = { cycles = cycles, cube = cube, to_a = to_a, to_b = to_b, cache = cache } end
    rows = rows * 2
  end
  -- The results leave through the vector pipe: float32 out of L0C, float16 to UB.
  best.drain = m * n * count / chip.cores * (4 / chip.l0c_to_ub + 2 / chip.vector_bytes)
  return best
end

--- A copy between the memories of host and chip.
function M.transfer(c, bytes) return c.pcie_latency + bytes / (c.pcie_bytes_per_second * c.link_efficiency), "link" end

--- task: product (of M.product), hbm (bytes that go to the memory stacks), vector (bytes that the vector pipe goes through),
--- cpu (bytes on the AI CPUs). Seconds, and what bounds it.
function M.task(chip, task)
  if task.cpu then return chip.ai_cpu_seconds + task.cpu / chip.ai_cpu_bytes_per_second, "AI CPU" end
  local parts = { hbm = (task.hbm or 0) / (chip.hbm_bytes_per_second * chip.operator_hbm_efficiency) * chip.hertz,
    vector = (task.vector or 0) / chip.cores / chip.vector_bytes / chip.vector_efficiency }
  local p = task.product
  if p then
    parts.cube, parts.moves, parts.l2 = p.cube / chip.cube_efficiency, math.max(p.to_a, p.to_b), p.cache
    parts.vector = p.drain + (task.vector or 0) / chip.cores / chip.vector_bytes
  end
  local bound, most = "hbm", 0
  for name, cycles in pairs(parts) do
    if cycles > most then bound, most = name, cycles end
  end
  local head = chip.operator_head / chip.hertz + chip.task_seconds
  local seconds = most / chip.hertz
  if seconds < head then bound = "launch" end
  return seconds + head, bound
end

return M
