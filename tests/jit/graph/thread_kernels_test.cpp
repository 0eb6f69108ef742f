// Kernels for processors that run threads in blocks, tried on this one: every generated kernel gives what its host code
// gives, in every way of sharing out the work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <unordered_set>

#include "backends/cpu/device.h"
#include "backends/cpu/machine_code.h"
#include "core/ir/builder.h"
#include "core/loops/generator.h"
#include "core/loops/graph_backend.h"
#include "core/loops/kernels.h"
#include "core/ops/sample.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "jit/graph/flat.h"
#include "jit/graph/loop_builder.h"
#include "jit/graph/passes.h"
#include "tests/jit/graph/compare.h"
#include "tests/jit/graph/fibers.h"
#include "tests/today.h"

namespace lunaria::graph {
namespace {

using lunaria::testing::loops_of;

// The level below has no conversions of float16.
constexpr const char* kHost = "x86-64-v3";

// An operand's memory: as far as its strides reach to both sides of its first element.
struct Memory {
    DType dtype = DType::f32;
    std::vector<char> bytes;
    size_t start = 0;
    char* first() { return bytes.data() + start; }
};

std::vector<Memory> memories(const Loop& loop) {
    std::vector<Memory> list;
    const auto rank = static_cast<size_t>(loop.program.outer_rank);
    size_t next = rank + 1;
    for (const LoopOperand& o : loop.program.operands) {
        int64_t low = 0, high = 0;
        auto reach = [&](int64_t count, int64_t stride) { (stride < 0 ? low : high) += (count - 1) * stride; };
        for (size_t i = 0; i < rank; ++i) reach(loop.sizes[i], loop.sizes[next++]);
        if (o.step == LoopOperand::Step::wide) reach(loop.inner, loop.sizes[next++]);
        if (o.step == LoopOperand::Step::dense) reach(loop.inner, 1);
        const auto size = static_cast<int64_t>(size_of(o.dtype));
        Memory m{o.dtype, {}, static_cast<size_t>(-low * size)};
        m.bytes.resize(static_cast<size_t>((high - low + 1) * size));
        list.push_back(std::move(m));
    }
    // Rows and columns of products lie behind what strides tell.
    for (const LoopInstruction& i : loop.program.code) {
        if (i.kind != LoopInstruction::Kind::product) continue;
        const auto size = static_cast<int64_t>(size_of(i.dtype));
        for (auto [index, more] : {std::pair{i.index, i.depth}, std::pair{i.matrix, i.depth * i.stride}})
            list[index].bytes.resize(list[index].bytes.size() + static_cast<size_t>(more * size));
    }
    return list;
}

double read(const char* at, DType t) {
    return visit_dtype(t, [&]<class T>(TypeTag<T>) -> double {
        T v;
        std::memcpy(&v, at, sizeof v);
        if constexpr (requires { v.real(); })
            return HUGE_VAL;
        else
            return static_cast<double>(v);
    });
}

void fill(Memory& m, std::mt19937_64& random) {
    std::uniform_real_distribution<double> reals(-6, 6);
    const double special[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 1e-40, 20000.0, 1e30, -1.0, 1.0};
    for (size_t at = 0; at < m.bytes.size(); at += size_of(m.dtype)) {
        double x = reals(random);
        if (random() % 50 == 0 && is_float(m.dtype)) x = special[random() % std::size(special)];
        if (m.dtype == DType::boolean || m.dtype == DType::u8) x = std::abs(x);
        if (m.dtype == DType::boolean) x = x < 3;
        visit_dtype(m.dtype, [&]<class T>(TypeTag<T>) {
            // Reals that are no value of an integer type are for floats alone.
            const T v = static_cast<T>(static_cast<float>(x));
            std::memcpy(m.bytes.data() + at, &v, sizeof v);
        });
    }
}

// How far apart two memories are, relative to their values.
double distance(const Memory& a, const Memory& b) {
    double most = 0;
    for (size_t at = 0; at < a.bytes.size(); at += size_of(a.dtype)) {
        const double x = read(a.bytes.data() + at, a.dtype), y = read(b.bytes.data() + at, b.dtype);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double d = std::abs(x - y) / std::max(1.0, std::abs(x));
        most = std::max(most, std::isnan(d) ? HUGE_VAL : d);
    }
    return most;
}

double tolerance_of(const LoopProgram& program) {
    double tolerance = 0;
    for (const LoopOperand& o : program.operands)
        if (o.written && is_float(o.dtype))
            tolerance = std::max(tolerance, o.dtype == DType::f64 ? 1e-10 : o.dtype == DType::f32 ? 3e-5 : 2e-2);
    return tolerance;
}

// The host as a device whose loops add up by threads.
class Threads final : public Device, public Backend {
  public:
    std::string_view name() const override { return "Threads"; }
    void* allocate(size_t bytes) override { return host().allocate(bytes); }
    void release(void* block, size_t bytes) noexcept override { host().release(block, bytes); }
    void copy_from_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_to_host(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_elements(const Tensor& from, const Tensor& to) override { host().copy_elements(from, to); }
    std::span<const Kernel> kernels(const Op& op) const override { return host().kernels(op); }
    DeviceMemory memory() const override { return host().memory(); }
    void reset_peak_memory() override {}
    void empty_cache() override {}

    Backend* graphs() override { return this; }
    bool can_compile() const override { return true; }
    bool adds_as_host() const override { return false; }
    std::vector<LoopRef> compile(std::span<const LoopTask> tasks) override {
        return std::vector<LoopRef>(tasks.size());
    }
    void launch(const LoopRef&, std::span<void* const>) override {}

  private:
    static Device& host() { return cpu::device(); }
};

class ThreadKernelTest : public ::testing::Test {
  protected:
    void SetUp() override {
        static Threads threads;
        set_current_device(&threads);
        if (!can_generate()) GTEST_SKIP() << "no code generator";
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2";
    }

