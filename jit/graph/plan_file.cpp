// The file: kMark, the CRC-32 of the bytes after it, and the plan, field by field. describe() names the fields of each
// type once, for the writer and for the reader; plan_check.h checks the result.
#include "jit/graph/plan_file.h"

#include <algorithm>
#include <bit>

#include "core/io/stream.h"
#include "core/loops/describe.h"
#include "core/operator/op.h"
#include "jit/graph/plan_check.h"

namespace lunaria::graph {

namespace {

constexpr std::string_view kMark = "lunaria plan 1\n";

uint32_t version_of(const Op& op) { return crc32_of(op.signature.text); }

class Writer {
  public:
    static constexpr bool kReads = false;
    explicit Writer(std::vector<Tensor>& constants) : constants_(constants) {}
    std::string text;

    void number(uint64_t v) {
        for (; v >= 0x80; v >>= 7) text += static_cast<char>(v | 0x80);
        text += static_cast<char>(v);
    }
    void operator()(std::string& v) {
        number(v.size());
        text += v;
    }
    void operator()(double& v) {
        const auto bits = std::bit_cast<uint64_t>(v);
        for (int i = 0; i < 8; ++i) text += static_cast<char>(bits >> (8 * i));
    }
    void operator()(Tensor& v) {
        number(constants_.size());
        constants_.push_back(v);
    }
    void operator()(const Op*& op) {
        number(op != nullptr);
        if (!op) return;
        if (!op->belongs_to(registry()))
            throw state_error("plan", str("a plan with the operator '", op->name(), "' cannot be written"));
        std::string name(op->name());
        (*this)(name);
        number(version_of(*op));
    }
    [[noreturn]] void refuse(std::string_view what) const { throw state_error("plan", what); }

  private:
    std::vector<Tensor>& constants_;
};

class Reader {
  public:
    static constexpr bool kReads = true;
    Reader(std::string_view rest, const Source& source, std::span<const Tensor> constants)
        : rest_(rest), source_(source), constants_(constants) {}

    uint64_t number() {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            v |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return v;
        }
        refuse("a number is too long");
    }
    // The number of items that take at least a byte each.
    size_t count() {
        const uint64_t n = number();
        if (n > rest_.size()) refuse(str("a list promises ", n, " items, but ", rest_.size(), " bytes are left"));
        return static_cast<size_t>(n);
    }
    void operator()(std::string& v) { v = take(count()); }
    void operator()(double& v) {
        uint64_t bits = 0;
        const std::string_view bytes = take(8);
        for (size_t i = 0; i < 8; ++i) bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
        v = std::bit_cast<double>(bits);
    }
    void operator()(Tensor& v) {
        const uint64_t n = number();
        if (n >= constants_.size() || !constants_[n]) refuse(str("there is no constant ", n));
        v = constants_[n];
    }
    void operator()(const Op*& op) {
        if (number() == 0) return;
        std::string name;
        (*this)(name);
        op = registry().find(name);
        const uint64_t version = number();
        if (!op || op->name() != name || version != version_of(*op))
            refuse(str("there is no operator '", name.substr(0, 80), "' of its version"));
    }
    bool is_done() const { return rest_.empty(); }
    [[noreturn]] void refuse(std::string_view what) const { throw source_.error(str("corrupt: ", what)); }

