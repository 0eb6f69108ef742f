#include "tests/gpu/driver/mock.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "tests/jit/graph/fibers.h"

extern "C" void mock_forget_graphs();

namespace lunaria::testing {

namespace {

constexpr Result kInvalid = 1, kNoMemory = 2, kIllegalAddress = 700;
constexpr size_t kPage = 4096;

}  // namespace

Mock& Mock::the() {
    static auto* mock = new Mock;
    return *mock;
}

Mock::Mock() {
    void* all = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base_ = fresh_ = reinterpret_cast<Address>(all);
    const int file = memfd_create("mock", MFD_CLOEXEC);
    void* inside = MAP_FAILED;
    if (file >= 0 && ftruncate(file, static_cast<off_t>(kSize)) == 0)
        inside = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (all == MAP_FAILED || inside == MAP_FAILED) std::abort();
    inside_ = static_cast<char*>(inside);
    const char* order = std::getenv("LUNARIA_MOCK_ORDER");
    soon_ = order && std::string_view(order) == "soon";
    ahead_ = order && std::string_view(order) == "ahead";
    const char* bytes = std::getenv("LUNARIA_MOCK_MEMORY");
    limit = bytes ? std::strtoull(bytes, nullptr, 10) : size_t{4} << 30;
}

Result Mock::call(const char* name, const std::function<Result()>& body) {
    const std::lock_guard lock(mutex_);
    ++calls[name];
    if (auto found = failures_.find(name); found != failures_.end() && --found->second.left == 0) {
        const Result result = found->second.result;
        failures_.erase(found);
        return result;
    }
    if (state != 0 && std::string_view(name) != "cuDevicePrimaryCtxReset_v2") return state;
    return body();
}

void Mock::blame(const std::string& text) { blamed += text + '\n'; }

void Mock::fail(const std::string& name, int64_t nth, Result result) { failures_[name] = {nth, result}; }

Result Mock::allocate(Address* address, size_t bytes) {
    const size_t size = (bytes + kPage - 1) / kPage * kPage;
    if (bytes == 0) return kInvalid;
    if (used + size > limit) return kNoMemory;
    Address block = fresh_;
    if (auto& list = free_[size]; !list.empty()) {
        block = list.front();  // another one than was given back last
        list.erase(list.begin());
    } else {
        fresh_ += size;
    }
    live_[block] = size;
    used += size;
    std::memset(inside(block), 0xa5, size);
    *address = block;
    return 0;
}

Result Mock::release(Address address) {
    const auto found = live_.find(address);
    if (found == live_.end()) {
        blame("memory is released that is not allocated");
        return kInvalid;
    }
    for (Stream* s : streams) run_until(s, s->given);
    free_[found->second].push_back(address);
    used -= found->second;
    madvise(inside(address), found->second, MADV_REMOVE);
    live_.erase(found);
    return 0;
}

Result Mock::allocate_host(void** memory, size_t bytes) {
    *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    pinned_[static_cast<char*>(*memory)] = bytes;
    return 0;
}

Result Mock::release_host(void* memory) {
    if (!pinned_.erase(static_cast<char*>(memory))) return kInvalid;
    std::free(memory);
    return 0;
}

bool Mock::holds(Address address, size_t bytes) const {
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) return false;
    --after;
    return address + bytes <= after->first + after->second;
}

bool Mock::is_pinned(const void* memory, size_t bytes) const {
    char* at = static_cast<char*>(const_cast<void*>(memory));
    auto after = pinned_.upper_bound(at);
    if (after == pinned_.begin()) return false;
    --after;
    return at + bytes <= after->first + after->second;
}

