// Copies of a Lua function in Lua states of their own, which threads use side by side.
#pragma once

#include <exception>
#include <lua.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/node.h"
#include "interpreter/workers/captured.h"

namespace lunaria {

// An error in a worker, with its traceback: the message as it is to be shown.
class WorkerFailure final : public std::exception {
  public:
    explicit WorkerFailure(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

class Workers {
  public:
    explicit Workers(Captured captured);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Those of the function at `index` with what it captures now. They are kept with the function, for the next time
    // that it captures the same. Owners: the function's state, hosts of pipelines.
    static std::shared_ptr<Workers> of(lua_State* L, int index, std::string_view where);

    // The results of the function for these arguments, on the calling thread. Throws WorkerFailure, and errors about
    // the results.
    void call(std::span<const Value> in, size_t results, data::Row& out, const data::Place& place);

  private:
    class Worker;
    std::unique_ptr<Worker> take();
    void give_back(std::unique_ptr<Worker> worker);

    const Captured captured_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Worker>> free_;  // the one used last comes last
};

}  // namespace lunaria
