// How this program handles signals: never on the stack of what they interrupt.
//
// Matrix products of oneDNN use the stack pointer as one more register, which then points into a block of the heap
// (its issue 4845): a handler that ran there would write into the heap's own records, or into the product.
#pragma once

namespace lunaria {

// Has `handler` called for signal `number`, on a stack of its own where the calling thread takes it. `flags` as for
// sigaction.
void handle_signal(int number, void (*handler)(int), int flags = 0);

// For threads that have no such stack: signals that the program handles go to others. Cheap when called again.
void leave_signals_to_others() noexcept;

// Has this thread take the signal, on a stack of its own. Cheap when called again, for one signal.
void take_signal(int number) noexcept;

}  // namespace lunaria
