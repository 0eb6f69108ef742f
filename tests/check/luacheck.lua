-- Settings of luacheck for all Lua files of the repository.
std = "lua54"
max_line_length = 140
unused_args = false -- callbacks take what they are given
ignore = { "581" } -- `not (a <= b)` is true for NaN, `a > b` is not
