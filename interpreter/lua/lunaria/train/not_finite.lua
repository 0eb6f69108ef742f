-- The message about a loss that is not finite: it names the first part of the network whose result is not, found by computing the batch
-- once more.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local function finite(value)
  if not ms.is_tensor(value) then return true end
  local name = tostring(value.dtype)
  if not name:find("Float", 1, true) then return true end
  return ms.ops.all(ms.ops.isfinite(value)):item()
end

-- The name of the first cell, in the order of computing, with results that are not finite and inputs that are.
local function first_cell(args, ...)
  local network = args.train_network.network or args.train_network
  local culprit
  local handles = {}
  for name, cell in args.network:cells_and_names() do
    if #cell:cells() == 0 then
      handles[#handles + 1] = cell:register_forward_hook(function(_, ...)
        for _, output in ipairs { ... } do
          if not culprit and not finite(output) then culprit = name end
        end
      end)
    end
  end
  pcall(network.construct, network, ...)
  for _, handle in ipairs(handles) do handle.remove() end
  return culprit
end

local function cause(args, ...)
  for i, input in ipairs { ... } do
    if not finite(input) then return ("input %d of the batch is not finite"):format(i) end
  end
  for name, parameter in args.network:parameters_and_names() do
    if not finite(parameter) then return ("the parameter %s is not finite"):format(name) end
  end
  local ok, culprit = pcall(first_cell, args, ...)
  if ok and culprit then return ("the first layer whose result is not finite is %s"):format(culprit) end
end

return function(args, value, ...)
  local because = cause(args, ...)
  arguments.fail("train", ("the loss is %s after step %d of epoch %d%s"):format(value, args.cur_step_in_epoch, args.cur_epoch_num,
    because and ": " .. because or ""),
    "a smaller learning rate, clipped gradients or a scaled loss may help; check_finite = false goes on all the same")
end