    void TearDown() override { set_current_device(&cpu::device()); }

    static std::unique_ptr<ir::Graph> graph_with(std::initializer_list<TensorType> types, auto make) {
        auto graph = std::make_unique<ir::Graph>("f");
        ir::GraphBuilder builder(*graph);
        std::vector<Expr> x;
        for (const TensorType& t : types) x.emplace_back(builder, Value(graph->add_parameter("", ir::NodeType::of(t))));
        graph->result = make(builder, x);
        return graph;
    }

    static std::vector<char*> pointers_of(std::vector<Memory>& memory) {
        std::vector<char*> list;
        for (Memory& m : memory) list.push_back(m.first());
        return list;
    }

    static void run_on_host(const Loop& loop, std::vector<Memory>& memory) {
        const KernelRequest request{&loop.program};
        const CodeTarget target{kHost, &cpu::load_machine_code};
        const auto function = reinterpret_cast<LoopFunction>(find_kernels(target, {&request, 1}).at(0));
        ASSERT_TRUE(function);
        std::vector<uint64_t> scratch(scratch_values(loop.program).size() * static_cast<size_t>(loop.inner + 64));
        std::vector<char*> pointers = pointers_of(memory);
        function(reinterpret_cast<void* const*>(pointers.data()), loop.sizes.data(), 0, loop.rows, 0, loop.inner,
                 scratch.data());
    }

