// Random calls of all operators: sizes and attributes at the edges, every dtype, views. A call ends in an error that
// names the operator or in what the plain kernels give, also as a compiled graph, and tensors of which only the types
// are known, however large, do no harm.
//
//     lunaria_random_calls FIRST COUNT     calls FIRST .. FIRST + COUNT - 1; one alone is printed first
//
// Of more calls than one, a quarter a day, in runs of 1000 (tests/today.h).
// Call number n is the same in every run. What dies or hangs prints its number.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/ir/builder.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "core/tensor/device.h"
#include "jit/graph/executable.h"
#include "tests/today.h"

namespace lunaria {
namespace {

constexpr int64_t kEdges[] = {-1, 0, 1, 2, 3, int64_t{1} << 31, int64_t{1} << 62};
constexpr int64_t kSizes[] = {0, 1, 2, 3};

class Draw {
  public:
    explicit Draw(uint64_t number) : number_(number) {}
    uint32_t below(size_t n) {
        if (used_ == words_.size()) {
            const auto w = philox(number_, turn_++, 77);
            std::copy(w.begin(), w.end(), words_.begin());
            used_ = 0;
        }
        return static_cast<uint32_t>(static_cast<uint64_t>(words_[used_++]) * n >> 32);
    }
    bool one_in(size_t n) { return below(n) == 0; }
    template <class T, size_t N>
    T of(const T (&list)[N]) {
        return list[below(N)];
    }
    DType dtype() { return static_cast<DType>(below(kDTypeCount)); }
    Shape shape() {
        Shape s;
        for (uint32_t left = below(5); left > 0; --left) s.push_back(of(kSizes));
        return s;
    }

