#include "backends/gpu/launcher.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "core/base/error.h"
#include "core/loops/kernels.h"

namespace lunaria::gpu {

namespace {

// Indices may exceed a count by the number of threads of a launch.
constexpr int64_t kNarrow = (int64_t{1} << 31) - (int64_t{1} << 24);
constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;

void* load(std::string_view code) { return new ModuleFunction{.image = std::string(code)}; }

struct Known {
    std::mutex mutex;
    struct Entry {
        ModuleFunction* kernel = nullptr;
        size_t near_bytes = 0;
    };
    std::unordered_map<std::string, Entry> kernels;
};
Known& known() {
    static auto* instance = new Known;
    return *instance;
}

}  // namespace

DType moved_dtype(DType t) {
    switch (size_of(t)) {
        case 1:
            return DType::u8;
        case 2:
            return DType::i16;
        case 4:
            return DType::i32;
        default:
            return DType::i64;
    }
}

int64_t reach_of(const Tensor& t) {
    int64_t reach = 1;
    for (int i = 0; i < t.rank(); ++i) reach += std::abs(t.strides()[i]) * std::max<int64_t>(t.dim(i) - 1, 0);
    return reach;
}

Words& Words::tensor(const Tensor& t) { return address(reinterpret_cast<Address>(t.raw()), reach_of(t)); }

Words& Words::count(int64_t n) {
    narrow_ &= n < kNarrow;
    return *this;
}
Words& Words::real(double v) { return word(std::bit_cast<uint64_t>(v)); }

bool Launcher::run(const std::string& name, int64_t blocks, int threads, const Words& words, const Write& write) {
    if (blocks == 0) return true;
    Known::Entry entry;
    {
        Known& all = known();
        const std::lock_guard lock(all.mutex);
        auto [found, fresh] =
            all.kernels.try_emplace(str(target_, words.narrow_ ? " narrow " : " ", threads, ' ', name));
        if (fresh) {
            Writer writer(words.narrow_, threads);
            write(writer);
            const graph::ThreadProgram program = writer.finish();
            const graph::KernelRequest request{.threads = &program};
            found->second.kernel =
                static_cast<ModuleFunction*>(graph::find_kernels({target_, &load}, {&request, 1}).at(0));
            found->second.near_bytes = program.near_bytes;
        }
        entry = found->second;
    }
    if (!entry.kernel) return false;
    queue_.launch(
        *entry.kernel,
        {static_cast<unsigned>(blocks), static_cast<unsigned>(threads), static_cast<unsigned>(entry.near_bytes)},
        words.words_, words.operands_, what_);
    return true;
}

bool Launcher::run_for(const std::string& name, int64_t count, const Words& words, const Write& write) {
    const int64_t blocks = std::clamp<int64_t>((count + kThreads - 1) / kThreads, 1, kMostBlocks);
    return run(name, blocks, kThreads, words, write);
}

void Launcher::fill_zero(Address to, int64_t bytes) { queue_.fill_zero(to, static_cast<size_t>(bytes)); }

Address Launcher::make_flag() {
    if (const Address place = queue_.place_for_refusal(what_)) {
        is_waited_for_ = false;
        return place;
    }
    const Address flag = take(sizeof(int64_t));
    fill_zero(flag, sizeof(int64_t));
    return flag;
}

bool Launcher::is_set(Address flag) {
    if (!is_waited_for_) return false;
    int64_t value = 0;
    queue_.download(&value, flag, sizeof value);
    return value != 0;
}

}  // namespace lunaria::gpu
