// Messages of the private set intersection (psi.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::federated {

inline constexpr int64_t kMostBins = 1 << 16;
using PsiPoint = std::array<uint8_t, 32>;  // a Bytes32 of primitives.h, of which a reader of bytes needs nothing

// A message of the protocol. The two sides take turns.
struct PsiMessage {
    int64_t bins = 0, first_learns = 0, second_learns = 0, ids_in_bin = 0;  // in each side's first message
    int64_t bin = -1;                                                       // whose points are in it; -1: none are
    std::vector<PsiPoint> points;                                           // one side's ids
    std::vector<PsiPoint> doubled;  // the points that the other side has sent before, times its scalar, in their order
};
std::string text_of(const PsiMessage& message);
// Throws a file_error for bytes that are no such message.
PsiMessage read_psi_message(std::string_view bytes);

}  // namespace lunaria::federated
