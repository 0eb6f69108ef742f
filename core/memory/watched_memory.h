// Whether AddressSanitizer watches: it knows where the blocks of malloc end and keeps them for a while after free().
// Memory that we kept for reuse would hide both, so that where it watches nothing is kept, and every block has just the
// bytes that were asked for.
#pragma once

namespace lunaria {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMemoryIsWatched = true;
#elif defined(__has_feature)
inline constexpr bool kMemoryIsWatched = __has_feature(address_sanitizer);
#else
inline constexpr bool kMemoryIsWatched = false;
#endif

}  // namespace lunaria
