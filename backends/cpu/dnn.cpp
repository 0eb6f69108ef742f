// Convolutions by oneDNN. A primitive is made once per geometry and kept with everything that a call needs:
// descriptions of the memory, reorders between the plain layout of tensors and the fastest layout of the primitive, and
// the sizes of the buffers between them. A call then only fills in pointers.
//
// A batch is processed in parts of a few images. One thread takes a part from one layout to the other and back, so that
// intermediate data stays in its cache and threads synchronise once per call. oneDNN's own way, all threads on each of
// the three steps, remains for work that cannot be cut: fewer images than threads, and gradients of weights. Long work
// is cut into pieces all the same (conv_pieces.h), for the sake of interrupts.
#include "backends/cpu/dnn.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/cpu/conv_pieces.h"
#include "backends/cpu/copy.h"
#include "backends/cpu/gemm_tiles.h"
#include "backends/cpu/workspace.h"
#include "core/base/address_space.h"
#include "core/base/visit.h"
#include "core/memory/memory.h"
#include "core/run/prepared.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

using dnnl::memory;

dnnl::engine& engine() {
    static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

// The weights that a compiled program keeps: their layout, and the memory.
struct PreparedWeights {
    memory::desc layout;
    Buffer buffer;
    explicit PreparedWeights(const memory::desc& d) : layout(d), buffer(d.get_size()) {
        // They are read from one end to the other in every run: with small pages, half of the time would be address
        // translation.
        use_huge_pages(buffer.data(), d.get_size());
    }
};

memory::dims dims(const Shape& s) { return {s.begin(), s.end()}; }

memory::desc plain_desc(const memory::dims& d) {
    using tag = memory::format_tag;
    constexpr tag kPlain[] = {tag::a, tag::ab, tag::abc, tag::abcd, tag::abcde, tag::abcdef};
    return {d, memory::data_type::f32, kPlain[d.size() - 1]};
}

memory::desc last_desc(const memory::dims& d) { return {d, memory::data_type::f32, memory::format_tag::acdb}; }

// The sizes that determine the strides of an array which contains a piece of a convolution.
struct Planes {
    int64_t in_channels = 0, out_channels = 0;
    Window::Sizes in{0, 0, 0}, out{0, 0, 0};

    bool operator==(const Planes&) const = default;
};

// Images of the sizes `d` in an array with so many channels and so large planes.
memory::desc images_within(const memory::dims& d, int64_t channels, const Window::Sizes& plane, bool last) {
    const size_t axes = d.size() - 2;
    memory::dims strides(d.size());
    int64_t step = last ? channels : 1;
    for (size_t i = axes; i-- > 0;) {
        strides[i + 2] = step;
        step *= plane[i + Window::kAxes - axes];
    }
    strides[1] = last ? 1 : step;
    // A single image has no next one: with the batch stride of a dense array, it counts as dense when its rows are.
    strides[0] = d[0] == 1 ? strides[1] * d[1] : last ? step : step * channels;
    if (d[0] == 1 && last) strides[0] = strides[2] * d[2];
    return {d, memory::data_type::f32, strides};
}
memory::desc weights_within(const memory::dims& d, int64_t in_channels) {
    memory::dims strides(d.size(), 1);
    for (size_t i = d.size() - 1; i-- > 1;) strides[i] = strides[i + 1] * d[i + 1];
    strides[0] = strides[1] * in_channels;
    return {d, memory::data_type::f32, strides};
}

// One operand of a primitive: the tensor's array, and, where the primitive wants another layout, the reorder.
struct Operand {
    memory outer, inner;
    dnnl::reorder reorder;
    bool reordered = false, channels_last = false;

    void describe(const memory::desc& plain, const memory::desc& wanted, bool is_result) {
        outer = memory(plain, engine(), nullptr);
        reordered = plain != wanted;
        channels_last = plain.dims().size() == 4 && plain == plain_desc(plain.dims()) &&
                        wanted == memory::desc(plain.dims(), memory::data_type::f32, memory::format_tag::acdb);
        inner = reordered ? memory(wanted, engine(), nullptr) : outer;
        if (reordered) reorder = is_result ? dnnl::reorder(inner, outer) : dnnl::reorder(outer, inner);
    }
    size_t buffer_bytes() const { return reordered ? inner.get_desc().get_size() : 0; }
    void point(void* array, void* buffer) {
        outer.set_data_handle(array);
        if (reordered) inner.set_data_handle(buffer);
    }
    void read(dnnl::stream& stream) {
        if (reordered) run(stream, outer, inner);
    }
    void write(dnnl::stream& stream) {
        if (reordered) run(stream, inner, outer);
    }

    // An image of a megabyte will have left the cache before it is read: then its lines are better not fetched before
    // they are overwritten.
    bool is_better_written_around_cache() const {
        if (!reordered || !channels_last) return false;
        const memory::desc plain = outer.get_desc();
        const memory::dims d = plain.dims();
        const bool aligned = reinterpret_cast<uintptr_t>(outer.get_data_handle()) % kAlignment == 0;
        return aligned && d.size() == 4 && plain.get_size() / static_cast<size_t>(d[0]) >= (1u << 20) &&
               d[2] * d[3] % 16 == 0;
    }
    void write_around_cache() const {
        const memory::dims d = outer.get_desc().dims();
        const int64_t channels = d[1], pixels = d[2] * d[3];
        for (int64_t n = 0; n < d[0]; ++n)
            copy_loops().transpose[2](static_cast<float*>(inner.get_data_handle()) + n * channels * pixels, channels,
                                      static_cast<float*>(outer.get_data_handle()) + n * channels * pixels, pixels,
                                      pixels, channels, true);
    }

  private:
    // The C interface: the C++ one builds a hash map per call.
    void run(dnnl::stream& stream, const memory& from, const memory& to) {
        dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
        dnnl::error::wrap_c_api(dnnl_primitive_execute(reorder.get(), stream.get(), 2, args), "reorder");
    }
};

struct ConvKey {
    ConvKind kind;
    bool bias;
    bool part;  // for one of several threads that each have a part of the batch
    int threads;
    Convolution conv;
    ConvLayout layout = ConvLayout::front;
    // For a piece: the sizes of the whole; otherwise zeros.
    Planes whole{};

    bool operator==(const ConvKey& o) const {
        const Window &a = conv.window, &b = o.conv.window;
        return kind == o.kind && bias == o.bias && part == o.part && threads == o.threads && layout == o.layout &&
               conv.batch == o.conv.batch && conv.in_channels == o.conv.in_channels &&
               conv.out_channels == o.conv.out_channels && conv.groups == o.conv.groups && a.axes == b.axes &&
               a.in == b.in && a.kernel == b.kernel && a.stride == b.stride && a.dilation == b.dilation &&
               a.before == b.before && a.after == b.after && whole == o.whole;
    }
};

struct ConvHash {
    size_t operator()(const ConvKey& k) const {
        const Convolution& c = k.conv;
        const Window& w = c.window;
        uint64_t h = static_cast<uint64_t>(k.kind) * 4 + k.part * 2 + k.bias + 16 * static_cast<uint64_t>(k.layout) +
                     64 * static_cast<uint64_t>(k.threads);
        auto mix = [&h](int64_t v) { h = (h ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15u + (h >> 29); };
        for (int64_t v : {c.batch, c.in_channels, c.out_channels, c.groups}) mix(v);
        for (auto* sizes : {&w.in, &w.kernel, &w.stride, &w.dilation, &w.before, &w.after, &k.whole.in})
            for (int64_t v : *sizes) mix(v);
        return static_cast<size_t>(h);
    }
};

// oneDNN's implementations that cover every case and are slow in all.
bool is_fallback(const char* implementation) {
    const std::string_view name(implementation);
    return name.find("gemm") != name.npos || name.find("ref") != name.npos;
}

// While it lives, OpenMP runs everything on this thread alone. oneDNN makes primitives for the current number of
// threads.
class SingleThread {
  public:
    explicit SingleThread(bool wanted) : before_(omp_get_max_threads()) {
        if (wanted) omp_set_num_threads(1);
    }
    SingleThread(const SingleThread&) = delete;
    ~SingleThread() { omp_set_num_threads(before_); }

  private:
    int before_;
};

// A convolution or one of its gradients, ready to run.
class ConvPrimitive {
  public:
    explicit ConvPrimitive(const ConvKey& key) : kind_(key.kind), has_bias_(key.bias) {
        const Convolution& c = key.conv;
        const Window& w = c.window;
        memory::dims x = dims(c.input_shape()), y = dims(c.output_shape()), wt = dims(c.weight_shape());
        if (c.groups > 1) {
            wt[0] /= c.groups;
            wt.insert(wt.begin(), c.groups);
        }
        const bool is_piece = key.whole != Planes();
        auto outer_images = [&](const memory::dims& d, int64_t channels, const Window::Sizes& plane, bool last) {
            return is_piece ? images_within(d, channels, plane, last) : last ? last_desc(d) : plain_desc(d);
        };
        const memory::desc outer_x =
            outer_images(x, key.whole.in_channels, key.whole.in, key.layout == ConvLayout::last);
        const memory::desc outer_y =
            outer_images(y, key.whole.out_channels, key.whole.out, key.layout != ConvLayout::front);
        const memory::desc outer_w =
            is_piece && c.groups == 1 ? weights_within(wt, key.whole.in_channels) : plain_desc(wt);
        memory::dims stride = dims(w.attribute(w.stride)), dilation = dims(w.attribute(w.dilation));
        for (auto& d : dilation) --d;  // oneDNN counts the gaps
        memory::dims before = dims(w.attribute(w.before)), after = dims(w.attribute(w.after));
        // A 1x1 convolution is fast in the tensors' own layout; a conversion to another would take longer than the
        // convolution.
        constexpr Window::Sizes kOnes{1, 1, 1};
        bool keep_layout = w.kernel == kOnes && c.groups == 1;
        auto any = [keep_layout](const memory::dims& d) {
            return keep_layout ? plain_desc(d) : memory::desc(d, memory::data_type::f32, memory::format_tag::any);
        };
        memory::desc bias({c.out_channels}, memory::data_type::f32, memory::format_tag::a);
        dnnl::primitive_attr attr;
        attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

        auto forward_desc = [&](dnnl::prop_kind prop) {
            using Forward = dnnl::convolution_forward;
            return has_bias_
                       ? Forward::desc(prop, kAlgorithm, any(x), any(wt), bias, any(y), stride, dilation, before, after)
                       : Forward::desc(prop, kAlgorithm, any(x), any(wt), any(y), stride, dilation, before, after);
        };
        auto adopt = [&](const auto& pd, const memory::desc& in_x, const memory::desc& in_w, const memory::desc& in_y) {
            x_.describe(outer_x, in_x, kind_ == ConvKind::input_grad);
            w_.describe(outer_w, in_w, kind_ == ConvKind::weight_grad);
            y_.describe(outer_y, in_y, kind_ == ConvKind::forward);
            scratch_ = memory(pd.scratchpad_desc(), engine(), nullptr);
        };
        if (key.layout != ConvLayout::front) {
            using Forward = dnnl::convolution_forward;
            auto choose = [&](const memory::desc& in_x, const memory::desc& in_y) {
                const memory::desc any_w(wt, memory::data_type::f32, memory::format_tag::any);
                const auto d = has_bias_ ? Forward::desc(dnnl::prop_kind::forward_inference, kAlgorithm, in_x, any_w,
                                                         bias, in_y, stride, dilation, before, after)
                                         : Forward::desc(dnnl::prop_kind::forward_inference, kAlgorithm, in_x, any_w,
                                                         in_y, stride, dilation, before, after);
                return Forward::primitive_desc(d, attr, engine());
            };
            Forward::primitive_desc pd = choose(last_desc(x), last_desc(y));
            if (is_fallback(pd.impl_info_str()))
                pd = choose({x, memory::data_type::f32, memory::format_tag::any},
                            {y, memory::data_type::f32, memory::format_tag::any});
            primitive_ = Forward(pd);
            x_.describe(outer_x, pd.src_desc(), false);
            w_.describe(outer_w, pd.weights_desc(), false);
            y_.describe(outer_y, pd.dst_desc(), true);
            scratch_ = memory(pd.scratchpad_desc(), engine(), nullptr);
            if (has_bias_) bias_ = memory(bias, engine(), nullptr);
            return;
        }
        if (kind_ == ConvKind::forward) {
            dnnl::convolution_forward::primitive_desc pd(forward_desc(dnnl::prop_kind::forward_inference), attr,
                                                         engine());
            primitive_ = dnnl::convolution_forward(pd);
            adopt(pd, pd.src_desc(), pd.weights_desc(), pd.dst_desc());
            if (has_bias_) bias_ = memory(bias, engine(), nullptr);
            return;
        }
        dnnl::convolution_forward::primitive_desc hint(forward_desc(dnnl::prop_kind::forward_training), engine());
        if (kind_ == ConvKind::input_grad) {
            dnnl::convolution_backward_data::desc d(kAlgorithm, any(x), any(wt), any(y), stride, dilation, before,
                                                    after);
            dnnl::convolution_backward_data::primitive_desc pd(d, attr, engine(), hint);
            primitive_ = dnnl::convolution_backward_data(pd);
            adopt(pd, pd.diff_src_desc(), pd.weights_desc(), pd.diff_dst_desc());
        } else {
            dnnl::convolution_backward_weights::desc d(kAlgorithm, any(x), any(wt), any(y), stride, dilation, before,
                                                       after);
            dnnl::convolution_backward_weights::primitive_desc pd(d, attr, engine(), hint);
            primitive_ = dnnl::convolution_backward_weights(pd);
            adopt(pd, pd.src_desc(), pd.diff_weights_desc(), pd.diff_dst_desc());
        }
    }

    void run(float* x, float* w, const float* bias, float* y, Tensor* gradient) {
        Operand& result = kind_ == ConvKind::forward ? y_ : kind_ == ConvKind::input_grad ? x_ : w_;
        const bool late = gradient && result.reordered;
        const Shape shape = late ? gradient->shape() : Shape();
        if (late) *gradient = Tensor();
        const bool prepared = w_.reordered && prepared_place(w);
        std::optional<Buffer> x_buffer(x_.buffer_bytes()), w_buffer(prepared ? 0 : w_.buffer_bytes()),
            y_buffer(y_.buffer_bytes());
        std::optional<Buffer> scratch(scratch_.get_desc().get_size());
        x_.point(x, x_buffer->data());
        w_.point(w, w_buffer->data());
        y_.point(y, y_buffer->data());
        scratch_.set_data_handle(scratch->data());
        dnnl::stream& stream = this_stream();
        if (kind_ != ConvKind::input_grad) x_.read(stream);
        if (kind_ != ConvKind::weight_grad && !use_prepared(w)) w_.read(stream);
        if (kind_ != ConvKind::forward) y_.read(stream);
        execute(stream, bias);
        if (late) {
            stream.wait();
            for (auto* buffer : {&x_buffer, &w_buffer, &y_buffer, &scratch})
                if (buffer != (&result == &x_ ? &x_buffer : &w_buffer)) buffer->reset();
            *gradient = Tensor::empty(DType::f32, shape);
            result.outer.set_data_handle(gradient->raw());
        }
        result.write(stream);
        stream.wait();
    }

    // Brings the weights into the layout of run_part, with all threads, and returns their address; `buffer` gets the
    // memory if any is needed.
    void* read_weights(float* w, std::optional<Buffer>& buffer) {
        if (!w_.reordered) return w;
        if (use_prepared(w)) return w_.inner.get_data_handle();
        buffer.emplace(w_.buffer_bytes());
        w_.point(w, buffer->data());
        read_weights();
        return buffer->data();
    }
    // The layout in which it computes the gradient of w, and the tensor's own.
    memory::desc inner_weights() const { return w_.inner.get_desc(); }
    memory::desc outer_weights() const { return w_.outer.get_desc(); }

    // The gradient of w, in the layout given.
    void run_weights(float* x, float* y, void* w, const memory::desc& layout) {
        const bool converts = inner_weights() != layout;
        const Buffer x_buffer(x_.buffer_bytes()), y_buffer(y_.buffer_bytes());
        const Buffer own(converts ? inner_weights().get_size() : 0), scratch(scratch_.get_desc().get_size());
        x_.point(x, x_buffer.data());
        y_.point(y, y_buffer.data());
        w_.inner.set_data_handle(converts ? own.data() : w);
        scratch_.set_data_handle(scratch.data());
        dnnl::stream& stream = this_stream();
        x_.read(stream);
        y_.read(stream);
        execute(stream, nullptr);
        if (converts) {
            memory wanted(layout, engine(), w);
            dnnl::reorder(w_.inner, wanted).execute(stream, w_.inner, wanted);
        }
        stream.wait();
    }
    // Forward or the gradient of x, with the weights from read_weights.
    void run_part(float* x, void* weights, const float* bias, float* y) {
        thread_local Workspace workspace;
        const size_t x_bytes = Workspace::round_up(x_.buffer_bytes()), y_bytes = Workspace::round_up(y_.buffer_bytes());
        std::byte* const space = workspace.take(x_bytes + y_bytes + scratch_.get_desc().get_size());
        x_.point(x, space);
        y_.point(y, space + x_bytes);
        w_.inner.set_data_handle(weights);
        scratch_.set_data_handle(space + x_bytes + y_bytes);
        dnnl::stream& stream = this_stream();
        (kind_ == ConvKind::forward ? x_ : y_).read(stream);
        execute(stream, bias);
        Operand& result = kind_ == ConvKind::forward ? y_ : x_;
        if (result.is_better_written_around_cache()) {
            stream.wait();
            result.write_around_cache();
        } else {
            result.write(stream);
            stream.wait();
        }
        workspace.finish();
    }

  private:
    // Points at the program's kept weights, which are made now if they are missing. False where none are kept.
    bool use_prepared(float* w) {
        Prepared* place = w_.reordered ? prepared_place(w) : nullptr;
        if (!place) return false;
        static constexpr char kOwner = 0;
        const auto* known = place->kept.find<PreparedWeights>(&kOwner);
        if (known && known->layout == w_.inner.get_desc()) {
            w_.inner.set_data_handle(known->buffer.data());
            return true;
        }
        auto fresh = std::make_unique<PreparedWeights>(w_.inner.get_desc());
        w_.point(w, fresh->buffer.data());
        read_weights();
        place->kept.keep(&kOwner, std::move(fresh));
        return true;
    }
    void read_weights() {
        if (!shared_read_) shared_read_ = dnnl::reorder(w_.outer, w_.inner);
        std::swap(shared_read_, w_.reorder);
        w_.read(this_stream());
        std::swap(shared_read_, w_.reorder);
        this_stream().wait();
    }

    static dnnl::stream& this_stream() {
        thread_local dnnl::stream stream(engine());
        return stream;
    }

    void execute(dnnl::stream& stream, const float* bias) {
        dnnl_exec_arg_t args[5];
        int count = 0;
        auto pass = [&](int name, const memory& m) { args[count++] = {name, m.get()}; };
        pass(kind_ == ConvKind::input_grad ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x_.inner);
        pass(kind_ == ConvKind::weight_grad ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w_.inner);
        pass(kind_ == ConvKind::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y_.inner);
        pass(DNNL_ARG_SCRATCHPAD, scratch_);
        if (has_bias_) {
            bias_.set_data_handle(const_cast<float*>(bias));
            pass(DNNL_ARG_BIAS, bias_);
        }
        dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), stream.get(), count, args), "convolution");
    }

    ConvKind kind_;
    bool has_bias_;
    dnnl::primitive primitive_;
    Operand x_, w_, y_;
    memory bias_, scratch_;
    dnnl::reorder shared_read_;  // of weights, by all threads, for a primitive of one thread
};

