#include "core/tensor/tensor_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"

namespace lunaria {

namespace {

std::string float_text(double x, DType dtype) {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
    char text[40];
    std::snprintf(text, sizeof text, dtype == DType::f64 ? "%.16e" : is_half(dtype) ? "%.4e" : "%.8e", x);
    return text;
}

// The shortest text that reads back as the same number: best for a single value.
std::string short_text(const Tensor& t) {
    char text[40];
    const double x = t.at(0);
    if (std::isnan(x) || std::isinf(x)) return float_text(x, t.dtype());
    const auto end = t.dtype() == DType::f64 ? std::to_chars(text, text + sizeof text, x)
                                             : std::to_chars(text, text + sizeof text, static_cast<float>(x));
    return {text, end.ptr};
}

std::string element_text(const Tensor& t, int64_t index) {
    const DType dtype = t.dtype();
    if (dtype == DType::boolean) return t.integer_at(index) ? "True" : "False";
    if (dtype == DType::u64) return std::to_string(static_cast<uint64_t>(t.integer_at(index)));
    if (is_integer(dtype) || dtype == DType::q4x2) return std::to_string(t.integer_at(index));
    if (is_complex(dtype)) {
        const bool wide = dtype == DType::c128;
        const Complex128 z = wide ? t.data<Complex128>()[index] : Complex128(t.data<Complex64>()[index]);
        const std::string imaginary = float_text(z.imag(), part_of(dtype));
        return float_text(z.real(), part_of(dtype)) + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
    }
    return float_text(t.at(index), dtype);
}

class Writer {
  public:
    // `t` is dense.
    Writer(const Tensor& t, const PrintOptions& options, int indent)
        : t_(t), options_(options), indent_(indent), summarised_(t.size() > options.threshold) {
        // MindSpore leaves a column for the sign of a float.
        visit(0, 0, [&](int64_t index) {
            const std::string text = element_text(t_, index);
            width_ = std::max(width_, text.size() + (is_float(t_.dtype()) && text[0] != '-'));
        });
    }

    std::string write() {
        axis(0, 0);
        return std::move(out_);
    }

  private:
    bool cut(int64_t n) const { return summarised_ && n > 2 * options_.edge_items; }

    // Calls f for every element that is shown.
    template <class F>
    void visit(int depth, int64_t start, F&& f) const {
        if (depth == t_.rank()) return f(start);
        const int64_t n = t_.dim(depth), step = stride(depth);
        for (int64_t i = 0; i < n; ++i) {
            if (cut(n) && i == options_.edge_items) i = n - options_.edge_items;
            visit(depth + 1, start + i * step, f);
        }
    }

    int64_t stride(int depth) const {
        int64_t step = 1;
        for (int i = depth + 1; i < t_.rank(); ++i) step *= t_.dim(i);
        return step;
    }

    void axis(int depth, int64_t start) {
        out_ += '[';
        const int64_t n = t_.dim(depth), step = stride(depth);
        const bool innermost = depth == t_.rank() - 1;
        size_t line_start = out_.size() - static_cast<size_t>(indent_ + depth + 1);
        for (int64_t i = 0; i < n; ++i) {
            if (i > 0) {
                out_ += ',';
                if (!innermost) new_line(depth);
            }
            if (cut(n) && i == options_.edge_items) {
                out_ += innermost ? " ...," : "...,";
                if (!innermost) new_line(depth);
                i = n - options_.edge_items;
            }
            if (!innermost) {
                axis(depth + 1, start + i * step);
                continue;
            }
            const std::string text = element_text(t_, start + i);
            const size_t pad = width_ - std::min(width_, text.size());
            if (i > 0 && out_.size() - line_start + pad + text.size() + 3 > static_cast<size_t>(options_.line_width)) {
                line_start = out_.size() + 1;
                new_line(depth);
            } else if (i > 0) {
                out_ += ' ';
            }
            out_.append(pad, ' ');
            out_ += text;
        }
        out_ += ']';
    }

    void new_line(int depth) {
        // Blocks of more than two axes are separated.
        out_ += '\n';
        out_.append(static_cast<size_t>(indent_ + depth + 1), ' ');
    }

    const Tensor& t_;
    const PrintOptions& options_;
    int indent_;
    bool summarised_;
    size_t width_ = 0;
    std::string out_;
};

}  // namespace

std::string elements_text(const Tensor& tensor, const PrintOptions& options, int indent) {
    if (tensor.size() == 0) return "[]";
    const Tensor dense = tensor.contiguous().to_host();
    if (dense.rank() == 0) return is_float(dense.dtype()) ? short_text(dense) : element_text(dense, 0);
    return Writer(dense, options, indent).write();
}

std::string dtype_text(DType dtype) {
    if (dtype == DType::bf16) return "BFloat16";
    if (dtype == DType::q4x2) return "QInt4x2";
    std::string name(name_of(dtype));
    if (name.starts_with("uint")) return "UI" + name.substr(2);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    return name;
}

std::string tensor_text(const Tensor& tensor, const PrintOptions& options) {
    std::string shape;
    for (int64_t d : tensor.shape()) shape += str(shape.empty() ? "" : ", ", d);
    const bool rows = tensor.rank() > 0 && tensor.size() > 0;
    return str("Tensor(shape=[", shape, "], dtype=", dtype_text(tensor.dtype()), ", value=", rows ? "\n" : " ",
               elements_text(tensor, options), ")");
}

}  // namespace lunaria
