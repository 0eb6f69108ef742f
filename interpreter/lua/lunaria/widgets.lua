-- ms.widgets: controls in a notebook, by the messages that Jupyter's widgets are made of (ipywidgets 8: models of
-- @jupyter-widgets/controls 2 and base 2). The page needs the extension jupyterlab_widgets; without it, and in a terminal,
-- a widget prints as text.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe

local MODULES = { controls = "@jupyter-widgets/controls", base = "@jupyter-widgets/base" }
local models = {}

local function open_model(state, kind, view_kind)
  state._model_module, state._model_module_version = MODULES[kind], "2.0.0"
  state._view_module, state._view_module_version = MODULES[view_kind or kind], "2.0.0"
  local comm = ms.notebook.comm.open("jupyter.widget", { state = state, buffer_paths = ms.json.array {} },
    { metadata = { version = "2.1.0" } })
  models[comm.id] = state
  return comm
end

-- A page that is opened again asks for the states of all widgets.
local function answer_states(comm)
  comm:on_message(function(data)
    if data.method ~= "request_states" then
      return
    end
    local states = {}
    for id, state in pairs(models) do
      states[id] = {
        model_name = state._model_name, model_module = state._model_module, model_module_version = state._model_module_version,
        state = state,
      }
    end
    comm:send { method = "update_states", states = states, buffer_paths = ms.json.array {} }
  end)
end

local Widget = {}

-- Fields that a user reads and writes, with the names that they have in the messages.
local public = { value = "value", min = "min", max = "max", step = "step", label = "description", disabled = "disabled" }

function Widget:__index(name)
  local field = public[name]
  if field then
    return rawget(self, "_state")[field]
  end
  return Widget[name]
end

function Widget:__newindex(name, value)
  local state, field = rawget(self, "_state"), public[name]
  if not field or state[field] == nil then
    fail("widget", ("a %s has no field '%s' to be set"):format(rawget(self, "_kind"), tostring(name)))
  end
  local expected = type(state[field])
  if type(value) ~= expected then
    fail("widget", ("%s must be a %s, got %s"):format(name, expected, describe(value)))
  end
  if field == "value" and state.max then
    value = math.min(math.max(value, state.min), state.max)
  end
  if math.type(state[field]) == "float" then
    value = value + 0.0
  elseif math.type(state[field]) == "integer" then
    value = math.tointeger(value) or fail("widget", ("%s must be an integer, got %s"):format(name, describe(value)))
  end
  state[field] = value
  rawget(self, "_comm"):send { method = "update", state = { [field] = value }, buffer_paths = ms.json.array {} }
end

function Widget:__mime()
  return {
    ["application/vnd.jupyter.widget-view+json"] = {
      version_major = 2, version_minor = 0, model_id = rawget(self, "_comm").id,
    },
    ["text/plain"] = tostring(self),
  }
end

function Widget:__tostring()
  local state = rawget(self, "_state")
  local label = state.description ~= "" and " " .. state.description or ""
  if state.value == nil then
    return rawget(self, "_kind") .. label
  end
  return ("%s%s: %s (%s to %s)"):format(rawget(self, "_kind"), label, state.value, state.min, state.max)
end

Widget.__name = "widget"

--- Calls f(value) whenever the user moves the slider. Gives the widget back.
---     > ms.widgets.slider { label = "n" }:on_change(function(value) print(value) end) --> slider n: 0 (0 to 100)
function Widget:on_change(f)
  table.insert(rawget(self, "_changed"), f)
  return self
end

--- Calls f() whenever the button is pressed. Gives the widget back.
---     > ms.widgets.button { label = "go" }:on_click(function() print("pressed") end) --> button go
function Widget:on_click(f)
  table.insert(rawget(self, "_clicked"), f)
  return self
end

--- Takes the widget out of the page.
---     > ms.widgets.button { label = "gone" }:close()
function Widget:close()
  models[rawget(self, "_comm").id] = nil
  rawget(self, "_comm"):close()
end

local function receive(self, data)
  local state, comm = rawget(self, "_state"), rawget(self, "_comm")
  if data.method == "request_state" then
    comm:send { method = "update", state = state, buffer_paths = ms.json.array {} }
  elseif data.method == "custom" then
    if type(data.content) == "table" and data.content.event == "click" then
      for _, f in ipairs(rawget(self, "_clicked")) do
        f()
      end
    end
  elseif data.method == "update" and type(data.state) == "table" then
    local value = data.state.value
    if type(value) ~= "number" or type(state.value) ~= "number" then
      return
    end
    if math.type(state.value) == "integer" then
      value = math.tointeger(value) or math.floor(value + 0.5)
    end
    if value ~= state.value then
      state.value = value
      for _, f in ipairs(rawget(self, "_changed")) do
        f(value)
      end
    end
  end
