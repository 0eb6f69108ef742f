// Lua functions in data pipelines.
#pragma once

#include <atomic>
#include <exception>
#include <lua.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/data/node.h"
#include "core/random/random.h"
#include "interpreter/workers/workers.h"

namespace lunaria {

// An error of a Lua function, which the host keeps under a number: it may be raised later than it happened.
class HostFailure final : public std::exception {
  public:
    explicit HostFailure(int64_t number) : number_(number) {}
    const char* what() const noexcept override { return "a function of the pipeline has failed"; }
    int64_t number() const { return number_; }

  private:
    int64_t number_;
};

// Runs the functions of a pipeline while a row is asked for: on the stack of the caller, between enter and leave. The
// functions are in one table by their addresses, the states of streams in another by their numbers.
class DatasetHost final : public data::Host {
  public:
    class Use {
      public:
        Use(DatasetHost& host, lua_State* L, int functions, int streams) : host_(host) {
            host_.L_ = L;
            host_.thread_ = std::this_thread::get_id();
            host_.functions_ = functions;
            host_.streams_ = streams;
        }
        ~Use() {
            host_.L_ = nullptr;
            host_.thread_ = std::thread::id();
        }
        Use(const Use&) = delete;

      private:
        DatasetHost& host_;
    };
    bool in_use() const { return L_ != nullptr; }
    // The result of f(), which draws rows: the functions and the streams are at 2 and 3 on the stack.
    template <class F>
    auto run_in(lua_State* L, F f) {
        int64_t failure = 0;
        try {
            const Use use(*this, L, 2, 3);
            const auto result = f();
            pass_output_on();
            return result;
        } catch (const HostFailure& e) {
            failure = e.number();
        } catch (const WorkerFailure& e) {
            lua_pushstring(L, e.what());
        }
        {
            const Use use(*this, L, 2, 3);
            pass_output_on();
        }
        if (failure != 0) lua_rawgeti(L, 3, failure);
        lua_error(L);
        throw HostFailure(failure);  // not reached
    }

    void call(uint64_t function, std::span<const Value> in, size_t results, data::Row& out,
              const data::Place& place) override;
    bool test(uint64_t function, std::span<const Value> in, const data::Place& place) override;
    int64_t start(uint64_t function, const data::Place& place) override;
    bool step(int64_t stream, size_t results, data::Row& out, const data::Place& place) override;
    void stop(int64_t stream) noexcept override;
    void prepare(uint64_t function, std::string_view where) override;
    // For functions that run as copies: how many run without Lua for rows of some types, and how many of these for
    // several rows at once.
    std::pair<size_t, size_t> recorded() const;
    bool wants_example(uint64_t function, const void* owner) override;
    void show_example(uint64_t function, const void* owner, std::span<const Value> in) override;
    void call_together(uint64_t function, std::span<data::Row> in, size_t results, std::span<data::Row> out,
                       const data::Place& place, std::span<const int64_t> rows) override;
    void call_anywhere(uint64_t function, std::span<const Value> in, size_t results, data::Row& out,
                       const data::Place& place) override;

  private:
    void run(int arguments, const data::Place& place);
    void pass_output_on() const {
        for (const auto& [function, workers] : workers_) workers->pass_output_on(L_);
    }
    void push_function(uint64_t function);
    lua_State* L_ = nullptr;
    std::atomic<std::thread::id> thread_{};  // the thread of L_
    int functions_ = 0, streams_ = 0;        // on its stack
    int64_t last_stream_ = 0;
    std::mutex mutex_;
    std::vector<int64_t> stopped_;                          // under mutex_: streams that can be dropped
    std::map<uint64_t, std::shared_ptr<Workers>> workers_;  // made before threads use them
};

// "in map: column 'x', row 3 of epoch 0", for messages.
std::string text_of(const data::Place& place);
// The random numbers for a row at this place.
RandomStream stream_of(const data::Place& place);
// The values from `first` up to the top of the stack: as many as there are columns, or one table of them.
void take_results(lua_State* L, int first, size_t results, data::Row& out, const data::Place& place);

// A row as Lua values in this order.
void push_row(lua_State* L, data::Row row);

}  // namespace lunaria