// The most recently used primitives of a thread. Each thread has its own, because a primitive's memory objects belong
// to the call that runs.
class ConvCache {
  public:
    // nullptr: oneDNN has nothing for the case, which is remembered as well.
    ConvPrimitive* find(const ConvKey& key) {
        if (auto found = entries_.find(key); found != entries_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            return found->second->primitive.get();
        }
        // Room for the code that oneDNN generates, with some to spare; a failure for lack of room is not remembered.
        if (!address_space_has(size_t{64} << 20)) return nullptr;
        std::unique_ptr<ConvPrimitive> made;
        try {
            const SingleThread alone(key.part);
            made = std::make_unique<ConvPrimitive>(key);
        } catch (const dnnl::error&) {
        }
        order_.push_front({key, std::move(made)});
        entries_[key] = order_.begin();
        if (order_.size() > kMost) {
            entries_.erase(order_.back().key);
            order_.pop_back();
        }
        return order_.front().primitive.get();
    }

  private:
    static constexpr size_t kMost = 512;
    struct Entry {
        ConvKey key;
        std::unique_ptr<ConvPrimitive> primitive;
    };
    std::list<Entry> order_;  // most recent first
    std::unordered_map<ConvKey, std::list<Entry>::iterator, ConvHash> entries_;
};