  private:
    std::string_view take(size_t bytes) {
        if (bytes > rest_.size()) refuse("it ends too early");
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }
    std::string_view rest_;
    const Source& source_;
    std::span<const Tensor> constants_;
};

template <class A, class T>
void whole_number(A& a, T& v) {
    // Zigzag: small negative numbers are short.
    if constexpr (A::kReads) {
        const uint64_t n = a.number();
        const auto whole = static_cast<int64_t>(n >> 1) ^ -static_cast<int64_t>(n & 1);
        if constexpr (std::is_same_v<T, bool>) {
            if (n > 2) a.refuse("a flag is neither true nor false");
            v = n != 0;
        } else {
            v = static_cast<T>(whole);
            if (static_cast<int64_t>(v) != whole) a.refuse("a number is out of range");
        }
    } else {
        const auto whole = static_cast<int64_t>(v);
        a.number(static_cast<uint64_t>(whole) << 1 ^ static_cast<uint64_t>(whole >> 63));
    }
}
template <class A, class T>
requires std::is_integral_v<T>
void describe(A& a, T& v) { whole_number(a, v); }
template <class A, class T>
requires requires(A& a, T& v) { a(v); }
void describe(A& a, T& v) { a(v); }
// Enumerators up to `last`.
template <class A, class T>
void one_of(A& a, T& v, T last) {
    whole_number(a, v);
    if (static_cast<int64_t>(v) < 0 || v > last) a.refuse("there is no such kind");
}

template <class A>
void describe(A& a, DType& v) {
    one_of(a, v, DType::c128);
}

template <class A, class T>
void describe(A& a, std::vector<T>& list) {
    if constexpr (A::kReads) {
        for (size_t n = a.count(); n > 0; --n) describe(a, list.emplace_back());
    } else {
        a.number(list.size());
        for (T& item : list) describe(a, item);
    }
}
template <class A>
void describe(A& a, std::vector<bool>& list) {
    std::vector<uint8_t> bytes(list.begin(), list.end());
    describe(a, bytes);
    list.assign(bytes.begin(), bytes.end());
}

// For shapes and for strides.
template <class A>
void describe(A& a, Shape& shape) {
    std::vector<int64_t> dims(shape.begin(), shape.end());
    describe(a, dims);
    if (dims.size() > kMaxRank) a.refuse(str("a shape has ", dims.size(), " axes"));
    shape = Shape(dims);
}

template <class A>
void describe(A& a, TensorType& t) {
    describe(a, t.dtype);
    describe(a, t.shape);
    if (!A::kReads) return;
    uint64_t bytes = 16;
    for (const int64_t dim : t.shape)
        if (dim < kUnknownDim ||
            __builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(dim, 1)), &bytes) ||
            bytes > uint64_t{1} << 48)
            a.refuse(str("no tensor has the shape ", t.shape));
}

template <class A>
void describe(A& a, ir::NodeType& type, int depth = 0) {
    if (depth > 16) a.refuse("types are nested too deeply");
    one_of(a, type.kind, ir::NodeType::Kind::host);
    describe(a, type.tensor);
    size_t count = type.items.size();
    describe(a, count);
    if (count > 4096) a.refuse("a list is too long");
    type.items.resize(count);
    for (ir::NodeType& item : type.items) describe(a, item, depth + 1);
}

template <class A>
void describe(A& a, Value& v, int depth = 0) {
    if (depth > 16) a.refuse("lists are nested too deeply");
    Value::Kind kind = v.kind();
    one_of(a, kind, Value::Kind::tensor);
    auto pass = [&](auto content) {
        describe(a, content);
        if (A::kReads) v = Value(std::move(content));
    };
    switch (kind) {
        case Value::Kind::nil:
            return;
        case Value::Kind::boolean:
            return pass(A::kReads ? false : v.boolean());
        case Value::Kind::integer:
            return pass(A::kReads ? int64_t{0} : v.integer());
        case Value::Kind::number:
            return pass(A::kReads ? 0.0 : v.number());
        case Value::Kind::dtype:
            return pass(A::kReads ? DType::f32 : v.dtype());
        case Value::Kind::tensor:
            return pass(A::kReads ? Tensor() : v.tensor());
        case Value::Kind::string: {
            std::string text = A::kReads ? std::string() : v.string();
            describe(a, text);
            if (A::kReads) v = Value(std::string_view(text));
            return;
        }
        case Value::Kind::list: {
            std::vector<Value> items;
            if (!A::kReads) items = v.items();
            size_t count = items.size();
            describe(a, count);
            if (count > 65536) a.refuse("a list is too long");
            if (A::kReads) items.reserve(std::min<size_t>(count, 64));
            for (size_t i = 0; i < count; ++i) {
                if (A::kReads) items.emplace_back();
                describe(a, items[i], depth + 1);
            }
            if (A::kReads) v = Value::list(std::move(items));
            return;
        }
        default:
            a.refuse("an argument is an object, which a file cannot hold");
    }
}

