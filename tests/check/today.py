"""Long tests run a part of their cases each day, in turn (tests/lua/support/today.lua)."""
import os


def is_of_today(number, parts):
    """Whether the case of that number is among those of today, where there are so many parts."""
    day = os.environ.get("LUNARIA_TEST_DAY")
    return not day or (number + int(day)) % parts == 0
