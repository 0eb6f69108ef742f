// Light models: the bytes after the head, with right checksums, so that the checks of the content are reached.
#include <cstring>
#include <vector>

#include "core/lite/format/file.h"
#include "core/lite/format/head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria::lite;
    std::vector<std::byte> memory(size + 2 * kAlignment);
    const auto at = reinterpret_cast<uintptr_t>(memory.data()) % kAlignment;
    const std::span<std::byte> file = std::span(memory).subspan((kAlignment - at) % kAlignment, size);
    if (size > 0) std::memcpy(file.data(), data, size);
    if (size >= sizeof(Head)) {
        Head head;
        std::memcpy(&head, file.data(), sizeof head);
        if (head.content_at >= sizeof head && head.content_at <= size)
            head.description_sum = crc32(file.subspan(sizeof head, head.content_at - sizeof head));
        head.sum = sum_of(head);
        std::memcpy(file.data(), &head, sizeof head);
    }
    Model model;
    Fault fault;
    read_model(file, model, fault, {.checks_weights = false});
    return 0;
}
