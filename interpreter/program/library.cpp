// liblunaria: a Lua state on a thread of its own, which loads programs and runs them. That thread runs the callers'
// requests one after the other, so that the state, and the pool of threads that belongs to it, are always used by the
// same thread.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/devices.h"
#include "core/tensor/shape.h"
#include "core/threads/make_thread.h"
#include "interpreter/embedding/elements.h"
#include "interpreter/embedding/lunaria.h"
#include "interpreter/errors/script.h"
#include "interpreter/program/program_state.h"
#include "interpreter/values/values.h"

struct lunaria_program {
    struct Description {
        std::string name;
        lunaria_info info;
    };
    int function = LUA_NOREF;  // in the registry of the state
    std::vector<Description> inputs, outputs;
    std::vector<lunaria::Tensor> results;  // of the last run
};

namespace {

using namespace lunaria;

DType dtype_of(lunaria_dtype t) {
    const auto dtype = dtype_in_c(t);
    if (!dtype) throw argument_error("lunaria_run", str("there is no dtype number ", static_cast<int>(t)));
    return *dtype;
}

class Engine {
  public:
    Engine() : thread_(make_thread("lunaria", [this] { work(); })) {}
    ~Engine() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Runs the work with the state, on the engine's thread; returns its error, or an empty text.
    std::string run(const std::function<void(lua_State*)>& body) {
        Task task{&body, {}, false};
        std::unique_lock lock(mutex_);
        tasks_.push_back(&task);
        changed_.notify_all();
        changed_.wait(lock, [&] { return task.done; });
        return task.problem;
    }

  private:
    struct Task {
        const std::function<void(lua_State*)>* body;
        std::string problem;
        bool done;
    };

    static std::string problem_of(State& state, const std::function<void(lua_State*)>& body) {
        const int top = lua_gettop(state.lua());
        Outcome outcome = run_protected(state, body);
        lua_settop(state.lua(), top);
        if (outcome.ok) return {};
        return outcome.message.empty() ? "unknown error" : std::move(outcome.message);
    }

