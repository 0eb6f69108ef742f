// Tables of the tiles of tiles.h. Compiled once for each instruction set.
#include "core/lite/kernels/tiles.h"

#include <array>
#include <utility>

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

template <class E, int Panels, int... R>
constexpr auto tiles_of(std::integer_sequence<int, R...>) {
    return std::array<Tile, sizeof...(R)>{&tile<R + 1, Panels, E>...};
}
template <class E, int Rows>
Tile find(int rows, int panels) {
    static constexpr auto kOne = tiles_of<E, 1>(std::make_integer_sequence<int, Rows>{});
    if constexpr (kSide == 2) {
        static constexpr auto kTwo = tiles_of<E, 2>(std::make_integer_sequence<int, Rows>{});
        if (panels == 2) return kTwo[static_cast<size_t>(rows - 1)];
    }
    if constexpr (kLanes < kPanel) {
        static constexpr auto kHalf = tiles_of<E, 0>(std::make_integer_sequence<int, Rows>{});
        if (panels == 0) return kHalf[static_cast<size_t>(rows - 1)];
    }
    return kOne[static_cast<size_t>(rows - 1)];
}

}  // namespace

template <>
Tile tile_of<float>(int rows, int panels) {
    return find<float, kRows>(rows, panels);
}
template <>
Tile tile_of<F16>(int rows, int panels) {
    return find<F16, kSmallRows>(rows, panels);
}
template <>
Tile tile_of<BF16>(int rows, int panels) {
    return find<BF16, kSmallRows>(rows, panels);
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
