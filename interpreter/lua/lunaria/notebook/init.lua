-- ms.notebook: what a cell of a notebook has beside the program.
local parts = require "lunaria.parts"

return parts("ms.notebook", "module", { { "lunaria.notebook.comm", "comm", whole = true } })
