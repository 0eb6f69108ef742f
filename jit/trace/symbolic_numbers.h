// Symbolic numbers: numbers in the machine's registers that may differ in the next call, while a call is recorded.
// Instructions that only move one leave it; arithmetic on it is recorded; beside a tensor it becomes a tensor; any
// other use gets the number itself, and the record is then for that number.
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

    // Called before an instruction; true: it was executed here.
    bool step(vm::Machine& m, const vm::Instr& i);
    Value compute(const Op& primitive, std::span<const Value> operands);
    // Symbolic operands take part as they are, or become tensors beside one.
    void settle_operands(const Op& primitive, vm::Values& operands);
    Value tensor_of(const Value& number, DType dtype, const Shape& shape);
    // A symbolic number as a tensor without axes, of the dtype of the tensor beside it; another value as it is.
    Value beside(const Value& v, const Value& other, const Op& primitive);
    // For an index that is an integer or a table of them, where one of them or the tensor's size is symbolic: the index
    // with tensors for symbolic integers. Nil: it is something else, or out of range.
    Value positions_of(const Value& key, const Value& tensor);
    // Reading the table from now on may find a value that was written under a symbolic key.
    void decide_keys(const Value& table);

    // Whether the value is symbolic, or a list with symbolic items.
    static bool holds(const Value& v);
    // Whether it is a symbolic integer.
    static bool is_position(const Value& key);
    // Whether the operation gives the same for a number and for a tensor of that number.
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
    // By table: symbolic keys under which an active value was written. Its cotangent is kept under the present number,
    // which no other key has as long as the table is not read.
    struct OpenKeys {
        Value table;
        vm::Values keys;
    };
    std::unordered_map<const void*, OpenKeys> open_keys_;
    void note_open_key(const Value& table, const Value& key);
};

}  // namespace lunaria::trace
