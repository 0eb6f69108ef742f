-- display.html, display.markdown, display.latex, display.svg, display.json and display.audio: texts and sounds with the
-- type that a notebook shows them by. Each gives a value that looks like that wherever it is shown.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local fail, describe = arguments.fail, arguments.describe

local Markup = {}
Markup.__index = Markup
Markup.__name = "markup"

function Markup:__mime()
  return self._bundle
end

function Markup:__tostring()
  return self._bundle["text/plain"]
end

local function text_of(where, value)
  if type(value) ~= "string" then
    fail("display." .. where, "a string is expected, got " .. describe(value))
  end
  return value
end

local function made(bundle)
  return setmetatable({ _bundle = bundle }, Markup)
end

local markup = {}

--- HTML; as text it is what remains without the tags.
---     > display.html("<b>bold</b> &amp; plain") --> bold & plain
function markup.html(text)
  local plain = text_of("html", text):gsub("<[^>]*>", ""):gsub("&(%w+);", { lt = "<", gt = ">", amp = "&", quot = "\"", nbsp = " " })
  return made { ["text/html"] = text, ["text/plain"] = plain }
end

--- Markdown.
---     > display.markdown("**bold**") --> **bold**
function markup.markdown(text)
  return made { ["text/markdown"] = text_of("markdown", text), ["text/plain"] = text }
end

--- A formula in LaTeX, with or without dollar signs around it.
---     > display.latex("e^{i\\pi} + 1 = 0") --> e^{i\pi} + 1 = 0
function markup.latex(text)
  local formula = text_of("latex", text)
  if not formula:find("^%s*%$") and not formula:find("^%s*\\begin") then
    formula = "$\\displaystyle " .. formula .. "$"
  end
  return made { ["text/latex"] = formula, ["text/plain"] = text }
end

--- A drawing in SVG.
---     > display.svg('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>') --> SVG drawing of 67 bytes
function markup.svg(text)
  if not text_of("svg", text):find("<svg", 1, true) then
    fail("display.svg", "the text holds no <svg> element")
  end
  return made { ["image/svg+xml"] = text, ["text/plain"] = ("SVG drawing of %d bytes"):format(#text) }
end

--- A table as JSON, which notebooks show as a tree to fold.
---     > display.json({ a = { 1, 2 } }) --> {"a":[1,2]}
function markup.json(value)
  local text = ms.json.encode(value)
  return made { ["application/json"] = text, ["text/plain"] = text }
end

-- Samples as the bytes of a WAV file, 16 bits each; `x` has the shape (samples,) or (channels, samples).
local function wav(x, rate)
  local channels = x.ndim == 2 and x.shape[1] or 1
  local frames = x.shape[x.ndim]
  local wide = x:cast(ms.float32)
  local peak = math.max(1, ms.ops.reduce_max(ms.ops.abs(wide)):item())
  local flat = (channels > 1 and wide:transpose { 1, 0 } or wide):reshape { -1 } * (32767 / peak)
  local samples = ms.ops.round(flat):cast(ms.int32):tolist()
  local parts = {}
  for first = 1, #samples, 200 do
    local n = math.min(200, #samples - first + 1)
    parts[#parts + 1] = ("<" .. ("i2"):rep(n)):pack(table.unpack(samples, first, first + n - 1))
  end
  local body = table.concat(parts)
  return ("<c4I4c4c4I4I2I2I4I4I2I2c4I4"):pack("RIFF", 36 + #body, "WAVE", "fmt ", 16, 1, channels, rate, rate * channels * 2,
    channels * 2, 16, "data", #body) .. body, frames
end

--- Sound: a tensor of samples between -1 and 1, (samples,) or (channels, samples), at `rate` samples for each second; or the
--- bytes of a sound file.
---     > display.audio(ms.ops.zeros({ 8000 }), { rate = 8000 }) --> sound of 1.00 s, 8000 samples per second
function markup.audio(x, options)
  local rate = options and options.rate or 44100
  if math.type(rate) ~= "integer" or rate < 100 or rate > 1000000 then
    fail("display.audio", "rate must be an integer from 100 to 1000000, got " .. describe(rate))
  elseif type(x) == "string" then
    local kind = x:find("^RIFF") and "audio/wav" or x:find("^OggS") and "audio/ogg" or x:find("^fLaC") and "audio/flac" or "audio/mpeg"
    local html = ("<audio controls src=\"data:%s;base64,%s\"></audio>"):format(kind, require("lunaria.rendering").base64(x))
    return made { ["text/html"] = html, ["text/plain"] = ("sound of %d bytes"):format(#x) }
  end
  x = type(x) == "table" and ms.tensor(x) or x
  if not ms.is_tensor(x) or x.ndim < 1 or x.ndim > 2 or x.size == 0 or x.ndim == 2 and x.shape[1] > 2 then
    fail("display.audio", "samples of the shape (samples,) or (1 or 2 channels, samples) are expected, got " .. describe(x))
  elseif not ms.ops.reduce_all(ms.ops.isfinite(x:cast(ms.float32))):item() then
    fail("display.audio", "the samples are not all finite")
  end
  local bytes, frames = wav(x, rate)
  return made {
    ["text/html"] = ("<audio controls src=\"data:audio/wav;base64,%s\"></audio>"):format(require("lunaria.rendering").base64(bytes)),
    ["text/plain"] = ("sound of %.2f s, %d samples per second"):format(frames / rate, rate),
  }
end

return markup
