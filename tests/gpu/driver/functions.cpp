// The functions of the driver, as programs find them by their names, and those by which tests ask the mock.
#include <elf.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "backends/cpu/machine_code.h"
#include "tests/gpu/driver/mock.h"

using namespace lunaria::testing;

namespace {

constexpr Result kInvalid = 1, kBadHandle = 400, kNotReady = 600, kCaptures = 900;

Mock& mock() { return Mock::the(); }

double now() {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now().time_since_epoch();
    return time.count();
}

template <class T>
bool knows(const std::set<T*>& all, T* one, const char* what) {
    if (all.contains(one)) return true;
    mock().blame(std::string(what) + " is used that there is none of");
    return false;
}

// Of an object file: the list of sections is its end.
size_t bytes_of_object(const void* image) {
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return 0;
    return header.e_shoff + static_cast<size_t>(header.e_shnum) * header.e_shentsize;
}

Result copy(const char* name, Stream* stream, Address device, const void* host, size_t bytes, bool to_device) {
    return mock().call(name, [=] {
        if (!knows(mock().streams, stream, "a stream")) return kBadHandle;
        if (!mock().holds(device, bytes)) {
            mock().blame("a copy of memory that is not allocated");
            return kInvalid;
        }
        if (!mock().is_pinned(host, bytes)) mock().blame("memory that can move takes part in an asynchronous copy");
        mock().add(stream, [=] {
            mock().bytes[name] += static_cast<int64_t>(bytes);
            void *there = mock().inside(device), *here = const_cast<void*>(host);
            std::memcpy(to_device ? there : here, to_device ? here : there, bytes);
        });
        return 0;
    });
}

}  // namespace

#define EXPORT [[gnu::visibility("default")]]

extern "C" {

int64_t mock_ready_graphs();

// What libraries that stand beside the driver do on a stream.
EXPORT void mock_add(Stream* stream, void (*work)(void*), void* what) {
    mock().call("library", [=] {
        if (knows(mock().streams, stream, "a stream")) mock().add(stream, [=] { work(what); });
        return 0;
    });
}
// Where the host finds that memory of the device, null where it is not allocated.
EXPORT void* mock_inside(Address address, size_t bytes) {
    return mock().holds(address, bytes) ? mock().inside(address) : nullptr;
}
EXPORT int mock_skips() { return mock().skips_kernels; }
EXPORT void mock_blame(const char* text) { mock().blame(text); }

// What modules are made for.
EXPORT const char* lunaria_target() {
    const char* wish = std::getenv("LUNARIA_MOCK_TARGET");
    return wish ? wish : "x86-64-v3";
}

EXPORT Result cuInit(unsigned) {
    return mock().call("cuInit", [] { return 0; });
}
EXPORT Result cuDriverGetVersion(int* version) {
    const char* wish = std::getenv("LUNARIA_MOCK_VERSION");
    *version = wish ? std::atoi(wish) : 13000;
    return 0;
}
EXPORT Result cuGetErrorName(Result result, const char** text) {
    *text = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_MOCK";
    return 0;
}
EXPORT Result cuGetErrorString(Result result, const char** text) {
    *text = result == 2 ? "out of memory" : result == 700 ? "an illegal memory access was encountered" : "a failure";
    return 0;
}
EXPORT Result cuDeviceGetCount(int* count) {
    const char* wish = std::getenv("LUNARIA_MOCK_COUNT");
    *count = wish ? std::atoi(wish) : 1;
    return 0;
}
EXPORT Result cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return 0;
}
EXPORT Result cuDeviceGetName(char* name, int length, int) {
    std::strncpy(name, "Mock", static_cast<size_t>(length));
    return 0;
}
EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int) {
    const char* wish = std::getenv("LUNARIA_MOCK_MAJOR");
    *value = attribute == 75 ? (wish ? std::atoi(wish) : 9) : 0;
    return 0;
}
EXPORT Result cuDevicePrimaryCtxRetain(void** context, int) {
    *context = &mock();
    return mock().call("cuDevicePrimaryCtxRetain", [] { return 0; });
}
EXPORT Result cuDevicePrimaryCtxReset_v2(int) {
    return mock().call("cuDevicePrimaryCtxReset_v2", [] {
        mock().reset();
        return 0;
    });
}
EXPORT Result cuCtxSetCurrent(void*) { return 0; }