  private:
    uint64_t number_, turn_ = 0;
    std::array<uint32_t, 4> words_{};
    size_t used_ = 4;
};

// Small numbers with both signs; truths, and for floats fractions.
Tensor filled(Draw& draw, DType dtype, const Shape& shape) {
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < t.size(); ++i) {
        const int whole = static_cast<int>(draw.below(9)) - 4;
        t.set_at(i, is_integer(dtype) || dtype == DType::boolean ? (has_sign(dtype) ? whole : std::abs(whole) % 5)
                                                                 : whole + 0.25 * draw.below(4));
    }
    return t;
}

// Views: transposed, with steps, reversed, of one element for all.
Tensor view_of(Draw& draw, const Tensor& t) {
    Shape shape = t.shape();
    Strides strides = t.strides();
    if (t.rank() == 0 || t.size() == 0) return t;
    const int axis = static_cast<int>(draw.below(static_cast<size_t>(t.rank()))), last = t.rank() - 1;
    int64_t offset = 0;
    switch (draw.below(4)) {
        case 0:
            std::swap(shape[axis], shape[last]);
            std::swap(strides[axis], strides[last]);
            break;
        case 1:
            offset = strides[axis] * (shape[axis] - 1);
            strides[axis] = -strides[axis];
            break;
        case 2:
            shape[axis] = (shape[axis] + 1) / 2;
            strides[axis] *= 2;
            break;
        default:
            strides[axis] = 0;
    }
    return t.view(shape, strides, offset);
}

struct RandomCall {
    const Op* op = nullptr;
    std::vector<Value> args;
    bool is_wild = false;  // holds numbers that rounding makes anything of
};

// Of numbers as large as this rounding makes anything.
Value large(RandomCall& call, int64_t x) {
    call.is_wild |= x > 1000;
    return Value(x);
}

Value changed_tensor(Draw& draw, RandomCall& call, const Value& v) {
    const bool has = v.is_tensor();
    const DType dtype = has ? v.tensor().dtype() : DType::f32;
    const Shape shape = has ? v.tensor().shape() : Shape{};
    switch (draw.below(8)) {
        case 0:
            return Value(filled(draw, draw.dtype(), shape));
        case 1:
            return Value(filled(draw, dtype, draw.shape()));
        case 2:
            return Value(filled(draw, draw.dtype(), draw.shape()));
        case 3:
            return has ? Value(view_of(draw, v.tensor())) : v;
        case 4: {
            call.is_wild = true;
            constexpr double kExtremes[] = {HUGE_VAL, -HUGE_VAL, NAN, 0x1p31, -0x1p62, 3e38, 1e-40, -1};
            Tensor t = filled(draw, dtype, shape);
            if (t.size()) t.set_at(draw.below(static_cast<size_t>(t.size())), draw.of(kExtremes));
            return Value(t);
        }
        case 5:
            return large(call, draw.of(kEdges));
        case 6:
            return Value(0.5 * static_cast<double>(draw.below(7)) - 1.5);
        default:
            return has ? Value(filled(draw, dtype, shape)) : v;
    }
}

Value edge(Draw& draw, RandomCall& call, const Value& v) {
    if (v.kind() == Value::Kind::boolean) return Value(draw.one_in(2));
    if (v.kind() == Value::Kind::integer) return large(call, draw.of(kEdges));
    if (v.kind() == Value::Kind::number) {
        constexpr double kNumbers[] = {0, -1, 0.5, 2, 1e-3, NAN, HUGE_VAL, 1e30};
        const double x = draw.of(kNumbers);
        call.is_wild |= !(std::fabs(x) < 1e6);
        return Value(x);
    }
    if (v.kind() == Value::Kind::dtype) return Value(draw.dtype());
    if (v.is_list()) {
        std::vector<Value> items = v.items();
        if (!items.empty() && !items[0].is_number()) return v;
        if (draw.one_in(4) && !items.empty()) items.pop_back();
        if (draw.one_in(4) && items.size() < 9) items.emplace_back(draw.of(kEdges));
        if (!items.empty()) items[draw.below(items.size())] = Value(draw.of(kEdges));
        return Value::list(std::move(items));
    }
    return v;
}

Value changed(Draw& draw, RandomCall& call, const Param& param, const Value& v) {
    if (param.optional && draw.one_in(5)) return {};
    if (param.type == ArgType::tensors) {
        if (!v.is_list()) return v;
        std::vector<Value> items = v.items();
        if (draw.one_in(4) && !items.empty()) items.pop_back();
        if (draw.one_in(4)) items.emplace_back(filled(draw, draw.dtype(), draw.shape()));
        for (Value& item : items)
            if (draw.one_in(2)) item = changed_tensor(draw, call, item);
        for (Value& item : items)
            if (!item.is_tensor()) item = Value(filled(draw, DType::f32, {2}));
        return Value::list(std::move(items));
    }
    if (is_tensor_type(param.type)) return changed_tensor(draw, call, v);
    if (!param.choices.empty()) return Value(param.choices[draw.below(param.choices.size())]);
    if (v.is_nil()) {
        switch (param.type) {
            case ArgType::integer:
                return Value(draw.of(kEdges));
            case ArgType::number:
            case ArgType::scalar:
                return Value(draw.one_in(2) ? Value(0.5) : Value(draw.of(kEdges)));
            case ArgType::dtype:
                return Value(draw.dtype());
            case ArgType::ints:
            case ArgType::shape: {
                std::vector<Value> items;
                for (uint32_t left = draw.below(4); left > 0; --left) items.emplace_back(draw.of(kEdges));
                return Value::list(std::move(items));
            }
            default:
                return v;
        }
    }
    return edge(draw, call, v);
}

// Operators whose results are of more memory than is worth the time, or are no values.
bool is_left_out(const Op& op) {
    static const std::set<std::string_view> names{"empty", "empty_like", "new_empty"};
    return op.writes() || names.contains(op.name()) || op.samples.empty();
}

RandomCall call_of(uint64_t number) {
    static const std::vector<const Op*> ops = [] {
        std::vector<const Op*> all;
        for (const auto& op : registry().all())
            if (!is_left_out(*op)) all.push_back(op.get());
        return all;
    }();
    // The samples are read once: they take longer than a call.
    static std::map<std::pair<const Op*, size_t>, std::vector<Value>> samples;
    Draw draw(number);
    RandomCall call;
    call.op = ops[number % ops.size()];
    const size_t which = draw.below(call.op->samples.size());
    auto [found, is_new] = samples.try_emplace({call.op, which});
    if (is_new) found->second = sample_args(*call.op, call.op->samples[which], 3);
    call.args = found->second;
    const auto& params = call.op->signature.params;
    if (call.args.empty()) return call;
    for (uint32_t left = 1 + draw.below(3); left > 0; --left) {
        const size_t i = draw.below(call.args.size());
        call.args[i] = changed(draw, call, params[i], call.args[i]);
    }
    return call;
}

// --- what came of a call

struct Outcome {
    bool is_error = false;
    ErrorKind kind{};
    std::string where, text;
    std::vector<Tensor> tensors;
    std::vector<Value> others;  // host values
    bool is_refused_as_graph = false;
};

void collect(const Value& v, Outcome& to) {
    if (v.is_tensor())
        to.tensors.push_back(v.tensor());
    else if (v.is_list())
        for (const Value& item : v.items()) collect(item, to);
    else
        to.others.push_back(v);
}

template <class F>
Outcome outcome(F f) {
    Outcome o;
    try {
        default_generator().set_state({7, 0});
        f(o);
    } catch (const Error& e) {
        o.is_error = true;
        o.kind = e.kind();
        o.where = e.where();
        o.text = e.what();
    } catch (const std::exception& e) {
        o.is_error = true;
        o.text = str("an exception of C++: ", e.what());
    }
    return o;
}

Outcome eager(Device& device, const RandomCall& call) {
    set_current_device(&device);
    Outcome o = outcome([&](Outcome& to) { collect(run(*call.op, call.args), to); });
    set_current_device(&cpu::device());
    return o;
}

Value as_node(ir::Graph& graph, const Value& v, std::vector<Tensor>& inputs) {
    if (v.is_tensor()) {
        inputs.push_back(v.tensor());
        return Value(graph.add_parameter(str("x", inputs.size()), ir::NodeType::of(type_of(v))));
    }
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(as_node(graph, item, inputs));
    return Value::list(std::move(items));
}

Outcome compiled(const RandomCall& call) {
    bool refused = false;
    Outcome o = outcome([&](Outcome& to) {
        ir::Graph graph("f");
        std::vector<Tensor> inputs;
        std::vector<Value> args;
        for (const Value& v : call.args) args.push_back(as_node(graph, v, inputs));
        ir::GraphBuilder builder(graph);
        const Value result = builder.emit(*call.op, args);
        graph.result = result;
        if (result.is_node() && result.node()->type.kind == ir::NodeType::Kind::list) {
            std::vector<Value> items;
            for (size_t i = 0; i < result.node()->type.items.size(); ++i)
                items.push_back(Expr(builder, result)[i].value());
            graph.result = Value::list(std::move(items));
        }
        std::unique_ptr<graph::Executable> program;
        try {
            program = graph::compile(graph, {.generate = false});
        } catch (const Error& e) {
            refused = e.kind() == ErrorKind::state;
            throw;
        }
        std::vector<Tensor> outputs(program->output_count());
        program->run(inputs, outputs);
        to.tensors = outputs;
    });
    o.is_refused_as_graph = refused;
    return o;
}

// Types alone, with sizes at the edges: nothing is computed.
Outcome typed(Draw& draw, const RandomCall& call) {
    return outcome([&](Outcome&) {
        ir::Graph graph("f");
        std::vector<Value> args;
        auto node = [&](const Value& v) {
            Shape shape;
            for (int64_t size : v.tensor().shape()) {
                const int64_t drawn = draw.one_in(2) ? draw.of(kEdges) : size;
                shape.push_back(drawn < 0 ? kUnknownDim : drawn);
            }
            // Only what could be: no tensor has more bytes than 63 bits count.
            __int128 bytes = static_cast<__int128>(size_of(v.tensor().dtype()));
            for (int64_t size : shape)
                bytes = std::min<__int128>(bytes * std::max<int64_t>(size, 1), __int128{1} << 64);
            if (bytes >> 63) shape = v.tensor().shape();
            return Value(graph.add_parameter("x", ir::NodeType::of({v.tensor().dtype(), shape})));
        };
        for (const Value& v : call.args) {
            if (v.is_tensor()) {
                args.push_back(node(v));
            } else if (v.is_list() && !v.items().empty() && v.items()[0].is_tensor()) {
                std::vector<Value> items;
                for (const Value& item : v.items()) items.push_back(node(item));
                args.push_back(Value::list(std::move(items)));
            } else {
                args.push_back(v);
            }
        }
        ir::GraphBuilder(graph).emit(*call.op, args);
    });
}

double tolerance_of(DType t) {
    return t == DType::f64 || t == DType::c128 ? 1e-9 : t == DType::f16 ? 1e-2 : t == DType::bf16 ? 6e-2 : 1e-4;
}

// What is different, empty where nothing is.
std::string difference(const Outcome& got, const Outcome& want, bool is_wild, bool is_random = false) {
    if (got.is_error != want.is_error)
        return got.is_error ? "raises " + got.text : "gives a result instead of " + want.text;
    if (got.is_error) return {};
    if (got.tensors.size() != want.tensors.size())
        return str("gives ", got.tensors.size(), " tensors instead of ", want.tensors.size());
    for (size_t k = 0; k < got.tensors.size(); ++k) {
        const Tensor &a = got.tensors[k], &b = want.tensors[k];
        if (a.dtype() != b.dtype() || !(a.shape() == b.shape()))
            return str("gives ", name_of(a.dtype()), a.shape(), " instead of ", name_of(b.dtype()), b.shape());
        constexpr int64_t kMost = 1 << 20;  // views of one element may have any number of them
        if (is_wild || a.size() > kMost) continue;
        double largest = 1;
        for (int64_t i = 0; i < b.size(); ++i)
            if (const double y = std::fabs(b.at(i)); std::isfinite(y)) largest = std::max(largest, y);
        for (int64_t i = 0; i < a.size(); ++i) {
            const double x = a.at(i), y = b.at(i);
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            const bool is_near =
                std::fabs(x - y) <= std::max(tolerance_of(a.dtype()), is_random ? 1e-4 : 0.0) * largest;
            if (!is_near || (!is_float(a.dtype()) && !is_complex(a.dtype())))
                return str("result ", k + 1, " has ", x, " at ", i, " instead of ", y);
        }
    }
    return {};
}

// --- printing

std::string text_of(const Value& v) {
    if (v.is_tensor()) {
        const Tensor& t = v.tensor();
        std::string list;
        for (int64_t i = 0; i < t.size(); ++i) list += str(i ? ", " : "", t.at(i));
        std::string shape;
        for (int64_t d : t.shape()) shape += str(shape.empty() ? "" : ", ", d);
        std::string name(name_of(t.dtype()));
        if (name == "bool") name = "bool_";
        return str("ms.tensor({ ", list, " }):astype(ms.", name, "):reshape { ", shape, " }",
                   t.is_contiguous() ? "" : " --[[ a view ]]");
    }
    if (v.is_list()) {
        std::string list;
        for (const Value& item : v.items()) list += (list.empty() ? "" : ", ") + text_of(item);
        return "{ " + list + " }";
    }
    if (v.kind() == Value::Kind::dtype) return "ms." + std::string(name_of(v.dtype()));
    if (v.kind() == Value::Kind::string) return '"' + v.string() + '"';
    return to_string(v);
}

std::string text_of(const RandomCall& call) {
    std::string text(call.op->name());
    text += '(';
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Param& p = call.op->signature.params[i];
        text += str(i ? ", " : "", p.by_name_only ? "{ " + std::string(p.name) + " = " : "", text_of(call.args[i]),
                    p.by_name_only ? " }" : "");
    }
    return text + ')';
}

