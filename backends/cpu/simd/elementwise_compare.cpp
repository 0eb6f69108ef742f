// Comparisons, tests and selection.
#include "backends/cpu/simd/element_loop.h"
#include "core/ops/formulas_compare.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

using namespace formula;

constexpr auto kTests = float_rows(Tests{});
constexpr auto kFloats = float_rows(Comparisons{});
constexpr auto kHalfTests = half_rows(Tests{});
constexpr auto kHalves = half_rows(Comparisons{});
constexpr auto kU8 = rows_for<uint8_t>(Comparisons{});
constexpr auto kI8 = rows_for<int8_t>(Comparisons{});
constexpr auto kI16 = rows_for<int16_t>(Comparisons{});
constexpr auto kI32 = rows_for<int32_t>(Comparisons{});
constexpr auto kI64 = rows_for<int64_t>(Comparisons{});
constexpr auto kBools = Rows<6>{{
    entry<Equal, uint8_t>(Equal::name, kBoolCode),
    entry<NotEqual, uint8_t>(NotEqual::name, kBoolCode),
    entry<Less, uint8_t>(Less::name, kBoolCode),
    entry<LessEqual, uint8_t>(LessEqual::name, kBoolCode),
    entry<Greater, uint8_t>(Greater::name, kBoolCode),
    entry<GreaterEqual, uint8_t>(GreaterEqual::name, kBoolCode),
}};
// Selection only moves bits: the integer type of a width serves all types of that width.
constexpr auto kSelection = Rows<8>{{
    mask_entry<Where, int8_t, 0>(kCode<int8_t>),
    mask_entry<Where, int16_t, 0>(kCode<int16_t>),
    mask_entry<Where, int32_t, 0>(kCode<int32_t>),
    mask_entry<Where, int64_t, 0>(kCode<int64_t>),
    mask_entry<MaskedFill, int8_t, 1>(kCode<int8_t>),
    mask_entry<MaskedFill, int16_t, 1>(kCode<int16_t>),
    mask_entry<MaskedFill, int32_t, 1>(kCode<int32_t>),
    mask_entry<MaskedFill, int64_t, 1>(kCode<int64_t>),
}};

}  // namespace

void visit_comparisons(const LoopVisitor& visitor) {
    visit(visitor, kTests, 1);
    visit(visitor, kFloats, 1);
    visit(visitor, kHalfTests, 1);
    visit(visitor, kHalves, 1);
    visit(visitor, kU8, 1);
    visit(visitor, kI8, 1);
    visit(visitor, kI16, 1);
    visit(visitor, kI32, 1);
    visit(visitor, kI64, 1);
    visit(visitor, kBools, 1);
    visit(visitor, kSelection, 1);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