    static void run_in_threads(const Loop& loop, std::vector<Memory>& memory, const ThreadLimits& limits,
                               bool backwards) {
        std::vector<char*> pointers = pointers_of(memory);
        std::vector<uintptr_t> addresses;
        for (const char* p : pointers) addresses.push_back(reinterpret_cast<uintptr_t>(p));
        const ThreadLaunch launch = plan_threads(loop.program, loop.sizes, loop.rows, addresses, limits);
        std::vector<uint64_t> words;
        std::map<uint16_t, std::vector<char>> chunks;
        std::vector<uint64_t> distances;
        for (const LoopInstruction& i : loop.program.code) {
            if (i.kind != LoopInstruction::Kind::add) continue;
            const size_t bytes = memory[i.index].bytes.size();
            distances.push_back(bytes);
            if (launch.chunks == 1) continue;
            chunks[i.index].resize(bytes * static_cast<size_t>(launch.chunks));
            addresses[i.index] = reinterpret_cast<uintptr_t>(chunks[i.index].data());
        }
        words.assign(addresses.begin(), addresses.end());
        words.insert(words.end(), launch.words.begin(), launch.words.end());
        std::vector<uint64_t> scratch(launch.scratch_bytes / 8 + 1, 0x7ff7a5a57ff7a5a5);
        words.push_back(reinterpret_cast<uintptr_t>(scratch.data()));
        words.insert(words.end(), distances.begin(), distances.end());
        shapes_.insert(launch.shape.text().substr(0, 9) + (launch.chunks > 1 ? " chunks" : ""));
        if (ptx_folder()) {
            write_ptx(loop.program, launch.shape);
        } else {
            const std::string& object = object_of(loop.program, launch.shape);
            ASSERT_FALSE(object.empty());
            const auto kernel = reinterpret_cast<EmulatedKernel>(cpu::load_machine_code(object));
            ASSERT_TRUE(kernel);
            ASSERT_EQ(lunaria::testing::run_threads(kernel, launch, words, backwards), "") << launch.shape.text();
        }
        for (auto& [index, content] : chunks) add_chunks(loop, memory[index], content, launch.chunks, limits);
    }

    static void add_chunks(const Loop& loop, Memory& to, std::vector<char>& from, int64_t count,
                           const ThreadLimits& limits) {
        Loop sum;
        sum.program = sum_of_chunks(to.dtype);
        sum.rows = count;
        sum.inner = loop.inner;
        sum.sizes = {count, loop.inner, loop.inner, 0};
        std::vector<Memory> memory{{to.dtype, std::move(from), 0}, std::move(to)};
        run_in_threads(sum, memory, limits, false);
        to = std::move(memory[1]);
    }

    static void expect_same(const Loop& loop, const std::string& what, uint64_t seed) {
        SCOPED_TRACE(what + '\n' + loop.program.text());
        ++tried_;
        std::mt19937_64 random(seed);
        std::vector<Memory> host = memories(loop);
        for (Memory& m : host) fill(m, random);
        std::vector<Memory> threads = host;
        if (!ptx_folder()) run_on_host(loop, host);
        const ThreadLimits limits{.most_blocks = static_cast<int64_t>(1 + random() % 3),
                                  .most_near_bytes = random() % 2 ? size_t{48} << 10 : 0};
        run_in_threads(loop, threads, limits, random() % 2);
        if (ptx_folder() || ::testing::Test::HasFatalFailure()) return;
        for (size_t k = 0; k < host.size(); ++k)
            EXPECT_LE(distance(host[k], threads[k]), tolerance_of(loop.program)) << "operand " << k;
    }

    static const std::string& object_of(const LoopProgram& program, const ThreadShape& shape) {
        static std::map<std::string, std::string> known;
        std::string& object = known[shape.text() + program.text()];
        if (object.empty()) object = find_code({&program, shape}, kHost);
        return object;
    }

    // LUNARIA_PTX names a folder: the assembly of every fifth kernel, other ones each day, goes there, and nothing is
    // run.
    static const char* ptx_folder() { return std::getenv("LUNARIA_PTX"); }

    static void write_ptx(const LoopProgram& program, const ThreadShape& shape) {
        static std::unordered_set<std::string> written;
        if (!written.insert(shape.text() + program.text()).second) return;
        if (!lunaria::testing::is_of_today(written.size(), 5)) return;
        for (const char* target : {"sm_80", "sm_90"}) {
            const std::string text = find_code({&program, shape}, target);
            ASSERT_FALSE(text.empty()) << target;
            const auto file = std::filesystem::path(ptx_folder()) / str("k", written.size(), '.', target, ".ptx");
            std::ofstream(file) << "// " << shape.text() << '\n' << text;
        }
    }

