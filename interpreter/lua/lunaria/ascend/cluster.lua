-- Several chips: collectives in the stages that HCCL publishes (within a group, between groups, between servers), and gradients that are
-- summed while the backward pass still runs.
local M = {}

--- Seconds of an all-reduce of so many bytes among n chips. In a group each chip sends every other one its part, by as many ports as
--- it has; the groups of a server then exchange their sums by the path that they share, and the servers theirs, each chip with its part
--- of the data; what came goes back the same way.
function M.all_reduce(c, n, bytes)
  if n <= 1 or bytes <= 0 then return 0 end
  local inside = math.min(n, c.server)
  local group = math.min(inside, c.group)
  local groups, servers = math.ceil(inside / group), math.ceil(n / c.server)
  local seconds = c.collective_seconds
  local pieces = math.max(1, math.ceil(bytes / c.collective_buffer))
  if group > 1 then
    local turns = math.ceil((group - 1) / c.hccs_ports)
    seconds = seconds + 2 * turns * (pieces * c.hccs_latency + bytes / group / (c.hccs_bytes_per_second * c.link_efficiency))
  end
  if groups > 1 then
    seconds = seconds + pieces * 2 * (groups - 1) * c.pcie_latency
      + 2 * (groups - 1) / groups * bytes / (c.pcie_bytes_per_second * c.link_efficiency)
  end
  if inside > 1 then seconds = seconds + (inside - 1) / inside * bytes / c.reduce_bytes_per_second end
  if servers > 1 then
    local part = bytes / inside
    seconds = seconds + pieces * 2 * (servers > 8 and math.ceil(math.log(servers, 2)) or servers - 1) * c.roce_latency
      + 2 * (servers - 1) / servers * part / (c.roce_bytes_per_second * c.link_efficiency)
  end
  return seconds
end

--- Gradients: { at =, bytes = } in the order in which the backward pass gives them. splits: after how many gradients a
--- bucket ends. Each bucket is summed once it is complete and the one before is done: rows { start =, stop =, bytes = }.
function M.sum_gradients(c, n, gradients, splits)
  local rows, from, free = {}, 1, 0
  local ends = {}
  for _, s in ipairs(splits) do ends[#ends + 1] = math.min(s, #gradients) end
  if ends[#ends] ~= #gradients then ends[#ends + 1] = #gradients end
  for _, stop in ipairs(ends) do
    if stop >= from then
      local bytes = 0
      for i = from, stop do bytes = bytes + gradients[i].bytes end
      local start = math.max(free, gradients[stop].at)
      free = start + M.all_reduce(c, n, bytes)
      rows[#rows + 1] = { start = start, stop = free, bytes = bytes }
      from = stop + 1
    end
  end
  return rows
end

--- Bytes that collectives take of each chip, whether they run or not: a buffer for what comes and one for what goes, for each
--- communicator.
function M.buffers(c, n) return n > 1 and 2 * c.collective_buffer * c.communicators or 0 end

--- After which gradients buckets end where the user says nothing: equal ones, and a small last one, since nothing hides it.
function M.default_splits(c, gradients)
  local total, sum, splits = 0, 0, {}
  for _, g in ipairs(gradients) do total = total + g.bytes end
  for i, g in ipairs(gradients) do
    sum = sum + g.bytes
    local share = #splits + 1 < c.buckets and (#splits + 1) / c.buckets or 1 - c.last_bucket
    if sum >= total * share and i < #gradients and #splits < c.buckets then splits[#splits + 1] = i end
  end
  return splits
end

--- How much slower the slowest of n chips is.
function M.jitter(c, n) return 1 + c.step_jitter * math.log(math.max(n, 1), 2) / math.log(c.server, 2) end

return M
