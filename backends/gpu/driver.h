// NVIDIA's driver, as libcuda.so.1 offers it to programs. It is opened when the device is first used: building, and
// running on a machine without it, need nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lunaria::gpu {

// The driver's types: handles are pointers, addresses of the device are numbers.
using Address = uint64_t;
using Result = int;
struct ContextHandle;
struct StreamHandle;
struct EventHandle;
struct ModuleHandle;
struct FunctionHandle;
struct GraphHandle;
struct GraphNodeHandle;
struct GraphRunHandle;

// A kernel in a graph, in the driver's layout; older drivers read all but the last two members.
struct GraphKernel {
    FunctionHandle* function = nullptr;
    unsigned blocks_x = 1, blocks_y = 1, blocks_z = 1, threads_x = 1, threads_y = 1, threads_z = 1, near_bytes = 0;
    void** arguments = nullptr;
    void** extra = nullptr;
    void* kernel = nullptr;
    ContextHandle* context = nullptr;
};

inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNotReady = 600;
// Not a result of the driver: a library has failed in work that it had accepted.
inline constexpr Result kLibraryFailed = -1;

struct Driver {
    Result (*init)(unsigned flags);
    Result (*driver_version)(int* version);
    Result (*error_name)(Result, const char** text);
    Result (*error_string)(Result, const char** text);
    Result (*device_count)(int* count);
    Result (*device_get)(int* device, int ordinal);
    Result (*device_name)(char* name, int length, int device);
    Result (*device_attribute)(int* value, int attribute, int device);
    Result (*context_retain)(ContextHandle** context, int device);
    Result (*context_reset)(int device);
    Result (*context_set)(ContextHandle* context);
    Result (*memory_info)(size_t* free, size_t* total);
    Result (*memory_allocate)(Address* address, size_t bytes);
    Result (*memory_free)(Address address);
    Result (*host_allocate)(void** memory, size_t bytes, unsigned flags);
    Result (*host_free)(void* memory);
    Result (*copy_to_device)(Address to, const void* from, size_t bytes, StreamHandle* stream);
    Result (*copy_to_host)(void* to, Address from, size_t bytes, StreamHandle* stream);
    Result (*copy_on_device)(Address to, Address from, size_t bytes, StreamHandle* stream);
    Result (*fill)(Address to, unsigned char value, size_t bytes, StreamHandle* stream);
    Result (*stream_create)(StreamHandle** stream, unsigned flags);
    Result (*stream_synchronize)(StreamHandle* stream);
    Result (*stream_wait)(StreamHandle* stream, EventHandle* event, unsigned flags);
    Result (*event_create)(EventHandle** event, unsigned flags);
    Result (*event_destroy)(EventHandle* event);
    Result (*event_record)(EventHandle* event, StreamHandle* stream);
    Result (*event_query)(EventHandle* event);
    Result (*event_synchronize)(EventHandle* event);
    Result (*event_elapsed)(float* milliseconds, EventHandle* first, EventHandle* last);
    Result (*module_load)(ModuleHandle** module, const void* image);
    Result (*module_unload)(ModuleHandle* module);
    Result (*module_function)(FunctionHandle** function, ModuleHandle* module, const char* name);
    Result (*launch)(FunctionHandle* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                     unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned near_bytes,
                     StreamHandle* stream, void** arguments, void** extra);

    // Functions for work that is submitted as a whole. All null where the driver lacks one of them.
    struct Graphs {
        Result (*create)(GraphHandle** graph, unsigned flags);
        Result (*destroy)(GraphHandle* graph);
        Result (*add_kernel)(GraphNodeHandle** node, GraphHandle* graph, GraphNodeHandle* const* behind, size_t count,
                             const GraphKernel* kernel);
        Result (*add_graph)(GraphNodeHandle** node, GraphHandle* graph, GraphNodeHandle* const* behind, size_t count,
                            GraphHandle* other);
        Result (*begin_capture)(StreamHandle* stream, int mode);
        Result (*end_capture)(StreamHandle* stream, GraphHandle** graph);
        Result (*instantiate)(GraphRunHandle** run, GraphHandle* graph, unsigned long long flags);
        Result (*set_kernel)(GraphRunHandle* run, GraphNodeHandle* node, const GraphKernel* kernel);
        Result (*set_graph)(GraphRunHandle* run, GraphNodeHandle* node, GraphHandle* other);
        Result (*launch)(GraphRunHandle* run, StreamHandle* stream);
        Result (*destroy_run)(GraphRunHandle* run);
    };
    Graphs graphs{};

    int device = 0;
    std::string name;    // of the processor
    std::string target;  // target of generated kernels
};

// The driver, opened by the first call, or null; `missing` then names the file or version that is needed.
struct Opened {
    const Driver* driver = nullptr;
    std::string missing;
};
const Opened& open_driver();

// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
std::string text_of(const Driver& driver, Result result);
// Whether the result means that the context is lost, with all its memory and kernels.
bool loses_context(Result result);

}  // namespace lunaria::gpu
