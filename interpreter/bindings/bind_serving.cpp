// The module behind lunaria/lite/serve.lua: a server whose requests Lua answers, and tensors as contents of requests.
#include <signal.h>

#include <thread>

#include "core/base/interrupt.h"
#include "core/base/signals.h"
#include "core/io/npy.h"
#include "core/io/safetensors.h"
#include "core/threads/make_thread.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/serve/inbox.h"
#include "interpreter/serve/server.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

constexpr const char* kServingHandle = "lunaria.serving";
constexpr const char* kServingExchangeHandle = "lunaria.serving.exchange";

std::atomic<bool> end_wanted = false;
void want_end(int) { end_wanted = true; }

// The threads of the server wait for the inbox: it is closed before they are waited for.
struct Serving {
    serve::Inbox inbox;
    std::unique_ptr<serve::Server> server;
    std::thread drainer;
    std::atomic<bool> has_drained = false;

    Serving(size_t most, const serve::ServerOptions& options)
        : inbox(most),
          server(std::make_unique<serve::Server>([this](const Question& q) { return inbox.ask(q); }, options)) {}
    ~Serving() {
        inbox.close();
        if (drainer.joinable()) drainer.join();
        server.reset();
    }
    void drain() {
        if (drainer.joinable()) return;
        drainer = make_thread("serve", [this] {
            leave_signals_to_others();
            server->drain();
            has_drained = true;
        });
    }
};
using ServingHandle = std::unique_ptr<Serving>;
using ExchangeHandle = std::shared_ptr<serve::Exchange>;

std::string_view text_argument(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

std::vector<std::string> texts_field(lua_State* L, const char* name) {
    std::vector<std::string> list;
    lua_getfield(L, 1, name);
    for (lua_Integer i = 1; lua_istable(L, -1) && lua_rawgeti(L, -1, i) != LUA_TNIL; ++i, lua_pop(L, 1))
        list.emplace_back(text_argument(L, -1));
    lua_settop(L, 1);
    return list;
}

int64_t integer_field(lua_State* L, const char* name) {
    lua_getfield(L, 1, name);
    const int64_t value = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
    return value;
}

// start{ about =, host =, port =, prefix =, hosts =, types =, most_body =, most_connections =, most_waiting = } -> a
// handle, the address
int start(lua_State* L) {
    serve::ServerOptions options;
    for (const auto& [name, to] : {std::pair<const char*, std::string*>{"about", &options.about},
                                   {"host", &options.host},
                                   {"prefix", &options.prefix}}) {
        lua_getfield(L, 1, name);
        if (!lua_isnil(L, -1)) *to = text_argument(L, -1);
        lua_pop(L, 1);
    }
    options.port = static_cast<int>(integer_field(L, "port"));
    options.hosts = texts_field(L, "hosts");
    options.types = texts_field(L, "types");
    options.limits.most_body = static_cast<size_t>(integer_field(L, "most_body"));
    options.limits.most_connections = static_cast<size_t>(integer_field(L, "most_connections"));
    auto serving = std::make_unique<Serving>(static_cast<size_t>(integer_field(L, "most_waiting")), options);
    const std::string url = serving->server->url();
    push_handle<ServingHandle>(L, std::move(serving), kServingHandle);
    push(L, std::string_view(url));
    return 2;
}

int stop(lua_State* L) {
    handle_at<ServingHandle>(L, 1, kServingHandle).reset();
    return 0;
}

int drain(lua_State* L) {
    if (const auto& serving = handle_at<ServingHandle>(L, 1, kServingHandle)) serving->drain();
    return 0;
}

// signals(true): SIGTERM and SIGINT only ask for the end; signals(false): as before.
int signals(lua_State* L) {
    static struct sigaction before[2];
    constexpr int kNumbers[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; ++i) {
        if (lua_toboolean(L, 1)) {
            sigaction(kNumbers[i], nullptr, &before[i]);
            handle_signal(kNumbers[i], want_end);
        } else {
            sigaction(kNumbers[i], &before[i], nullptr);
        }
    }
    end_wanted = false;
    return 0;
}

int is_end_wanted(lua_State* L) {
    lua_pushboolean(L, end_wanted);
    return 1;
}

// next(serving, seconds) -> a request; or nil, and whether none will come
int next(lua_State* L) {
    const auto& serving = handle_at<ServingHandle>(L, 1, kServingHandle);
    if (!serving) {
        lua_pushnil(L);
        lua_pushboolean(L, true);
        return 2;
    }
    if (auto exchange = serving->inbox.next(luaL_checknumber(L, 2))) {
        push_handle<ExchangeHandle>(L, std::move(exchange), kServingExchangeHandle);
        return 1;
    }
    lua_pushnil(L);
    lua_pushboolean(L, serving->has_drained || serving->server->has_ended());
    return 2;
}

serve::Exchange& exchange_argument(lua_State* L) { return *handle_at<ExchangeHandle>(L, 1, kServingExchangeHandle); }

// request(exchange) -> method, path as "a/b", type of the content, content
int request(lua_State* L) {
    const Question& question = exchange_argument(L).question();
    std::string path;
    for (const std::string& part : question.path) path += (path.empty() ? "" : "/") + part;
    push(L, std::string_view(question.method));
    push(L, std::string_view(path));
    push(L, std::string_view(question.content_type));
    push(L, std::string_view(question.body));
    return 4;
}

// answer(exchange, status, type, body)
int answer(lua_State* L) {
    Answer answer;
    answer.status = static_cast<int>(luaL_checkinteger(L, 2));
    answer.type = text_argument(L, 3);
    answer.body = text_argument(L, 4);
    exchange_argument(L).answer(std::move(answer));
    return 0;
}

// begin(exchange, type), add(exchange, part) -> whether it is wanted, finish(exchange)
int begin_serving(lua_State* L) {
    Answer head;
    head.type = text_argument(L, 2);
    exchange_argument(L).begin(std::move(head));
    return 0;
}
int add(lua_State* L) {
    lua_pushboolean(L, exchange_argument(L).add(text_argument(L, 2)));
    return 1;
}
int finish_serving(lua_State* L) {
    exchange_argument(L).end();
    return 0;
}

// tensors_of(safetensors) -> a table by name; tensor_of(npy) -> a tensor
int tensors_of(lua_State* L) {
    const SafetensorsFile file(memory_source("the content", text_argument(L, 1)));
    lua_newtable(L);
    for (const auto& [name, tensor] : file.read_all()) {
        push(L, std::string_view(name));
        push(L, tensor);
        lua_rawset(L, -3);
    }
    return 1;
}
int tensor_of(lua_State* L) {
    push(L, read_npy(*memory_source("the content", text_argument(L, 1))));
    return 1;
}

// safetensors(names, tensors) -> bytes; npy(tensor) -> bytes
int safetensors(lua_State* L) {
    std::vector<NamedTensor> list;
    for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; ++i, lua_pop(L, 2)) {
        lua_rawgeti(L, 2, i);
        list.emplace_back(std::string(text_argument(L, -2)), check_tensor(L, -1, "serve", "output"));
    }
    StringSink sink;
    write_safetensors(sink, list);
    push(L, std::string_view(sink.text()));
    return 1;
}
int npy(lua_State* L) {
    StringSink sink;
    write_npy(sink, check_tensor(L, 1, "serve", "output"));
    push(L, std::string_view(sink.text()));
    return 1;
}

