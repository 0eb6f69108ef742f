#include "core/io/mapping.h"

#include <unistd.h>

#include <fstream>

#include "core/base/interrupt.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;
using test::Scratch;

TEST(Mapping, tensors_keep_the_file) {
    Scratch scratch;
    const std::string path = scratch.path("file");
    const float values[] = {1, 2, 3, 4};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
    Tensor tensor = Mapping::of(path)->tensor(DType::f32, {3}, 4);
    unlink(path.c_str());
    EXPECT_EQ(tensor.at(2), 4);
    EXPECT_FALSE(Mapping::of("/proc/self/exe")->tensor(DType::f32, {1}, 2));
    // A write makes a copy of the memory.
    Tensor other = tensor.apart();
    other.own_storage();
    other.set_at(0, 9);
    EXPECT_EQ(tensor.at(0), 2);
}

TEST(Mapping, refuses_what_cannot_be_mapped) {
    Scratch scratch;
    std::ofstream(scratch.path("empty")).close();
    error_of([&] { Mapping::of(scratch.path("empty")); }, "it is empty");
    error_of([&] { Mapping::of(scratch.folder()); }, "not a regular file");
    error_of([&] { Mapping::of(scratch.path("nothing")); }, "No such file");
}

TEST(Mapping, a_page_that_is_lost_reads_as_zero_and_interrupts) {
    Scratch scratch;
    const std::string path = scratch.path("file");
    std::ofstream(path, std::ios::binary) << std::string(1 << 16, 'a');
    Tensor tensor = Mapping::of(path)->tensor(DType::u8, {1 << 16}, 0);
    EXPECT_EQ(tensor.at(5), 'a');
    ASSERT_EQ(truncate(path.c_str(), 0), 0);
    EXPECT_EQ(tensor.at(1 << 15), 0);
    EXPECT_TRUE(interrupt_requested());
    clear_interrupt();
}

}  // namespace
}  // namespace lunaria
