#include "jit/saving/library_functions.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lunaria {

namespace {

using N = Native;
using S = Saved;
using V = Values;
using D = Derivative;

constexpr LibraryFunction kFunctions[] = {
    {"_G", "assert", "A", N::check, S::called, false, V::controls, D::rule},
    {"_G", "collectgarbage", "", N::refused, S::unnamed, false, V::computes, D::harmless},
    {"_G", "dofile load loadfile", "", N::refused, S::unnamed, false, V::computes, D::none},
    {"_G", "error", "al", N::error, S::called, false, V::controls, D::machine},
    {"_G", "getmetatable", "", N::get_metatable, S::known, false, V::moves, D::harmless},
    {"_G", "ipairs", "A", N::ipairs, S::folded, true, V::moves, D::harmless},
    {"_G", "next", "T", N::unknown, S::folded, true, V::moves, D::rule},
    {"_G", "pairs", "A", N::pairs, S::folded, true, V::moves, D::rule},
    {"_G", "pcall", "A", N::unknown, S::called, false, V::controls, D::machine},
    {"_G", "print", "", N::local, S::called, true, V::computes, D::harmless},
    {"_G", "rawequal", "", N::raw_equal, S::folded, true, V::tells, D::harmless},
    {"_G", "rawget", "TA", N::unknown, S::called, true, V::moves, D::machine},
    {"_G", "rawlen", "", N::raw_length, S::folded, true, V::moves, D::harmless},
    {"_G", "rawset", "TAA", N::unknown, S::writes, false, V::moves, D::machine},
    {"_G", "require", "", N::refused, S::known, false, V::tells, D::none},
    {"_G", "select", "#", N::select, S::folded, false, V::moves, D::rule},
    {"_G", "setmetatable", "", N::set_metatable, S::called, false, V::moves, D::harmless},
    {"_G", "tonumber", "A-", N::pure, S::folded, true, V::computes, D::rule},
    {"_G", "tostring", "A", N::text, S::called, true, V::computes, D::rule},
    {"_G", "type", "", N::type_of, S::folded, true, V::tells, D::harmless},
    {"_G", "warn", "", N::unknown, S::unnamed, false, V::computes, D::none},
    {"_G", "xpcall", "AF", N::handler, S::called, false, V::computes, D::machine},

    {"math", "abs acos asin cos exp sin sqrt tan", "N", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "atan", "Nn", N::pure, S::folded, true, V::computes, D::rule, "=", "atan2"},
    {"math", "log", "Nn", N::pure, S::folded, true, V::computes, D::rule, "=", "/"},
    {"math", "atan2", "NN", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "ceil floor", "", N::pure, S::folded, true, V::computes, D::none, "="},
    {"math", "cosh sinh tanh", "N", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "deg", "N", N::pure, S::folded, true, V::computes, D::rule, "rad2deg"},
    {"math", "fmod", "NN", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "frexp ldexp", "", N::pure, S::folded, true, V::computes, D::none},
    {"math", "log10", "N", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "max", "N*", N::pure, S::folded, true, V::computes, D::rule, "maximum"},
    {"math", "min", "N*", N::pure, S::folded, true, V::computes, D::rule, "minimum"},
    {"math", "modf", "N", N::pure, S::folded, true, V::computes, D::rule},
    {"math", "pow", "NN", N::pure, S::folded, true, V::computes, D::rule, "="},
    {"math", "rad", "N", N::pure, S::folded, true, V::computes, D::rule, "deg2rad"},
    {"math", "random", "", N::local, S::called, true, V::computes, D::none},
    {"math", "randomseed", "", N::local, S::unnamed, false, V::computes, D::none},
    {"math", "tointeger ult", "", N::pure, S::folded, true, V::computes, D::none},
    {"math", "type", "", N::pure, S::folded, true, V::computes, D::harmless},

    {"string", "byte find len match pack packsize unpack", "", N::pure, S::folded, true, V::computes, D::none},
    {"string", "char format lower rep reverse sub upper", "", N::text, S::folded, true, V::computes, D::none},
    {"string", "dump", "", N::unknown, S::unnamed, false, V::computes, D::none},
    {"string", "gmatch", "SS-", N::unknown, S::called, true, V::computes, D::rule},
    {"string", "gsub", "SSFi", N::pure, S::called, true, V::computes, D::rule},

    {"table", "concat", "", N::unknown, S::folded, true, V::computes, D::none},
    {"table", "insert", "TA", N::unknown, S::writes, false, V::moves, D::rule},
    {"table", "move", "TIIIt", N::unknown, S::writes, false, V::moves, D::rule},
    {"table", "pack", "", N::unknown, S::called, false, V::moves, D::rule},
    {"table", "remove", "Ti", N::unknown, S::writes, false, V::moves, D::rule},
    {"table", "sort", "Tf", N::unknown, S::writes, false, V::computes, D::rule},
    {"table", "unpack", "Xii", N::unknown, S::folded, false, V::moves, D::rule},

    {"utf8", "char codepoint len offset", "", N::pure, S::folded, true, V::computes, D::none},
    {"utf8", "codes", "", N::unknown, S::unnamed, false, V::computes, D::none},

    {"os", "clock date getenv time", "", N::local, S::unnamed, false, V::computes, D::none},
    {"os", "difftime", "", N::pure, S::unnamed, false, V::computes, D::none},
    {"os", "execute exit remove rename setlocale tmpname", "", N::unknown, S::unnamed, false, V::computes, D::none},
    {"io", "write", "", N::local, S::unnamed, false, V::computes, D::none},
    {"io", "close flush input lines open output popen read tmpfile type", "", N::unknown, S::unnamed, false,
     V::computes, D::none},

    {"coroutine", "close create isyieldable resume running status wrap yield", "", N::refused, S::called, false,
     V::computes, D::machine},

    {"debug", "getinfo", "", N::refused, S::known, false, V::computes, D::rule},
    {"debug", "getlocal", "AA", N::refused, S::unnamed, false, V::computes, D::rule},
    {"debug", "getupvalue setlocal setupvalue upvaluejoin", "", N::refused, S::unnamed, false, V::computes, D::rule},
    {"debug", "debug gethook sethook setmetatable traceback upvalueid", "", N::refused, S::unnamed, false, V::computes,
     D::none},
    {"debug", "getmetatable getregistry getuservalue setcstacklimit setuservalue", "", N::unknown, S::unnamed, false,
     V::computes, D::none},

    {"lunaria", "checkpoint custom_vjp grad hessian jacfwd jacrev jvp recompute stop_gradient value_and_grad vjp vmap",
     "", N::unknown, S::called, true, V::computes, D::machine},
    {"lunaria", "clock memory_stats set_recursion_limit set_rng_state set_seed", "", N::local, S::unnamed, false,
     V::computes, D::none},
    {"lunaria", "get_context get_num_threads get_rng_state get_seed", "", N::reader, S::unnamed, false, V::computes,
     D::none},
    {"lunaria", "is_parameter", "", N::is_parameter, S::known, true, V::tells, D::none},
    {"lunaria", "is_tensor", "", N::is_tensor, S::folded, true, V::tells, D::harmless},
    {"lunaria", "slice", "", N::unknown, S::folded, true, V::moves, D::none},
    {"lunaria", "tensor", "", N::reader, S::called, true, V::computes, D::rule},

    {"lunaria.autodiff", "fail", "", N::unknown, S::called, true, V::computes, D::none},
    {"lunaria.autodiff", "fills fits metamethod", "", N::unknown, S::unnamed, false, V::computes, D::harmless},
    {"lunaria.autodiff", "is_dtype is_float", "", N::is_tensor, S::called, true, V::tells, D::none},
    {"lunaria.autodiff", "next_key", "", N::next_key, S::unnamed, false, V::computes, D::harmless},
    {"lunaria.autodiff", "note", "", N::ignored, S::unnamed, false, V::computes, D::none},
    {"lunaria.autodiff", "draws", "", N::is_tensor, S::unnamed, false, V::tells, D::none},
    {"lunaria.jit", "compiled", "", N::refused, S::unnamed, false, V::computes, D::none},
    {"lunaria.jit", "inside", "", N::inside, S::known, false, V::tells, D::none},
    {"lunaria.jit", "is_jit", "", N::is_alike, S::known, false, V::computes, D::none},
    {"lunaria.jit", "make", "", N::alike, S::known, false, V::computes, D::rule},
    {"lunaria.nn.arguments", "describe fail", "", N::unknown, S::called, true, V::computes, D::machine},
    {"lunaria.nn.cell",
     "Cell.cells Cell.get_parameters Cell.name_cells Cell.parameters_dict Cell.trainable_params "
     "Cell.untrainable_params",
     "", N::unknown, S::known, false, V::computes, D::machine},

    {"tensor", "copy_ fill_ normal_ random_ set_data uniform_ zero_", "", N::local, S::unnamed, false, V::computes,
     D::rule},
    {"tensor", "dim is_complex is_floating_point ndimension", "", N::rank, S::unnamed, false, V::computes, D::none},
    {"tensor", "is_contiguous new_empty new_ones new_tensor new_zeros storage_offset stride", "", N::reader, S::unnamed,
     false, V::computes, D::none},
    {"tensor", "item", "", N::item, S::unnamed, false, V::computes, D::machine},
    {"tensor", "new_full", "", N::reader, S::unnamed, false, V::computes, D::rule},
    {"tensor", "nelement numel", "", N::shape, S::unnamed, false, V::computes, D::none},
    {"tensor", "requires_grad_", "", N::local, S::unnamed, false, V::computes, D::none},
    {"tensor", "asnumpy tolist", "", N::reader, S::unnamed, false, V::computes, D::rule},
};

// How a saved program calls the libraries, where that is not by their names.
constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {{"_G", ""},
                                                                       {"lunaria", "ms."},
                                                                       {"lunaria.autodiff", "autodiff."},
                                                                       {"lunaria.jit", ""},
                                                                       {"lunaria.nn.arguments", "arguments."},
                                                                       {"lunaria.nn.cell", "nn."}};

}  // namespace

void for_each_library_function(const std::function<void(const LibraryFunction&, std::string_view name)>& f) {
    for (const LibraryFunction& row : kFunctions)
        for (std::string_view rest = row.names; !rest.empty();) {
            const size_t end = std::min(rest.find(' '), rest.size());
            f(row, rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
}

std::string saved_name(const LibraryFunction& row, std::string_view name) {
    for (const auto& [library, prefix] : kPrefixes)
        if (library == row.library) return std::string(prefix).append(name);
    return std::string(row.library).append(".").append(name);
}

}  // namespace lunaria
