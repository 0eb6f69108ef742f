// CPU kernels: sorting, order statistics and search.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "backends/cpu/copy.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/row_loops.h"
#include "backends/cpu/sort_keys.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// Calls f with the element type of argument 0. Complex tensors are refused before, and halves are widened.
template <class F>
bool with_element(const Tensor& t, F f) {
    return visit_dtype(t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_arithmetic_v<T>) f(T{});
        return std::is_arithmetic_v<T>;
    });
}

// The items of a line; for descending order the keys are reversed. Narrow keys have positions of 32 bits, so longer
// lines take wide keys.
template <class K, class T>
void gather_items(const T* line, int64_t n, int64_t stride, bool descending, Scratch<typename ItemOf<K>::Item>& items) {
    items.resize(static_cast<size_t>(n));
    K flip = descending ? static_cast<K>(~K(0)) : K(0);
    constexpr int64_t kBlock = int64_t{1} << 20;
    for (int64_t from = 0; from < n; from += kBlock) {
        if (from > 0) poll_interrupt();
        for (int64_t k = from, end = std::min(n, from + kBlock); k < end; ++k)
            items[static_cast<size_t>(k)] = ItemOf<K>::make(static_cast<K>(sort_key(line[k * stride])) ^ flip, k);
    }
}

constexpr int64_t kNarrowPlaces = int64_t{1} << 32;

// Calls f(a key of the right width) for lines of n elements of type T.
template <class T, class F>
void with_key(int64_t n, F f) {
    if (sizeof(T) <= 4 && n < kNarrowPlaces)
        f(uint32_t{});
    else
        f(uint64_t{});
}

// Comparing or moving an element costs about as much as this many additions.
constexpr int64_t kSortCost = 16;

// Sorts long lines whose keys have 64 bits.
template <class T, class Done>
void sort_wide_lines(const T* in, const AxisView& view, bool descending, Done done) {
    const uint64_t flip = descending ? ~uint64_t{0} : 0;
    parallel_for(view.lines(), worthwhile_rows(view.n, kSortCost), [&](int64_t begin, int64_t end) {
        Scratch<uint64_t> keys(static_cast<size_t>(view.n));
        Scratch<uint32_t> places(keys.size());
        for (int64_t l = begin; l < end; ++l) {
            const T* line = in + view.start(l);
            for_elements(view.n, [&](int64_t k) {
                keys[static_cast<size_t>(k)] = static_cast<uint64_t>(sort_key(line[k * view.inner])) ^ flip;
                places[static_cast<size_t>(k)] = static_cast<uint32_t>(k);
            });
            sort_places(keys, places);
            done(line, l, [&](int64_t k) { return static_cast<int64_t>(places[static_cast<size_t>(k)]); });
        }
    });
}

template <class T>
const KeyLoops<T>& key_loops() {
    return std::get<KeyLoops<T>>(sort_loops().keys);
}

// Writes the keys of the elements of a line and returns whether one of them hides something.
template <class T>
bool keys_of(const T* line, int64_t n, int64_t step, SortKey<T> flip, SortKey<T>* keys) {
    bool hidden = false;
    in_ranges(n, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        const T* const from = line + begin * step;
        if (step == 1) {
            hidden |= key_loops<T>().keys(from, end - begin, flip, keys + begin);
            return;
        }
        for (int64_t k = 0; k < end - begin; ++k) {
            keys[begin + k] = sort_key(from[k * step]) ^ flip;
            hidden |= is_hidden(from[k * step]);
        }
    });
    return hidden;
}

// The elements with these keys.
template <class T>
void elements_of(const SortKey<T>* keys, int64_t n, SortKey<T> flip, int64_t step, T* to) {
    in_ranges(n, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        if (step == 1) return key_loops<T>().elements(keys + begin, end - begin, flip, to + begin);
        for (int64_t k = begin; k < end; ++k) to[k * step] = element_of<T>(keys[k] ^ flip);
    });
}

// Short lines are sorted side by side, if there are several: a few of the columns may stay empty.
constexpr int64_t kTogether = SortLoops::kTogether;
bool sorts_side_by_side(const AxisView& view) {
    constexpr int64_t kShort = 256;
    return view.n > 0 && view.n <= kShort && view.lines() >= kTogether / 4;
}

