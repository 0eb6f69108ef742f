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

bool takes_any_strides(const Op& op) {
    return op.takes_strides || (layouts().device && current_device() == layouts().device && layouts().any_strides(op));
}

bool takes_any_floats(const Op& op) {
    return takes_halves(op) || (layouts().device && current_device() == layouts().device && layouts().halves(op));
}

}  // namespace lunaria
