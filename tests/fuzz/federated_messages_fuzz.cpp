// Any bytes are a message between clients and server of a federated job, or an Error; what was read is written and read
// again.
#include "core/federated/messages.h"

#include <cstdlib>

using namespace lunaria;
using namespace lunaria::federated::messages;

namespace {

template <class M>
void read(std::string_view bytes) {
    std::string first;
    try {
        first = written(parsed<M>(bytes, "message"));
    } catch (const Error&) {
        return;
    }
    // Must not throw: what passed the checks once passes them again, and is the same.
    if (written(parsed<M>(first, "message")) != first) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    constexpr void (*kReaders[])(std::string_view) = {
        read<Envelope>,    read<Reply>,       read<StartFLJob>, read<StartedFLJob>,  read<ClientKeys>,
        read<KeyList>,     read<ShareList>,   read<ClientList>, read<ListSignature>, read<ListSignatures>,
        read<UpdateModel>, read<PushMetrics>, read<FeatureMap>, read<Plan>};
    kReaders[data[0] % std::size(kReaders)]({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
}