EXPORT Result cuMemGetInfo_v2(size_t* free, size_t* total) {
    *total = mock().limit;
    *free = mock().limit - mock().used;
    return 0;
}
EXPORT Result cuMemAlloc_v2(Address* address, size_t bytes) {
    return mock().call("cuMemAlloc_v2", [=] { return mock().allocate(address, bytes); });
}
EXPORT Result cuMemFree_v2(Address address) {
    return mock().call("cuMemFree_v2", [=] { return mock().release(address); });
}
EXPORT Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
    return mock().call("cuMemHostAlloc", [=] { return mock().allocate_host(memory, bytes); });
}
EXPORT Result cuMemFreeHost(void* memory) {
    return mock().call("cuMemFreeHost", [=] { return mock().release_host(memory); });
}
EXPORT Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
    return copy("cuMemcpyHtoDAsync_v2", stream, to, from, bytes, true);
}
EXPORT Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
    return copy("cuMemcpyDtoHAsync_v2", stream, from, to, bytes, false);
}
EXPORT Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
    return mock().call("cuMemcpyDtoDAsync_v2", [=] {
        if (!knows(mock().streams, stream, "a stream")) return kBadHandle;
        if (!mock().holds(to, bytes) || !mock().holds(from, bytes)) {
            mock().blame("a copy of memory that is not allocated");
            return kInvalid;
        }
        mock().add(stream, [=] {
            mock().bytes["cuMemcpyDtoDAsync_v2"] += static_cast<int64_t>(bytes);
            std::memmove(mock().inside(to), mock().inside(from), bytes);
        });
        return 0;
    });
}

EXPORT Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream* stream) {
    return mock().call("cuMemsetD8Async", [=] {
        if (!knows(mock().streams, stream, "a stream")) return kBadHandle;
        if (!mock().holds(to, bytes)) {
            mock().blame("memory is filled that is not allocated");
            return kInvalid;
        }
        mock().add(stream, [=] { std::memset(mock().inside(to), value, bytes); });
        return 0;
    });
}

EXPORT Result cuStreamCreate(Stream** stream, unsigned) {
    return mock().call("cuStreamCreate", [=] {
        *stream = new Stream;
        (*stream)->number = mock().streams.size();
        mock().streams.insert(*stream);
        return 0;
    });
}
EXPORT Result cuStreamSynchronize(Stream* stream) {
    return mock().call("cuStreamSynchronize", [=] {
        if (!knows(mock().streams, stream, "a stream")) return kBadHandle;
        if (stream->captures) {
            mock().blame("the host waits for a stream whose work is captured");
            return kCaptures;
        }
        mock().run_until(stream, stream->given);
        return mock().state;
    });
}
EXPORT Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
    return mock().call("cuStreamWaitEvent", [=] {
        if (!knows(mock().streams, stream, "a stream") || !knows(mock().events, event, "an event")) return kBadHandle;
        if (event->stream)
            mock().add(stream, [other = event->stream, number = event->number] { mock().run_until(other, number); });
        return 0;
    });
}
EXPORT Result cuEventCreate(Event** event, unsigned) {
    return mock().call("cuEventCreate", [=] {
        mock().events.insert(*event = new Event);
        return 0;
    });
}
EXPORT Result cuEventDestroy_v2(Event* event) {
    return mock().call("cuEventDestroy_v2", [=] {
        if (!knows(mock().events, event, "an event")) return kBadHandle;
        mock().events.erase(event);
        delete event;
        return 0;
    });
}
EXPORT Result cuEventRecord(Event* event, Stream* stream) {
    return mock().call("cuEventRecord", [=] {
        if (!knows(mock().streams, stream, "a stream") || !knows(mock().events, event, "an event")) return kBadHandle;
        event->stream = stream;
        mock().add(stream, [event] {
            if (mock().events.contains(event)) event->time = now();
        });
        event->number = stream->given;
        return 0;
    });
}
// A query does no work by itself, but after many queries the work is done.
EXPORT Result cuEventQuery(Event* event) {
    return mock().call("cuEventQuery", [=] {
        if (!knows(mock().events, event, "an event")) return kBadHandle;
        if (!event->stream || event->stream->done >= event->number) return mock().state;
        mock().run_until(event->stream, event->stream->done + 1);
        return event->stream->done >= event->number ? mock().state : kNotReady;
    });
}
EXPORT Result cuEventSynchronize(Event* event) {
    return mock().call("cuEventSynchronize", [=] {
        if (!knows(mock().events, event, "an event")) return kBadHandle;
        if (event->stream) mock().run_until(event->stream, event->number);
        return mock().state;
    });
}
EXPORT Result cuEventElapsedTime(float* milliseconds, Event* first, Event* last) {
    return mock().call("cuEventElapsedTime", [=] {
        if (!knows(mock().events, first, "an event") || !knows(mock().events, last, "an event")) return kBadHandle;
        if (first->stream->done < first->number || last->stream->done < last->number) return kNotReady;
        *milliseconds = static_cast<float>((last->time - first->time) * 1000);
        return 0;
    });
}

