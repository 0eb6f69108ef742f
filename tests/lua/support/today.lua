-- Long tests run a part of their cases each day, in turn: has(number, parts) tells whether the case of that number is among those
-- of today, where there are so many parts. The day is LUNARIA_TEST_DAY (tests/own_folder.sh); where it is not set or empty, as by
-- hand and in ./dev test --long, every case runs. tests/today.h and tests/check/today.py ask the same.
local today = {}
local day = tonumber(os.getenv "LUNARIA_TEST_DAY" or "")

-- Whether every case runs.
today.whole = not day

function today.has(number, parts) return not day or (number + day) % parts == 0 end

-- Counts from first to last through the cases of today.
function today.numbers(first, last, parts)
  return function()
    while first <= last do
      first = first + 1
      if today.has(first - 1, parts) then return first - 1 end
    end
  end
end

return today
