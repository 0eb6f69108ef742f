// Stored states of federated jobs, and requests after them: in both kinds of jobs.
#include "core/federated/rounds.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria::federated;
    if (size == 0) return 0;
    JobSettings settings;
    settings.iterations = 3;
    settings.start_threshold = 2;
    settings.asynchronous = data[0] & 1;
    settings.encryption = settings.asynchronous ? Encryption::none : static_cast<Encryption>(data[0] / 2 % 3);
    settings.signed_lists = data[0] & 8;
    try {
        Rounds rounds(settings, std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
        Time now = 0;
        for (DeviceId device = 0; device < 4; ++device) {
            now += 1000;
            rounds.start(now, device);
            rounds.cipher(now, device, rounds.iteration(), Phase::exchanging_keys);
            rounds.update(now, device, rounds.iteration(), 1);
            if (rounds.phase() == Phase::aggregating) rounds.finish(now, true);
        }
        if (Rounds(settings, rounds.bytes()).bytes() != rounds.bytes()) __builtin_trap();
    } catch (const lunaria::Error&) {
    }
    return 0;
}
