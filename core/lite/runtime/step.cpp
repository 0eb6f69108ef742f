#include "core/lite/runtime/step.h"

#include <array>

#include "core/lite/format/sizes.h"
#include "core/lite/runtime/plain_blocks.h"

namespace lunaria::lite {

bool Operand::is_dense() const {
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (shape[i] != 1 && strides[i] != step) return size() == 0;
        step *= shape[i];
    }
    return true;
}

int64_t Operand::size() const {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    return count;
}

int64_t StepForm::integer(std::string_view name, int64_t otherwise) const {
    const Attribute* a = find(step.attributes, name);
    if (a && a->kind == Attribute::Kind::numbers && !a->numbers.empty()) return static_cast<int64_t>(a->numbers[0]);
    if (!a || a->integers.empty()) return otherwise;
    return evaluate(model, a->integers[0], dimensions).value_or(otherwise);
}

double StepForm::number(std::string_view name, double otherwise) const {
    const Attribute* a = find(step.attributes, name);
    if (a && a->kind == Attribute::Kind::numbers && !a->numbers.empty()) return a->numbers[0];
    return a && !a->integers.empty() ? static_cast<double>(integer(name)) : otherwise;
}

std::string_view StepForm::text(std::string_view name) const {
    const Attribute* a = find(step.attributes, name);
    return a ? std::string_view(a->text) : std::string_view();
}

std::vector<int64_t> StepForm::integers(std::string_view name) const {
    std::vector<int64_t> list;
    if (const Attribute* a = find(step.attributes, name)) {
        if (a->kind == Attribute::Kind::numbers)
            for (const double x : a->numbers) list.push_back(static_cast<int64_t>(x));
        else if (!evaluate(model, a->integers, dimensions, list))
            list.clear();
    }
    return list;
}

int StepForm::axis(std::string_view name, int rank, int64_t otherwise) const {
    int64_t a = integer(name, otherwise);
    if (a < 0) a += rank;
    return a >= 0 && a < rank ? static_cast<int>(a) : -1;
}

const Operand& StepForm::operand(size_t i) const {
    static const Operand absent;
    return i < in.size() ? in[i] : absent;
}

Prepare find_kind(std::string_view name) {
    const std::array lists{product_kinds(),   pool_kinds(), arrangement_kinds(), index_kinds(),   order_kinds(),
                           reduction_kinds(), row_kinds(),  integer_kinds(),     training_kinds()};
    for (const std::span<const StepKind> list : lists)
        for (const StepKind& kind : list)
            if (kind.name == name) return kind.prepare;
    for (const DType t : {DType::f32, DType::i64, DType::boolean})
        if (find_formula(name, t)) return prepare_elements;
    return nullptr;
}

}  // namespace lunaria::lite