ConvCache& conv_cache() {
    thread_local ConvCache cache;
    return cache;
}

// The number of images that one thread takes at a time; 0 where the batch is not to be cut.
int64_t images_per_part(const Convolution& c, int threads) {
    // The bytes that a part reads and writes in oneDNN's layouts: about half of a core's own cache.
    constexpr int64_t kPart = 1 << 20;
    if (c.batch < 2 || c.batch < threads) return 0;
    // Every part reads all weights: large ones do not stay in a near cache and are better read once.
    if (c.in_channels / c.groups * c.out_channels * c.window.kernel_size() * 4 > kPart) return 0;
    const int64_t image = (c.in_channels * c.window.in_size() + c.out_channels * c.window.out_size()) * 4;
    if (threads == 1 && image * c.batch <= 2 * kPart) return 0;
    const int64_t most = std::clamp<int64_t>(kPart / std::max<int64_t>(image, 1), 1, c.batch / threads);
    int64_t even = 0, any = 1;
    for (int64_t n = 1; n <= most; ++n) {
        if (c.batch % n == 0) any = n;
        if (c.batch % (n * threads) == 0) even = n;
    }
    return even ? even : any;
}

bool convolve_parts(ConvKind kind, const Convolution& conv, int64_t images, float* x, float* w, const float* bias,
                    float* y, bool relu) {
    ConvKey key{kind, bias != nullptr, true, omp_get_max_threads(), conv};
    key.conv.batch = images;
    ConvPrimitive* first = conv_cache().find(key);
    if (!first) return false;
    std::optional<Buffer> weights;
    void* const inner = first->read_weights(w, weights);
    const int64_t x_step = images * conv.in_channels * conv.window.in_size();
    const int64_t y_step = images * conv.out_channels * conv.window.out_size();
    constexpr double kWorthwhile = 1e6;
    std::atomic<bool> done = true;
    parallel_for(conv.batch / images, static_cast<int64_t>(kWorthwhile / (products_of(key.conv) + 1)) + 1,
                 [&](int64_t begin, int64_t end) {
                     const SingleThread alone(true);
                     ConvPrimitive* own = conv_cache().find(key);
                     if (!own) done = false;
                     for (int64_t i = begin; own && i < end; ++i) {
                         poll_interrupt();
                         own->run_part(x + i * x_step, inner, bias, y + i * y_step);
                         if (relu) cut_negatives(y + i * y_step, y_step);
                     }
                 });
    return done;
}

