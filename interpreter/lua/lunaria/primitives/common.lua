-- Checks and conversions of arguments that rows of several files here share.
local ms = require "lunaria"

local ops = ms.ops
local common = {}

-- A number, or the one in a tensor.
function common.number(x) return ms.is_tensor(x) and x:item() or x end

-- A table of numbers, or those in a tensor.
function common.numbers(x) return ms.is_tensor(x) and x:tolist() or x end

-- A parameter's new value, which MindSpore writes into it.
function common.updated(x, value) return ops.assign(x, ops.cast(value, x.dtype)) end

return common
