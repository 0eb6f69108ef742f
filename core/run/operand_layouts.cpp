#include "core/run/operand_layouts.h"

namespace lunaria {

namespace {
struct Layouts {
    const Device* device = nullptr;
    TakesOperands any_strides = nullptr, halves = nullptr;
};
Layouts& layouts() {
    static constinit Layouts instance;
    return instance;
}
}  // namespace

void set_operand_layouts(const Device* device, TakesOperands any_strides, TakesOperands halves) {
    layouts() = {device, any_strides, halves};
}

bool reads_any_strides(const Op& op) {
    return layouts().device && current_device() == layouts().device && layouts().any_strides(op);
}

bool takes_any_strides(const Op& op) { return op.takes_strides || reads_any_strides(op); }

bool takes_any_floats(const Op& op, std::span<const Value> args) {
    if (takes_halves(op)) return true;
    const bool is_half_given = !args.empty() && args[0].is_tensor() && is_half(args[0].tensor().dtype());
    return is_half_given && layouts().device && current_device() == layouts().device && layouts().halves(op);
}

}  // namespace lunaria
