// Checks of an instruction: the places that it reads and writes, and earlier accesses to them.
#include <algorithm>
#include <initializer_list>

#include "backends/ascend/core.h"
#include "core/base/error.h"

namespace lunaria::ascend {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string name(const Instruction& i) { return name_of(i); }

// The most lanes of an instruction of the vector pipe: the elements in one repeat of 256 bytes.
int64_t most_lanes(const Instruction& i) {
    const size_t size = i.op == Opcode::convert ? std::max(size_of(i.type), size_of(i.to)) : size_of(i.type);
    return 256 / static_cast<int64_t>(size);
}

std::string what_is_wrong_with_repeats(const Instruction& i, bool divides) {
    if (i.op < Opcode::binary || i.op > Opcode::reduce) return {};
    if ((i.kind == Arithmetic::div || i.kind == Arithmetic::sqrt) && !divides)
        return "this chip has no such instruction: use vrec or vrsqrt with steps of Newton's method";
    if (i.n[0] < 1 || i.n[0] > 255) return str("1 to 255 repeats are possible, got ", i.n[0]);
    if (i.n[1] < 1 || i.n[1] > most_lanes(i))
        return str("a repeat has 1 to ", most_lanes(i), " elements of this type, got ", i.n[1]);
    return {};
}

std::string what_is_wrong_with_window(const Window& n) {
    auto all_at_least = [&](int32_t least, std::initializer_list<int> numbers) {
        return std::ranges::all_of(numbers, [&](int k) { return n[static_cast<size_t>(k)] >= least; });
    };
    if (!all_at_least(1, {kRowFractals, kStepFractals})) return "at least one square of 16 x 16 is needed";
    if (!all_at_least(1, {kKernelH, kKernelW, kStrideH, kStrideW, kDilationH, kDilationW}))
        return "kernel, stride and dilation must be positive";
    if (!all_at_least(1, {kHeight, kWidth, kChannels})) return "height, width and channels must be positive";
    if (!all_at_least(0, {kPadTop, kPadLeft, kPadBottom, kPadRight, kFirstRow, kFirstStep}))
        return "padding, row and step must not be negative";
    const auto [rows, columns] = windows_of(n);
    return rows < 1 || columns < 1 ? "the picture with its padding is smaller than a window" : std::string();
}

}  // namespace

bool Core::is_legal(const Instruction& i) {
    auto at_least_one = [&](std::initializer_list<int> numbers) {
        return std::ranges::all_of(numbers, [&](int n) { return i.n[static_cast<size_t>(n)] >= 1; });
    };
    std::string wrong;
    switch (i.op) {
        case Opcode::move:
            if (!at_least_one({0, 1})) wrong = "at least one burst of one byte is needed";
            break;
        case Opcode::load2d:
        case Opcode::drain:
        case Opcode::transpose:
            if (!at_least_one({0})) wrong = str("at least one square of 16 x 16 is needed, got ", i.n[0]);
            break;
        case Opcode::load3d:
            wrong = what_is_wrong_with_window(window(i));
            break;
        case Opcode::mmad:
            if (!at_least_one({0, 1, 2})) wrong = "m, k and n must be positive";
            break;
        default:
            wrong = what_is_wrong_with_repeats(i, settings_.divides);
    }
    if (!wrong.empty()) fault("illegal", name(i) + ": " + wrong);
    return wrong.empty();
}

bool Core::is_aligned(const Instruction& i, const Operand& o, int64_t address) {
    if (o.space == Space::gm) return true;
    const int64_t unit = o.space == Space::l0c                            ? 1024
                         : o.space == Space::l0a || o.space == Space::l0b ? 512
                                                                          : Memory::kBlock;
    if (address % unit == 0) return true;
    fault("misaligned",
          str(name(i), ": the address ", address, " of ", name_of(o.space), " must be a multiple of ", unit));
    return false;
}