std::string Mock::fault_of(const std::string& text) {
    const char* target = std::getenv("LUNARIA_MOCK_TARGET");
    auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
    if (!target || !has(str(".target ", target, '\n'))) return "assembly for another processor";
    const size_t entry = text.find(".entry ");
    if (entry == std::string::npos || text.find(".entry ", entry + 1) != std::string::npos) return "not one kernel";
    if (!has(".visible .entry loop(")) return "a kernel of another name";
    // One parameter of 8-byte words, by value.
    const std::string head = text.substr(entry, text.find(')', entry) - entry);
    const size_t size = head.find("loop_param_0[");
    if (head.find("loop_param_1") != std::string::npos || size == std::string::npos) return "not one parameter";
    const int bytes = std::atoi(head.c_str() + size + std::strlen("loop_param_0["));
    constexpr int kMost = 4096;
    if (bytes <= 0 || bytes % 8 != 0 || bytes > kMost) return str("a parameter of ", bytes, " bytes");
    if (const char* folder = std::getenv("LUNARIA_MOCK_PTX"))
        std::ofstream(str(folder, "/k", modules.size() + 1, '.', target, ".ptx")) << text;
    return {};
}

void Mock::add(Stream* stream, std::function<void()> work) {
    constexpr size_t kMost = 1000;
    if (stream->captures) {
        auto node = std::make_unique<GraphNode>();
        node->work = std::move(work);
        if (!stream->captures->nodes.empty()) node->behind = {stream->captures->nodes.size() - 1};
        stream->captures->nodes.push_back(std::move(node));
        return;
    }
    stream->work.push_back(std::move(work));
    ++stream->given;
    if (soon_ || (ahead_ && stream->number > 0))
        run_until(stream, stream->given);
    else if (stream->work.size() > kMost)
        run_until(stream, stream->given - kMost / 2);
}

void Mock::run_until(Stream* stream, uint64_t number) {
    if (stream->done >= number) return;
    while (stream->done < number) {
        const std::function<void()> work = std::move(stream->work.front());
        stream->work.pop_front();
        ++stream->done;
        if (state == 0) work();
    }
}

Result Mock::kernel_work(Module* function, unsigned blocks, unsigned threads, unsigned near_bytes, void** arguments,
                         std::function<void()>* work) {
    constexpr unsigned kMostThreads = 1024, kMostNear = 48 << 10;
    constexpr Result kBadHandle = 400;
    if (!modules.contains(function)) {
        blame("a function is used that there is none of");
        return kBadHandle;
    }
    if (blocks == 0 || threads == 0 || threads > kMostThreads || near_bytes > kMostNear) return kInvalid;
    // How many words a kernel takes the real driver knows from the module; here the launch says it.
    const size_t count = 512;
    std::vector<uint64_t> words(count);
    std::memcpy(words.data(), arguments[0], count * sizeof(uint64_t));
    *work = [=, this] { run_kernel(function, blocks, threads, near_bytes, words, count); };
    return 0;
}

void Mock::run_kernel(Module* module, unsigned blocks, unsigned threads, unsigned near_bytes,
                      std::vector<uint64_t> words, size_t count) {
    ++calls["kernels"];
    if (!module->code || skips_kernels) return;
    if (auto found = failures_.find("kernel"); found != failures_.end() && --found->second.left == 0) {
        state = found->second.result;
        failures_.erase(found);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        if (is_of_device(words[i]) && !holds(words[i], 0)) {
            blame(str("word ", i, " of a kernel is an address of no memory"));
            state = kIllegalAddress;
            return;
        }
    for (size_t i = 0; i < count; ++i)
        if (is_of_device(words[i])) words[i] = reinterpret_cast<uint64_t>(inside(words[i]));
    graph::ThreadLaunch launch;
    launch.shape.row = graph::ThreadShape::Row::block;  // of a module nothing says whether threads wait for each other
    launch.blocks = blocks;
    launch.threads = static_cast<int>(threads);
    launch.near_bytes = near_bytes;
    const auto kernel = reinterpret_cast<graph::EmulatedKernel>(module->code);
    const std::string wrong = run_threads(kernel, launch, words, calls["kernels"] % 2);
    if (!wrong.empty()) blame(wrong);
}

void Mock::reset() {
    for (Stream* s : streams) delete s;
    for (Event* e : events) delete e;
    for (Module* m : modules) delete m;
    for (Graph* g : graphs) delete g;
    mock_forget_graphs();
    graphs.clear();
    streams.clear();
    events.clear();
    modules.clear();
    for (auto [memory, bytes] : pinned_) std::free(memory);
    pinned_.clear();
    for (auto [address, size] : live_) free_[size].push_back(address);
    live_.clear();
    used = 0;
    state = 0;
}

}  // namespace lunaria::testing
