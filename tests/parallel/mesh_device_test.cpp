// Every operator with laid-out operands gives what it gives with whole ones.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/devices.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/ops/lay_out.h"
#include "core/ops/sample.h"
#include "core/parallel/laid.h"
#include "core/parallel/traffic.h"
#include "core/random/random.h"
#include "core/tensor/device.h"

namespace lunaria::parallel {
namespace {

class MeshDevice : public testing::Test {
  protected:
    static void SetUpTestSuite() { set_up_devices(); }
};

const Mesh& mesh(std::initializer_list<int64_t> sizes) {
    const std::vector<std::string> names = {"a", "b", "c"};
    const std::vector<int64_t> list(sizes);
    return Mesh::of("test", list, {names.data(), list.size()});
}

// The ways in which the tensors of a call are laid out: mesh axis m cuts an axis of each tensor, counted from the front
// or from behind.
struct Way {
    const Mesh& mesh;
    std::vector<int> axes;  // negative: from behind
};

Tensor laid_out(const Tensor& t, const Way& way) {
    Distribution::Cuts cuts(static_cast<size_t>(t.rank()));
    for (size_t m = 0; m < way.axes.size(); ++m) {
        const int axis = way.axes[m] < 0 ? way.axes[m] + t.rank() : way.axes[m];
        if (axis >= 0 && axis < t.rank() && t.dim(axis) > 1)
            cuts[static_cast<size_t>(axis)].push_back(static_cast<int>(m));
    }
    return tensor_of(in_layout(content(t), *Distribution::of(way.mesh, cuts)));
}

template <class F>
Value with_tensors(const Value& v, F&& f) {
    if (v.is_tensor()) return Value(f(v.tensor()));
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(with_tensors(item, f));
    return Value::list(std::move(items));
}

std::vector<Tensor> tensors_in(std::span<const Value> values) {
    std::vector<Tensor> list;
    for (const Value& v : values) {
        if (v.is_tensor()) list.push_back(v.tensor());
        if (!v.is_list()) continue;
        for (const Tensor& t : tensors_in(v.items())) list.push_back(t);
    }
    return list;
}

std::string difference(const Tensor& wanted, const Tensor& got) {
    if (wanted.dtype() != got.dtype() || !(wanted.shape() == got.shape()))
        return str(name_of(got.dtype()), got.shape(), " instead of ", name_of(wanted.dtype()), wanted.shape());
    const Tensor a = wanted.to_host().cast(is_complex(wanted.dtype()) ? DType::c128 : DType::f64).contiguous(),
                 b = got.to_host().cast(a.dtype()).contiguous();
    const double tolerance = is_half(wanted.dtype()) ? 2e-2 : 1e-4;
    const int64_t count = a.size() * (is_complex(a.dtype()) ? 2 : 1);
    for (int64_t i = 0; i < count; ++i) {
        const double x = static_cast<const double*>(a.raw())[i], y = static_cast<const double*>(b.raw())[i];
        if (std::isnan(x) && std::isnan(y)) continue;
        if (x == y || std::abs(x - y) <= tolerance * (1 + std::abs(x))) continue;
        return str("element ", i, " is ", y, " instead of ", x);
    }
    return "";
}

// What differs between the call with whole operands and the same call with laid-out ones; empty: nothing.
std::string compare(const Op& op, const std::string& sample, const Way& way) {
    const std::vector<Value> given = sample_args(op, sample, 7);
    std::vector<Value> whole_args, laid_args;
    for (const Value& v : given) {
        whole_args.push_back(with_tensors(v, [](const Tensor& t) { return t.copy(); }));
        laid_args.push_back(with_tensors(v, [&](const Tensor& t) { return laid_out(t, way); }));
    }
    const RandomStream random = default_generator().state();
    Value wanted;
    try {
        wanted = run(op, whole_args);
    } catch (const Error&) {
        return "";
    }
    default_generator().set_state(random);
    try {
        const Value got = run(op, laid_args);
        std::vector<Tensor> all = tensors_in({&wanted, 1}), mine = tensors_in({&got, 1});
        if (op.writes()) {
            for (const Tensor& t : tensors_in(whole_args)) all.push_back(t);
            for (const Tensor& t : tensors_in(laid_args)) mine.push_back(t);
        }
        if (all.size() != mine.size()) return str(mine.size(), " results instead of ", all.size());
        for (size_t i = 0; i < all.size(); ++i)
            if (const std::string text = difference(all[i], mine[i]); !text.empty()) return text;
        return "";
    } catch (const std::exception& e) {
        return e.what();
    }
}

TEST_F(MeshDevice, Operators_on_laid_out_tensors_give_what_they_give_on_whole_ones) {
    const Way ways[] = {{mesh({2}), {0}}, {mesh({3}), {-1}}, {mesh({2, 2}), {0, -1}}, {mesh({2, 2}), {1, 0}}};
    int calls = 0;
    for (const auto& op : registry().all()) {
        if (op->is_branch || op->is_closure || (op->is_ordered() && !op->writes())) continue;
        for (const char* sample : op->samples)
            for (const Way& way : ways) {
                const std::string text = compare(*op, sample, way);
                EXPECT_EQ(text, "") << op->name() << "(" << sample << ") on " << way.mesh.text() << " cut along "
                                    << testing::PrintToString(way.axes);
                ++calls;
            }
    }
    EXPECT_GT(calls, 2000);
}

}  // namespace
}  // namespace lunaria::parallel
