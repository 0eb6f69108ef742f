#include "core/federated/primitives.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/error.h"
#include "core/base/own_library.h"
#include "core/io/secure_random.h"

namespace lunaria::federated {

void wipe(void* bytes, size_t count) { explicit_bzero(bytes, count); }

void wipe(std::string& text) {
    wipe(text.data(), text.size());
    text.clear();
}

Secret Secret::random(std::string_view where) {
    Secret secret;
    secure_random(where, secret.bytes_.data(), secret.bytes_.size());
    return secret;
}

Secret Secret::of(std::string_view bytes) {
    Secret secret;
    std::copy_n(bytes.begin(), std::min(bytes.size(), secret.bytes_.size()), secret.bytes_.begin());
    return secret;
}

const Primitives& primitives(std::string_view where) {
    static std::mutex mutex;
    static const Primitives* known = nullptr;
    const std::lock_guard lock(mutex);
    if (known) return *known;
    std::string problem;
    if (void* function = own_library_function("liblunaria_primitives.so", kPrimitivesSymbol, problem))
        known = reinterpret_cast<PrimitivesFunction>(function)();
    if (!known)
        throw state_error(where, problem.empty() ? "libsodium cannot be set up" : problem)
            .hint(
                "cryptography needs OpenSSL and libsodium (libssl-dev, libsodium-dev) and the target "
                "lunaria_primitives");
    return *known;
}

}  // namespace lunaria::federated
