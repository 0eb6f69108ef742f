// The handlers of the instructions; jit/language.h and language_adjoint.cpp give their meaning.
#pragma once

#include "jit/vm/code.h"

namespace lunaria::vm {

void handle_jump(Machine&, const Instr&);
void handle_branch(Machine&, const Instr&);
void handle_return(Machine&, const Instr&);
void handle_item(Machine&, const Instr&);
void handle_operator(Machine&, const Instr&);
void handle_transpose(Machine&, const Instr&);  // of a matrix
void handle_reshape(Machine&, const Instr&);    // to the shape of the node's type
void handle_broadcast(Machine&, const Instr&);  // of one number, to the shape of the node's type
void handle_number(Machine&, const Instr&);
void handle_stop_point(Machine&, const Instr&);

// Handlers of primitives by name; each file adds its own.
struct NamedHandler {
    std::string_view name;
    Handler handler;
};
std::span<const NamedHandler> call_handlers();
std::span<const NamedHandler> value_handlers();
std::span<const NamedHandler> operation_handlers();
std::span<const NamedHandler> shadow_handlers();
std::span<const NamedHandler> given_handlers();
// The value; for a tensor a handle of its own, whose content no later write into the other handle changes.
Value own_handle(const Value& v);
std::span<const NamedHandler> error_handlers();
std::span<const NamedHandler> coroutine_handlers();
std::span<const NamedHandler> region_handlers();

}  // namespace lunaria::vm
