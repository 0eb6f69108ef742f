// NCCL as the mock of the driver has it: ranks are processes that put what they send into files of a folder, and take
// from there what the others sent, when the work's turn in the stream comes. What it is asked for is counted.
// LUNARIA_MOCK_NCCL is its version; LUNARIA_MOCK_NCCL_REFUSES names a call that is refused.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "tests/gpu/libraries/library.h"

using namespace lunaria::testing;

namespace lunaria::testing {
const char* const kLibrary = "NCCL";
}

namespace {

constexpr Status kInvalidUsage = 5, kInProgress = 7;
struct Id {
    char bytes[128];
};
struct Settings {
    size_t size;
    unsigned magic, version;
    int blocking;
};

struct Comm {
    std::string folder;
    int rank = 0, size = 1;
    std::atomic<bool> is_aborted{false};
    std::atomic<int> asked{0};  // how often whether it has been accepted: the first answers say not yet
    std::map<std::pair<int, int>, int> sent, taken;
};

std::map<std::string, int64_t> calls;
int depth = 0;

struct Work {
    Comm* comm;
    std::string name;
    uint64_t in, out;
    size_t count, width;
    int dtype, op, other;
};
std::vector<Work*> grouped;
std::vector<void*> streams;

size_t width_of(int dtype) {
    switch (dtype) {
        case 0:
        case 1:
            return 1;
        case 2:
        case 3:
        case 7:
            return 4;
        case 6:
        case 9:
            return 2;
        default:
            return 8;
    }
}

std::string path(const Comm& c, int from, int to, int number) {
    return c.folder + "/" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
}
void put(Comm& c, int to, const std::string& bytes) {
    const std::string file = path(c, c.rank, to, c.sent[{c.rank, to}]++);
    std::ofstream(file + ".part", std::ios::binary) << bytes;
    std::filesystem::rename(file + ".part", file);
}
std::string take(Comm& c, int from) {
    const std::string file = path(c, from, c.rank, c.taken[{from, c.rank}]++);
    while (!std::filesystem::exists(file)) {
        if (c.is_aborted) return {};
        usleep(200);
    }
    std::ifstream stream(file, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    std::filesystem::remove(file);
    return bytes;
}

// Sums and so on of elements of the dtypes that the tests use.
template <class T>
void combine_as(int op, std::string& sum, const std::string& other) {
    for (size_t i = 0; i + sizeof(T) <= sum.size(); i += sizeof(T)) {
        T a, b;
        std::memcpy(&a, sum.data() + i, sizeof a);
        std::memcpy(&b, other.data() + i, sizeof b);
        a = op == 1 ? a * b : op == 2 ? std::max(a, b) : op == 3 ? std::min(a, b) : a + b;
        std::memcpy(sum.data() + i, &a, sizeof a);
    }
}
void combine(const Work& w, std::string& sum, const std::string& other) {
    if (other.size() != sum.size()) return;  // aborted
    switch (w.dtype) {
        case 2:
            return combine_as<int32_t>(w.op, sum, other);
        case 4:
            return combine_as<int64_t>(w.op, sum, other);
        case 7:
            return combine_as<float>(w.op, sum, other);
        case 8:
            return combine_as<double>(w.op, sum, other);
        default:
            blame("a dtype that its mock does not combine");
    }
}
std::string combined(const Work& w, const std::vector<std::string>& parts) {
    std::string sum = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) combine(w, sum, parts[i]);
    if (w.op == 4 && w.dtype == 7)
        for (size_t i = 0; i < sum.size(); i += 4) {
            float x;
            std::memcpy(&x, sum.data() + i, 4);
            x /= static_cast<float>(w.comm->size);
            std::memcpy(sum.data() + i, &x, 4);
        }
    return sum;
}

std::string read(uint64_t from, size_t bytes) {
    const void* memory = inside(from, bytes);
    if (!memory) blame("memory that is none of the device's");
    return memory ? std::string(static_cast<const char*>(memory), bytes) : std::string(bytes, 0);
}
void write(uint64_t to, const std::string& bytes) {
    if (void* memory = inside(to, bytes.size())) std::memcpy(memory, bytes.data(), bytes.size());
}

bool gives(const Work& w, int to) {
    return w.name == "send"        ? to == w.other
           : w.name == "recv"      ? false
           : w.name == "broadcast" ? w.comm->rank == w.other
           : w.name == "reduce"    ? to == w.other
                                   : true;
}
void give(const Work& w) {
    const size_t bytes = w.count * w.width;
    for (int to = 0; to < w.comm->size; ++to) {
        if (!gives(w, to)) continue;
        const bool pieces = w.name == "reduce_scatter";
        put(*w.comm, to, read(w.in + (pieces ? static_cast<size_t>(to) * bytes : 0), bytes));
    }
}
void get(const Work& w) {
    Comm& c = *w.comm;
    if (w.name == "send" || (w.name == "reduce" && c.rank != w.other)) return;
    if (w.name == "recv" || w.name == "broadcast") return write(w.out, take(c, w.other));
    std::vector<std::string> parts;
    for (int from = 0; from < c.size; ++from) parts.push_back(take(c, from));
    if (c.is_aborted) return;
    if (w.name != "all_gather") return write(w.out, combined(w, parts));
    for (size_t from = 0; from < parts.size(); ++from) write(w.out + from * w.count * w.width, parts[from]);
}

void run(void* what) {
    if (skips()) return;
    const auto& group = *static_cast<std::vector<Work>*>(what);  // kept: a graph runs it again
    for (const Work& w : group) give(w);
    for (const Work& w : group) get(w);
}

Status enqueue(const Work& work, void* stream) {
    ++calls[work.name];
    if (!know({work.comm})) return kInvalid;
    if (const char* refused = std::getenv("LUNARIA_MOCK_NCCL_REFUSES"); refused && work.name == refused)
        return kInvalidUsage;
    if (depth == 0) blame("a call outside of a group");
    grouped.push_back(new Work(work));
    streams.push_back(stream);
    return kInProgress;
}

Work work(const char* name, Comm* comm, const void* in, void* out, size_t count, int dtype, int op, int other) {
    return {comm, name, reinterpret_cast<uint64_t>(in), reinterpret_cast<uint64_t>(out), count, width_of(dtype), dtype,
            op,   other};
}

}  // namespace

