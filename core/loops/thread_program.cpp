#include "core/loops/thread_program.h"

#include <bit>
#include <cstdint>

#include "core/base/error.h"

namespace lunaria::graph {

std::string ThreadProgram::text() const {
    std::string text = str("threads ", threads, ' ', words, ' ', near_bytes, exact ? " exact\n" : "\n");
    for (const ThreadInstruction& i : code) {
        text += str(static_cast<int>(i.kind), ' ', name_of(i.dtype), ' ', i.name);
        for (uint32_t a : i.args) text += str(" %", a);
        text += str(' ', std::bit_cast<uint64_t>(i.number), ' ', i.integer, ' ', static_cast<int>(i.align), '\n');
    }
    return text;
}

}  // namespace lunaria::graph