    static inline std::set<std::string> shapes_;
    static inline std::set<std::string> formulas_;
    static inline size_t tried_ = 0;  // kernels
};

TEST_F(ThreadKernelTest, every_formula_gives_what_host_code_gives) {
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise) continue;
        for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                            DType::i8, DType::boolean}) {
            for (const char* sample : op->samples) {
                // One of each is enough for an assembler.
                if (ptx_folder() && sample != op->samples[0]) continue;
                const std::vector<Value> args = sample_args(*op, sample, 5);
                auto graph = std::make_unique<ir::Graph>("f");
                ir::GraphBuilder builder(*graph);
                std::vector<Value> operands;
                for (const Value& v : args) {
                    const bool turns = v.is_tensor() && is_float(v.tensor().dtype());
                    const DType t = turns ? dtype : v.is_tensor() ? v.tensor().dtype() : dtype;
                    operands.push_back(v.is_tensor() ? Value(graph->add_parameter("", ir::NodeType::of({t, {3, 28}})))
                                                     : v);
                }
                std::vector<Loop> loops;
                try {
                    Expr y(builder, builder.emit(*op, operands));
                    // A second operator, so that it is worth a kernel.
                    Expr mask(builder, Value(graph->add_parameter("", ir::NodeType::of({DType::boolean, {3, 28}}))));
                    Expr other(builder, Value(graph->add_parameter("", y.value().node()->type)));
                    graph->result = call("where", {mask, y, other}).value();
                    loops = loops_of(*graph);
                    // Threads have no loops of the host's to call.
                    std::erase_if(loops, [](const Loop& loop) {
                        return std::ranges::any_of(loop.program.code, [](const LoopInstruction& i) {
                            return i.kind == LoopInstruction::Kind::formula && is_done_by_loop(i.name, i.operand);
                        });
                    });
                } catch (const Error&) {
                    continue;
                }
                for (const Loop& loop : loops) {
                    expect_same(loop, str(op->name(), '(', sample, ") in ", name_of(dtype)), 7);
                    formulas_.emplace(op->name());
                }
            }
        }
    }
}

TEST_F(ThreadKernelTest, angles_of_any_size_are_reduced) {
    for (const char* name : {"sin", "cos", "tan"}) {
        auto graph = graph_with({{DType::f32, {4096}}}, [&](auto&, auto& x) {
            Expr y = call(name, {x[0]});
            return (y + y * 0.0).value();
        });
        const std::vector<Loop> loops = loops_of(*graph);
        ASSERT_EQ(loops.size(), 1u);
        std::vector<Memory> memory = memories(loops[0]);
        std::mt19937 random(5);
        auto* x = reinterpret_cast<float*>(memory[0].first());
        for (int i = 0; i < 4096; ++i) {
            // Every exponent; the last ones are the floats next to multiples of pi / 2 that are hardest to tell.
            x[i] = std::ldexp(1 + static_cast<float>(random() % (1 << 23)) * 0x1p-23f, i % 276 - 148);
            if (random() % 2) x[i] = -x[i];
        }
        x[4095] = 16367173.0f * 0x1p72f, x[4094] = 6.2031876e30f, x[4093] = 0, x[4092] = -0.0f;
        run_in_threads(loops[0], memory, {}, false);
        if (ptx_folder()) continue;
        const auto* y = reinterpret_cast<const float*>(memory.back().first());
        for (int i = 0; i < 4096; ++i) {
            const auto exact = static_cast<double>(x[i]);
            const double want = *name == 's' ? std::sin(exact) : *name == 'c' ? std::cos(exact) : std::tan(exact);
            const double room = std::max(std::abs(want), 1e-30) * (std::abs(exact) > 10000 ? 1.2e-7 : 1e-6) + 1e-7;
            EXPECT_NEAR(y[i], want, room) << name << '(' << x[i] << ')';
        }
    }
}

