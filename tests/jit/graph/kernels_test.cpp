// The caches of generated kernels: on disk, where files may be damaged, and in the process.
#include "core/loops/kernels.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "backends/cpu/device.h"
#include "backends/cpu/machine_code.h"
#include "core/ir/builder.h"
#include "core/loops/kernel_files.h"
#include "jit/graph/executable.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

class KernelCacheTest : public ::testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        std::string name = (std::filesystem::temp_directory_path() / "lunaria-kernels-XXXXXX").string();
        folder_ = mkdtemp(name.data());
        if (const char* old = getenv("XDG_CACHE_HOME")) old_ = old;
        setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
        forget_kernels();
    }
    void TearDown() override {
        old_.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", old_.c_str(), 1);
        std::filesystem::remove_all(folder_);
    }
    std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> found;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
            if (entry.is_regular_file()) found.push_back(entry.path());
        return found;
    }
    static std::unique_ptr<ir::Graph> chain() {
        auto graph = std::make_unique<ir::Graph>("f");
        ir::GraphBuilder builder(*graph);
        Expr x(builder, Value(graph->add_parameter("", ir::NodeType::of({DType::f32, {40}}))));
        graph->result = (call("tanh", {x}) * x + 0.5).value();
        return graph;
    }
    static void expect_right() {
        auto graph = chain();
        std::vector<Tensor> inputs{lunaria::testing::random_tensor({DType::f32, {40}}, 1)};
        EXPECT_TRUE(lunaria::testing::are_close(lunaria::testing::run_compiled(*graph, inputs),
                                                lunaria::testing::run_eagerly(*graph, inputs), 1e-5));
    }
    std::filesystem::path folder_;
    std::string old_;
};

TEST_F(KernelCacheTest, a_file_gives_back_what_was_written) {
    EXPECT_EQ(read_kernel_file("key"), "");
    write_kernel_file("key", "object");
    EXPECT_EQ(read_kernel_file("key"), "object");
    EXPECT_EQ(read_kernel_file("other"), "");
    write_kernel_file("key", "newer");
    EXPECT_EQ(read_kernel_file("key"), "newer");
    EXPECT_EQ(files().size(), 1u);
}

TEST_F(KernelCacheTest, a_damaged_file_counts_as_none) {
    write_kernel_file("key", std::string(100, 'x'));
    const std::filesystem::path file = files().at(0);
    for (size_t at : {0u, 9u, 20u, 35u, 60u}) {
        std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
        content.seekp(static_cast<std::streamoff>(at));
        content.put('?');
        content.close();
        EXPECT_EQ(read_kernel_file("key"), "") << at;
    }
    write_kernel_file("key", "whole");
    EXPECT_EQ(read_kernel_file("key"), "whole");
    std::filesystem::resize_file(file, 20);
    EXPECT_EQ(read_kernel_file("key"), "");
}

