-- The names that a table at the end of a call may hold, for completion. Classes of the library say so in their signature.
local ms = require "lunaria"

local known
local function functions()
  if known then return known end
  known = {
    [ms.set_context] = { "mode", "jit_level", "device_target", "device_id", "device_fallback", "deterministic",
      "runtime_num_threads", "float32_matmul_precision" },
    [ms.tensor] = { "dtype" }, [ms.Parameter] = { "name", "requires_grad" },
    [ms.grad] = { "grad_position", "weights", "has_aux" }, [ms.value_and_grad] = { "grad_position", "weights", "has_aux" },
    [ms.jit] = { "fullgraph", "limit", "max_steps", "jit_level", "backend" },
    [ms.export] = { "file_name", "file_format" }, [ms.display] = { "id", "metadata", "raw" },
    [ms.input] = { "password" }, [ms.clear_output] = { "wait" }, [ms.load] = { "names" },
    [ms.op] = { "name", "inputs", "expr", "doc", "output", "reduce", "sizes",
      "outside" }, [ms.data_sink] = { "sink_size", "collect" },
    [ms.json.encode] = { "indent", "allow_nan" },
    [ms.widgets.slider] = { "value", "min", "max", "step", "label" }, [ms.widgets.progress] = { "value", "min", "max", "label" },
    [ms.widgets.button] = { "label" },
  }
  return known
end

--- The names for a class or function; nothing where they are not known.
return function(value)
  local signature = type(value) == "table" and rawget(value, "_signature")
  if signature then return signature.names end
  return (type(value) == "function" or value == ms.display) and functions()[value] or nil
end
