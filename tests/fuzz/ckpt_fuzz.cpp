// Any bytes are a checkpoint or an Error; what could be read survives being written again.
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/io/ckpt.h"

namespace {

bool same(const lunaria::CkptValue& a, const lunaria::CkptValue& b) {
    if (a.index() != b.index()) return false;
    if (const auto* text = std::get_if<std::string>(&a)) return *text == std::get<std::string>(b);
    const auto& x = std::get<lunaria::Tensor>(a);
    const auto& y = std::get<lunaria::Tensor>(b);
    return x.dtype() == y.dtype() && x.shape() == y.shape() && std::memcmp(x.raw(), y.raw(), x.nbytes()) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::vector<NamedCkptValue> values;
    try {
        values = CkptFile(memory_source("fuzz", bytes), CkptCheck::never).read_all();
    } catch (const Error&) {
        return 0;
    }
    StringSink sink;
    write_ckpt(sink, values, true);
    const auto again = CkptFile(memory_source("fuzz", sink.text()), CkptCheck::required).read_all();
    if (again.size() != values.size()) std::abort();
    for (size_t i = 0; i < again.size(); ++i)
        if (again[i].first != values[i].first || !same(again[i].second, values[i].second)) std::abort();
    return 0;
}
