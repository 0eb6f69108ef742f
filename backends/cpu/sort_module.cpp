// Highway behind sort_words() of backends/cpu/sort_keys.cpp.
#include <hwy/contrib/sort/vqsort.h>

extern "C" [[gnu::visibility("default")]] void lunaria_sort_words32(uint32_t* words, size_t n) {
    hwy::Sorter()(words, n, hwy::SortAscending());
}

extern "C" [[gnu::visibility("default")]] void lunaria_sort_words64(uint64_t* words, size_t n) {
    hwy::Sorter()(words, n, hwy::SortAscending());
}