TEST_F(KernelCacheTest, what_was_not_read_for_the_longest_time_goes_first) {
    const auto age = [this](const std::string& key, int days) {
        const auto before = files();
        write_kernel_file(key, std::string(10000, 'x'));
        for (const auto& file : files())
            if (std::ranges::find(before, file) == before.end())
                std::filesystem::last_write_time(
                    file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
    };
    for (int days = 8; days > 0; --days) age("of day " + std::to_string(days), days);
    EXPECT_NE(read_kernel_file("of day 8"), "");
    trim_kernel_files(80000 + 8 * 1000);
    EXPECT_EQ(files().size(), 8u);
    trim_kernel_files(70000);
    EXPECT_NE(read_kernel_file("of day 8"), "");
    for (int days = 7; days > 0; --days)
        EXPECT_EQ(read_kernel_file("of day " + std::to_string(days)).empty(), days > 4);
    std::filesystem::remove_all(folder_);
    trim_kernel_files(0);
}

// Whatever lies in the folder by the user's doing stays, old and large as it may be.
TEST_F(KernelCacheTest, trimming_removes_nothing_but_entries) {
    write_kernel_file("key", "object");
    const std::filesystem::path entry = files().at(0), folder = entry.parent_path();
    const std::string digits = entry.filename().string();
    const std::filesystem::path outside = folder_ / "thesis.tex";
    std::ofstream(outside) << "written in years";
    const std::vector<std::string> names = {"notes.txt", std::string(32, 'a'), digits + ".bak",
                                            digits + "." + std::string(16, '0'), std::string(32, 'A')};
    for (const std::string& name : names) std::ofstream(folder / name) << "LUNAR landing, " << name;
    const auto link = folder / std::string(32, 'b'), below = folder / std::string(32, 'c');
    std::filesystem::create_symlink(outside, link);
    std::filesystem::create_directory(below);
    std::ofstream(below / digits) << "in a folder";
    ASSERT_EQ(mkfifo((folder / std::string(32, 'd')).c_str(), 0600), 0);
    trim_kernel_files(0);
    EXPECT_FALSE(std::filesystem::exists(entry));
    for (const std::string& name : names) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
    EXPECT_TRUE(std::filesystem::is_symlink(link) && std::filesystem::exists(outside));
    EXPECT_TRUE(std::filesystem::exists(below / digits));
    EXPECT_TRUE(std::filesystem::is_fifo(folder / std::string(32, 'd')));
}

// A process that ended in the middle of writing leaves a file that will never be read.
TEST_F(KernelCacheTest, trimming_removes_what_was_left_half_written) {
    write_kernel_file("key", "object");
    const std::filesystem::path entry = files().at(0);
    std::filesystem::rename(entry, entry.string() + ".0123456789abcdef");
    trim_kernel_files(0);
    EXPECT_TRUE(files().empty());
}

TEST_F(KernelCacheTest, a_folder_behind_a_link_is_left_alone) {
    for (const char* linked : {"lunaria", "lunaria/kernels"}) {
        write_kernel_file("key", "object");
        const std::filesystem::path data = folder_ / "data";
        std::filesystem::rename(folder_ / linked, data);
        std::filesystem::create_symlink(data, folder_ / linked);
        const size_t before = files().size();
        EXPECT_EQ(read_kernel_file("key"), "");
        write_kernel_file("other", "object");
        trim_kernel_files(0);
        EXPECT_EQ(files().size(), before);
        std::filesystem::remove_all(folder_ / "lunaria");
        std::filesystem::remove_all(data);
    }
}

TEST_F(KernelCacheTest, the_folder_is_closed_to_others) {
    const auto folder = folder_ / "lunaria" / "kernels";
    const auto mode = [&] { return std::filesystem::status(folder).permissions(); };
    write_kernel_file("key", "object");
    EXPECT_EQ(mode(), std::filesystem::perms::owner_all);
    std::filesystem::permissions(folder, std::filesystem::perms::all);
    EXPECT_EQ(read_kernel_file("key"), "object");
    EXPECT_EQ(mode(), std::filesystem::perms::owner_all);
}

// Opening a pipe for reading waits for something to write to it.
TEST_F(KernelCacheTest, what_is_no_file_in_the_place_of_an_entry_counts_as_none) {
    write_kernel_file("key", "object");
    const std::filesystem::path entry = files().at(0);
    const auto look = [&] {
        EXPECT_EQ(read_kernel_file("key"), "");
        write_kernel_file("key", "object");
        EXPECT_EQ(read_kernel_file("key"), "");
        trim_kernel_files(0);
        std::error_code unknown;
        EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(entry, unknown)));
        std::filesystem::remove(entry);
    };
    std::filesystem::remove(entry);
    ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
    look();
    std::filesystem::create_directory(entry);
    look();
    std::filesystem::create_symlink("/dev/zero", entry);
    look();
}

TEST_F(KernelCacheTest, code_that_others_may_write_is_not_run) {
    write_kernel_file("key", "object");
    std::filesystem::permissions(files().at(0), std::filesystem::perms::all);
    EXPECT_EQ(read_kernel_file("key"), "");
}

TEST_F(KernelCacheTest, kernels_come_from_the_process_then_from_disk_then_from_the_generator) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    auto graph = chain();
    KernelCacheStats before = kernel_cache_stats();
    compile(*graph);
    EXPECT_EQ(kernel_cache_stats().generated, before.generated + 1);
    compile(*graph);
    EXPECT_EQ(kernel_cache_stats().shared, before.shared + 1);
    forget_kernels();
    compile(*graph);
    EXPECT_EQ(kernel_cache_stats().read, before.read + 1);
    EXPECT_EQ(kernel_cache_stats().generated, before.generated + 1);
    expect_right();
}

TEST_F(KernelCacheTest, a_graph_that_waits_runs_without_code_until_there_is_some) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    auto graph = chain();
    const std::vector<Tensor> inputs{lunaria::testing::random_tensor({DType::f32, {40}}, 1)};
    const size_t before = kernel_cache_stats().generated;
    const auto waiting = compile(*graph, {.waits = true});
    std::vector<Tensor> outputs(1);
    waiting->run(inputs, outputs);
    EXPECT_EQ(kernel_cache_stats().generated, before);
    EXPECT_EQ(waiting->stats().generated, 0u);
    EXPECT_FALSE(waiting->is_worth_code());
    EXPECT_TRUE(lunaria::testing::are_equal(outputs, lunaria::testing::run_compiled(*graph, inputs)));
    EXPECT_TRUE(waiting->is_worth_code());
    forget_kernels();
    const auto again = compile(*graph, {.waits = true});
    EXPECT_EQ(again->stats().generated, 1u);
    EXPECT_FALSE(again->is_worth_code());
}

