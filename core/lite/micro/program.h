// The C program of a light model while it is being written: functions of steps, arrays of weights, calls.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/lite/format/model.h"
#include "core/lite/micro/text.h"

namespace lunaria::lite::micro {

// A view of a value at the sizes for which the model was converted.
struct Operand {
    uint32_t value = kNone;  // kNone: absent
    DType dtype = DType::f32;
    std::vector<int64_t> shape{}, strides{};
    int64_t offset = 0;  // all in elements

    bool is_there() const { return value != kNone; }
    size_t rank() const { return shape.size(); }
    int64_t size() const;
    bool is_dense() const;
};

// An array of weights.c.
struct Array {
    std::string name{};
    DType dtype = DType::f32;
    int64_t count = 0;
    std::string comment{};
    std::vector<std::byte> elements{};
};

// A parameter of a step's function, and what the call passes for it.
struct Parameter {
    std::string name{};
    DType dtype = DType::f32;
    bool is_written = false;
    std::string argument{};
};

class Program {
  public:
    explicit Program(const Model& model);

    const Model& model() const { return model_; }
    std::string_view name_of(uint32_t value) const { return values_[value]; }
    // The elements of a constant as they are, or another arrangement of them: `key` tells the arrangements of a value
    // apart.
    std::string array_of(uint32_t value, std::string_view key, const std::function<Array()>& make);
    std::string array_of(uint32_t value);  // as they are
    // The name of a new array.
    std::string array(Array array, std::string_view wish);
    // Adds a call of a function with this body; equal functions are written once. `fails`: it returns a number that is
    // not 0 when an input makes no sense.
    void call(std::string_view wish, const std::vector<Parameter>& parameters, const std::string& body,
              bool fails = false);
    void call_comment(std::string_view text) { calls_.line("/* ", comment(text), " */"); }
    // A function that those of steps share.
    void helper(std::string_view name, std::string_view text);

    const std::string& functions() const { return functions_; }
    const std::string& helpers() const { return helpers_; }
    const std::string& calls() const { return calls_.text(); }
    const std::vector<Array>& arrays() const { return arrays_; }
    bool can_fail() const { return can_fail_; }

  private:
    const Model& model_;
    Names names_;
    std::vector<std::string> values_;
    std::map<std::pair<uint32_t, std::string>, std::string> arrangements_;
    std::map<std::string, std::string> written_;
    std::string functions_, helpers_;
    std::vector<std::string> known_helpers_;
    Lines calls_;
    std::vector<Array> arrays_;
    bool can_fail_ = false;
};

// A step that is to be written. refuse() throws the error that names node, operator and line.
class StepForm {
  public:
    StepForm(Program& program, uint32_t number);

    Program& program;
    const Step& step;
    std::vector<Operand> in{}, out{};

    [[noreturn]] void refuse(std::string_view why) const;
    void demand(bool holds, std::string_view why) const {
        if (!holds) refuse(why);
    }
    const Value& value(const Operand& o) const { return program.model().values[o.value]; }
    Operand operand(size_t i) const { return i < in.size() ? in[i] : Operand{}; }
    int64_t integer(std::string_view name, int64_t otherwise = 0) const;
    double number(std::string_view name, double otherwise = 0) const;
    float single(std::string_view name, double otherwise = 0) const {
        return static_cast<float>(number(name, otherwise));
    }
    std::string_view text(std::string_view name) const;
    std::vector<int64_t> integers(std::string_view name) const;
    bool has(std::string_view name) const { return find(step.attributes, name) != nullptr; }
    // An axis, counted from the end where it is negative.
    size_t axis(std::string_view name, size_t rank, int64_t otherwise) const;
    // The elements of a constant; refuses other values.
    template <class T>
    std::span<const T> elements(const Operand& o) const {
        const Value& v = value(o);
        demand(v.home == Value::Home::constant, "an operand that has to be a weight is none");
        return {reinterpret_cast<const T*>(v.data) + o.offset,
                static_cast<size_t>(v.bytes / sizeof(T)) - static_cast<size_t>(o.offset)};
    }

    // The parameter of an operand: a pointer to its first element.
    Parameter read(std::string name, const Operand& o) const;
    Parameter written(std::string name, const Operand& o) const;
    Parameter array(std::string name, DType dtype, std::string array_name) const {
        return {std::move(name), dtype, false, std::move(array_name)};
    }
    void call(std::string_view wish, const std::vector<Parameter>& parameters, const std::string& body,
              bool fails = false) const {
        program.call(wish, parameters, body, fails);
    }

  private:
    uint32_t number_;
};

using WriteStep = void (*)(const StepForm&);
struct StepKind {
    std::string_view name;
    WriteStep write;
};
// The kinds of each source.
std::span<const StepKind> loop_kinds();
std::span<const StepKind> product_kinds();
std::span<const StepKind> integer_kinds();
std::span<const StepKind> pool_kinds();
std::span<const StepKind> arrangement_kinds();
std::span<const StepKind> reduction_kinds();
std::span<const StepKind> element_kinds();

// Declares `variable` as x, of dtype `from`, converted to `dtype`.
void write_cast(const StepForm& form, Lines& to, DType from, const std::string& x, DType dtype,
                const std::string& variable);

}  // namespace lunaria::lite::micro
