// Numbers that may be other ones in the next call, in the machine's registers while a call is recorded. Instructions
// that only move one leave it; arithmetic on it is recorded; beside a tensor it becomes a tensor; whatever else uses it
// gets the number, and the record is for that number.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "jit/vm/machine.h"
#include "jit/vm/object.h"

namespace lunaria::trace {

class Recording;

class SymbolicNumber final : public Object {
  public:
    SymbolicNumber(int32_t slot, Value value) : slot(slot), value(std::move(value)) {}
    const int32_t slot;
    const Value value;
};

// A number as a tensor without axes.
Value scalar_tensor(const Value& number, DType dtype);
// An operation on plain numbers or texts, or a comparison of them.
Value compute_plain(vm::Host& host, const Op& op, std::span<const Value> args);

inline SymbolicNumber* symbolic_number(const Value& v) { return vm::object_as<SymbolicNumber>(v); }

class SymbolicNumbers {
  public:
    explicit SymbolicNumbers(Recording& recording) : r_(recording) {}

    // Before an instruction; true: it has been carried out.
    bool step(vm::Machine& m, const vm::Instr& i);
    Value compute(const Op& primitive, std::span<const Value> operands);
    // What is left open is computed with as it is, or becomes a tensor beside one.
    void settle_operands(const Op& primitive, vm::Values& operands);
    Value tensor_of(const Value& number, DType dtype, const Shape& shape);
    // One as a tensor without axes, of the same dtype as that beside it; another value as it is.
    Value beside(const Value& v, const Value& other, const Op& primitive);
    // Of an index that is an integer or a table of them, where one or the tensor's size is open: what it comes down to,
    // with tensors for integers that are open. Nil: it is something else, or beyond the tensor.
    Value positions_of(const Value& key, const Value& tensor);
    // What is read of the table from now on may be what was written under a key that was left open.
    void decide_keys(const Value& table);

    // Whether the value is one or a list that has some.
    static bool holds(const Value& v);
    // Whether it is an integer.
    static bool is_position(const Value& key);
    // Arithmetic that gives the same whether an operand is a number or a tensor of that number.
    static bool takes_tensors(const Op& op);

  private:
    struct Instruction;
    static bool any(const vm::Machine& m, const vm::Instr& i);
    bool hands_on(const Instruction& it);
    bool reads_texts(const Instruction& it);
    bool differs_in_kind(const Instruction& it);
    std::optional<bool> calculates(const Instruction& it);
    void settle(const Instruction& it);
    void put_beside(vm::Machine& m, const vm::Instr& i, const vm::Slot& a, const vm::Slot& b);
    bool leaves_key(vm::Machine& m, const vm::Instr& i);
    Value position_of(const Value& key, const Value& tensor, int axis);
    bool reads_by_any_key(const Instruction& it);
    void keep_key(vm::Machine& m, const Value& context, const Value& table, const Value& key);

    Recording& r_;
    // By table: open keys under which something was written that is differentiated. What it is owed is kept under the
    // key as it is now, which nobody else asks for as long as the table is not read.
    std::unordered_map<const void*, vm::Values> open_keys_;
};

}  // namespace lunaria::trace
