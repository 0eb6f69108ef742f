-- Examples write files whose names begin with lunaria_help. Each run of a test has such names of its own, so that two runs at once
-- do not write each other's files.
local path = os.tmpname()
os.remove(path)
local own = "lunaria_help_" .. path:match "%w+$"
return function(text) return (text:gsub("lunaria_help", own)) end