// Each thread's parts are checked for interrupts one by one, and there is a safe point between rounds of several parts.
bool convolve_turns(ConvKind kind, const Convolution& conv, int64_t images, int64_t parts_at_once, float* x, float* w,
                    const float* bias, float* y, bool relu) {
    const int64_t turn = images * parts_at_once;
    Convolution some = conv;
    for (int64_t at = 0; at < conv.batch; at += turn) {
        if (at > 0) safe_point();
        some.batch = std::min(turn, conv.batch - at);
        if (!convolve_parts(kind, some, images, x + at * conv.in_channels * conv.window.in_size(), w, bias,
                            y + at * conv.out_channels * conv.window.out_size(), relu))
            return false;
    }
    return true;
}

// The sum of pieces' gradients of the same weights, in the layout of the first one.
class WeightSum {
  public:
    void add(ConvPrimitive& primitive, float* x, float* y, float* w) {
        if (w_ != w) {
            finish();
            w_ = w;
            inner_ = primitive.inner_weights();
            outer_ = primitive.outer_weights();
            if (inner_ != outer_) sum_.emplace(inner_.get_size());
            return primitive.run_weights(x, y, sum(), inner_);
        }
        if (!part_) part_.emplace(inner_.get_size());
        primitive.run_weights(x, y, part_->data(), inner_);
        float* const to = sum();
        const auto* const more = static_cast<const float*>(part_->data());
        parallel_for(static_cast<int64_t>(inner_.get_size() / sizeof(float)), kWorthwhile,
                     [to, more](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) to[i] += more[i];
                     });
    }
    void finish() {
        if (sum_) {
            memory from(inner_, engine(), sum_->data()), to(outer_, engine(), w_);
            dnnl::stream stream(engine());
            dnnl::reorder(from, to).execute(stream, from, to);
            stream.wait();
        }
        sum_.reset();
        part_.reset();
        w_ = nullptr;
    }

  private:
    static constexpr int64_t kWorthwhile = 1 << 16;
    float* sum() { return sum_ ? static_cast<float*>(sum_->data()) : w_; }

    memory::desc inner_, outer_;
    std::optional<Buffer> sum_, part_;
    float* w_ = nullptr;
};

