// Convolution as oneDNN gives it to a C++ program with the same task as a user's conv2d: plain NCHW and OIHW arrays
// come in, a plain NCHW array goes out, and any of them may have changed since the last call. Either on those layouts,
// or on the layouts that oneDNN likes best, with the reorders there and back in every call, of weights as well. Of the
// two the faster one counts. Primitives and all memory are made once, before the timing; the program under test, too,
// keeps its primitives, but makes a new result for each call.
#include <dnnl.hpp>
#include <memory>

#include "bench/direct.h"

using dnnl::memory;

namespace {

struct Shape {
    const char* name;
    int batch, channels, size, out_channels, kernel, stride, padding;
};

dnnl::engine& engine() {
    static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

memory::desc plain(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::nchw}; }

// One convolution with everything that a call needs made in advance.
struct Convolution {
    Convolution(const Shape& s, bool plain_layout) {
        const long out = (s.size + 2 * s.padding - s.kernel) / s.stride + 1;
        const memory::dims x_dims{s.batch, s.channels, s.size, s.size}, y_dims{s.batch, s.out_channels, out, out};
        const memory::dims w_dims{s.out_channels, s.channels, s.kernel, s.kernel};
        x = memory(plain(x_dims), engine(), direct::randn(plain(x_dims).get_size() / 4));
        w = memory(plain(w_dims), engine(), direct::randn(plain(w_dims).get_size() / 4));
        y = memory(plain(y_dims), engine(), direct::randn(plain(y_dims).get_size() / 4));
        auto wanted = [&](const memory::dims& dims) {
            return plain_layout ? plain(dims) : memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
        };
        const memory::dims strides{s.stride, s.stride}, padding{s.padding, s.padding};
        const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference,
                                                   dnnl::algorithm::convolution_auto, wanted(x_dims), wanted(w_dims),
                                                   wanted(y_dims), strides, padding, padding);
        const dnnl::convolution_forward::primitive_desc chosen(what, engine());
        inner_x = like(chosen.src_desc(), x);
        inner_w = like(chosen.weights_desc(), w);
        inner_y = like(chosen.dst_desc(), y);
        convolve = dnnl::convolution_forward(chosen);
        to_x = dnnl::reorder(x, inner_x);
        to_w = dnnl::reorder(w, inner_w);
        from_y = dnnl::reorder(inner_y, y);
    }

    void operator()(dnnl::stream& stream) {
        if (inner_x != x) to_x.execute(stream, x, inner_x);
        if (inner_w != w) to_w.execute(stream, w, inner_w);
        convolve.execute(stream, {{DNNL_ARG_SRC, inner_x}, {DNNL_ARG_WEIGHTS, inner_w}, {DNNL_ARG_DST, inner_y}});
        if (inner_y != y) from_y.execute(stream, inner_y, y);
        stream.wait();
    }

    static memory like(const memory::desc& wanted, const memory& outer) {
        return wanted == outer.get_desc() ? outer : memory(wanted, engine());
    }

    memory x, w, y, inner_x, inner_w, inner_y;
    dnnl::convolution_forward convolve;
    dnnl::reorder to_x, to_w, from_y;
};

direct::Workload convolution(const Shape& s) {
    return {s.name, [s] {
                std::vector<direct::Run> ways;
                for (const bool plain_layout : {true, false}) {
                    auto work = std::make_shared<Convolution>(s, plain_layout);
                    ways.push_back([work, stream = dnnl::stream(engine())](long calls) mutable {
                        for (long i = 0; i < calls; ++i) (*work)(stream);
                    });
                }
                return direct::fastest(ways);
            }};
}

}  // namespace

int main() {
    return direct::serve(
        {convolution({"lenet1", 32, 1, 32, 6, 5, 1, 0}), convolution({"lenet2", 32, 6, 14, 16, 5, 1, 0}),
         convolution({"resnet_first", 4, 3, 224, 64, 7, 2, 3}), convolution({"resnet_3x3_64", 8, 64, 56, 64, 3, 1, 1}),
         convolution({"resnet_1x1_256_64", 8, 256, 56, 64, 1, 1, 0}),
         convolution({"resnet_3x3_128_s2", 8, 128, 56, 128, 3, 2, 1}),
         convolution({"resnet_3x3_512", 8, 512, 7, 512, 3, 1, 1})});
}
