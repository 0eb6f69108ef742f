// C source text: numbers, names and indented lines.
#pragma once

#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace lunaria::lite::micro {

// A literal that reads back as the same number.
std::string literal(float x);
std::string literal(double x);
std::string literal(int64_t x, DType dtype);  // of an integer or bool
// The number as an element of the dtype: float, double, an integer or a bool.
std::string literal(double number, int64_t integer, DType dtype);

// "float", "int8_t", "bool" ...; empty where C99 has no such type.
std::string_view type_name(DType dtype);

// Text as a comment can hold it.
std::string comment(std::string_view text);

// Names of C that are taken once: name("conv 1") is conv_1, again conv_1_2.
class Names {
  public:
    Names();
    std::string name(std::string_view wish);

  private:
    std::set<std::string> taken_;
};

class Lines {
  public:
    template <class... Parts>
    void line(const Parts&... parts) {
        text_.append(static_cast<size_t>(depth_) * 4, ' ');
        (add(parts), ...);
        text_ += '\n';
    }
    template <class... Parts>
    void open(const Parts&... parts) {
        line(parts..., " {");
        ++depth_;
    }
    void close(std::string_view after = "") {
        --depth_;
        line("}", after);
    }
    void blank() { text_ += '\n'; }
    // `for (int i = 0; i < count; ++i) {`
    void count(std::string_view variable, int64_t count) {
        open("for (int ", variable, " = 0; ", variable, " < ", count, "; ++", variable, ")");
    }
    void raw(std::string_view text) { text_ += text; }
    int depth() const { return depth_; }
    void set_depth(int depth) { depth_ = depth; }
    // Closes all blocks that have been opened since depth() was `depth`.
    void close_to(int depth) {
        while (depth_ > depth) close();
    }
    const std::string& text() const { return text_; }
    std::string take() { return std::move(text_); }

  private:
    void add(std::string_view part) { text_ += part; }
    void add(std::integral auto part) { text_ += std::to_string(part); }
    std::string text_;
    int depth_ = 0;
};

// A sum of products such as `i0 * 28 + 3`, for indices.
class Index {
  public:
    Index& add(std::string_view variable, int64_t factor);
    Index& add(int64_t number) {
        number_ += number;
        return *this;
    }
    std::string text() const;

  private:
    std::string text_;
    int64_t number_ = 0;
};

}  // namespace lunaria::lite::micro