// Runs pieces one after the other, each with all threads. Other programs may run in between, so that nothing of the
// cache is kept.
bool convolve_pieces(ConvKind kind, ConvLayout layout, const Convolution& conv, double most, float* x, float* w,
                     const float* bias, float* y) {
    const Planes whole{conv.in_channels, conv.out_channels, conv.window.in, conv.window.out};
    const int64_t filter = conv.window.kernel_size(), group_in = conv.in_channels / conv.groups;
    std::optional<Buffer> weights;
    memory::desc layout_of_weights;
    const float* read = nullptr;
    WeightSum sum;
    bool first = true;
    for (const ConvPiece& piece : conv_pieces(kind, conv, most)) {
        if (!std::exchange(first, false)) safe_point();
        ConvPrimitive* primitive =
            conv_cache().find({kind, bias != nullptr, false, omp_get_max_threads(), piece.conv, layout, whole});
        if (!primitive) return false;
        std::optional<PoolUse> all_threads;
        if (!omp_in_parallel()) all_threads.emplace();
        float* const piece_x = x + start_of(piece.image, piece.in_channel, piece.in, whole.in_channels, whole.in,
                                            layout == ConvLayout::last);
        float* const piece_y = y + start_of(piece.image, piece.out_channel, piece.out, whole.out_channels, whole.out,
                                            layout != ConvLayout::front);
        float* const piece_w = w + (piece.out_channel * group_in + piece.in_channel) * filter;
        if (kind == ConvKind::weight_grad) {
            sum.add(*primitive, piece_x, piece_y, piece_w);
            continue;
        }
        void* inner = nullptr;
        if (weights && read == piece_w && layout_of_weights == primitive->inner_weights()) {
            inner = weights->data();
        } else {
            weights.reset();
            inner = primitive->read_weights(piece_w, weights);
            layout_of_weights = primitive->inner_weights();
            read = piece_w;
        }
        primitive->run_part(piece_x, inner, bias ? bias + piece.out_channel : nullptr, piece_y);
    }
    sum.finish();
    return true;
}

}  // namespace

