// Signal handlers of this program: they never run on the stack that they interrupt.
//
// Matrix products of oneDNN use the stack pointer as one more register, which then points into a block of the heap (its
// issue 4845): a handler on that stack would write into the heap's own records, or into the product.
#pragma once

namespace lunaria {

// Has `handler` called for signal `number`, on the alternate stack of the thread that takes the signal. `flags` as for
// sigaction.
void handle_signal(int number, void (*handler)(int), int flags = 0);

// Blocks the signals that the program handles in a thread without an alternate stack; other threads take them. Cheap
// when called again.
void leave_signals_to_others() noexcept;

// Lets this thread take the signal, on an alternate stack. Cheap when called again for the same signal.
void take_signal(int number) noexcept;

// interrupt_requested() and visit_requested() of the program, for modules: they have flags of their own.
bool program_interrupt_requested() noexcept;
bool program_visit_requested() noexcept;

}  // namespace lunaria
