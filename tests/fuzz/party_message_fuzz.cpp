// Any bytes are a message between vertical parties, or one of the intersection of ids, or an Error. What could be read
// is written again as a message that reads the same.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/federated/vertical/party_message.h"
#include "core/federated/vertical/psi_message.h"

using namespace lunaria;
using namespace lunaria::federated;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        const std::string again = text_of(read_party_message(bytes, "input"));
        if (text_of(read_party_message(again, "input")) != again) std::abort();
    } catch (const Error&) {
    }
    try {
        const std::string again = text_of(read_psi_message(bytes));
        if (text_of(read_psi_message(again)) != again) std::abort();
    } catch (const Error&) {
    }
    return 0;
}
