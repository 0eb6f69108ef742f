// Highway behind sort_words() of backends/cpu/sort_keys.cpp.
#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

namespace {

// AMD's processors write compressed AVX-512 registers to memory by microcode, a hundred times slower than from register
// to register, and the sort does so in its innermost loop: with AVX2 it is several times faster there.
[[maybe_unused]] const bool kChosen = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd")) hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
    return true;
}();

template <class Word>
void sort(Word* words, size_t n) {
    thread_local const hwy::Sorter sorter;  // has working memory
    sorter(words, n, hwy::SortAscending());
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void lunaria_sort_words32(uint32_t* words, size_t n) { sort(words, n); }
extern "C" [[gnu::visibility("default")]] void lunaria_sort_words64(uint64_t* words, size_t n) { sort(words, n); }
