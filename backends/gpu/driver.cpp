#include "backends/gpu/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/operator/ranks.h"

namespace lunaria::gpu {

namespace {

constexpr const char* kFile = "libcuda.so.1";
// The first version of the driver that takes the generated assembly (PTX 7.8), and the first processors for it.
constexpr int kOldest = 11080;
constexpr int kOldestMajor = 8, kNewestTarget = 90;
constexpr int kMajorAttribute = 75, kMinorAttribute = 76;

std::string version_text(int version) { return str(version / 1000, '.', version % 1000 / 10); }

class Opener {
  public:
    Opened run() {
        Opened result;
        result.missing = open();
        if (result.missing.empty()) result.driver = &driver_;
        return result;
    }

  private:
    template <class F>
    void find(F*& function, const char* name) {
        function = reinterpret_cast<F*>(dlsym(library_, name));
        if (!function && lacks_.empty()) lacks_ = name;
    }

    void find_all() {
        Driver& d = driver_;
        find(d.init, "cuInit");
        find(d.driver_version, "cuDriverGetVersion");
        find(d.error_name, "cuGetErrorName");
        find(d.error_string, "cuGetErrorString");
        find(d.device_count, "cuDeviceGetCount");
        find(d.device_get, "cuDeviceGet");
        find(d.device_name, "cuDeviceGetName");
        find(d.device_attribute, "cuDeviceGetAttribute");
        find(d.context_retain, "cuDevicePrimaryCtxRetain");
        find(d.context_reset, "cuDevicePrimaryCtxReset_v2");
        find(d.context_set, "cuCtxSetCurrent");
        find(d.memory_info, "cuMemGetInfo_v2");
        find(d.memory_allocate, "cuMemAlloc_v2");
        find(d.memory_free, "cuMemFree_v2");
        find(d.host_allocate, "cuMemHostAlloc");
        find(d.host_free, "cuMemFreeHost");
        find(d.copy_to_device, "cuMemcpyHtoDAsync_v2");
        find(d.copy_to_host, "cuMemcpyDtoHAsync_v2");
        find(d.copy_on_device, "cuMemcpyDtoDAsync_v2");
        find(d.fill, "cuMemsetD8Async");
        find(d.stream_create, "cuStreamCreate");
        find(d.stream_synchronize, "cuStreamSynchronize");
        find(d.stream_wait, "cuStreamWaitEvent");
        find(d.event_create, "cuEventCreate");
        find(d.event_destroy, "cuEventDestroy_v2");
        find(d.event_record, "cuEventRecord");
        find(d.event_query, "cuEventQuery");
        find(d.event_synchronize, "cuEventSynchronize");
        find(d.event_elapsed, "cuEventElapsedTime");
        find(d.module_load, "cuModuleLoadData");
        find(d.module_unload, "cuModuleUnload");
        find(d.module_function, "cuModuleGetFunction");
        find(d.launch, "cuLaunchKernel");
    }

    // Finds the first of these names that exists.
    template <class F>
    bool find_any(F*& function, std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (!function) function = reinterpret_cast<F*>(dlsym(library_, name));
        return function;
    }
    void find_graphs() {
        Driver::Graphs g{};
        bool all = find_any(g.create, {"cuGraphCreate"}) && find_any(g.destroy, {"cuGraphDestroy"});
        all = all && find_any(g.add_kernel, {"cuGraphAddKernelNode_v2", "cuGraphAddKernelNode"});
        all = all && find_any(g.add_graph, {"cuGraphAddChildGraphNode"});
        all = all && find_any(g.begin_capture, {"cuStreamBeginCapture_v2"});
        all = all && find_any(g.end_capture, {"cuStreamEndCapture"});
        all = all && find_any(g.instantiate, {"cuGraphInstantiateWithFlags"});
        all = all && find_any(g.set_kernel, {"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams"});
        all = all && find_any(g.set_graph, {"cuGraphExecChildGraphNodeSetParams"});
        all = all && find_any(g.launch, {"cuGraphLaunch"}) && find_any(g.destroy_run, {"cuGraphExecDestroy"});
        if (all) driver_.graphs = g;
    }

    // Opens the driver; returns an empty text, or what is missing.
    std::string open() {
        library_ = dlopen(kFile, RTLD_LAZY | RTLD_LOCAL);
        if (!library_)
            return str("no CUDA driver: ", kFile, " was not found; it comes with NVIDIA's driver, version ",
                       version_text(kOldest), " of CUDA or newer");
        find_all();
        find_graphs();
        int version = 0;
        if (driver_.driver_version) driver_.driver_version(&version);
        if (version < kOldest || !lacks_.empty()) {
            const std::string lacks = version < kOldest ? "" : str(" and lacks ", lacks_);
            return str("the CUDA driver is too old: ", kFile, " is for CUDA ", version_text(version), lacks,
                       "; it takes one for ", version_text(kOldest), " or newer");
        }
        if (Result r = driver_.init(0)) return str(kFile, " cannot start: ", text_of(driver_, r));
        int count = 0;
        if (Result r = driver_.device_count(&count)) return str(kFile, " finds no processor: ", text_of(driver_, r));
        if (count == 0) return str(kFile, " finds no processor");
        char name[256] = "";
        int major = 0, minor = 0;
        // Ranks of one host take its processors in turn.
        driver_.device_get(&driver_.device, ranks().local_rank() % count);
        driver_.device_name(name, sizeof name, driver_.device);
        driver_.device_attribute(&major, kMajorAttribute, driver_.device);
        driver_.device_attribute(&minor, kMinorAttribute, driver_.device);
        driver_.name = name;
        if (major < kOldestMajor)
            return str("the processor ", name, " has the architecture sm_", major, minor, "; it takes sm_",
                       kOldestMajor, "0 or newer");
        // Assembly for an older processor also runs on newer ones.
        driver_.target = str("sm_", std::min(major * 10, kNewestTarget));
        // A driver may run other code than that, if it emulates a processor.
        using Target = const char* (*)();
        if (auto target = reinterpret_cast<Target>(dlsym(library_, "lunaria_target"))) driver_.target = target();
        return {};
    }

    static inline Driver driver_{};
    void* library_ = nullptr;  // for the life of the process
    std::string lacks_;
};

}  // namespace

const Opened& open_driver() {
    static const Opened opened = Opener().run();
    return opened;
}

std::string text_of(const Driver& driver, Result result) {
    if (result == kLibraryFailed) return "a library failed";
    const char *name = nullptr, *text = nullptr;
    driver.error_name(result, &name);
    driver.error_string(result, &text);
    if (!name || !text) return str("error ", result);
    return str(text, " (", name, ')');
}

bool loses_context(Result result) {
    // Errors of memory, of instructions, of time and of the hardware, after which every call fails.
    constexpr Result kLosses[] = {4, 201, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999};
    return std::ranges::find(kLosses, result) != std::end(kLosses);
}

}  // namespace lunaria::gpu