// Calls work(first line, number of lines) for lines that are sorted together.
template <class F>
void for_lines_together(const AxisView& view, F work) {
    const int64_t parts = (view.lines() + kTogether - 1) / kTogether;
    parallel_for(parts, worthwhile_rows(view.n * kTogether, kSortCost), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) work(i * kTogether, std::min(kTogether, view.lines() - i * kTogether));
    });
}

// A key as a signed number.
template <class K>
constexpr K kTurn = K(1) << (sizeof(K) * 8 - 1);

// As sort_lines.
template <class T, class Done>
void sort_short_lines(const T* in, const AxisView& view, bool descending, Done done) {
    using K = SortKey<T>;
    constexpr bool kNarrow = sizeof(K) == 4;
    const K flip = kTurn<K> ^ (descending ? static_cast<K>(~K(0)) : K(0));
    for_lines_together(view, [&](int64_t first, int64_t lines) {
        Scratch<int64_t> keys(static_cast<size_t>(view.n * kTogether)), places(kNarrow ? 0 : keys.size());
        for (int64_t i = 0; i < lines; ++i) {
            const T* line = in + view.start(first + i);
            for (int64_t k = 0; k < view.n; ++k) {
                const auto at = static_cast<size_t>(k * kTogether + i);
                const K key = sort_key(line[k * view.inner]) ^ flip;
                if constexpr (kNarrow)
                    keys[at] = static_cast<int64_t>(ItemOf<uint32_t>::make(key, k));
                else
                    keys[at] = static_cast<int64_t>(key), places[at] = k;
            }
        }
        kNarrow ? sort_loops().keys64(keys.data(), view.n) : sort_loops().pairs64(keys.data(), places.data(), view.n);
        const Scratch<int64_t>& sorted = kNarrow ? keys : places;
        for (int64_t i = 0; i < lines; ++i)
            done(in + view.start(first + i), first + i,
                 [&](int64_t k) { return sorted[static_cast<size_t>(k * kTogether + i)] & 0xffffffff; });
    });
}

// Sorts the lines, several at a time, and passes on each: done(line, line number, place of the k-th element).
template <class T, class Done>
void sort_lines(const T* in, const AxisView& view, bool descending, Done done) {
    if (view.n == 0) return;  // for any number of lines
    if (sorts_side_by_side(view)) return sort_short_lines(in, view, descending, done);
    if (sizeof(T) == 8 && view.n >= static_cast<int64_t>(kRadixFrom) && view.n < kNarrowPlaces)
        return sort_wide_lines(in, view, descending, done);
    with_key<T>(view.n, [&](auto key) {
        using K = decltype(key);
        parallel_for(view.lines(), worthwhile_rows(view.n, kSortCost), [&](int64_t begin, int64_t end) {
            Scratch<typename ItemOf<K>::Item> items, scratch;
            for (int64_t l = begin; l < end; ++l) {
                const T* line = in + view.start(l);
                gather_items<K>(line, view.n, view.inner, descending, items);
                sort_items(items, scratch);
                done(line, l, [&](int64_t k) { return ItemOf<K>::place(items[static_cast<size_t>(k)]); });
            }
        });
    });
}

// Puts the k first items of a line, sorted, at the front of `items`. If k is small, they are kept in a heap with the
// last one on top; most elements of the line never enter it.
template <class K, class T>
void first_items(const T* line, int64_t n, int64_t stride, bool descending, int64_t k,
                 Scratch<typename ItemOf<K>::Item>& items, Scratch<typename ItemOf<K>::Item>& scratch) {
    // A larger heap does not fit the cache of a core.
    constexpr int64_t kHeap = 16384, kBlock = 1 << 20;
    if (k > n / 16 || k == 0 || k > kHeap) {
        gather_items<K>(line, n, stride, descending, items);
        // The sort of a whole long line can be interrupted.
        if (n > kBlock) return sort_items(items, scratch);
        auto end = items.begin() + k;
        if (k < n) std::nth_element(items.begin(), end, items.end());
        std::sort(items.begin(), end);
        return;
    }
    gather_items<K>(line, k, stride, descending, items);
    std::make_heap(items.begin(), items.end());
    K flip = descending ? static_cast<K>(~K(0)) : K(0);
    K worst = ItemOf<K>::key(items[0]);
    for (int64_t begin = k; begin < n; begin += kBlock) {
        if (begin > k) poll_interrupt();
        for (int64_t i = begin, end = std::min(n, begin + kBlock); i < end; ++i) {
            K key = static_cast<K>(sort_key(line[i * stride])) ^ flip;
            if (key >= worst) continue;  // of equal keys the earlier position wins
            std::pop_heap(items.begin(), items.end());
            items.back() = ItemOf<K>::make(key, i);
            std::push_heap(items.begin(), items.end());
            worst = ItemOf<K>::key(items[0]);
        }
    }
    std::sort_heap(items.begin(), items.end());
}