// Whether the sizes are within the library's 32-bit counts.
static bool is_countable(const Window& w) {
    constexpr int64_t kMost = int64_t{1} << 30;
    for (size_t i = 0; i < Window::kAxes; ++i)
        if (std::max({w.before[i], w.after[i], w.stride[i], w.reach(static_cast<int>(i)), w.in[i]}) > kMost)
            return false;
    return true;
}

bool dnn_convolve(ConvKind kind, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                  Tensor* gradient, double most, bool relu) {
    if (!is_countable(conv.window)) return false;
    prepare_pool();
    const int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    const double products = products_of(conv);
    if (kind != ConvKind::weight_grad)
        if (const int64_t images = images_per_part(conv, threads)) {
            const double part = products / static_cast<double>(conv.batch) * static_cast<double>(images);
            // Parts for seconds of work on each thread, so that threads seldom wait for each other.
            constexpr double kTurn = 64;
            const auto parts = static_cast<int64_t>(std::min(kTurn * most / (part + 1), 1e9));
            if (part <= most) return convolve_turns(kind, conv, images, parts * threads, x, w, bias, y, relu);
        }
    most *= kind == ConvKind::weight_grad ? 2 * threads : threads;  // gradients of weights have to be added up
    auto finish = [&] {
        if (relu) cut_negatives(y, conv.output_shape().size());
        return true;
    };
    if (products > most) return convolve_pieces(kind, ConvLayout::front, conv, most, x, w, bias, y) && finish();
    ConvPrimitive* primitive = conv_cache().find({kind, bias != nullptr, false, omp_get_max_threads(), conv});
    if (!primitive) return false;
    std::optional<PoolUse> all_threads;
    if (threads > 1 && products > 4e6) all_threads.emplace();
    primitive->run(x, w, bias, y, gradient);
    return finish();
}

bool dnn_convolve_last(ConvLayout layout, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                       double most) {
    if (!is_countable(conv.window)) return false;
    prepare_pool();
    const int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    const double products = products_of(conv);
    if (products > most * threads)
        return convolve_pieces(ConvKind::forward, layout, conv, most * threads, x, w, bias, y);
    ConvPrimitive* primitive =
        conv_cache().find({ConvKind::forward, bias != nullptr, false, omp_get_max_threads(), conv, layout});
    if (!primitive) return false;
    std::optional<PoolUse> all_threads;
    if (threads > 1 && products > 4e6) all_threads.emplace();
    primitive->run(x, w, bias, y, nullptr);
    return true;
}

}  // namespace lunaria::cpu
