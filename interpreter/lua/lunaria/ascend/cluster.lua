-- Several chips: collectives in the stages that HCCL publishes (within a group, between groups, between servers), and gradients that are
-- summed while the backward pass still runs.
local M = {}

-- How many of a group's chips, each `stride` after the one before, are in a group of a server, in a server, and in how many servers.
local function joined(c, stride, size)
  local inside = math.max(1, math.min(size, c.server // stride))
  local group = math.max(1, math.min(inside, c.group // stride))
  return group, math.ceil(inside / group), inside, math.ceil(size / inside)
end

-- One of the two ways of an all-reduce: to the parts that each chip keeps, or back from them. In a group each chip sends every other one
-- its part, by as many ports as it has; the groups of a server then exchange their sums by the path that they share, and the servers
-- theirs, each chip with its part of the data.
local function one_way(c, stride, size, bytes)
  local group, groups, inside, servers = joined(c, stride, size)
  local pieces = math.max(1, math.ceil(bytes / c.collective_buffer))
  local seconds = 0
  if group > 1 then
    local turns = math.ceil((group - 1) / c.hccs_ports)
    seconds = turns * (pieces * c.hccs_latency + bytes / group / (c.hccs_bytes_per_second * c.link_efficiency))
  end
  if groups > 1 then
    seconds = seconds + pieces * (groups - 1) * c.pcie_latency
      + (groups - 1) / groups * bytes / (c.pcie_bytes_per_second * c.link_efficiency)
  end
  if servers > 1 then
    seconds = seconds + pieces * (servers > 8 and math.ceil(math.log(servers, 2)) or servers - 1) * c.roce_latency
      + (servers - 1) / servers * bytes / inside / (c.roce_bytes_per_second * c.link_efficiency)
  end
  return seconds, inside > 1 and (inside - 1) / inside * bytes / c.reduce_bytes_per_second or 0
end

local ways = {}
function ways.all_gather(c, stride, size, bytes) return (one_way(c, stride, size, bytes)) end
function ways.reduce_scatter(c, stride, size, bytes)
  local seconds, sums = one_way(c, stride, size, bytes)
  return seconds + sums
end
function ways.all_reduce(c, stride, size, bytes)
  local seconds, sums = one_way(c, stride, size, bytes)
  return 2 * seconds + sums
end

-- To the chip that is so far away.
local function send(c, stride, bytes)
  if stride < c.group then return c.hccs_latency + bytes / (c.hccs_bytes_per_second * c.link_efficiency) end
  if stride < c.server then return c.pcie_latency + bytes / (c.pcie_bytes_per_second * c.link_efficiency) end
  return c.roce_latency + bytes / (c.roce_bytes_per_second * c.link_efficiency)
end

-- Edges of pieces.
function ways.exchange(c, stride, _, bytes) return send(c, stride, bytes) end

-- Each chip sends every other one its part, by the ports of its group, the path of its server, the network.
function ways.all_to_all(c, stride, size, bytes)
  local group, _, inside, servers = joined(c, stride, size)
  local part, efficiency = bytes / size, c.link_efficiency
  local seconds = math.ceil((group - 1) / c.hccs_ports) * (c.hccs_latency + part / (c.hccs_bytes_per_second * efficiency))
  if inside > group then seconds = seconds + c.pcie_latency + (inside - group) * part / (c.pcie_bytes_per_second * efficiency) end
  if servers > 1 then seconds = seconds + c.roce_latency + (size - inside) * part / (c.roce_bytes_per_second * efficiency) end
  return seconds
end

--- Seconds of a collective: { op =, stride =, size =, bytes = }, op: all_reduce, all_gather, reduce_scatter, all_to_all or exchange (with a
--- neighbour).
--- The chips of its group are `stride` from one another; bytes are what a chip has before or after, whichever is more.
function M.seconds(c, o)
  if o.size <= 1 or o.bytes <= 0 then return 0 end
  return (o.op == "exchange" and 0 or c.collective_seconds) + ways[o.op](c, o.stride, o.size, o.bytes)
end

--- Seconds of so many bytes to the chip that is `stride` away.
function M.send(c, stride, bytes) return bytes > 0 and send(c, stride, bytes) or 0 end

--- Seconds of an all-reduce of so many bytes among n chips.
function M.all_reduce(c, n, bytes) return M.seconds(c, { op = "all_reduce", stride = 1, size = n, bytes = bytes }) end

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
