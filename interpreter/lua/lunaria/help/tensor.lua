-- The texts of tensors' methods that are no operators, in the form of help/ms.lua.
return [==[
x:item(...): The only element as a number, an integer or a boolean, as the dtype is; with indices: the element there.
    > ms.tensor({ { 1, 2 }, { 3, 4 } }):item(1, 0) --> 3
x:tolist(): The elements in nested tables; of a tensor of rank 0 the number.
    > ms.tensor({ { 1, 2 }, { 3, 4 } }):tolist()[2][1] --> 3
x:totable(): The same as tolist.
    > ms.tensor({ 1, 2 }):totable()[2] --> 2
x:asnumpy(): As tolist; the tables print as the numbers in them.
    > ms.tensor({ { 1, 2 }, { 3, 4 } }):asnumpy()
    [[1, 2],
     [3, 4]]
    > ms.tensor({ 1, 2 }):asnumpy()[2] --> 2
x:numpy(): The same as asnumpy.
    > ms.tensor({ 1, 2 }):numpy()[2] --> 2
x:dim(): The number of axes.
    > ms.ones({ 2, 3 }):dim() --> 2
x:ndimension(): The same as dim.
    > ms.ones({ 2, 3 }):ndimension() --> 2
x:numel(): The number of elements.
    > ms.ones({ 2, 3 }):numel() --> 6
x:nelement(): The same as numel.
    > ms.ones({ 2, 3 }):nelement() --> 6
x:copy(): A new tensor with the same elements.
    > ms.arange(3):copy():tolist()[3] --> 2
x:clone(): The same as copy.
    > ms.arange(3):clone():tolist()[3] --> 2
x:contiguous(): The tensor with its elements in row-major order in memory, which is shared where they are so already.
    > ms.ones({ 2, 3 }).T:contiguous():is_contiguous() --> true
x:is_contiguous(): Whether the elements lie in row-major order in memory.
    > ms.ones({ 2, 3 }).T:is_contiguous() --> false
x:astype(dtype): The tensor with another dtype, or that of another tensor.
    > ms.tensor({ 1.7, -1.7 }):astype(ms.int32):tolist()[2] --> -1
    > ms.tensor({ 1.7 }):astype(ms.int32):item() --> 1
x:to(dtype): The same as astype.
    > ms.ones({ 2 }):to(ms.float64).dtype --> Float64
x:type_as(other): The same as astype.
    > ms.ones({ 2 }):type_as(ms.tensor { 1 }).dtype --> Int64
x:bool(): The tensor as bool.
    > ms.tensor({ 0, 3 }):bool():tolist()[2] --> true
x:byte(): The tensor as uint8.
    > ms.ones({ 2 }):byte().dtype --> UInt8
x:short(): The tensor as int16.
    > ms.ones({ 2 }):short().dtype --> Int16
x:int(): The tensor as int32.
    > ms.tensor({ 1.7 }):int():item() --> 1
x:long(): The tensor as int64.
    > ms.tensor({ 1.7 }):long():item() --> 1
x:half(): The tensor as float16.
    > ms.ones({ 2 }):half().dtype --> Float16
x:bfloat16(): The tensor as bfloat16.
    > ms.ones({ 2 }):bfloat16().dtype --> BFloat16
x:float(): The tensor as float32.
    > ms.tensor({ 1, 2 }):float().dtype --> Float32
x:double(): The tensor as float64.
    > ms.ones({ 2 }):double().dtype --> Float64
x:is_floating_point(): Whether the dtype is one of floating-point numbers.
    > ms.ones({ 2 }):is_floating_point() --> true
x:is_complex(): Whether the dtype is complex.
    > ms.ones({ 2 }):is_complex() --> false
x:stride(axis): How many elements lie between neighbours along each axis, or along one.
    > ms.ones({ 2, 3 }):stride()[1] --> 3
x:storage_offset(): The position of the first element in its memory, in elements.
    > ms.arange(6)["2:"]:storage_offset() --> 2
x:new_zeros(shape, options): Zeros with this dtype, or another.
    > ms.ones({ 2 }, ms.int8):new_zeros({ 3 }).dtype --> Int8
x:new_empty(shape, options): The same as new_zeros.
    > ms.ones({ 2 }):new_empty({ 3 }).shape --> (3,)
x:new_ones(shape, options): Ones with this dtype, or another.
    > ms.ones({ 2 }, ms.int8):new_ones({ 3 }).dtype --> Int8
x:new_full(shape, value, options): A tensor full of one value, with this dtype, or another.
    > ms.ones({ 2 }):new_full({ 2 }, 7):tolist()[1] --> 7.0
x:new_tensor(data, options): A tensor of data with this dtype, or another.
    > ms.ones({ 2 }):new_tensor({ 1, 2 }).dtype --> Float32
x:fill_(value): All elements become the value, in place.
    > ms.zeros({ 2 }):fill_(3):tolist()[1] --> 3.0
x:zero_(): All elements become 0, in place.
    > ms.ones({ 2 }):zero_():sum():item() --> 0.0
x:copy_(other): The elements become those of another tensor, broadcast and cast, in place.
    > ms.zeros({ 2 }):copy_(ms.tensor { 1.0, 2.0 }):tolist()[2] --> 2.0
x:set_dtype(dtype): The tensor gets another dtype, in place.
    > ms.ones({ 2 }):set_dtype(ms.float64).dtype --> Float64
x:set_data(other): The elements, shape and dtype become those of another tensor, in place.
    > ms.Parameter(ms.zeros { 2 }):set_data(ms.ones { 2 }):sum():item() --> 2.0
x:data_ptr(): The address of the first element.
    > math.type(ms.ones({ 2 }):data_ptr()) --> integer
x:get_bytes(): The elements' bytes, in row-major order.
    > #ms.ones({ 2, 3 }):get_bytes() --> 24
x:storage(): All elements of the memory that the tensor is a view of, in a row.
    > ms.ones({ 2, 3 })[0]:storage().shape --> (6,)
x:untyped_storage(): A copy of that memory, byte by byte.
    > ms.ones({ 2, 3 })[0]:untyped_storage().shape --> (24,)
x:to_dlpack(): A capsule of DLPack for compiled modules of others: a userdata with the metatable "dltensor" that holds a DLManagedTensor*.
  Both have the memory from then on: what is written into the tensor in place is seen there, and the other way round. Other tensors
  share nothing with it. The memory of a tensor that is a part of another one is its own before that; one of another device is copied.
    > ms.from_dlpack(ms.arange(3):to_dlpack()):tolist()[3] --> 2
x:iter(): for i, row in x:iter() do ... end: rows by their index from 0; of a tensor of rank 1 numbers.
    > for i, v in ms.arange(2):iter() do print(i, v) end
    0	0
    1	1
x:value(): The tensor without what it is as a parameter, by a handle of its own.
    > ms.Parameter(ms.ones { 2 }):value():sum():item() --> 2.0
x:requires_grad_(flag): As in other frameworks; a tensor is not excluded from gradients for good: ms.stop_gradient does it where it is used.
    > ms.ones({ 2 }):requires_grad_(true).shape --> (2,)
x:where(condition, other): The tensor where the condition holds, elsewhere the other.
    > ms.tensor({ 1, -1 }):where(ms.tensor { true, false }, 0):tolist()[2] --> 0
x:select(axis, index): What lies at one index of an axis, without the axis.
    > ms.arange(6):reshape(2, 3):select(1, 2):tolist()[2] --> 5
x:uniform_(from, to): Random numbers between from and to (0 and 1), in place.
    > ms.zeros({ 2, 3 }):uniform_(0, 1).shape --> (2, 3)
x:normal_(mean, std): Normally distributed random numbers, in place.
    > ms.zeros({ 2, 3 }):normal_(0, 1).shape --> (2, 3)
x:random_(from, to): Random integers from `from` up to `to`, not included, in place.
    > ms.zeros({ 2 }, ms.int64):random_(0, 1):sum():item() --> 0
x:release: Frees the tensor's memory now in place of when the collector finds it; the tensor cannot be used any more. A variable local x
  <close> does it at the end of its block.
    > ms.ones({ 2 }):release()
]==]