bool sort(const KernelCall& c) {
    AxisView view = axis_view(c, 1);
    bool only_indices = c.out.size() == 1;
    int64_t* indices = c.out[only_indices ? 0 : 1].data<int64_t>();
    return with_element(c.tensor(0), [&](auto zero) {
        using T = decltype(zero);
        T* values = only_indices ? nullptr : c.out[0].data<T>();
        sort_lines(c.tensor(0).data<T>(), view, c.args[2].boolean(), [&](const T* line, int64_t l, auto place) {
            int64_t start = view.start(l);
            for_elements(view.n, [&](int64_t k) {
                int64_t from = place(k);
                indices[start + k * view.inner] = from;
                if (values) values[start + k * view.inner] = line[from * view.inner];
            });
        });
    });
}

// Puts zeros and NaN of a sorted line, which are equal among each other, in the order in which the line has them.
template <class T>
void restore_hidden(const T* line, T* sorted, const AxisView& view) {
    if constexpr (std::is_floating_point_v<T>) {
        int64_t zero = -1, nan = -1;
        for_elements(view.n, [&](int64_t k) {
            const T x = sorted[k * view.inner];
            if (zero < 0 && x == T(0)) zero = k;
            if (nan < 0 && x != x) nan = k;
        });
        for_elements(view.n, [&](int64_t k) {
            const T x = line[k * view.inner];
            if (x == T(0)) sorted[zero++ * view.inner] = x;
            if (x != x) sorted[nan++ * view.inner] = x;
        });
    }
}

// The sorted values alone.
template <class T>
void sort_values(const T* in, const AxisView& view, bool descending, T* out) {
    using K = SortKey<T>;
    const K flip = descending ? static_cast<K>(~K(0)) : K(0);
    if (view.n == 0) return;  // for any number of lines
    const int64_t n = view.n;
    if (sorts_side_by_side(view))
        return for_lines_together(view, [&](int64_t first, int64_t lines) {
            Scratch<K> keys(static_cast<size_t>(n * kTogether)), beside(keys.size());
            bool hidden[kTogether] = {};
            for (int64_t i = 0; i < lines; ++i)
                hidden[i] = keys_of(in + view.start(first + i), n, view.inner, flip ^ kTurn<K>, keys.data() + i * n);
            const TransposeLoop turn = transpose_loop<K>();
            turn(keys.data(), n, beside.data(), kTogether, kTogether, n, false);
            if constexpr (sizeof(K) == 4)
                sort_loops().keys32(reinterpret_cast<int32_t*>(beside.data()), n);
            else
                sort_loops().keys64(reinterpret_cast<int64_t*>(beside.data()), n);
            turn(beside.data(), kTogether, keys.data(), n, n, kTogether, false);
            for (int64_t i = 0; i < lines; ++i) {
                const int64_t start = view.start(first + i);
                elements_of(keys.data() + i * n, n, flip ^ kTurn<K>, view.inner, out + start);
                if (hidden[i]) restore_hidden(in + start, out + start, view);
            }
        });
    parallel_for(view.lines(), worthwhile_rows(n, kSortCost), [&](int64_t begin, int64_t end) {
        Scratch<K> keys(static_cast<size_t>(n)), scratch;
        for (int64_t l = begin; l < end; ++l) {
            const T* line = in + view.start(l);
            T* const to = out + view.start(l);
            const bool hidden = keys_of(line, n, view.inner, flip, keys.data());
            sort_keys(keys, scratch);
            elements_of(keys.data(), n, flip, view.inner, to);
            if (hidden) restore_hidden(line, to, view);
        }
    });
}

bool msort(const KernelCall& c) {
    return with_element(c.tensor(0), [&](auto zero) {
        using T = decltype(zero);
        sort_values(c.tensor(0).data<T>(), axis_view(c, 1), c.args[2].boolean(), c.out[0].data<T>());
    });
}

