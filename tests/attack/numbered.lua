-- Makes the calls `first` to `last`. The file tells which one is under way, and at the end that all are done: api_test.py looks.
return function(progress, first, last, run)
  local file <close> = assert(io.open(progress, "w"))
  file:setvbuf("no")
  for number = first, last do
    file:seek("set", 0)
    file:write(("%12d"):format(number))
    run(number)
    if number % 50 == 0 then collectgarbage() end
  end
  file:seek("set", 0)
  file:write "        done"
end
