-- ms.insight.start: the pages of trainings, served by threads of this process (interpreter/serve).
local core = require "lunaria.insight_core"
local arguments = require "lunaria.nn.arguments"

local Server = {}
Server.__index = Server
Server.__name = "insight server"

function Server:__tostring()
  return self._handle and ("%s shows %s"):format(self.url, self.dir) or "an insight server that was stopped"
end

-- A notebook shows the pages in a frame.
function Server:__mime()
  if not self._handle then return { ["text/plain"] = tostring(self) } end
  local url = self.url:gsub("[&\"<>]", { ["&"] = "&amp;", ['"'] = "&quot;", ["<"] = "&lt;", [">"] = "&gt;" })
  local frame = ('<iframe src="%s" width="100%%" height="600" title="Lunaria insight"></iframe>'):format(url)
  return { ["text/html"] = frame, ["text/plain"] = tostring(self) }
end

-- Ends the server; a second time does nothing.
function Server:stop()
  if self._handle then core.stop(self._handle) end
  self._handle = nil
end

-- Waits until Ctrl-C or another program ends the server.
function Server:wait() return self._handle and core.wait(self._handle) or "stopped" end

Server.__gc = Server.stop
Server.__close = Server.stop

local known = {
  dir = "string", host = "string", prefix = "string",
  port = function(value) return math.type(value) == "integer" and value >= 0 and value <= 65535, "an integer from 0 to 65535" end,
  interval = function(value) return math.type(value) ~= nil and value >= 0 and value <= 300, "a number of seconds from 0 to 300" end,
  allow_hosts = function(value)
    local fine = type(value) == "table"
    for _, host in ipairs(fine and value or {}) do fine = fine and type(host) == "string" end
    return fine, "a list of names"
  end,
}

--- Shows the trainings below a folder in the browser, as `lunaria insight start` does, while this session goes on. dir: the folder
--- (default: the working directory). port: 8080; 0 takes any that is free. host: the address to listen at, 127.0.0.1; at any other a
--- token is asked for, which `url` has. allow_hosts: other names that browsers may use for this machine. prefix: what all addresses
--- begin with. interval: seconds between two looks at the files; 0 looks once. Gives a server with `url`, `port`, `dir` and `stop()`;
--- it ends with the session, too. A notebook shows it as a frame.
---     > server = ms.insight.start { dir = "/tmp", port = 0, interval = 0 }
---     > server.url:match "^http://127.0.0.1:%d+/$" == server.url --> true
---     > server:stop()
local function start(options)
  options = arguments.options("start", options, known, "{ dir = \"runs\" }")
  local handle, url, dir = core.serve {
    base = options.dir or ".", host = options.host, port = options.port or 8080, prefix = options.prefix,
    interval = options.interval or 0.5, hosts = options.allow_hosts, embeddable = true,
  }
  return setmetatable({ _handle = handle, url = url, dir = dir, port = math.tointeger(url:match ":(%d+)/") }, Server)
end

return { start = start }