end

local function new(kind, model, state)
  local layout = open_model({ _model_name = "LayoutModel", _view_name = "LayoutView" }, "base")
  local style = open_model({ _model_name = model.style, _view_name = "StyleView" }, "controls", "base")
  state._model_name, state._view_name, state._dom_classes = model.name .. "Model", model.name .. "View", ms.json.array {}
  state.layout, state.style = "IPY_MODEL_" .. layout.id, "IPY_MODEL_" .. style.id
  local comm = open_model(state, "controls")
  local self = setmetatable({ _kind = kind, _state = state, _comm = comm, _changed = {}, _clicked = {} }, Widget)
  comm:on_message(function(data)
    receive(self, data)
  end)
  return self
end

local function read(where, options, defaults)
  if options ~= nil and type(options) ~= "table" then
    fail("widgets." .. where, "a table of options is expected, got " .. describe(options))
  end
  local names, given = {}, {}
  for name, default in pairs(defaults) do
    names[#names + 1], given[name] = name, default
  end
  table.sort(names)
  for name, value in pairs(options or {}) do
    local default = defaults[name]
    if default == nil then
      fail("widgets." .. where, ("there is no option '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")),
        arguments.nearest(tostring(name), names))
    elseif type(value) ~= type(default) then
      fail("widgets." .. where, ("%s must be a %s, got %s"):format(name, type(default), describe(value)))
    end
    given[name] = value
  end
  if given.max and not (given.min < given.max) then
    fail("widgets." .. where, ("min must be below max, got %s and %s"):format(given.min, given.max))
  end
  return given
end

local function is_whole(...)
  for i = 1, select("#", ...) do
    if math.type((select(i, ...))) ~= "integer" then
      return false
    end
  end
  return true
end

local widgets = {}

--- A slider: integers when all its numbers are, else floats. Options: value, min (0), max (100), step, label.
--- s.value is where it stands; s:on_change(f) calls f(value) when the user moves it.
---     > s = ms.widgets.slider { min = 0, max = 10, value = 3, label = "n" }
---     > s.value = 12
---     > s --> slider n: 10 (0 to 10)
function widgets.slider(options)
  local whole = is_whole(options and options.min or 0, options and options.max or 100, options and options.step or 1,
    options and options.value or 0)
  local given = read("slider", options, { value = options and options.min or 0, min = 0, max = 100, step = whole and 1 or 0.1, label = "" })
  local state = {
    value = math.min(math.max(given.value, given.min), given.max), min = given.min, max = given.max, step = given.step,
    description = given.label, description_allow_html = false, disabled = false, orientation = "horizontal", readout = true,
    readout_format = whole and "d" or ".4~g", continuous_update = true, behavior = "drag-tap",
  }
  if not whole then
    state.value, state.min, state.max = state.value + 0.0, state.min + 0.0, state.max + 0.0
  end
  return new("slider", { name = whole and "IntSlider" or "FloatSlider", style = "SliderStyleModel" }, state)
end

--- A progress bar: p.value = n moves it. Options: value, min (0), max (100), label.
---     > p = ms.widgets.progress { max = 4 }
---     > p.value = 2
---     > p --> progress: 2.0 (0.0 to 4.0)
function widgets.progress(options)
  local given = read("progress", options, { value = 0, min = 0, max = 100, label = "" })
  return new("progress", { name = "Progress", style = "ProgressStyleModel" }, {
    value = given.value + 0.0, min = given.min + 0.0, max = given.max + 0.0, description = given.label,
    description_allow_html = false, orientation = "horizontal", bar_style = "",
  })
end

--- A button: b:on_click(f) calls f() when it is pressed. Options: label.
---     > ms.widgets.button { label = "again" }:on_click(function() print("pressed") end) --> button again
function widgets.button(options)
  local given = read("button", options, { label = "" })
  return new("button", { name = "Button", style = "ButtonStyleModel" }, {
    description = given.label, disabled = false, button_style = "", icon = "",
  })
end

ms.notebook.comm.register("jupyter.widget.control", answer_states)

return setmetatable(widgets, {
  _head = "ms.widgets",
  _doc = "Controls in a notebook: slider, progress, button. ?ms.widgets.slider tells how they are used.",
})
