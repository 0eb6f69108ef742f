-- "1 step", "2 steps", "3 branches": a number of things in words.
return function(n, one, many)
  return ("%d %s"):format(n, n == 1 and one or many or one .. "s")
end
