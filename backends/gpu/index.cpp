// GPU kernels: gather, scatter, labels. A kernel sets a flag where an index is out of range, and the host finds it for
// the message.
#include <memory>
#include <vector>

#include "backends/gpu/launcher.h"
#include "backends/gpu/operators.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria::gpu {

namespace {

int axis_of(const KernelCall& c, size_t i, int rank) {
    const int64_t axis = c.args[i].integer();
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// (outer, size, inner) around an axis of a dense tensor.
struct Split {
    int64_t outer = 1, size = 1, inner = 1;
    Split(const Shape& shape, int axis) {
        for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? size : inner) *= shape[i];
    }
};

// Runs `body(position)` where the index, counted from the end if it is negative, is valid for an axis of `size`.
template <class F>
void at_index(Writer& w, Number index, Number size, const Elements& flag, F body) {
    const Number wide = cast(size, DType::i64);
    const Number at = select(index < 0, index + wide, index);
    const Number fits = (at >= 0) & (at < wide);
    w.when(!fits, [&] { flag.set(w.index(0), w.constant(DType::i64, 0, 1)); });
    w.when(fits, [&] { body(cast(at, w.index_type())); });
}

bool gather(Launcher& launcher, const KernelCall& c) {
    const Tensor &in = c.tensor(0), &index = c.tensor(1), &out = c.out[0];
    const Split s(in.shape(), axis_of(c, 2, in.rank()));
    const DType t = moved_dtype(in.dtype());
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1).tensor(in).tensor(index).tensor(out);
    words.size(s.size).size(s.inner).size(index.size()).size(out.size());
    const bool done = launcher.run_for(str("gather ", name_of(t)), out.size(), words, [&](Writer& w) {
        const Elements wrong = w.tensor(DType::i64), from = w.tensor(t), where = w.tensor(DType::i64), to = w.tensor(t);
        const Number size = w.size(), inner = w.size(), count = w.size(), all = w.size();
        w.for_each(all, [&](Number i) {
            const Number rest = quotient(i, inner), column = remainder(i, inner);
            const Number block = quotient(rest, count), k = remainder(rest, count);
            at_index(w, where.get(k), size, wrong,
                     [&](Number at) { to.set(i, from.get((block * size + at) * inner + column)); });
        });
    });
    return done && !launcher.is_set(flag);
}

// For a position in a dense index, the place in a dense tensor without the contribution of the axis.
struct Places {
    std::vector<Number> sizes, steps;  // of the index, and in the tensor; the axis has step 0
    Number step, size;                 // of the axis

    static void pass(Words& words, const Shape& index, const Shape& tensor, int axis) {
        const Strides steps = contiguous_strides(tensor);
        for (int i = 0; i < index.rank(); ++i) words.size(index[i]).size(i == axis ? 0 : steps[i]);
        words.size(steps[axis]).size(tensor[axis]);
    }
    Places(Writer& w, int rank) {
        for (int i = 0; i < rank; ++i) {
            sizes.push_back(w.size());
            steps.push_back(w.size());
        }
        step = w.size();
        size = w.size();
    }
    Number start(Writer& w, Number i) const {
        Number at = w.index(0);
        for (size_t axis = sizes.size(); axis-- > 0;) {
            at += remainder(i, sizes[axis]) * steps[axis];
            i = quotient(i, sizes[axis]);
        }
        return at;
    }
};

bool gather_elements(Launcher& launcher, const KernelCall& c) {
    const Tensor &in = c.tensor(0), &index = c.tensor(2), &out = c.out[0];
    if (in.rank() == 0) return false;
    const int axis = axis_of(c, 1, in.rank()), rank = in.rank();
    const DType t = moved_dtype(in.dtype());
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1).tensor(in).tensor(index).tensor(out).size(out.size());
    Places::pass(words, index.shape(), in.shape(), axis);
    const bool done =
        launcher.run_for(str("gather elements ", name_of(t), ' ', rank), out.size(), words, [&](Writer& w) {
            const Elements wrong = w.tensor(DType::i64), from = w.tensor(t), where = w.tensor(DType::i64),
                           to = w.tensor(t);
            const Number all = w.size();
            const Places places(w, rank);
            w.for_each(all, [&](Number i) {
                at_index(w, where.get(i), places.size, wrong,
                         [&](Number at) { to.set(i, from.get(places.start(w, i) + at * places.step)); });
            });
        });
    return done && !launcher.is_set(flag);
}