bool Core::touch(const Instruction& i, const Operand& o, int64_t offset, int64_t bytes, bool writes) {
    Memory& m = memory(o);
    const int64_t from = o.address + offset;
    if (from < 0 || bytes < 0 || from + bytes > m.size()) {
        const std::string where =
            o.space == Space::gm ? "the tensor " + tensors_[static_cast<size_t>(o.tensor)].name : name_of(o.space);
        fault("overflow", str(name(i), ": bytes ", from, " to ", from + bytes, " are not inside ", where,
                              ", which has ", m.size()));
        return false;
    }
    if (bytes == 0) return true;
    const Memory::Access access = writes ? m.write(from, bytes, i.pipe, clock_) : m.read(from, bytes, i.pipe, clock_);
    if (access.unwritten)
        fault("uninitialised",
              str(name(i), ": reads bytes ", from, " to ", from + bytes, " of ",
                  o.space == Space::gm ? tensors_[static_cast<size_t>(o.tensor)].name : name_of(o.space),
                  ", which were not all written"));
    const auto& conflict = access.conflict;
    if (conflict) {
        const char* other = name_of(conflict->other);
        fault("race",
              str(name(i), ": ", writes ? "writes" : "reads", " bytes ", from, " to ", from + bytes, " of ",
                  o.space == Space::gm ? tensors_[static_cast<size_t>(o.tensor)].name : name_of(o.space), " that ",
                  other, conflict->other_wrote ? " writes" : " reads", ", and nothing makes ", name_of(i.pipe),
                  " wait: set_flag(\"", other, "\", \"", name_of(i.pipe), "\", n) and wait_flag are missing"));
    }
    if (o.space == Space::gm) share(i, o, from, bytes, writes);
    return true;
}

// Blocks of a kernel run on different cores in no order, and global memory is written in units of 32 bytes.
void Core::share(const Instruction& i, const Operand& o, int64_t from, int64_t bytes, bool writes) {
    GlobalTensor& t = tensors_[static_cast<size_t>(o.tensor)];
    int other = -1;
    for (int64_t b = from / Memory::kBlock; b <= (from + bytes - 1) / Memory::kBlock; ++b) {
        int32_t &writer = t.writers[static_cast<size_t>(b)], &reader = t.readers[static_cast<size_t>(b)];
        if (writer >= 0 && writer != block_) other = writer;
        if (writes && reader >= 0 && reader != block_) other = reader;
        (writes ? writer : reader) = block_;
    }
    if (other >= 0)
        fault("cores",
              str(name(i), ": ", writes ? "writes" : "reads", " bytes of ", t.name, " (in units of 32) that block ",
                  other, " of the kernel uses as well; blocks run on different cores in any order"));
}

bool Core::touch_all(const Instruction& i) {
    switch (i.op) {
        case Opcode::move:
            return touch_move(i);
        case Opcode::load2d:
        case Opcode::load3d:
        case Opcode::mmad:
        case Opcode::drain:
            return touch_cube(i);
        case Opcode::scalar_load:
            return touch(i, i.a, 0, static_cast<int64_t>(size_of(i.type)), false);
        case Opcode::scalar_op:
            return true;
        default:
            return touch_vector(i);
    }
}

bool Core::touch_move(const Instruction& i) {
    if (!is_aligned(i, i.a, i.a.address) || !is_aligned(i, i.dst, i.dst.address)) return false;
    const int64_t bursts = i.n[0], bytes = i.n[1];
    if (i.n[0] > 1 && (!is_aligned(i, i.a, i.n[2]) || !is_aligned(i, i.dst, i.n[3]))) return false;
    // Engines move whole blocks; only the end of a tensor may be shorter.
    const Operand& outside = i.a.space == Space::gm ? i.a : i.dst;
    const bool ends = outside.space == Space::gm && bursts == 1 && outside.address + bytes == memory(outside).size();
    if (bytes % Memory::kBlock != 0 && !ends) {
        fault("misaligned",
              str(name(i), ": a burst of ", bytes, " bytes is no multiple of 32, and no tensor ends there"));
        return false;
    }
    for (int64_t b = 0; b < bursts; ++b)
        if (!touch(i, i.a, b * i.n[2], bytes, false) || !touch(i, i.dst, b * i.n[3], bytes, true)) return false;
    return true;
}