bool topk(const KernelCall& c) {
    const Shape& shape = c.tensor(0).shape();
    int64_t k = c.args[1].integer();
    int axis = shape.rank() == 0 ? 0
               : c.has(2)        ? normal_axis("topk", c.args[2].integer(), shape.rank())
                                 : shape.rank() - 1;
    AxisView view(shape, axis);
    if (c.out[0].size() == 0) return true;  // k is 0 or the lines are empty, for any number of lines
    bool descending = c.args[3].boolean();
    int64_t* indices = c.out[1].data<int64_t>();
    return with_element(c.tensor(0), [&](auto zero) {
        using T = decltype(zero);
        T* values = c.out[0].data<T>();
        with_key<T>(view.n, [&](auto key) {
            using K = decltype(key);
            parallel_for(view.lines(), worthwhile_rows(view.n, kSortCost / 4), [&](int64_t begin, int64_t end) {
                Scratch<typename ItemOf<K>::Item> items, scratch;
                for (int64_t l = begin; l < end; ++l) {
                    const T* line = c.tensor(0).data<T>() + view.start(l);
                    first_items<K>(line, view.n, view.inner, descending, k, items, scratch);
                    int64_t start = l / view.inner * k * view.inner + l % view.inner;
                    for_elements(k, [&](int64_t j) {
                        int64_t from = ItemOf<K>::place(items[static_cast<size_t>(j)]);
                        indices[start + j * view.inner] = from;
                        values[start + j * view.inner] = line[from * view.inner];
                    });
                }
            });
        });
    });
}

// One element of each line, by its position in the order: rank(length of the line, f), where f() is the number of its
// elements other than NaN.
template <class Rank>
bool select(const KernelCall& c, size_t axis_argument, Rank rank) {
    AxisView view = axis_view(c, axis_argument);
    return with_element(c.tensor(0), [&](auto zero) {
        using T = decltype(zero);
        using Key = std::make_signed_t<SortKey<T>>;
        parallel_for(view.lines(), worthwhile_rows(view.n, kSortCost / 4), [&](int64_t begin, int64_t end) {
            Scratch<Key> keys(static_cast<size_t>(view.n)), some[2];
            for (int64_t l = begin; l < end; ++l) {
                const T* line = c.tensor(0).data<T>() + view.start(l);
                keys_of(line, view.n, view.inner, kTurn<SortKey<T>>, reinterpret_cast<SortKey<T>*>(keys.data()));
                const int64_t wanted = rank(view.n, [&] {
                    if constexpr (!std::is_floating_point_v<T>) return view.n;
                    return view.n - std::count(keys.begin(), keys.end(), std::numeric_limits<Key>::max());
                });
                auto [key, equals] = key_at(keys.data(), view.n, wanted, some);
                int64_t place = integer_rows<Key>().loops.find(keys.data(), view.n, key);
                while (keys[static_cast<size_t>(place)] != key || equals-- > 0) ++place;
                c.out[0].data<T>()[l] = line[place * view.inner];
                c.out[1].data<int64_t>()[l] = place;
            }
        });
    });
}

bool median(const KernelCall& c) {
    return select(c, 1, [](int64_t n, auto numbers) {
        const int64_t count = numbers();
        return count < n ? count : (n - 1) / 2;
    });
}
bool nanmedian(const KernelCall& c) {
    return select(c, 1, [](int64_t, auto numbers) { return std::max<int64_t>(0, numbers() - 1) / 2; });
}
bool kthvalue(const KernelCall& c) {
    int64_t k = c.args[1].integer();
    return select(c, 2, [k](int64_t, auto) { return k - 1; });
}

// The first `count` elements of a tensor: a view if they are more than half of it, since a copy would not pay.
Tensor front_of(const Tensor& x, int64_t count) {
    if (2 * count > x.size()) return x.view({count}, {1});
    Tensor front = Tensor::empty(x.dtype(), {count});
    copy_elements(x.view({count}, {1}), front);
    return front;
}

// Writes the distinct elements in order to `values` and the number of each element to `inverse`, and returns how many
// there are. NaN is equal to NaN.
template <class T>
int64_t unique_of(const Tensor& x, T* values, int64_t* inverse) {
    int64_t count = 0;
    AxisView flat({x.size()}, 0);
    sort_lines(x.data<T>(), flat, false, [&](const T* line, int64_t, auto place) {
        // Each number may be the first write to a large page, which the system then fills with zeros.
        in_ranges(flat.n, 64, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                const int64_t from = place(k);
                const T v = line[from];
                if (count == 0 || sort_key(values[count - 1]) != sort_key(v)) values[count++] = v;
                inverse[from] = count - 1;
            }
        });
    });
    return count;
}