// Points: coordinates in the last axis of the index, each of an axis of `shape`; `body(first element)`.
struct Points {
    std::vector<Number> sizes, steps;
    static void pass(Words& words, const Shape& shape, int64_t depth) {
        const Strides steps = contiguous_strides(shape);
        for (int i = 0; i < depth; ++i) words.size(shape[i]).size(steps[i]);
    }
    Points(Writer& w, int64_t depth) {
        for (int64_t i = 0; i < depth; ++i) {
            sizes.push_back(w.size());
            steps.push_back(w.size());
        }
    }
    template <class F>
    void at(Writer& w, const Elements& index, Number point, const Elements& wrong, F body) const {
        const auto depth = static_cast<int64_t>(sizes.size());
        const Variable place = w.variable(w.index(0)), good = w.variable(w.constant(DType::boolean, 1, 1));
        for (int64_t i = 0; i < depth; ++i) {
            const auto axis = static_cast<size_t>(i);
            const Number size = cast(sizes[axis], DType::i64), given = index.get(point * depth + i);
            const Number coordinate = select(given < 0, given + size, given);
            good.set(good.get() & (coordinate >= 0) & (coordinate < size));
            place.set(place.get() + cast(coordinate, w.index_type()) * steps[axis]);
        }
        w.when(!good.get(), [&] { wrong.set(w.index(0), w.constant(DType::i64, 0, 1)); });
        w.when(good.get(), [&] { body(place.get()); });
    }
};

bool gather_nd(Launcher& launcher, const KernelCall& c) {
    const Tensor &in = c.tensor(0), &index = c.tensor(1), &out = c.out[0];
    const int64_t depth = index.shape().back();
    if (depth == 0 || index.size() == 0) return false;
    const DType t = moved_dtype(in.dtype());
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1)
        .tensor(in)
        .tensor(index)
        .tensor(out)
        .size(out.size())
        .size(out.size() / (index.size() / depth));
    Points::pass(words, in.shape(), depth);
    const bool done =
        launcher.run_for(str("gather points ", name_of(t), ' ', depth), out.size(), words, [&](Writer& w) {
            const Elements wrong = w.tensor(DType::i64), from = w.tensor(t), where = w.tensor(DType::i64),
                           to = w.tensor(t);
            const Number all = w.size(), length = w.size();
            const Points points(w, depth);
            w.for_each(all, [&](Number i) {
                points.at(w, where, quotient(i, length), wrong,
                          [&](Number first) { to.set(i, from.get(first + remainder(i, length))); });
            });
        });
    return done && !launcher.is_set(flag);
}

bool has_atomics(DType t) { return t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64; }

bool index_add(Launcher& launcher, const KernelCall& c) {
    const Tensor &x = c.tensor(0), &out = c.out[0];
    const DType t = out.dtype();
    if (!has_atomics(t) || out.rank() == 0) return false;
    const Tensor index = c.tensor(1).contiguous(), y = c.tensor(2).contiguous();
    copy_elements(x, out);
    const Split s(out.shape(), axis_of(c, 3, out.rank()));
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1).tensor(index).tensor(y).tensor(out);
    words.size(s.size).size(s.inner).size(index.size()).size(y.size()).real(c.args[4].number());
    const bool done = launcher.run_for(str("index add ", name_of(t)), y.size(), words, [&](Writer& w) {
        const Elements wrong = w.tensor(DType::i64), where = w.tensor(DType::i64), from = w.tensor(t), to = w.tensor(t);
        const Number size = w.size(), inner = w.size(), count = w.size(), all = w.size(), factor = w.real(t);
        w.for_each(all, [&](Number i) {
            const Number rest = quotient(i, inner), column = remainder(i, inner);
            const Number block = quotient(rest, count), k = remainder(rest, count);
            at_index(w, where.get(k), size, wrong,
                     [&](Number at) { to.add((block * size + at) * inner + column, from.get(i) * factor); });
        });
    });
    return done && !launcher.is_set(flag);
}