uint64_t at = 0;

void tell(int signal) {
    char text[96];
    const int n = std::snprintf(text, sizeof text, "call %llu %s (signal %d)\n", static_cast<unsigned long long>(at),
                                signal == SIGALRM ? "takes too long" : "dies", signal);
    if (write(STDERR_FILENO, text, static_cast<size_t>(n)) < 0) _exit(2);
    _exit(1);
}

// Errors of operators name them; those about memory need not.
std::string unnamed(const RandomCall& call, const Outcome& o) {
    if (!o.is_error || o.kind == ErrorKind::memory || o.where == "memory" || o.where == call.op->name()) return {};
    return "raises an error that does not name it: " + o.text;
}

bool check(uint64_t number, const RandomCall& call) {
    // Factors that are known but for signs or the order of equal ones.
    static const std::set<std::string_view> ambiguous{"svd_factors", "svd",   "eigh", "eig",
                                                      "qr",          "lstsq", "cond", "pinv"};
    std::vector<std::string> wrong;
    auto add = [&](const char* what, const std::string& text) {
        if (!text.empty()) wrong.push_back(str(what, ' ', text));
    };
    const bool is_wild = call.is_wild || ambiguous.contains(call.op->name());
    const Outcome fast = eager(cpu::device(), call);
    add("eager", unnamed(call, fast));
    const bool is_random = call.op->draws();
    const bool is_memory = fast.is_error && fast.kind == ErrorKind::memory;
    if (!call.op->host_fn && !is_memory) {
        const Outcome plain = eager(cpu::plain_device(), call);
        add("eager", difference(fast, plain, is_wild, is_random));
    }
    if (number % 4 == 0 && !call.op->host_fn && !is_memory) {
        const Outcome graph = compiled(call);
        // A program has no views of one element for all.
        const bool lacks_memory = graph.is_error && graph.kind == ErrorKind::memory;
        if (!graph.is_refused_as_graph && !lacks_memory) add("compiled", difference(graph, fast, is_wild || is_random));
    }
    if (number % 4 == 1) {
        Draw draw(number ^ 0x5555);
        add("typed", unnamed(call, typed(draw, call)));
    }
    if (wrong.empty()) return true;
    std::cout << "call " << number << ": " << text_of(call) << '\n';
    for (const std::string& line : wrong) std::cout << "    " << line << '\n';
    return false;
}