template <bool padded>
bool unique(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    return with_element(x, [&](auto zero) {
        using T = decltype(zero);
        Tensor found = padded ? c.out[0] : Tensor::empty(x.dtype(), {x.size()});
        const int64_t count = unique_of<T>(x, found.data<T>(), c.out[1].data<int64_t>());
        if (padded)
            for_elements(found.size() - count, [&](int64_t i) { found.set_at(count + i, c.args[1].number()); });
        else
            c.out[0] = front_of(found, count);
    });
}

// Only the first elements of the runs. Every element is written, and the position advances where a run starts, so that
// no branch depends on the data. NaN is equal to NaN.
bool first_of_runs(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    return with_element(x, [&](auto zero) {
        using T = decltype(zero);
        const T* in = x.data<T>();
        const int64_t n = x.size();
        Tensor found = Tensor::empty(x.dtype(), {n + 1});
        T* out = found.data<T>();
        constexpr int64_t kBlock = 1 << 20;
        int64_t runs = n > 0 ? 1 : 0;
        if (n > 0) out[0] = in[0];
        for (int64_t begin = 1; begin < n; begin += kBlock) {
            poll_interrupt();
            const int64_t end = std::min(n, begin + kBlock);
            if constexpr (std::is_floating_point_v<T>) {
                // A run that continues keeps its first element: -0 is equal to 0.
                T* const last = out + runs - 1;
                const T first = *last;
                runs += reduce_loops<T>().first_of_runs(in + begin - 1, end - begin + 1, last) - 1;
                *last = first;
            } else {
                for (int64_t k = begin; k < end; ++k) {
                    out[runs] = in[k];
                    runs += in[k] != in[k - 1] ? 1 : 0;
                }
            }
        }
        c.out[0] = front_of(found, runs);
    });
}

bool unique_consecutive(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    bool along = c.has(3);
    if (!along && !c.args[1].boolean() && !c.args[2].boolean()) return first_of_runs(c);
    AxisView view = along ? axis_view(c, 3) : AxisView({x.size()}, 0);
    const bool wants_inverse = c.args[1].boolean();
    Tensor firsts = Tensor::empty(DType::i64, {view.n});
    int64_t* first = firsts.data<int64_t>();  // the start of each run
    int64_t runs = 0;
    Tensor inverse;
    if (wants_inverse) inverse = Tensor::empty(DType::i64, along ? Shape{view.n} : x.shape());
    with_element(x, [&](auto zero) {
        using T = decltype(zero);
        const T* in = x.data<T>();
        auto starts_run = [&](int64_t k) {
            bool differs = k == 0;
            for (int64_t l = 0; l < view.lines() && !differs; ++l) {
                const T* at = in + view.start(l) + k * view.inner;
                differs = sort_key(at[0]) != sort_key(at[-view.inner]);
            }
            return differs;
        };
        // Every position is written, and the end advances where a run starts, so that no branch depends on the data.
        auto find_runs = [&](auto starts) {
            for_elements(view.n, [&](int64_t k) {
                first[runs] = k;
                runs += starts(k) ? 1 : 0;
                if (wants_inverse) inverse.data<int64_t>()[k] = runs - 1;
            });
        };
        if (view.lines() == 1 && view.inner == 1)
            find_runs([&](int64_t k) { return k == 0 || sort_key(in[k]) != sort_key(in[k - 1]); });
        else
            find_runs(starts_run);
        Shape shape{runs};
        if (along) {
            shape = x.shape();
            shape[normal_axis("unique_consecutive", c.args[3].integer(), x.rank())] = runs;
        }
        c.out[0] = Tensor::empty(x.dtype(), shape);
        T* out = c.out[0].data<T>();
        if (view.lines() == 1 && view.inner == 1)
            for_elements(runs, [&](int64_t r) { out[r] = in[first[r]]; });
        else
            for (int64_t o = 0; o < view.outer; ++o)
                for (int64_t r = 0; r < runs; ++r)
                    std::copy_n(in + (o * view.n + first[r]) * view.inner, view.inner,
                                out + (o * runs + r) * view.inner);
    });
    size_t next = 1;
    if (wants_inverse) c.out[next++] = inverse;
    if (c.args[2].boolean()) {
        Tensor counts = Tensor::empty(DType::i64, {runs});
        for (int64_t r = 0; r < runs; ++r)
            counts.data<int64_t>()[r] = (r + 1 < runs ? first[r + 1] : view.n) - first[r];
        c.out[next] = counts;
    }
    return true;
}