// Writes updates into a copy of the first operand. `name` and `pass` describe the arguments of `places(writer)`, which
// returns a function (writer, number of the update, index, wrong, body(place)).
template <class Pass, class Places_>
bool scatter(Launcher& launcher, const KernelCall& c, const std::string& how, const std::string& name, Pass pass,
             Places_ places) {
    const Tensor& out = c.out[0];
    const bool replaces = how == "none", adds = how == "add" || how == "sub";
    if (!replaces && !(adds && has_atomics(out.dtype()))) return false;
    const DType t = replaces ? moved_dtype(out.dtype()) : out.dtype();
    const Tensor index = c.tensor(1).contiguous(), updates = c.tensor(2).contiguous();
    copy_elements(c.tensor(0), out);
    const Address flag = launcher.make_flag();
    // Of several updates for one place the last one stays: a first pass notes their numbers at the places.
    const int64_t places_bytes = replaces ? out.size() * static_cast<int64_t>(sizeof(int64_t)) : 0;
    const Address last = launcher.take(places_bytes);
    launcher.fill_zero(last, places_bytes);
    Words words;
    words.address(flag, 1).tensor(index).tensor(updates).tensor(out).address(last, out.size()).size(updates.size());
    pass(words);
    auto run = [&](std::string_view what, auto body) {
        return launcher.run_for(str(what, ' ', name_of(t), ' ', name), updates.size(), words, [&](Writer& w) {
            const Elements wrong = w.tensor(DType::i64), where = w.tensor(DType::i64), from = w.tensor(t),
                           to = w.tensor(t), winner = w.tensor(DType::i64);
            const Number all = w.size();
            const auto place_of = places(w);
            w.for_each(all, [&](Number i) {
                place_of(w, i, where, wrong, [&](Number at) { body(w, i, at, from, to, winner); });
            });
        });
    };
    auto number = [](Number i) { return cast(i, DType::i64) + 1; };
    const bool done =
        !replaces ? run(str("scatter ", how),
                        [&](Writer&, Number i, Number at, const Elements& from, const Elements& to, const Elements&) {
                            to.add(at, how == "add" ? from.get(i) : like(from.get(i), 0) - from.get(i));
                        })
                  : run("scatter places", [&](Writer&, Number i, Number at, const Elements&, const Elements&,
                                              const Elements& winner) { winner.raise(at, number(i)); }) &&
                        run("scatter", [&](Writer& w, Number i, Number at, const Elements& from, const Elements& to,
                                           const Elements& winner) {
                            w.when(winner.get(at) == number(i), [&] { to.set(at, from.get(i)); });
                        });
    return done && !launcher.is_set(flag);
}

bool scatter_elements(Launcher& launcher, const KernelCall& c) {
    const Shape &shape = c.out[0].shape(), &index = c.tensor(1).shape();
    if (shape.rank() == 0) return false;
    const int axis = axis_of(c, 3, shape.rank()), rank = shape.rank();
    return scatter(
        launcher, c, c.args[4].string(), str("elements ", rank),
        [&](Words& words) { Places::pass(words, index, shape, axis); },
        [&](Writer& w) {
            return [places = Places(w, rank)](Writer& now, Number i, const Elements& where, const Elements& wrong,
                                              auto body) {
                at_index(now, where.get(i), places.size, wrong,
                         [&](Number at) { body(places.start(now, i) + at * places.step); });
            };
        });
}

bool scatter_nd(Launcher& launcher, const KernelCall& c) {
    const Shape &shape = c.out[0].shape(), &index = c.tensor(1).shape();
    const int64_t depth = index.back();
    if (depth == 0 || c.tensor(1).size() == 0) return false;
    const int64_t length = c.tensor(2).size() / (c.tensor(1).size() / depth);
    return scatter(
        launcher, c, c.args[3].string(), str("points ", depth),
        [&](Words& words) {
            words.size(length);
            Points::pass(words, shape, depth);
        },
        [&](Writer& w) {
            const Number elements = w.size();
            return [elements, points = Points(w, depth)](Writer& now, Number i, const Elements& where,
                                                         const Elements& wrong, auto body) {
                points.at(now, where, quotient(i, elements), wrong,
                          [&](Number first) { body(first + remainder(i, elements)); });
            };
        });
}

bool valid_labels(Launcher& launcher, const KernelCall& c) {
    const Tensor& labels = c.tensor(0);
    const Address flag = launcher.make_flag();
    Words words;
    words.address(flag, 1).tensor(labels).tensor(c.out[0]).tensor(c.out[1]).size(labels.size());
    words.word(static_cast<uint64_t>(c.args[1].integer()));
    const bool ignores = c.has(2);
    words.word(static_cast<uint64_t>(ignores ? c.args[2].integer() : 0));
    const bool done =
        launcher.run_for(ignores ? "labels with one that is ignored" : "labels", labels.size(), words, [&](Writer& w) {
            const Elements wrong = w.tensor(DType::i64), from = w.tensor(DType::i64), to = w.tensor(DType::i64),
                           keeps = w.tensor(DType::boolean);
            const Number all = w.size(), classes = w.word(), ignored = w.word();
            w.for_each(all, [&](Number i) {
                const Number label = from.get(i);
                const Number keep = ignores ? label != ignored : w.constant(DType::boolean, 1, 1);
                const Number fits = (label >= 0) & (label < classes);
                w.when(keep & !fits, [&] { wrong.set(w.index(0), w.constant(DType::i64, 0, 1)); });
                to.set(i, select(keep, label, like(label, 0)));
                keeps.set(i, keep);
            });
        });
    return done && !launcher.is_set(flag);
}

}  // namespace

void add_index_kernels(KernelTable& table) {
    table.add("gather", gather);
    table.add("gather_nd", gather_nd);
    table.add("gather_elements", gather_elements);
    table.add("index_add", index_add);
    table.add("tensor_scatter_elements", scatter_elements);
    table.add("tensor_scatter_nd", scatter_nd);
    table.add("valid_labels", valid_labels);
}

}  // namespace lunaria::gpu
