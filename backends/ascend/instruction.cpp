#include "backends/ascend/instruction.h"

namespace lunaria::ascend {

WindowCount windows_of(const Window& n) {
    auto count = [&](int size, int before, int after, int kernel, int stride, int dilation) {
        const auto at = [&](int place) { return int64_t{n[static_cast<size_t>(place)]}; };
        const int64_t room = at(size) + at(before) + at(after) - (at(kernel) - 1) * at(dilation) - 1;
        return room < 0 ? 0 : room / at(stride) + 1;
    };
    return {count(kHeight, kPadTop, kPadBottom, kKernelH, kStrideH, kDilationH),
            count(kWidth, kPadLeft, kPadRight, kKernelW, kStrideW, kDilationW)};
}

const char* name_of(Pipe pipe) {
    constexpr const char* kNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3"};
    return kNames[static_cast<int>(pipe)];
}

const char* name_of(Space space) {
    constexpr const char* kNames[] = {"GM", "L1", "L0A", "L0B", "L0C", "UB"};
    return kNames[static_cast<int>(space)];
}

const char* name_of(Opcode op) {
    constexpr const char* kNames[] = {"move",      "load2d",   "load3d",    "mmad",       "drain",
                                      "binary",    "unary",    "scalar",    "vconv",      "vcmp",
                                      "vsel",      "vdup",     "reduction", "vtranspose", "scalar_load",
                                      "scalar_op", "set_flag", "wait_flag", "barrier"};
    return kNames[static_cast<int>(op)];
}

const char* name_of(Arithmetic kind) {
    constexpr const char* kNames[] = {
        "vadd", "vsub",   "vmul",  "vmax", "vmin",  "vdiv",  "vmla",  "vabs",   "vrelu",  "vexp",   "vln",
        "vrec", "vrsqrt", "vsqrt", "copy", "vadds", "vmuls", "vmaxs", "vmins",  "vaxpy",  "lt",     "le",
        "gt",   "ge",     "eq",    "ne",   "vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"};
    return kNames[static_cast<int>(kind)];
}

const char* name_of(const Instruction& i) {
    if (i.op == Opcode::move) return i.a.space == Space::gm ? "load" : i.dst.space == Space::gm ? "store" : "copy";
    const bool by_kind =
        i.op == Opcode::binary || i.op == Opcode::unary || i.op == Opcode::with_scalar || i.op == Opcode::reduce;
    return by_kind ? name_of(i.kind) : name_of(i.op);
}

}  // namespace lunaria::ascend