int fuzz(uint64_t first, uint64_t count) {
    // What would need more is an error, not the end of the machine.
    const rlimit memory{rlim_t{2} << 30, rlim_t{2} << 30};
    if (!std::getenv("ASAN_OPTIONS")) setrlimit(RLIMIT_AS, &memory);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) std::signal(signal, tell);
    set_current_device(&cpu::device());
    const auto start = std::chrono::steady_clock::now();
    uint64_t failed = 0, done = 0;
    double longest = 0;
    uint64_t slowest = 0;
    for (at = first; at < first + count; ++at) {
        if (count > 1 && !testing::is_of_today(at / 1000, 4)) continue;
        ++done;
        alarm(20);
        const auto before = std::chrono::steady_clock::now();
        const RandomCall call = call_of(at);
        if (count == 1) std::cout << text_of(call) << std::endl;
        if (!check(at, call) && ++failed == 200) break;
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
        if (took > longest) {
            longest = took;
            slowest = at;
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.1f s, the longest %.2f s (call %llu)\n%llu passed, %llu failed\n", seconds, longest,
                static_cast<unsigned long long>(slowest), static_cast<unsigned long long>(done - failed),
                static_cast<unsigned long long>(failed));
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace lunaria

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fputs("usage: lunaria_random_calls FIRST COUNT\n", stderr);
        return 2;
    }
    return lunaria::fuzz(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
}