TEST_F(KernelCacheTest, a_graph_that_waits_is_worth_code_after_it_has_run_for_long) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    ir::Graph graph("f");
    ir::GraphBuilder builder(graph);
    Expr x(builder, Value(graph.add_parameter("", ir::NodeType::of({DType::f32, {1 << 20}}))));
    graph.result = (call("tanh", {x}) * x + 1.5).value();
    const std::vector<Tensor> inputs{lunaria::testing::random_tensor({DType::f32, {1 << 20}}, 1)};
    const auto waiting = compile(graph, {.waits = true});
    EXPECT_FALSE(waiting->is_worth_code());
    int runs = 0;
    for (; runs < 100000 && !waiting->is_worth_code(); ++runs) {
        std::vector<Tensor> outputs(1);
        waiting->run(inputs, outputs);
    }
    EXPECT_GT(runs, 0);
    EXPECT_LT(runs, 100000);
}

TEST_F(KernelCacheTest, a_damaged_kernel_is_generated_again) {
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    compile(*chain());
    std::filesystem::resize_file(files().at(0), 500);
    forget_kernels();
    expect_right();
}

// Between the kernels of the loop stands an operator with a kernel of its own.
TEST_F(KernelCacheTest, kernels_that_differ_in_numbers_alone_share_their_code) {
    for (const DType dtype : {DType::f32, DType::f64}) {
        ir::Graph graph("f");
        ir::GraphBuilder builder(graph);
        const TensorType rows{dtype, {6, 40}}, row{dtype, {40}};
        Expr x(builder, Value(graph.add_parameter("", ir::NodeType::of(rows))));
        const Expr y(builder, Value(graph.add_parameter("", ir::NodeType::of(row))));
        constexpr int kSteps = 12;
        std::vector<Value> results;
        for (int i = 0; i < kSteps; ++i) {
            x = call("tanh", {x * (0.3 + 0.1 * i) + y * (1.0 / (i + 3))}) * 0.5;
            results.push_back((x * x).sum(Shape{0}).value());
            x = call("flip", {x, Shape{1}});
        }
        for (int i = 0; i < kSteps; ++i) {
            x = call("softmax", {x * (1.0 + i), int64_t{1}}) + 0.25;
            x = call("flip", {x, Shape{1}});
        }
        results.push_back(x.value());
        graph.result = Value::list(std::move(results));
        const std::vector<Tensor> inputs{lunaria::testing::random_tensor(rows, 1),
                                         lunaria::testing::random_tensor(row, 2)};
        const int64_t before = static_cast<int64_t>(kernel_cache_stats().generated);
        const std::vector<Tensor> compiled = lunaria::testing::run_compiled(graph, inputs);
        EXPECT_LE(static_cast<int64_t>(kernel_cache_stats().generated) - before, 8);
        EXPECT_TRUE(lunaria::testing::are_close(compiled, lunaria::testing::run_eagerly(graph, inputs), 1e-5));
    }
}

TEST_F(KernelCacheTest, without_a_place_for_files_kernels_are_generated_all_the_same) {
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    expect_right();
}

TEST_F(KernelCacheTest, several_threads_may_compile) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back(expect_right);
    for (std::thread& t : threads) t.join();
}

TEST_F(KernelCacheTest, damaged_objects_are_not_loaded) {
    EXPECT_EQ(cpu::load_machine_code({}), nullptr);
    EXPECT_EQ(cpu::load_machine_code(std::string(1000, 'x')), nullptr);
    if (!can_generate()) GTEST_SKIP() << "no code generator";
    compile(*chain());
    std::ifstream file(files().at(0), std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    const std::string object =
        content.substr(content.find("\x7f"
                                    "ELF"));
    EXPECT_NE(cpu::load_machine_code(object), nullptr);
    for (size_t length = 0; length < object.size(); length += 7)
        cpu::load_machine_code(std::string_view(object).substr(0, length));
    std::mt19937 random(1);
    for (int i = 0; i < 3000; ++i) {
        std::string damaged = object;
        for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
        cpu::load_machine_code(damaged);
    }
}

}  // namespace
}  // namespace lunaria::graph