EXPORT Result cuModuleLoadData(Module** module, const void* image) {
    return mock().call("cuModuleLoadData", [=] {
        static std::map<std::string, void*> known;
        const std::string bytes(static_cast<const char*>(image), bytes_of_object(image));
        if (bytes.empty()) {
            const std::string fault = mock().fault_of(static_cast<const char*>(image));
            if (!fault.empty()) mock().blame(fault);
            mock().modules.insert(*module = new Module);
            return fault.empty() ? 0 : 218;
        }
        void*& code = known[bytes];
        if (!code) code = lunaria::cpu::load_machine_code(bytes);
        if (!code) return 200;
        mock().modules.insert(*module = new Module{code});
        return 0;
    });
}
EXPORT Result cuModuleUnload(Module* module) {
    return mock().call("cuModuleUnload", [=] {
        if (!knows(mock().modules, module, "a module")) return kBadHandle;
        mock().modules.erase(module);
        delete module;
        return 0;
    });
}
EXPORT Result cuModuleGetFunction(Module** function, Module* module, const char* name) {
    return mock().call("cuModuleGetFunction", [=] {
        if (!knows(mock().modules, module, "a module")) return kBadHandle;
        *function = module;
        return std::strcmp(name, "loop") == 0 ? 0 : 500;
    });
}
EXPORT Result cuLaunchKernel(Module* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                             unsigned, unsigned near_bytes, Stream* stream, void** arguments, void**) {
    return mock().call("cuLaunchKernel", [=] {
        if (!knows(mock().streams, stream, "a stream")) return kBadHandle;
        std::function<void()> work;
        const Result result = mock().kernel_work(function, blocks, threads, near_bytes, arguments, &work);
        if (result == 0) mock().add(stream, std::move(work));
        return result;
    });
}

// For tests.
EXPORT void mock_fail(const char* name, int64_t nth, Result result) { mock().fail(name, nth, result); }
EXPORT void mock_limit(int64_t more) {
    mock().call("limit", [=] {
        mock().limit = mock().used + static_cast<size_t>(more);
        return 0;
    });
}
EXPORT void mock_skip_kernels(int skips) {
    mock().call("skip", [=] {
        for (Stream* s : mock().streams) mock().run_until(s, s->given);
        mock().skips_kernels = skips;
        return 0;
    });
}
// Of a function, "kernels" that ran, or "all" functions.
EXPORT int64_t mock_calls(const char* name) {
    if (std::string_view(name) != "all") return mock().calls[name];
    int64_t sum = 0;
    for (const auto& [function, count] : mock().calls)
        if (function.starts_with("cu")) sum += count;
    return sum;
}
EXPORT int64_t mock_bytes(const char* name) { return mock().bytes[name]; }
EXPORT const char* mock_blamed() { return mock().blamed.c_str(); }
EXPORT int64_t mock_alive(const char* what) {
    const std::string_view name = what;
    if (name == "streams") return static_cast<int64_t>(mock().streams.size());
    if (name == "events") return static_cast<int64_t>(mock().events.size());
    if (name == "graphs") return static_cast<int64_t>(mock().graphs.size());
    if (name == "ready graphs") return mock_ready_graphs();
    if (name == "modules") return static_cast<int64_t>(mock().modules.size());
    return static_cast<int64_t>(mock().used);
}
}
