// Loops without elements; the tests of graph mode run all others (LUNARIA_TEST_LOOPS).
#include <gtest/gtest.h>

#include "core/lite/runtime/executor.h"

namespace lunaria::lite {
namespace {

using graph::LoopInstruction;
using graph::LoopOperand;

// y[i] = the sum of row i of x.
graph::LoopProgram sums_of_rows() {
    graph::LoopProgram p;
    p.outer_rank = 1;
    p.has_rows = true;
    p.operands.resize(2);
    p.operands[1].written = true;
    p.operands[1].step = LoopOperand::Step::none;
    LoopInstruction load, sum, store;
    load.kind = LoopInstruction::Kind::load;
    sum.kind = LoopInstruction::Kind::reduce;
    sum.name = "sum";
    sum.row = true;
    sum.args = {0};
    store.kind = LoopInstruction::Kind::store;
    store.index = 1;
    store.row = true;
    store.args = {1};
    p.code = {load, sum, store};
    return p;
}

void run(int64_t rows, int64_t inner, const float* x, float* y) {
    std::string fault;
    const int64_t sizes[] = {rows, inner, inner, 1};
    const auto code = make_loop(sums_of_rows(), sizes, fault);
    ASSERT_NE(code, nullptr) << fault;
    Memory scratch;
    ASSERT_TRUE(scratch.reserve(code->scratch + 64));
    void* const operands[] = {const_cast<float*>(x), y};
    run_loop(*code, operands, part_of(*code, 1, 0), scratch.data());
}

TEST(LightLoops, rows_without_elements_have_sums_of_nothing) {
    float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {7, 7, 7};
    run(0, 2, x, y);
    EXPECT_EQ(y[0], 7);
    run(3, 0, x, y);
    EXPECT_EQ(y[0] + y[1] + y[2], 0);
    run(3, 2, x, y);
    EXPECT_EQ(y[0], 3);
    EXPECT_EQ(y[2], 11);
}

}  // namespace
}  // namespace lunaria::lite
