// A processor that there is none of, behind the functions of its driver: memory that the host cannot touch, streams
// whose work is done as late as it may be, kernels that run on this processor as fibers. It watches how it is used.
//
// Work is done when the host, or another stream, waits for it: what is read too early is not there yet, what was
// changed too early travels changed. LUNARIA_MOCK_ORDER=soon does everything at once instead, the other extreme, and
// LUNARIA_MOCK_ORDER=ahead does so in all streams but the first: what does not wait for that overtakes it.
// LUNARIA_MOCK_MEMORY is how many bytes there are. LUNARIA_MOCK_TARGET=sm_90 asks for the kernels of a real processor:
// they are looked at and not run, so that results are rubbish; LUNARIA_MOCK_PTX names a folder that they are put in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace lunaria::testing {

using Address = uint64_t;
using Result = int;

struct Stream;

struct Event {
    Stream* stream = nullptr;  // null: not recorded
    uint64_t number = 0;       // of the work that it stands behind
    double time = 0;
};

struct GraphNode {
    std::function<void()> work;
    std::vector<size_t> behind;  // places of others in the graph
};
struct Graph {
    std::vector<std::unique_ptr<GraphNode>> nodes;
};

struct Stream {
    std::deque<std::function<void()>> work;
    size_t number = 0;  // in the order in which streams were made
    uint64_t given = 0, done = 0;
    Graph* captures = nullptr;  // what it is given goes there instead
};

struct Module {
    void* code = nullptr;  // null: assembly, which is not run
};

class Mock {
  public:
    static Mock& the();

    // Runs one function of the driver: counts it, and fails where a test or an earlier failure says so.
    Result call(const char* name, const std::function<Result()>& body);
    // What was used wrongly, a line each.
    void blame(const std::string& text);
    // The call numbered `nth` of this name from now on gives `result`; "kernel": one that runs.
    void fail(const std::string& name, int64_t nth, Result result);

    Result allocate(Address* address, size_t bytes);
    Result release(Address address);
    Result allocate_host(void** memory, size_t bytes);
    Result release_host(void* memory);
    // Whether it is inside of one allocation.
    bool holds(Address address, size_t bytes) const;
    // Where the host finds what the device knows by that address.
    void* inside(Address address) const { return inside_ + (address - base_); }
    bool is_of_device(Address address) const { return address >= base_ && address < base_ + kSize; }
    bool is_pinned(const void* memory, size_t bytes) const;

    // What is wrong with the assembly of a kernel, or nothing.
    std::string fault_of(const std::string& assembly);

    void add(Stream* stream, std::function<void()> work);
    void run_until(Stream* stream, uint64_t number);
    // What a launch does when it runs; a result other than 0 where it is not to be launched at all.
    Result kernel_work(Module* function, unsigned blocks, unsigned threads, unsigned near_bytes, void** arguments,
                       std::function<void()>* work);
    void run_kernel(Module* module, unsigned blocks, unsigned threads, unsigned near_bytes, std::vector<uint64_t> words,
                    size_t count);
    // Everything is gone, and errors are forgotten.
    void reset();

    std::map<std::string, int64_t> calls, bytes;
    std::string blamed;
    std::set<Stream*> streams;
    std::set<Event*> events;
    std::set<Module*> modules;
    std::set<Graph*> graphs;
    bool skips_kernels = false;  // they are counted, and do nothing
    Result state = 0;            // not 0: the context is lost
    size_t limit = 0, used = 0;

  private:
    Mock();
    struct Failure {
        int64_t left = 0;
        Result result = 0;
    };
    static constexpr size_t kSize = size_t{64} << 30;
    std::recursive_mutex mutex_;
    Address base_ = 0, fresh_ = 0;
    char* inside_ = nullptr;  // the same memory, where it can be touched
    std::map<Address, size_t> live_;
    std::map<size_t, std::vector<Address>> free_;
    std::map<char*, size_t> pinned_;
    std::map<std::string, Failure> failures_;
    bool soon_ = false, ahead_ = false;
};

}  // namespace lunaria::testing
