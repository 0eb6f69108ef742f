// Copies of a Lua function in Lua states of their own, which threads use side by side.
#pragma once

#include <exception>
#include <lua.hpp>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/node.h"
#include "interpreter/display/output.h"
#include "interpreter/state.h"
#include "interpreter/workers/captured.h"
#include "interpreter/workers/row_program.h"

namespace lunaria {

// An error in a worker, with its traceback: the message in its final form.
class WorkerFailure final : public std::exception {
  public:
    explicit WorkerFailure(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

class Workers {
  public:
    // `make_state` makes the states in which the copies run; `keeps_output`: their printed output is kept for
    // pass_output_on.
    Workers(Captured captured, MakeWorker make_state, bool keeps_output);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // The workers of the function at `index` with its present captured values. They are kept with the function, for the
    // next time that it captures the same. Owners: the function's state, hosts of pipelines.
    static std::shared_ptr<Workers> of(lua_State* L, int index, std::string_view where);

    // Writes the output that the copies have printed so far, in the state and the thread of the function.
    void pass_output_on(lua_State* L);
    // Whether record() has not been called for this owner of the workers.
    bool wants_example(const void* owner) const { return !owners_.contains(owner); }
    // Records the function at `index` of its state, if it consists of operators for arguments like these: from then on
    // call() needs no Lua for such arguments. In the thread of that state.
    void record(lua_State* L, int index, std::span<const Value> example, const void* owner);
    // The number of programs; with `batched` only those that run several rows at once.
    size_t programs(bool batched) const;

    // The results of the function for these arguments, on the calling thread. Throws WorkerFailure, and errors about
    // the results.
    void call(std::span<const Value> in, size_t results, data::Row& out, const data::Place& place);
    // The same for several rows, whose results are appended to their places in `out`: the `place` of each differs in
    // the number of the row.
    void call_together(std::span<data::Row> in, size_t results, std::span<data::Row> out, const data::Place& place,
                       std::span<const int64_t> numbers);

  private:
    class Worker;
    std::unique_ptr<Worker> take();
    void give_back(std::unique_ptr<Worker> worker);

    // Null where Lua has to run it.
    std::shared_ptr<const RowProgram> program_for(std::span<const Value> in) const;

    struct Recorded {
        std::vector<TensorType> types;
        std::shared_ptr<const RowProgram> program;  // owners: this list, calls that run it; null: it cannot be recorded
    };
    const Captured captured_;
    const MakeWorker make_state_;
    std::set<const void*> owners_;  // only used by the state's thread
    mutable std::mutex mutex_;
    std::vector<Recorded> recorded_;
    OutputHook output_;
    std::vector<std::pair<bool, std::string>> written_;  // under mutex_: whether to standard error, and the text
    std::vector<std::unique_ptr<Worker>> free_;          // the one used last comes last
};

}  // namespace lunaria
