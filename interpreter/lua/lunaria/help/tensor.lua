-- What help() says of tensors' methods that are no operators, as in help/ms.lua.
-- luacheck: ignore 212
local M = {}

--- The only element as a number, an integer or a boolean, as the dtype is; with indices: the element there.
---
---     > ms.tensor({ { 1, 2 }, { 3, 4 } }):item(1, 0)
---     3
function M:item(...) end

--- The elements in nested tables; of a tensor of rank 0 the number.
---
---     > ms.tensor({ { 1, 2 }, { 3, 4 } }):tolist()[2][1]
---     3
function M:tolist() end
--- The same as tolist.
function M:totable() end
--- As tolist; the tables print as the numbers in them.
---
---     > ms.tensor({ { 1, 2 }, { 3, 4 } }):asnumpy()
---     [[1, 2],
---      [3, 4]]
function M:asnumpy() end
--- The same as asnumpy.
function M:numpy() end

--- The number of axes.
---
---     > ms.ones({ 2, 3 }):dim()
---     2
function M:dim() end
--- The same as dim.
function M:ndimension() end

--- The number of elements.
---
---     > ms.ones({ 2, 3 }):numel()
---     6
function M:numel() end
--- The same as numel.
function M:nelement() end

--- A new tensor with the same elements.
function M:copy() end
--- The same as copy.
function M:clone() end

--- The tensor with its elements in row-major order in memory, which is shared where they are so already.
function M:contiguous() end
--- Whether the elements lie in row-major order in memory.
---
---     > ms.ones({ 2, 3 }).T:is_contiguous()
---     false
function M:is_contiguous() end

--- The tensor with another dtype, or that of another tensor.
---
---     > ms.tensor({ 1.7, -1.7 }):astype(ms.int32):tolist()[2]
---     -1
function M:astype(dtype) end
--- The same as astype.
function M:to(dtype) end
--- The same as astype.
function M:type_as(other) end
--- The tensor as bool.
function M:bool() end
--- The tensor as uint8.
function M:byte() end
--- The tensor as int16.
function M:short() end
--- The tensor as int32.
function M:int() end
--- The tensor as int64.
function M:long() end
--- The tensor as float16.
function M:half() end
--- The tensor as bfloat16.
function M:bfloat16() end
--- The tensor as float32.
function M:float() end
--- The tensor as float64.
function M:double() end

--- Whether the dtype is one of floating-point numbers.
---
---     > ms.ones({ 2 }):is_floating_point()
---     true
function M:is_floating_point() end
--- Whether the dtype is complex.
function M:is_complex() end

--- How many elements lie between neighbours along each axis, or along one.
---
---     > ms.ones({ 2, 3 }):stride()[1]
---     3
function M:stride(axis) end
--- The position of the first element in its memory, in elements.
function M:storage_offset() end

--- Zeros with this dtype, or another.
---
---     > ms.ones({ 2 }, ms.int8):new_zeros({ 3 }).dtype
---     Int8
function M:new_zeros(shape, options) end
--- The same as new_zeros.
function M:new_empty(shape, options) end
--- Ones with this dtype, or another.
function M:new_ones(shape, options) end
--- A tensor full of one value, with this dtype, or another.
function M:new_full(shape, value, options) end
--- A tensor of data with this dtype, or another.
function M:new_tensor(data, options) end

--- All elements become the value, in place.
function M:fill_(value) end
--- All elements become 0, in place.
function M:zero_() end
--- The elements become those of another tensor, broadcast and cast, in place.
function M:copy_(other) end
--- The tensor gets another dtype, in place.
function M:set_dtype(dtype) end
--- The elements, shape and dtype become those of another tensor, in place.
function M:set_data(other) end

--- The address of the first element.
---
---     > math.type(ms.ones({ 2 }):data_ptr())
---     integer
function M:data_ptr() end
--- The elements' bytes, in row-major order.
---
---     > #ms.ones({ 2, 3 }):get_bytes()
---     24
function M:get_bytes() end
--- All elements of the memory that the tensor is a view of, in a row.
---
---     > ms.ones({ 2, 3 })[0]:storage().shape
---     (6,)
function M:storage() end
--- A copy of that memory, byte by byte.
---
---     > ms.ones({ 2, 3 })[0]:untyped_storage().shape
---     (24,)
function M:untyped_storage() end
--- A capsule of DLPack for compiled modules of others: a userdata with the metatable "dltensor" that holds a DLManagedTensor*.
--- Both have the memory from then on: what is written into the tensor in place is seen there, and the other way round. Other tensors
--- share nothing with it. The memory of a tensor that is a part of another one is its own before that; one of another device is copied.
---
---     > ms.from_dlpack(ms.arange(3):to_dlpack()):tolist()[3]
---     2
function M:to_dlpack() end

--- for i, row in x:iter() do ... end: rows by their index from 0; of a tensor of rank 1 numbers.
function M:iter() end
--- The tensor without what it is as a parameter, by a handle of its own.
function M:value() end
--- As in other frameworks; a tensor is not excluded from gradients for good: ms.stop_gradient does it where it is used.
function M:requires_grad_(flag) end
--- The tensor where the condition holds, elsewhere the other.
---
---     > ms.tensor({ 1, -1 }):where(ms.tensor { true, false }, 0):tolist()[2]
---     0
function M:where(condition, other) end
--- What lies at one index of an axis, without the axis.
---
---     > ms.arange(6):reshape(2, 3):select(1, 2):tolist()[2]
---     5
function M:select(axis, index) end
--- Random numbers between from and to (0 and 1), in place.
function M:uniform_(from, to) end
--- Normally distributed random numbers, in place.
function M:normal_(mean, std) end
--- Random integers from `from` up to `to`, not included, in place.
function M:random_(from, to) end

return M