    void work() {
        // It belongs to this thread. Where there is no memory for it, each request is told so.
        std::unique_ptr<ProgramState> state;
        try {
            state = std::make_unique<ProgramState>(State::Options{.ignore_environment = true});
        } catch (const std::exception&) {
        }
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            Task& task = *tasks_.front();
            tasks_.pop_front();
            lock.unlock();
            std::string problem = state ? problem_of(*state, *task.body) : "no memory to begin";
            lock.lock();
            task.problem = std::move(problem);
            task.done = true;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task*> tasks_;
    bool ends_ = false;
    std::thread thread_;  // last: it uses all other members
};

Engine& engine() {
    // The devices come first, since the engine's last work waits for them.
    static Engine one = [] {
        set_up_devices();
        return Engine();
    }();
    return one;
}

thread_local std::string last_error;

// Whether the work could be done; if not, lunaria_error gives the reason.
bool done(const std::function<void(lua_State*)>& body) {
    try {
        std::string problem = engine().run(body);
        if (problem.empty()) return true;
        last_error = std::move(problem);
    } catch (const std::exception& e) {
        last_error = e.what();
    }
    return false;
}

// {name, dtype, shape}, on top of the stack.
lunaria_program::Description description_at(lua_State* L) {
    lunaria_program::Description d{{}, {nullptr, LUNARIA_UNKNOWN, -1, {}}};
    if (lua_getfield(L, -1, "name") == LUA_TSTRING) d.name = lua_tostring(L, -1);
    lua_pop(L, 1);
    if (lua_getfield(L, -1, "dtype") == LUA_TSTRING)
        if (const std::optional<DType> dtype = parse_dtype(lua_tostring(L, -1))) d.info.dtype = number_in_c(*dtype);
    lua_pop(L, 1);
    if (lua_getfield(L, -1, "shape") == LUA_TTABLE) {
        const lua_Integer rank = luaL_len(L, -1);
        if (rank <= LUNARIA_MAX_RANK) {
            d.info.rank = static_cast<int>(rank);
            for (int i = 0; i < d.info.rank; ++i) {
                lua_rawgeti(L, -1, i + 1);
                d.info.shape[i] = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : -1;
                lua_pop(L, 1);
            }
        }
    }
    lua_pop(L, 1);
    return d;
}

void describe_values(lua_State* L, const char* field, std::vector<lunaria_program::Description>& list) {
    if (!lua_istable(L, -1)) return;
    if (lua_getfield(L, -1, field) == LUA_TTABLE) {
        const lua_Integer count = luaL_len(L, -1);
        for (lua_Integer i = 1; i <= count; ++i) {
            lua_rawgeti(L, -1, i);
            list.push_back(description_at(L));
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

void load(lua_State* L, const char* path, lunaria_program& program) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.program");
    lua_call(L, 1, 1);
    lua_pushstring(L, path);
    lua_call(L, 1, 2);
    describe_values(L, "inputs", program.inputs);
    describe_values(L, "outputs", program.outputs);
    lua_pop(L, 1);
    program.function = luaL_ref(L, LUA_REGISTRYINDEX);
    for (auto* list : {&program.inputs, &program.outputs})
        for (auto& d : *list) d.info.name = d.name.c_str();
}

Tensor copied_in(const lunaria_tensor& t, size_t index) {
    const DType dtype = dtype_of(t.dtype);
    if (t.rank < 0 || t.rank > LUNARIA_MAX_RANK)
        throw argument_error("lunaria_run", str("input ", index, " has rank ", t.rank));
    const Shape shape = checked_shape("lunaria_run", {t.shape, static_cast<size_t>(t.rank)}, size_of(dtype));
    const size_t bytes = static_cast<size_t>(shape.size()) * size_of(dtype);
    if (t.bytes != bytes || (bytes > 0 && !t.data))
        throw argument_error("lunaria_run", str("input ", index, " of shape ", shape, " and dtype ", name_of(dtype),
                                                " has ", t.data ? t.bytes : 0, " bytes, not ", bytes));
    Tensor made = Tensor::empty(dtype, shape);
    if (bytes > 0) std::memcpy(made.raw(), t.data, bytes);
    if (dtype == DType::boolean) {
        auto* element = static_cast<unsigned char*>(made.raw());
        for (size_t i = 0; i < bytes; ++i) element[i] = element[i] != 0;
    }
    return made;
}

void copy_out(const Tensor& result, lunaria_tensor& to, size_t index) {
    const size_t bytes = static_cast<size_t>(result.size()) * size_of(result.dtype());
    to.dtype = number_in_c(result.dtype());
    to.rank = static_cast<int>(result.shape().rank());
    if (to.dtype == LUNARIA_UNKNOWN || to.rank > LUNARIA_MAX_RANK)
        throw state_error("lunaria_run", str("output ", index, " has dtype ", name_of(result.dtype()), " and ", to.rank,
                                             " axes, which have no form here"));
    std::copy(result.shape().begin(), result.shape().begin() + to.rank, to.shape);
    if (!to.data) {
        to.data = result.raw();
        to.bytes = bytes;
        return;
    }
    if (to.bytes < bytes)
        throw argument_error("lunaria_run",
                             str("output ", index, " of shape ", result.shape(), " and dtype ", name_of(result.dtype()),
                                 " needs ", bytes, " bytes, there are ", to.bytes));
    if (bytes > 0) std::memcpy(to.data, result.raw(), bytes);
}

void run(lua_State* L, lunaria_program& program, const lunaria_tensor* inputs, size_t input_count,
         lunaria_tensor* outputs, size_t output_count) {
    program.results.clear();
    luaL_checkstack(L, static_cast<int>(std::min<size_t>(input_count, 1 << 20)) + 10, "inputs");
    lua_rawgeti(L, LUA_REGISTRYINDEX, program.function);
    for (size_t i = 0; i < input_count; ++i) push(L, copied_in(inputs[i], i));
    const int base = lua_gettop(L) - static_cast<int>(input_count) - 1;
    lua_call(L, static_cast<int>(input_count), LUA_MULTRET);
    const auto there = static_cast<size_t>(lua_gettop(L) - base);
    if (there < output_count)
        throw argument_error("lunaria_run", str(output_count, " outputs are asked for, the program has ", there));
    for (size_t i = 0; i < output_count; ++i)
        program.results.push_back(
            check_tensor(L, base + 1 + static_cast<int>(i), "lunaria_run", str("output ", i)).contiguous());
    for (size_t i = 0; i < output_count; ++i) copy_out(program.results[i], outputs[i], i);
}

int tell(const std::vector<lunaria_program::Description>& list, size_t index, lunaria_info* info) {
    if (index >= list.size() || !info) {
        last_error = str("there are ", list.size(), " of them, none has the number ", index);
        return -1;
    }
    *info = list[index].info;
    return 0;
}

}  // namespace

lunaria_program* lunaria_load(const char* path) {
    if (!path) {
        last_error = "lunaria_load: path is NULL";
        return nullptr;
    }
    auto program = std::make_unique<lunaria_program>();
    return done([&](lua_State* L) { load(L, path, *program); }) ? program.release() : nullptr;
}

void lunaria_free(lunaria_program* program) {
    const std::unique_ptr<lunaria_program> owned(program);
    if (owned)
        done([&](lua_State* L) {
            owned->results.clear();
            luaL_unref(L, LUA_REGISTRYINDEX, owned->function);
        });
}

const char* lunaria_error(void) { return last_error.c_str(); }

size_t lunaria_input_count(const lunaria_program* program) { return program ? program->inputs.size() : 0; }
size_t lunaria_output_count(const lunaria_program* program) { return program ? program->outputs.size() : 0; }
int lunaria_input(const lunaria_program* program, size_t index, lunaria_info* info) {
    return program ? tell(program->inputs, index, info) : -1;
}
int lunaria_output(const lunaria_program* program, size_t index, lunaria_info* info) {
    return program ? tell(program->outputs, index, info) : -1;
}

int lunaria_run(lunaria_program* program, const lunaria_tensor* inputs, size_t input_count, lunaria_tensor* outputs,
                size_t output_count) {
    if (!program || (!inputs && input_count) || (!outputs && output_count)) {
        last_error = "lunaria_run: an argument is NULL";
        return -1;
    }
    return done([&](lua_State* L) { run(L, *program, inputs, input_count, outputs, output_count); }) ? 0 : -1;
}
