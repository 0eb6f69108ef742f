#include "core/io/task.h"

#include <atomic>
#include <stdexcept>

#include "core/base/interrupt.h"
#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;
using test::Scratch;

TEST(Task, throws_what_the_work_threw_to_the_first_that_waits) {
    Task task([] { throw std::runtime_error("no"); });
    EXPECT_THROW(task.wait(), std::runtime_error);
    EXPECT_NO_THROW(task.wait());
    EXPECT_TRUE(task.is_done());
}

TEST(Task, an_interrupt_ends_the_waiting_and_not_the_work) {
    std::atomic<bool> go = false, ended = false;
    Task task([&] {
        go.wait(false);
        ended = true;
    });
    request_interrupt();
    error_of([&] { task.wait(); }, "interrupted");
    EXPECT_FALSE(ended);
    clear_interrupt();
    go = true;
    go.notify_all();
    task.wait();
    EXPECT_TRUE(ended);
}

TEST(BackgroundWriter, one_file_at_a_time_and_errors_at_the_next) {
    Scratch scratch;
    BackgroundWriter& writer = BackgroundWriter::instance();
    std::atomic<bool> go = false;
    std::string order;
    writer.start("first", [&] {
        go.wait(false);
        order += "first";
        throw file_error("first", "is lost");
    });
    EXPECT_TRUE(writer.is_busy());
    std::thread late([&] {
        go = true;
        go.notify_all();
    });
    error_of([&] { writer.start("second", [&] { order += " second"; }); }, "first: is lost");
    late.join();
    EXPECT_FALSE(writer.is_busy());
    writer.start("third", [&] { order += " third"; });
    writer.finish();
    EXPECT_EQ(order, "first third");
}

TEST(BackgroundWriter, an_interrupt_does_not_stop_the_file) {
    Scratch scratch;
    const std::string path = scratch.path("file");
    request_interrupt();
    error_of(
        [&] {
            write_file_later(path, [](Sink& sink) { sink.write("whole"); });
            BackgroundWriter::instance().finish();
            poll_interrupt();
        },
        "interrupted");
    clear_interrupt();
    BackgroundWriter::instance().finish();
    EXPECT_EQ(read_file(path), "whole");
    error_of([&] { write_file_later(scratch.path("no/file"), [](Sink&) {}); }, "No such file");
}

}  // namespace
}  // namespace lunaria
