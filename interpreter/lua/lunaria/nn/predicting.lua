-- A network for a while as it predicts: switches it to that, and gives a function that brings back what each of its cells was.
local function predicting(network)
  local modes = {}
  for _, cell in network:cells_and_names() do modes[cell] = cell.training end
  network:set_train(false)
  return function()
    for cell, mode in pairs(modes) do rawset(cell, "training", mode) end
  end
end

return predicting
