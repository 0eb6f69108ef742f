// The ends of products: scale, bias, residual and activation of floats; rounding of integers.
#pragma once

#include "core/lite/micro/program.h"

namespace lunaria::lite::micro {

// Of a float product whose operands bias, scale and residual begin at `first`.
class FloatEnd {
  public:
    FloatEnd(const StepForm& form, size_t first, int64_t columns);
    void add_parameters(std::vector<Parameter>& parameters) const;
    // Stores the variable `sum` at y[place]; `column` is the place of the column's bias.
    void write(Lines& to, std::string_view sum, const std::string& column, const std::string& place) const;

  private:
    const StepForm& form_;
    size_t first_;
};

// The activation of `x` as the variable `variable`, by the attributes activation, alpha and beta.
void write_activation(const StepForm& form, Lines& to, const std::string& x, const std::string& variable);

// Of an integer product, as core/lite/kernels/integer.h defines it; operands from bias on.
class IntegerEnd {
  public:
    IntegerEnd(const StepForm& form, int64_t columns);
    void add_parameters(std::vector<Parameter>& parameters) const;
    std::string start(const std::string& column) const;  // the first value of the sum
    void write(Lines& to, const std::string& column, const std::string& place) const;

  private:
    const StepForm& form_;
    bool to_float_;
};

// Adds the function that rounds, and is the text of its call for the variable f.
std::string rounded(const StepForm& form, DType type);

}  // namespace lunaria::lite::micro
