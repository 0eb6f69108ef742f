#include "core/parallel/job_records.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

class JobRecords : public testing::Test {
  protected:
    // The record of a rank with requests, the last of them unfinished.
    struct Asked {
        Collective operation;
        int64_t count;
        uint32_t line;
    };
    void make(int64_t rank, const std::vector<Asked>& requests, int32_t pid = 1 << 22) {
        const std::string path = record_path(job_, rank);
        std::ofstream(path).close();
        std::filesystem::resize_file(path, sizeof(RankLog));
        const RecordFile file(path);
        RankLog& log = file.log();
        log.pid = pid;
        log.state = RankState::running;
        NameTable names;
        for (const Asked& asked : requests) {
            RankLog::Entry& entry = log.ring[log.written++ % RankLog::kEntries];
            entry.mark = {.sequence = log.written, .count = asked.count, .group = 7, .line = asked.line};
            entry.mark.chunk = names.number(log, "train.lua");
            entry.mark.operation = asked.operation;
            entry.begin = nanoseconds_now();
            entry.end = log.written < requests.size() ? nanoseconds_now() : 0;
        }
    }
    void TearDown() override { remove_segments(job_, true); }

    const std::string job_ = str("test", getpid());
};

TEST_F(JobRecords, TellWhereRanksHaveParted) {
    make(0, {{Collective::barrier, 0, 3}, {Collective::all_reduce, 10, 7}, {Collective::all_reduce, 20, 8}}, getpid());
    make(1, {{Collective::barrier, 0, 3}, {Collective::all_reduce, 10, 7}, {Collective::all_gather, 20, 9}});
    make(2, {{Collective::barrier, 0, 3}, {Collective::all_reduce, 10, 7}});
    note_end(job_, 1, SIGKILL);
    note_end(job_, 2, 3 << 8);
    const std::string text = describe_job(job_, 0);
    EXPECT_NE(text.find(str("job ", job_, ": 3 ranks\n")), std::string::npos) << text;
    EXPECT_NE(text.find(str("rank 0 (pid ", getpid(), ") runs; waits since 0.0")), std::string::npos) << text;
    EXPECT_NE(text.find("in all_reduce #3 (float32, 20 elements), train.lua:8\n"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 (pid 4194304) was killed by signal 9 (Killed); in all_gather #3 (float32, 20 "
                        "elements), train.lua:9\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("rank 2 (pid 4194304) exited with 3; in all_reduce #2 (float32, 10 elements), train.lua:7\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("they part at request #3:\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  rank 0: all_reduce #3 (float32, 20 elements), train.lua:8\n"), std::string::npos) << text;
    EXPECT_NE(text.find("  rank 2: not there yet\n"), std::string::npos) << text;
    const std::string longer = describe_job(job_, 2);
    EXPECT_NE(longer.find("\n    all_reduce #2 (float32, 10 elements), train.lua:7, 0.0"), std::string::npos) << longer;
    EXPECT_EQ(longer.find("barrier"), longer.rfind("barrier")) << longer;  // of rank 2 alone
}

TEST_F(JobRecords, OnlyTheRingIsThere) {
    std::vector<Asked> many(3000, {Collective::all_reduce, 4, 1});
    make(0, many);
    many.pop_back();
    make(1, many);
    const std::string text = describe_job(job_, 4096);
    EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), 1 + 2 * (1 + RankLog::kEntries) + 3);
    EXPECT_NE(text.find("they part at request #3000:\n"), std::string::npos);
}

TEST_F(JobRecords, FilesOfAnySortAreHarmless) {
    EXPECT_THROW(describe_job(job_, 0), Error);
    note_end(job_, 0, 0);  // no record
    std::ofstream(record_path(job_, 0)) << "short";
    EXPECT_THROW(describe_job(job_, 0), Error);
    note_end(job_, 0, 0);
    std::ofstream noise(record_path(job_, 0), std::ios::binary);
    for (size_t i = 0; i < sizeof(RankLog); ++i) noise.put(static_cast<char>(i * 2654435761u >> 13));
    noise.close();
    make(1, {{Collective::barrier, 0, 3}});
    EXPECT_FALSE(describe_job(job_, 3).empty());
}

TEST_F(JobRecords, JobsAreListedAndFoundByTheirBeginnings) {
    make(0, {});
    const auto jobs = recorded_jobs();
    EXPECT_NE(std::find(jobs.begin(), jobs.end(), job_), jobs.end());
    EXPECT_NE(describe_job(job_.substr(0, job_.size() - 1), 0).find("has asked for nothing yet"), std::string::npos);
    remove_segments(job_, false);
    EXPECT_TRUE(std::filesystem::exists(record_path(job_, 0)));
    remove_segments(job_, true);
    EXPECT_FALSE(std::filesystem::exists(record_path(job_, 0)));
}

}  // namespace
}  // namespace lunaria::parallel