template <class A>
void describe(A& a, ir::Span& span) {
    std::string chunk = span.chunk ? *span.chunk : std::string();
    describe(a, chunk);
    describe(a, span.line);
    if (A::kReads && !chunk.empty()) span.chunk = std::make_shared<const std::string>(chunk);
}

template <class A, class... Field>
void fields(A& a, Field&... field) {
    (describe(a, field), ...);
}

template <class A>
void describe(A& a, Root& r) {
    one_of(a, r.home, Root::Home::made);
    fields(a, r.type, r.index, r.offset, r.first, r.last);
    if (r.home == Root::Home::constant) describe(a, r.constant);
}
template <class A>
void describe(A& a, Handle& h) {
    fields(a, h.root, h.whole, h.shape, h.strides, h.offset);
}
template <class A>
void describe(A& a, Use& u) {
    fields(a, u.arg, u.item, u.handle);
}
template <class A>
void describe(A& a, Step& s) {
    one_of(a, s.kind, Step::Kind::loop);
    fields(a, s.op, s.args, s.uses, s.dtype, s.results, s.source, s.loop_roots, s.loop_offsets, s.rows, s.inner,
           s.nodes, s.flops, s.label, s.span);
}
template <class A>
void describe(A& a, Result& r) {
    fields(a, r.handle, r.copied, r.stored, r.borrowed, r.early);
}
template <class A>
void describe(A& a, EarlyUse& u) {
    fields(a, u.outputs, u.inputs);
}
template <class A>
void describe(A& a, LoopSource& s) {
    fields(a, s.program, s.sizes);
}
template <class A>
void describe(A& a, Plan& p) {
    fields(a, p.roots, p.handles, p.sources, p.steps, p.results, p.parameters, p.variables, p.inputs, p.donated,
           p.written, p.early, p.early_after, p.arena_bytes);
}

void compile_loops(Plan& plan, const Source& source) {
    std::vector<LoopTask> tasks;
    for (const Step& step : plan.steps)
        if (step.kind == Step::Kind::loop) tasks.push_back(task_of(plan, step));
    if (tasks.empty()) return;
    Backend* const backend = current_device()->graphs();
    const std::vector<LoopRef> codes = backend ? backend->compile(tasks) : std::vector<LoopRef>(tasks.size());
    size_t next = 0;
    for (Step& step : plan.steps) {
        if (step.kind != Step::Kind::loop) continue;
        step.loop = codes[next++];
        if (!step.loop) throw source.error("has a loop that no code can be made of here");
    }
}

}  // namespace

std::string write_plan(const Plan& plan, std::vector<Tensor>& constants) {
    Writer writer(constants);
    for (const Step& step : plan.steps)
        if (step.kind == Step::Kind::loop && step.source >= plan.sources.size())
            writer.refuse("the plan was made without the sources of its loops");
    describe(writer, const_cast<Plan&>(plan));  // a writer changes nothing
    std::string bytes(kMark);
    const uint32_t sum = crc32_of(writer.text);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(sum >> (8 * i));
    return bytes + writer.text;
}

Plan read_plan(const Source& source, std::span<const Tensor> constants) {
    constexpr size_t kHead = kMark.size() + 4;
    if (source.size() > uint64_t{1} << 30) throw source.error("is longer than 1 GiB, the most that a plan has");
    const std::string bytes = source.text(0, static_cast<size_t>(source.size()));
    if (!bytes.starts_with(kMark)) throw source.error("is no plan, or one of another version");
    if (bytes.size() < kHead) throw source.error("corrupt: it ends too early");
    uint32_t sum = 0;
    for (size_t i = 0; i < 4; ++i)
        sum |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[kMark.size() + i])) << (8 * i);
    const std::string_view content = std::string_view(bytes).substr(kHead);
    if (crc32_of(content) != sum) throw source.error("corrupt: the checksum is wrong");
    Reader reader(content, source, constants);
    Plan plan;
    describe(reader, plan);
    if (!reader.is_done()) reader.refuse("bytes are left over");
    check_plan(plan, source);
    compile_loops(plan, source);
    return plan;
}

}  // namespace lunaria::graph