#define EXPORT extern "C" [[gnu::visibility("default")]]

EXPORT Status ncclGetVersion(int* version) {
    *version = static_cast<int>(version_or("LUNARIA_MOCK_NCCL", 22809));
    return 0;
}
EXPORT const char* ncclGetErrorString(Status status) { return status == kInvalidUsage ? "invalid usage" : "a failure"; }
EXPORT const char* ncclGetLastError(void*) { return "told by the mock"; }
EXPORT Status ncclGetUniqueId(Id* id) {
    std::string name = (std::filesystem::temp_directory_path() / "nccl-XXXXXX").string();
    if (!mkdtemp(name.data()) || name.size() >= sizeof id->bytes) return kInvalid;
    std::memset(id, 0, sizeof *id);
    name.copy(id->bytes, sizeof id->bytes - 1);
    return 0;
}
EXPORT Status ncclCommInitRankConfig(Comm** comm, int size, Id id, int rank, Settings* settings) {
    if (settings->magic != 0xcafebeef || settings->size < 48 || settings->version < 21800 || settings->blocking != 0)
        blame("settings that are none");
    auto* made = new Comm;
    made->folder = id.bytes;
    made->rank = rank;
    made->size = size;
    alive().insert(made);
    *comm = made;
    return kInProgress;
}
EXPORT Status ncclCommAbort(Comm* comm) {
    ++calls["abort"];
    comm->is_aborted = true;
    return alive().erase(comm) ? 0 : kInvalid;
}
EXPORT Status ncclCommGetAsyncError(Comm* comm, Status* state) {
    *state = ++comm->asked % 3 == 0 ? 0 : kInProgress;
    return 0;
}
EXPORT Status ncclGroupStart() {
    ++depth;
    return 0;
}
EXPORT Status ncclGroupEnd() {
    if (--depth > 0) return 0;
    auto* group = new std::vector<Work>;
    for (Work* w : grouped) group->push_back(*w);
    if (!group->empty()) add(streams.back(), run, group);
    for (Work* w : grouped) delete w;
    grouped.clear();
    streams.clear();
    return kInProgress;
}
EXPORT Status ncclAllReduce(const void* in, void* out, size_t n, int dtype, int op, Comm* comm, void* stream) {
    return enqueue(work("all_reduce", comm, in, out, n, dtype, op, 0), stream);
}
EXPORT Status ncclReduce(const void* in, void* out, size_t n, int dtype, int op, int root, Comm* comm, void* stream) {
    return enqueue(work("reduce", comm, in, out, n, dtype, op, root), stream);
}
EXPORT Status ncclBroadcast(const void* in, void* out, size_t n, int dtype, int root, Comm* comm, void* stream) {
    return enqueue(work("broadcast", comm, in, out, n, dtype, 0, root), stream);
}
EXPORT Status ncclAllGather(const void* in, void* out, size_t n, int dtype, Comm* comm, void* stream) {
    return enqueue(work("all_gather", comm, in, out, n, dtype, 0, 0), stream);
}
EXPORT Status ncclReduceScatter(const void* in, void* out, size_t n, int dtype, int op, Comm* comm, void* stream) {
    return enqueue(work("reduce_scatter", comm, in, out, n, dtype, op, 0), stream);
}
EXPORT Status ncclSend(const void* in, size_t n, int dtype, int peer, Comm* comm, void* stream) {
    return enqueue(work("send", comm, in, nullptr, n, dtype, 0, peer), stream);
}
EXPORT Status ncclRecv(void* out, size_t n, int dtype, int peer, Comm* comm, void* stream) {
    return enqueue(work("recv", comm, nullptr, out, n, dtype, 0, peer), stream);
}
EXPORT int64_t mock_collectives(const char* name) { return calls[name]; }