std::atomic<State*> attempting = nullptr;
void interrupt_attempt(int) {
    if (State* state = attempting) state->interrupt();
}

// attempt(f, arguments...) -> true and what f gives; false and the message; or nil where Ctrl-C ended it, which is then
// over for the rest of the program.
int attempt(lua_State* L) {
    struct sigaction before {};
    sigaction(SIGINT, nullptr, &before);
    attempting = &State::of(L);
    handle_signal(SIGINT, interrupt_attempt);
    const int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    sigaction(SIGINT, &before, nullptr);
    attempting = nullptr;
    if (interrupt_requested()) {
        State::of(L).clear_interrupt();
        lua_pushnil(L);
        return 1;
    }
    lua_pushboolean(L, status == LUA_OK);
    lua_insert(L, 1);
    return lua_gettop(L);
}

}  // namespace

int open_serving(lua_State* L) {
    make_handle_type(L, kServingHandle, protect<release_handle<ServingHandle>>);
    make_handle_type(L, kServingExchangeHandle, protect<release_handle<ExchangeHandle>>);
    constexpr luaL_Reg functions[] = {{"start", protect<start>},
                                      {"stop", protect<stop>},
                                      {"drain", protect<drain>},
                                      {"signals", protect<signals>},
                                      {"is_end_wanted", protect<is_end_wanted>},
                                      {"next", protect<next>},
                                      {"request", protect<request>},
                                      {"answer", protect<answer>},
                                      {"begin", protect<begin_serving>},
                                      {"add", protect<add>},
                                      {"finish", protect<finish_serving>},
                                      {"tensors_of", protect<tensors_of>},
                                      {"tensor_of", protect<tensor_of>},
                                      {"safetensors", protect<safetensors>},
                                      {"npy", protect<npy>},
                                      {"attempt", protect<attempt>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