TEST_F(ThreadKernelTest, rows_are_shared_by_warps_and_blocks) {
    for (DType dtype : {DType::f32, DType::f64})
        for (int64_t inner : {2, 7, 32, 100, 1000, 1500, 4100}) {
            auto graph =
                graph_with({{dtype, {3, 2, inner}}, {dtype, {inner}}, {dtype, {inner}}}, [&](auto& b, auto& x) {
                    Expr s = call("softmax", {x[0] * 0.5, -1});
                    Expr l = call("log_softmax", {x[0], -1});
                    Expr n = call("layer_norm", {s + l, Shape{inner}, x[1], x[2]});
                    return b.list({{n, call("mean", {n * n, -1}), call("amax", {s, -1, true})}}).value();
                });
            const std::vector<Loop> loops = loops_of(*graph);
            EXPECT_FALSE(loops.empty());
            for (size_t i = 0; i < loops.size(); ++i)
                expect_same(loops[i], str("rows of ", inner, " in ", name_of(dtype)), static_cast<uint64_t>(inner) + i);
        }
}

TEST_F(ThreadKernelTest, rows_add_up_in_chunks_and_by_places) {
    for (DType dtype : {DType::f32, DType::f64, DType::bf16})
        for (int64_t rows : {1, 3, 200, 1000})
            for (int64_t columns : {1, 4, 37, 512}) {
                auto graph = graph_with({{dtype, {rows, columns}}, {dtype, {rows, columns}}}, [](auto& b, auto& x) {
                    Expr d = call("relu_grad", {x[0] * 0.5, x[1]});
                    return b.list({{d, call("sum", {d, 0}), call("sum", {d * x[1], 0, true}) * 2.0}}).value();
                });
                for (const Loop& loop : loops_of(*graph)) expect_same(loop, str(rows, " x ", columns), 3);
            }
    auto middle = graph_with({{DType::f32, {3, 5, 4, 18}}}, [](auto& b, auto& x) {
        Expr d = call("tanh", {x[0]});
        return b.list({{call("sum", {d, 1}), call("sum", {d, Shape{0, 2}}), call("sum", {d, Shape{0, 1, 2}, true})}})
            .value();
    });
    for (const Loop& loop : loops_of(*middle)) expect_same(loop, "sums along different axes", 4);
    auto apart = graph_with({{DType::f32, {3, 50, 4, 18}}}, [](auto&, auto& x) {
        return call("sum", {call("tanh", {x[0]}), Shape{1, 2}}).value();
    });
    for (const Loop& loop : loops_of(*apart)) expect_same(loop, "sums of several places", 5);
}

TEST_F(ThreadKernelTest, operands_of_any_layout_take_part) {
    auto graph = graph_with({{DType::f32, {6, 8}}, {DType::f32, {8, 6}}, {DType::u8, {6, 1}}, {DType::f32, {3}}},
                            [](auto& b, auto& x) {
                                Expr t = call("transpose", {x[1]}) + x[0] * call("cast", {x[2], DType::f32});
                                Expr cut = call("narrow", {t, 1, 1, 3});
                                return b.list({{t, call("exp", {cut}) * x[3]}}).value();
                            });
    const std::vector<Loop> loops = loops_of(*graph);
    EXPECT_FALSE(loops.empty());
    for (const Loop& loop : loops) expect_same(loop, "strided operands", 6);
}

TEST_F(ThreadKernelTest, small_products_are_part_of_what_follows_them) {
    auto graph = graph_with({{DType::f32, {12, 20}}, {DType::f32, {20, 33}}, {DType::f32, {33}}}, [](auto&, auto& x) {
        return call("tanh", {call("matmul", {x[0], x[1]}) + x[2]}).value();
    });
    for (const Loop& loop : loops_of(*graph)) expect_same(loop, "a small product", 8);
}

// Runs behind the first: no formula of generated code was left out.
TEST_F(ThreadKernelTest, every_formula_was_met) {
    for (const auto& op : registry().all()) {
        if (!op->is_elementwise || !formula_cost(op->name(), DType::f32) || is_done_by_loop(op->name(), DType::f32))
            continue;
        EXPECT_TRUE(formulas_.contains(std::string(op->name()))) << op->name();
    }
}

// Runs behind all others.
TEST_F(ThreadKernelTest, every_shape_was_met) {
    for (const char* shape : {"threads s", "threads w", "threads b", "threads s chunks"})
        EXPECT_TRUE(shapes_.contains(shape)) << shape;
    EXPECT_GT(tried_, 700u);
}

}  // namespace
}  // namespace lunaria::graph
