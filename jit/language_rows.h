// The builder of the primitives' rows: each has an operator's entry, and the facts beside it.
#pragma once

#include <vector>

#include "jit/language.h"
#include "jit/language_rules.h"

namespace lunaria::lua {

struct Rows {
    Registry registry;
    std::vector<Facts> facts;  // by the primitives' ids

    void add(SignatureText signature, const char* doc, Facts f = {}) {
        Op& op = registry.add(signature).doc(doc).effect(f.effect);
        if (f.exact) op.exact();
        if (f.branches) op.branches();
        if (f.closes) op.closes();
        facts.push_back(f);
    }
    // Adds the operation of one of Lua's symbols, with its metamethod and its operator on tensors.
    void operation(SignatureText signature, const char* doc, Operation o, const char* event, const char* name,
                   Facts f = {}) {
        f.operation = o;
        f.event = event;
        f.on_tensors = name ? &lunaria::registry().get(name) : nullptr;
        f.saved = true;
        f.derivative = autodiff::rules::language_operation;
        add(signature, doc, f);
    }
    // Adds arithmetic on plain numbers alone. If there is an operator of the same meaning, the primitive has its
    // gradient rule unless another one is given.
    void number(SignatureText signature, const char* doc, Value (*f)(const Value*), const char* name,
                GradFn gradient = nullptr) {
        const Op* op = name ? &lunaria::registry().get(name) : nullptr;
        add(signature, doc,
            {.on_tensors = op, .of_numbers = true, .derivative = autodiff::rules::operation, .compute = f});
        registry.all().back()->grad(gradient || !op ? gradient : op->grad_fn);
    }
};

// The primitives of derivatives.
void add_adjoint_primitives(Rows& r);
// Arithmetic on plain numbers alone (number.cpp).
void add_number_primitives(Rows& r);

}  // namespace lunaria::lua