bool bincount(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    int64_t length = c.args[2].integer();
    for_elements(x.size(), [&](int64_t i) {
        int64_t v = x.data<int64_t>()[i];
        if (v < 0) throw value_error("bincount", str("the input holds ", v, ": it must not be negative"));
        if (v >= int64_t{1} << 28)
            throw value_error("bincount", str("the input holds ", v, ": too large to count up to"));
        length = std::max(length, v + 1);
    });
    DType to = c.has(1) ? c.tensor(1).dtype() : DType::i64;
    c.out[0] = Tensor::zeros(to, {length});
    return with_element(c.out[0], [&](auto zero) {
        using T = decltype(zero);
        // Doubles, since an f32 counts only up to 2^24.
        using Sum = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
        std::vector<Sum> counts(static_cast<size_t>(length));
        for_elements(x.size(), [&](int64_t i) {
            counts[static_cast<size_t>(x.data<int64_t>()[i])] +=
                c.has(1) ? static_cast<Sum>(c.tensor(1).data<T>()[i]) : Sum(1);
        });
        std::ranges::transform(counts, c.out[0].data<T>(), [](Sum s) { return static_cast<T>(s); });
    });
}

bool histc(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    int64_t bins = c.args[1].integer();
    double low = c.args[2].number(), high = c.args[3].number();
    return with_element(c.out[0], [&](auto zero) {
        using T = decltype(zero);
        const T* in = x.data<T>();
        if (low == high) {
            for_elements(x.size(), [&](int64_t i) {
                double v = static_cast<double>(in[i]);
                if (!std::isfinite(v))
                    throw value_error("histc", str("the range of the input is not finite: it holds ", v));
                low = i ? std::min(low, v) : v;
                high = i ? std::max(high, v) : v;
            });
            if (low == high) {
                low -= 1;
                high += 1;
            }
        }
        std::vector<int64_t> counts(static_cast<size_t>(bins));
        for_elements(x.size(), [&](int64_t i) {
            double v = static_cast<double>(in[i]);
            if (!(v >= low && v <= high)) return;
            auto bin = static_cast<int64_t>((v - low) / (high - low) * static_cast<double>(bins));
            ++counts[static_cast<size_t>(std::min(bin, bins - 1))];
        });
        for (int64_t b = 0; b < bins; ++b) c.out[0].data<T>()[b] = static_cast<T>(counts[static_cast<size_t>(b)]);
    });
}

bool searchsorted(const KernelCall& c) {
    const Tensor &sequence = c.tensor(0), &values = c.tensor(1);
    int64_t n = sequence.shape().back(), per_row = values.size();
    if (sequence.rank() > 1) per_row = values.shape().back();
    bool right = c.args[3].boolean(), narrow = c.args[2].boolean();
    return with_element(sequence, [&](auto zero) {
        using T = decltype(zero);
        for_elements(values.size(), [&](int64_t i) {
            const T* row = sequence.data<T>() + (sequence.rank() > 1 ? i / per_row * n : 0);
            auto key = sort_key(values.data<T>()[i]);
            const T* at = right ? std::upper_bound(row, row + n, key, [](auto k, T e) { return k < sort_key(e); })
                                : std::lower_bound(row, row + n, key, [](T e, auto k) { return sort_key(e) < k; });
            if (narrow)
                c.out[0].data<int32_t>()[i] = static_cast<int32_t>(at - row);
            else
                c.out[0].data<int64_t>()[i] = at - row;
        });
    });
}

}  // namespace

void add_sort_kernels(KernelTable& table) {
    table.plain("sort", sort);
    table.plain("argsort", sort);
    table.plain("msort", msort);
    table.plain("topk", topk);
    table.plain("median", median);
    table.plain("nanmedian", nanmedian);
    table.plain("kthvalue", kthvalue);
    table.plain("unique", unique<false>);
    table.plain("unique_with_pad", unique<true>);
    table.plain("unique_consecutive", unique_consecutive);
    table.plain("bincount", bincount);
    table.plain("histc", histc);
    table.plain("searchsorted", searchsorted);
}

}  // namespace lunaria::cpu
