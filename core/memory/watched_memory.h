// Detection of AddressSanitizer. It knows the ends of malloc's blocks and keeps blocks for a while after free().
// Reusing our own blocks would hide both, so that under it no block is kept, and every block has exactly the bytes that
// were asked for.
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
