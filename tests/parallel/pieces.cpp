#include "tests/parallel/pieces.h"

#include <cmath>

#include "backends/cpu/device.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria::parallel::testing {

OneThread::OneThread() : before_(num_threads()) {
    set_current_device(&cpu::device());
    set_num_threads(1);
}

OneThread::~OneThread() { set_num_threads(before_); }

std::vector<Tensor> tensors_of(const Value& v) {
    if (v.is_tensor()) return {v.tensor()};
    std::vector<Tensor> all;
    if (v.is_list())
        for (const Value& item : v.items())
            for (const Tensor& t : tensors_of(item)) all.push_back(t);
    return all;
}

namespace {

Tensor view_of(const Tensor& whole, const Region& part) {
    Shape shape;
    int64_t offset = 0;
    for (int k = 0; k < whole.rank(); ++k) {
        const Interval& i = part[static_cast<size_t>(k)];
        if (i.begin < 0 || i.end > whole.dim(k) || i.end < i.begin)
            throw state_error("rule", str("a part ", i.begin, " .. ", i.end, " of an axis of ", whole.dim(k)));
        shape.push_back(i.size());
        if (!i.empty()) offset += i.begin * whole.strides()[k];
    }
    return whole.view(shape, whole.strides(), shape.size() == 0 ? 0 : offset);
}

}  // namespace

std::vector<Value> local_args(const Rule& rule, const Work& work) {
    std::vector<Value> args(rule.args().begin(), rule.args().end());
    for (size_t n = 0; n < rule.operands.size(); ++n) {
        const Operand& o = rule.operands[n];
        const Value& given = rule.args()[o.argument];
        const Tensor& whole = o.item < 0 ? given.tensor() : given.items()[static_cast<size_t>(o.item)].tensor();
        Value own(part_of(whole, work.operands[n]));
        if (o.item < 0) {
            args[o.argument] = std::move(own);
        } else {
            std::vector<Value> items = args[o.argument].items();
            items[static_cast<size_t>(o.item)] = std::move(own);
            args[o.argument] = Value::list(std::move(items));
        }
    }
    return args;
}

namespace {

const char* merge_operator(Merge m) {
    switch (m) {
        case Merge::sum:
            return "add";
        case Merge::max:
            return "maximum";
        case Merge::min:
            return "minimum";
        case Merge::prod:
            return "mul";
        case Merge::all:
            return "logical_and";
        default:
            return "logical_or";
    }
}

}  // namespace

Tensor part_of(const Tensor& whole, const Region& part) { return view_of(whole, part).copy(); }

std::vector<Tensor> in_pieces(const Rule& rule, const std::vector<std::vector<Interval>>& choices) {
    std::vector<Tensor> results(rule.results.size());
    std::vector<std::vector<Region>> seen(rule.results.size());
    for (const std::vector<Interval>& cuts : choices) {
        const Work work = rule.work(cuts);
        default_generator().set_state({7, 0});
        const std::vector<Value> local = local_args(rule, work);
        const std::vector<Tensor> own = tensors_of(rule.run(eager_builder(), local, work));
        if (own.size() != results.size())
            throw state_error(rule.op().name(), "a piece gives another number of results");
        for (size_t j = 0; j < own.size(); ++j) {
            const TensorType& type = rule.results[j].type;
            Shape wanted;
            for (const Interval& i : work.results[j]) wanted.push_back(i.size());
            if (!(own[j].shape() == wanted) || own[j].dtype() != type.dtype)
                throw state_error(rule.op().name(), str("a piece gives ", name_of(own[j].dtype()), own[j].shape(),
                                                        " instead of ", wanted));
            if (!results[j]) results[j] = Tensor::zeros(type.dtype, type.shape);
            // Pieces of different parts are put side by side, those of the same part are merged.
            Merge merge = Merge::none;
            for (int f = 0; f < rule.count(); ++f)
                if (cuts[static_cast<size_t>(f)] != Interval{0, rule.factors[static_cast<size_t>(f)].size})
                    merge = std::max(merge, rule.merge(f, j));
            const bool again = std::find(seen[j].begin(), seen[j].end(), work.results[j]) != seen[j].end();
            seen[j].push_back(work.results[j]);
            const Tensor place = view_of(results[j], work.results[j]);
            if (place.size() == 0) continue;
            if (again && merge != Merge::none) {
                const Value both = run(registry().get(merge_operator(merge)), {Value(place.copy()), Value(own[j])});
                copy_elements(both.tensor().cast(type.dtype), place);
            } else {
                copy_elements(own[j], place);
            }
        }
    }
    return results;
}

std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double tolerance) {
    if (got.size() != want.size()) return str(got.size(), " results instead of ", want.size());
    for (size_t k = 0; k < got.size(); ++k) {
        const Tensor &a = got[k], &b = want[k];
        if (!a || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return str("result ", k, " has another type");
        for (int64_t i = 0; i < a.size(); ++i) {
            const double x = a.at(i), y = b.at(i);
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            if (!(std::abs(x - y) <= tolerance * (1 + std::abs(y))))
                return str("result ", k, ", element ", i, " is ", x, " instead of ", y);
        }
    }
    return {};
}

}  // namespace lunaria::parallel::testing