bool Core::touch_cube(const Instruction& i) {
    const int64_t size = static_cast<int64_t>(size_of(i.type));
    if (i.op == Opcode::load2d) {
        if (!is_aligned(i, i.a, i.a.address) || !is_aligned(i, i.dst, i.dst.address)) return false;
        for (int64_t f = 0; f < i.n[0]; ++f)
            if (!touch(i, i.a, f * i.n[1] * 512, 512, false) || !touch(i, i.dst, f * i.n[2] * 512, 512, true))
                return false;
        return true;
    }
    if (i.op == Opcode::load3d) {
        if (!is_aligned(i, i.a, i.a.address) || !is_aligned(i, i.dst, i.dst.address)) return false;
        const Window& n = window(i);
        const int64_t picture = int64_t{n[kHeight]} * n[kWidth] * n[kChannels] * 32;
        return touch(i, i.a, 0, picture, false) &&
               touch(i, i.dst, 0, int64_t{n[kRowFractals]} * n[kStepFractals] * 512, true);
    }
    if (i.op == Opcode::drain) {
        if (!is_aligned(i, i.a, i.a.address) || !is_aligned(i, i.dst, i.dst.address)) return false;
        for (int64_t f = 0; f < i.n[0]; ++f)
            if (!touch(i, i.a, f * i.n[1] * 1024, 1024, false)) return false;
        return touch(i, i.dst, 0, i.n[0] * 256 * static_cast<int64_t>(size_of(i.to)), true);
    }
    const int64_t step = i.type == DType::i8 ? 32 : 16;
    const int64_t m = ceil_div(i.n[0], 16) * 16, k = ceil_div(i.n[1], step) * step, n = ceil_div(i.n[2], 16) * 16;
    if (!is_aligned(i, i.a, i.a.address) || !is_aligned(i, i.b, i.b.address) || !is_aligned(i, i.dst, i.dst.address))
        return false;
    if (!touch(i, i.a, 0, m * k * size, false) || !touch(i, i.b, 0, k * n * size, false)) return false;
    if (!i.n[3] && !touch(i, i.dst, 0, m * n * 4, false)) return false;
    return touch(i, i.dst, 0, m * n * 4, true);
}

// Walks over an operand by repeats; a dense operand in one step.
bool Core::walk(const Instruction& i, const Operand& o, int64_t stride, int64_t bytes, bool writes) {
    if (!is_aligned(i, o, o.address)) return false;
    const int64_t step = stride * Memory::kBlock;
    if (step == bytes) return touch(i, o, 0, bytes * i.n[0], writes);
    for (int64_t r = 0; r < i.n[0]; ++r)
        if (!touch(i, o, r * step, bytes, writes)) return false;
    return true;
}

bool Core::touch_dense(const Instruction& i, const Operand& o, int64_t bytes, bool writes) {
    return is_aligned(i, o, o.address) && touch(i, o, 0, bytes, writes);
}

bool Core::touch_vector(const Instruction& i) {
    const auto from = static_cast<int64_t>(size_of(i.type));
    const auto to = static_cast<int64_t>(size_of(i.op == Opcode::convert ? i.to : i.type));
    const int64_t repeats = i.n[0], lanes = i.n[1], bits = ceil_div(lanes, 8) * repeats;
    switch (i.op) {
        case Opcode::transpose:
            return touch_dense(i, i.a, repeats * 512, false) && touch_dense(i, i.dst, repeats * 512, true);
        case Opcode::compare:
            return walk(i, i.a, i.n[3], lanes * from, false) && walk(i, i.b, i.n[4], lanes * from, false) &&
                   touch_dense(i, i.dst, bits, true);
        case Opcode::select:
            return touch_dense(i, i.b, bits, false) && walk(i, i.a, i.n[3], lanes * from, false) &&
                   walk(i, i.c, i.n[4], lanes * from, false) && walk(i, i.dst, i.n[2], lanes * from, true);
        case Opcode::duplicate:
            return walk(i, i.dst, i.n[2], lanes * from, true);
        case Opcode::reduce: {
            const int64_t each = i.kind <= Arithmetic::lowest ? 1
                                 : i.kind == Arithmetic::pair ? lanes / 2
                                                              : ceil_div(lanes * from, 32);
            return walk(i, i.a, i.n[3], lanes * from, false) && touch_dense(i, i.dst, each * repeats * from, true);
        }
        default:
            break;
    }
    const bool adds_to = i.kind == Arithmetic::mla || i.kind == Arithmetic::axpy;
    return walk(i, i.a, i.n[3], lanes * from, false) &&
           (i.op != Opcode::binary || walk(i, i.b, i.n[4], lanes * from, false)) &&
           (!adds_to || walk(i, i.dst, i.n[2], lanes * to, false)) && walk(i, i.dst, i.n[2], lanes * to, true);
}

}  // namespace lunaria::ascend
