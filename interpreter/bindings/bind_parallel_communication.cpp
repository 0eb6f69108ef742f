// The module behind lunaria/communication.lua: ranks, groups, requests that are carried out meanwhile.
#include "core/base/error.h"
#include "core/parallel/communicator.h"
#include "core/parallel/environment.h"
#include "core/parallel/operators.h"
#include "core/parallel/partner.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

using parallel::Collective;
using parallel::Communicator;
using parallel::Group;

std::string_view group_name(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

const Group& group_at(lua_State* L, int index, int where) {
    return parallel::own_world().named_group(group_name(L, where), luaL_optstring(L, index, ""));
}

// rank(where, group): -1 where this rank is not in it
int rank(lua_State* L) {
    lua_pushinteger(L, group_at(L, 2, 1).rank());
    return 1;
}

int size(lua_State* L) {
    lua_pushinteger(L, group_at(L, 2, 1).size());
    return 1;
}

// members(where, group): a list of ranks of the world
int members(lua_State* L) {
    const Group& group = group_at(L, 2, 1);
    lua_createtable(L, group.size(), 0);
    for (int i = 0; i < group.size(); ++i) {
        lua_pushinteger(L, group.world_rank(i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

// name_group(name, members)
int name_group(lua_State* L) {
    std::vector<int> members;
    for (const int64_t rank : integers_at(L, 2, "create_group", "rank_ids")) {
        if (rank < 0 || rank >= parallel::own_world().ranks())
            throw index_error("create_group",
                              str("rank ", rank, " is none of 0 .. ", parallel::own_world().ranks() - 1));
        members.push_back(static_cast<int>(rank));
    }
    parallel::own_world().name_group(std::string(group_name(L, 1)), members);
    return 0;
}

// forget_group(where, name)
int forget_group(lua_State* L) {
    parallel::own_world().forget_group(group_name(L, 1), std::string(group_name(L, 2)));
    return 0;
}

int engine(lua_State* L) {
    push(L, parallel::own_world().engine());
    return 1;
}

// place() -> the number of this rank among those of its host, and their number
int place_of_line(lua_State* L) {
    const bool is_alone = parallel::own_world().ranks() == 1;
    const parallel::Environment here = is_alone ? parallel::Environment{} : parallel::environment();
    lua_pushinteger(L, here.local_rank);
    lua_pushinteger(L, here.local_ranks);
    return 2;
}

// traffic() -> { all_reduce = { calls =, bytes = }, ... } of what was asked for since reset_traffic()
int traffic(lua_State* L) {
    lua_createtable(L, 0, static_cast<int>(parallel::kCollectives));
    for (size_t i = 0; i < parallel::kCollectives; ++i) {
        const auto operation = static_cast<Collective>(i);
        const parallel::Traffic sums = parallel::own_world().traffic(operation);
        if (sums.calls == 0) continue;
        lua_createtable(L, 0, 2);
        lua_pushinteger(L, static_cast<lua_Integer>(sums.calls));
        lua_setfield(L, -2, "calls");
        lua_pushinteger(L, static_cast<lua_Integer>(sums.bytes));
        lua_setfield(L, -2, "bytes");
        lua_setfield(L, -2, std::string(parallel::name_of(operation)).c_str());
    }
    return 1;
}

int reset_traffic(lua_State*) {
    parallel::own_world().reset_traffic();
    return 0;
}

int set_timeout(lua_State* L) {
    parallel::set_patience(luaL_checknumber(L, 1));
    return 0;
}

// Requests under way, with the tensors that they read and write, which stay until all are done.
class Started {
  public:
    Started() = default;
    Started(Started&&) = default;
    Started(const Started&) = delete;
    Started& operator=(const Started&) = delete;
    ~Started() {
        for (const parallel::Pending& request : pending) {
            try {
                request.wait();
            } catch (const Error&) {  // the communicator tells it again at the next request
            }
        }
    }
    std::vector<parallel::Pending> pending;
    std::vector<Tensor> operands;
};
constexpr const char* kStartedHandle = "lunaria.ranks.started";

// start(f, ...) -> what f gives, and a handle of the requests that f asks for: they are carried out meanwhile. The
// tensors among the arguments are dense ones of this host.
int start(lua_State* L) {
    Started started;
    const int count = lua_gettop(L);
    for (int i = 2; i <= count; ++i)
        if (const Tensor* tensor = tensor_at(L, i)) started.operands.push_back(*tensor);
    {
        const parallel::StartScope scope(started.pending);
        lua_call(L, count - 1, 1);
    }
    started.operands.push_back(check_tensor(L, -1, "start", "the result"));
    push_handle(L, std::move(started), kStartedHandle);
    return 2;
}

int wait(lua_State* L) {
    for (const parallel::Pending& pending : handle_at<Started>(L, 1, kStartedHandle).pending) pending.wait();
    return 0;
}

int is_done(lua_State* L) {
    bool done = true;
    for (const parallel::Pending& pending : handle_at<Started>(L, 1, kStartedHandle).pending) done &= pending.is_done();
    lua_pushboolean(L, done);
    return 1;
}

// together({ { "send" | "recv", tensor, peer, tag, group }, ... }) -> for each recv a tensor, for each send false
int together(lua_State* L) {
    Communicator& world = parallel::own_world();
    std::vector<parallel::Request> requests;
    std::vector<Tensor> tensors;
    luaL_checktype(L, 1, LUA_TTABLE);
    const auto count = static_cast<lua_Integer>(lua_rawlen(L, 1));
    for (lua_Integer i = 1; i <= count; ++i) {
        luaL_checkstack(L, 8, "requests");
        lua_rawgeti(L, 1, i);
        luaL_checktype(L, -1, LUA_TTABLE);
        for (int field = 1; field <= 5; ++field) lua_rawgeti(L, -field, field);
        const bool sends = group_name(L, -5) == "send";
        const Tensor& given = check_tensor(L, -4, "batch_isend_irecv", "tensor");
        tensors.push_back(sends ? given.to_host().contiguous() : Tensor::empty(given.dtype(), given.shape()));
        parallel::Request request;
        request.operation = sends ? Collective::send : Collective::recv;
        if (sends)
            request.in = tensors.back().raw();
        else
            request.out = tensors.back().raw();
        request.dtype = given.dtype();
        request.count = given.size();
        request.root = static_cast<int>(luaL_checkinteger(L, -3));
        request.tag = static_cast<int>(luaL_checkinteger(L, -2));
        request.group = &world.named_group("batch_isend_irecv", group_name(L, -1));
        requests.push_back(request);
        lua_pop(L, 6);
    }
    world.run_together(requests);
    lua_createtable(L, static_cast<int>(count), 0);
    for (lua_Integer i = 1; i <= count; ++i) {
        const auto at = static_cast<size_t>(i - 1);
        if (requests[at].operation == Collective::recv)
            push(L, tensors[at]);
        else
            lua_pushboolean(L, false);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

// exchange_texts(text, group) -> the texts of all ranks of the group, in a list
int exchange_texts(lua_State* L) {
    const std::string_view text = group_name(L, 1);
    Communicator& world = parallel::own_world();
    const Group& group = world.named_group("all_gather_object", luaL_optstring(L, 2, ""));
    const auto own = static_cast<int64_t>(text.size());
    std::vector<int64_t> sizes(static_cast<size_t>(group.size()));
    parallel::Request request;
    request.operation = Collective::all_gather;
    request.group = &group;
    request.dtype = DType::i64;
    request.count = 1;
    request.in = &own;
    request.out = sizes.data();
    world.run(request);
    int64_t all = 0;
    for (const int64_t size : sizes) all += size;
    std::string texts(static_cast<size_t>(all), '\0');
    request.dtype = DType::u8;
    request.count = 0;
    request.counts = sizes;
    request.in = text.data();
    request.out = texts.data();
    world.run(request);
    lua_createtable(L, group.size(), 0);
    size_t begin = 0;
    for (int i = 0; i < group.size(); ++i) {
        const auto length = static_cast<size_t>(sizes[static_cast<size_t>(i)]);
        push(L, std::string_view(texts).substr(begin, length));
        lua_rawseti(L, -2, i + 1);
        begin += length;
    }
    return 1;
}

}  // namespace

int open_ranks(lua_State* L) {
    make_handle_type(L, kStartedHandle, protect<release_handle<Started>>);
    constexpr luaL_Reg functions[] = {{"rank", protect<rank>},
                                      {"size", protect<size>},
                                      {"members", protect<members>},
                                      {"name_group", protect<name_group>},
                                      {"forget_group", protect<forget_group>},
                                      {"engine", protect<engine>},
                                      {"place", protect<place_of_line>},
                                      {"traffic", protect<traffic>},
                                      {"reset_traffic", protect<reset_traffic>},
                                      {"set_timeout", protect<set_timeout>},
                                      {"start", protect<start>},
                                      {"wait", protect<wait>},
                                      {"is_done", protect<is_done>},
                                      {"together", protect<together>},
                                      {"exchange_texts", protect<exchange_texts>},
                                      {nullptr, nullptr}};
    luaL_newlib(L, functions);
    return 1;
}

}  // namespace lunaria
