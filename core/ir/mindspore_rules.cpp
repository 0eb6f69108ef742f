#include "core/ir/mindspore_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lunaria::mindir {

namespace {

using Values = std::vector<Value>;

Values list_of(const Value& v) { return v.is_list() ? v.items() : Values{v}; }

Value repeated(const Value& v, size_t count) {
    Values items = list_of(v);
    if (items.size() == 1) items.resize(count, items[0]);
    return Value::list(std::move(items));
}

Value integers(std::vector<int64_t> list) { return Value::ints(std::span<const int64_t>(list)); }

int64_t counted(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// The definition of a rule's @name(...). `back` computes the first variable from the value.
struct Function {
    std::string_view name;
    Value (*forward)(const Values& args, const Bindings& b);
    std::optional<Value> (*back)(const Value& value);
};

std::optional<Value> whole(const Value& v) { return v.is_list() ? std::optional(v) : std::nullopt; }

// The entries for height and width, of (batch, channels, height, width).
std::optional<Value> last_two(const Value& v) {
    if (!v.is_list() || v.items().size() < 2) return std::nullopt;
    const Values& items = v.items();
    return Value::list({items[items.size() - 2], items.back()});
}

Shape shape_of(const Value& v) { return type_of(v).shape; }

// The size along an axis that may be counted from the end.
int64_t size_along(const Shape& shape, const Value& axis) {
    const int64_t at = counted(axis.integer(), shape.rank());
    if (at < 0 || at >= shape.rank()) throw value_error("mindir", str("a shape ", shape, " has no axis ", at));
    return shape[static_cast<int>(at)];
}

std::vector<int64_t> swapped(const Values& args) {
    const int rank = shape_of(args[0]).rank();
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    std::swap(order.at(static_cast<size_t>(counted(list_of(args[1]).at(0).integer(), rank))),
              order.at(static_cast<size_t>(counted(args[2].integer(), rank))));
    return order;
}

constexpr std::pair<DType, int64_t> kTypeIds[] = {
    {DType::boolean, 30}, {DType::i8, 32},  {DType::i16, 33}, {DType::i32, 34}, {DType::i64, 35},
    {DType::u8, 37},      {DType::u16, 38}, {DType::u32, 39}, {DType::u64, 40}, {DType::f16, 42},
    {DType::f32, 43},     {DType::f64, 44}, {DType::bf16, 45}};

Value type_id(const Values& args, const Bindings&) {
    for (auto [dtype, id] : kTypeIds)
        if (dtype == args[0].dtype()) return Value(id);
    throw dtype_error("export", str("MindSpore has no number for ", name_of(args[0].dtype())));
}

std::optional<Value> type_of_id(const Value& v) {
    if (v.kind() == Value::Kind::dtype) return v;
    if (v.kind() == Value::Kind::integer)
        for (auto [dtype, id] : kTypeIds)
            if (id == v.integer()) return Value(dtype);
    return std::nullopt;
}

// The mask of causal attention: what is added to scores.
Value causal_mask(const Values& args, const Bindings&) {
    const int64_t queries = size_along(shape_of(args[1]), Value(-2)), keys = size_along(shape_of(args[2]), Value(-2));
    const int64_t shift = args[0].integer();
    const Tensor mask = Tensor::empty(DType::f32, {queries, keys});
    for (int64_t i = 0; i < queries; ++i)
        for (int64_t j = 0; j < keys; ++j) mask.data<float>()[i * keys + j] = j <= i + shift ? 0.0f : -INFINITY;
    return Value(mask);
}

// The number of keys that the first query sees, minus the one of its own position.
std::optional<Value> shift_of_mask(const Value& v) {
    if (!v.is_tensor() || v.tensor().rank() != 2 || v.tensor().dtype() != DType::f32 || v.tensor().size() == 0)
        return std::nullopt;
    int64_t seen = 0;
    while (seen < v.tensor().dim(1) && v.tensor().at(seen) == 0) ++seen;
    return Value(seen - 1);
}

const Function kFunctions[] = {
    {"list", [](const Values& a, const Bindings&) { return Value::list(list_of(a[0])); }, whole},
    {"only", [](const Values& a, const Bindings&) { return Value::list({a[0]}); },
     [](const Value& v) -> std::optional<Value> {
         if (!v.is_list()) return v.kind() == Value::Kind::integer ? std::optional(v) : std::nullopt;
         return v.items().size() == 1 ? std::optional(v.items()[0]) : std::nullopt;
     }},
    {"pair", [](const Values& a, const Bindings&) { return repeated(a[0], 2); }, last_two},
    {"quad",
     [](const Values& a, const Bindings&) {
         const Value two = repeated(a[0], 2);
         return Value::list({Value(1), Value(1), two.items().at(0), two.items().at(1)});
     },
     last_two},
    // The border of images: one number, two (height, width) or four.
    {"edges",
     [](const Values& a, const Bindings&) {
         const Values p = list_of(repeated(a[0], 4));
         return p.size() == 2 ? Value::list({p[0], p[0], p[1], p[1]}) : Value::list(p);
     },
     [](const Value& v) -> std::optional<Value> {
         if (!v.is_list()) return v.kind() == Value::Kind::integer ? std::optional(v) : std::nullopt;
         return v.items().size() == 4 ? std::optional(v) : std::nullopt;
     }},
    {"dtype", type_id, type_of_id},
    // Functions from here on are not inverted: other arguments determine their variables when a file is read.
    {"tail",
     [](const Values& a, const Bindings&) {
         const Shape s = shape_of(a[0]);
         return integers({s.begin() + a[1].integer(), s.end()});
     },
     nullptr},
    {"size", [](const Values& a, const Bindings&) { return Value(size_along(shape_of(a[0]), a[1])); }, nullptr},
    {"shape", [](const Values& a, const Bindings&) { return Value::ints(shape_of(a[0])); }, nullptr},
    {"behind", [](const Values& a, const Bindings&) { return Value(-int64_t{shape_of(a[0]).rank()}); }, nullptr},
    {"result", [](const Values&, const Bindings& b) { return Value::ints(b.result->tensor.shape); }, nullptr},
    {"swapped", [](const Values& a, const Bindings&) { return integers(swapped(a)); }, nullptr},
    {"reversed",
     [](const Values& a, const Bindings&) {
         std::vector<int64_t> order;
         for (int i = shape_of(a[0]).rank(); i-- > 0;) order.push_back(i);
         return integers(std::move(order));
     },
     nullptr},
    {"ones", [](const Values& a, const Bindings&) { return Value::list(Values(list_of(a[0]).size(), Value(1))); },
     nullptr},
    {"parts",  // sizes of the results along an axis
     [](const Values& a, const Bindings& b) {
         std::vector<int64_t> sizes;
         for (const ir::NodeType& part : b.result->items) sizes.push_back(size_along(part.tensor.shape, a[0]));
         return integers(std::move(sizes));
     },
     nullptr},
    {"begin",
     [](const Values& a, const Bindings&) {
         const int rank = shape_of(a[0]).rank();
         std::vector<int64_t> begin(static_cast<size_t>(rank), 0);
         const int axis = static_cast<int>(counted(a[1].integer(), rank));
         begin.at(static_cast<size_t>(axis)) = counted(a[2].integer(), static_cast<int>(shape_of(a[0])[axis]));
         return integers(std::move(begin));
     },
     nullptr},
    {"causal", causal_mask, shift_of_mask},
};

const Function& function_of(std::string_view name) {
    for (const Function& f : kFunctions)
        if (f.name == name) return f;
    throw state_error("mindir", str("there is no function @", name));
}

// The text of a rule as terms.
class RuleParser {
  public:
    explicit RuleParser(std::string_view text) : text_(text), rest_(text) {}

    Rule parse(Condition condition) {
        Rule rule;
        rule.ours = term();
        expect('=');
        rule.theirs = term();
        rule.condition = condition;
        if (!peek_end()) fail();
        return rule;
    }

  private:
    [[noreturn]] void fail() const {
        throw state_error("mindir", str("the rule '", text_, "' is wrong at '", rest_, "'"));
    }
    void spaces() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
    }
    bool peek_end() {
        spaces();
        return rest_.empty();
    }
    bool accept(char c) {
        spaces();
        if (rest_.empty() || rest_[0] != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail();
    }
    std::string word() {
        spaces();
        size_t n = 0;
        while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_')) ++n;
        if (n == 0) fail();
        std::string w(rest_.substr(0, n));
        rest_.remove_prefix(n);
        return w;
    }

    Term literal(Value v) {
        Term t;
        t.kind = Term::Kind::literal;
        t.value = std::move(v);
        return t;
    }
    Term number() {
        double d = 0;
        const char* end = rest_.data() + rest_.size();
        const auto [stop, code] = std::from_chars(rest_.data(), end, d);
        if (code != std::errc()) fail();
        const std::string_view digits(rest_.data(), static_cast<size_t>(stop - rest_.data()));
        rest_.remove_prefix(digits.size());
        if (digits.find('.') == digits.npos) return literal(Value(static_cast<int64_t>(d)));
        return literal(Value(d));
    }
    void arguments(Term& t, char end) {
        if (accept(end)) return;
        bool attributes = false;
        do {
            Term item;
            if (attributes) {
                const std::string name = word();
                expect('=');
                t.attributes.push_back({name, term()});
            } else {
                t.items.push_back(term());
                if (accept(';')) {
                    attributes = true;
                    const std::string name = word();
                    expect('=');
                    t.attributes.push_back({name, term()});
                }
            }
        } while (accept(','));
        expect(end);
    }

    Term term() {
        spaces();
        if (rest_.empty()) fail();
        Term t;
        if (accept('"')) {
            const size_t end = rest_.find('"');
            if (end == rest_.npos) fail();
            t = literal(Value(rest_.substr(0, end)));
            rest_.remove_prefix(end + 1);
            return t;
        }
        if (accept('[')) {
            t.kind = Term::Kind::tuple;
            arguments(t, ']');
            return t;
        }
        if (accept('#')) {
            t.kind = Term::Kind::tensor;
            t.items.push_back(term());
            return t;
        }
        if (rest_[0] == '-' || std::isdigit(static_cast<unsigned char>(rest_[0]))) return number();
        t.kind = accept('@') ? Term::Kind::function : Term::Kind::variable;
        t.name = word();
        if (t.kind == Term::Kind::variable) {
            if (t.name == "true" || t.name == "false") return literal(Value(t.name == "true"));
            if (t.name == "nil") return literal(Value());
            if (t.name == "_") return Term();
            if (accept('(')) {
                t.kind = Term::Kind::call;
                arguments(t, ')');
                if (accept('.')) t.result = static_cast<int>(number().value.integer());
            }
            t.may_be_nil = accept('?');
            return t;
        }
        expect('(');
        arguments(t, ')');
        return t;
    }

    std::string_view text_, rest_;
};

int rank_of(const Bindings& b, std::string_view name) { return b.shape(name).rank(); }

bool is_matrices(const Bindings& b) { return rank_of(b, "a") == 2 && rank_of(b, "b") == 2; }
bool is_batches(const Bindings& b) {
    const Shape p = b.shape("a"), q = b.shape("b");
    if (p.rank() != q.rank() || p.rank() < 3) return false;
    for (int i = 0; i < p.rank() - 2; ++i)
        if (p[i] != q[i]) return false;
    return true;
}
bool is_truth(const Bindings& b) { return b.dtype("x") == DType::boolean; }
bool is_images(const Bindings& b) { return rank_of(b, "x") == 4; }
bool is_batch(const Bindings& b) { return rank_of(b, "x") == 4 || rank_of(b, "x") == 2; }
bool has_bound(const Bindings& b) { return b["a"].is_number() && b["a"].number() <= 1; }
bool is_one(const Bindings& b) { return b["a"].is_number() && b["a"].number() == 1; }
bool is_known_size(const Bindings& b) {
    for (const Value& v : list_of(b["n"]))
        if (v.kind() != Value::Kind::integer || v.integer() < 1) return false;
    return rank_of(b, "x") == 4;
}
// Numbers for all axes: MindSpore's Tile takes no fewer.
bool is_for_all(const Bindings& b) { return static_cast<int>(list_of(b["r"]).size()) >= rank_of(b, "x"); }
bool is_list(const Bindings& b) { return b["n"].is_list(); }
bool is_one_axis(const Bindings& b) { return b["n"].is_list() == false; }
// Operands and results of one dtype, as in MindSpore's reductions.
bool keeps_dtype(const Bindings& b) {
    return b.result->kind == ir::NodeType::Kind::tensor && b.result->tensor.dtype == b.dtype("x");
}
bool is_f32_attention(const Bindings& b) { return b.dtype("q") == DType::f32 && b["s"].is_number(); }

struct Text {
    const char* rule;
    Condition condition = nullptr;
    bool on_reading = false;  // the condition holds for files too: it only looks at numbers
};

// When writing, the first rule whose left side matches is used; when reading, the first whose right side matches.
const Text kRules[] = {
    {"dense(x, w, b?) = Dense(x, w, b?)"},
    {"matmul(a, b) = MatMul(a, b, false, false)", is_matrices},
    {"matmul(a, b) = BatchMatMul(a, b, false, false)", is_batches},
    {"matmul(a, b) = MatMulExt(a, b)"},
    {"bmm(a, b) = BatchMatMul(a, b, false, false)", is_batches},
    {"attention(q, k, v, s, false, 0) = "
     "BatchMatMul(Softmax(Mul(BatchMatMul(q, k, false, true), #s), [-1]), v, false, false)",
     is_f32_attention},
    {"attention(q, k, v, s, true, t) = BatchMatMul(Softmax(Add(Mul(BatchMatMul(q, k, false, true), #s), "
     "@causal(t, q, k)), [-1]), v, false, false)",
     is_f32_attention},

    {"conv2d(x, w, nil, s, m, p, d, g) = Conv2D(x, w; kernel_size = @tail(w, 2), mode = 1, out_channel = @size(w, 0), "
     "pad_mode = m, pad = @edges(p), pad_list = @edges(p), format = \"NCHW\", group = g, groups = g, "
     "stride = @quad(s), dilation = @quad(d))"},
    {"conv2d(x, w, b, s, m, p, d, g) = BiasAdd(Conv2D(x, w; kernel_size = @tail(w, 2), mode = 1, "
     "out_channel = @size(w, 0), pad_mode = m, pad = @edges(p), pad_list = @edges(p), format = \"NCHW\", group = g, "
     "groups = g, stride = @quad(s), dilation = @quad(d)), b, 0)"},
    {"conv_transpose2d(x, w, nil, s, p, o, g, d) = Conv2DBackpropInput(x, w, @result(); kernel_size = @tail(w, 2), "
     "mode = 1, out_channel = @size(w, 0), pad_mode = \"pad\", pad = @edges(p), pad_list = @edges(p), "
     "format = \"NCHW\", group = g, groups = g, stride = @quad(s), dilation = @quad(d), output_padding = @pair(o))"},
    {"conv_transpose2d(x, w, b, s, p, o, g, d) = BiasAdd(Conv2DBackpropInput(x, w, @result(); "
     "kernel_size = @tail(w, 2), mode = 1, out_channel = @size(w, 0), pad_mode = \"pad\", pad = @edges(p), "
     "pad_list = @edges(p), format = \"NCHW\", group = g, groups = g, stride = @quad(s), dilation = @quad(d), "
     "output_padding = @pair(o)), b, 0)"},
    {"max_pool2d(x, k, s, 0, 1) = MaxPool(x; kernel_size = @quad(k), strides = @quad(s), pad_mode = \"VALID\", "
     "format = \"NCHW\")",
     is_images},
    {"max_pool2d(x, k, nil, 0, 1) = MaxPool(x; kernel_size = @quad(k), strides = @quad(k), pad_mode = \"VALID\", "
     "format = \"NCHW\")",
     is_images},
    {"max_pool2d(x, k, s, p, d, false, c) = MaxPoolWithArgmaxV2(x; kernel_size = @quad(k), strides = @quad(s), "
     "pads = @quad(p), dilation = @quad(d), ceil_mode = c, argmax_type = 4).0",
     is_images},
    {"max_pool2d(x, k, nil, p, d, false, c) = MaxPoolWithArgmaxV2(x; kernel_size = @quad(k), strides = @quad(k), "
     "pads = @quad(p), dilation = @quad(d), ceil_mode = c, argmax_type = 4).0",
     is_images},
    {"avg_pool2d(x, k, s, 0) = AvgPool(x, @pair(k), @pair(s), 2, 0)", is_images},
    {"avg_pool2d(x, k, nil, 0) = AvgPool(x, @pair(k), @pair(k), 2, 0)", is_images},
    {"adaptive_avg_pool2d(x, n) = AdaptiveAvgPool2D(x; output_size = @pair(n))", is_known_size},

    {"batch_norm(x, m, v, g, b, false, _, e) = BatchNorm(x, g, b, m, v, false, e, 0.1, 0).0", is_batch},
    {"layer_norm(x, @shape(g), g, b, e) = LayerNorm(x, g, b, @behind(g), @behind(g), e).0"},
    {"group_norm(x, n, g, b, e) = GroupNorm(x, n, g, b, e).0", is_images},
    {"softmax(x, a) = Softmax(x, [a])"},
    {"log_softmax(x, a) = LogSoftmax(x, a)"},

    {"relu(x) = ReLU(x)"},
    {"relu6(x) = ReLU6(x)"},
    {"leaky_relu(x, a) = Maximum(Mul(x, #a), x)", has_bound, true},
    {"elu(x, a) = Elu(x, a)", is_one, true},
    {"sigmoid(x) = Sigmoid(x)"},
    {"tanh(x) = Tanh(x)"},
    {"silu(x) = SiLU(x)"},
    {"mish(x) = Mish(x)"},
    {"selu(x) = SeLU(x)"},
    {"hardswish(x) = HSwish(x)"},
    {"hardsigmoid(x) = HSigmoid(x)"},
    {"softplus(x) = Softplus(x)"},
    {"gelu_tanh(x) = GeLU(x)"},
    {"gelu_erf(x) = Mul(Mul(x, Add(Erf(Div(x, #1.4142135623730951)), #1.0)), #0.5)"},
    {"exp(x) = Exp(x)"},
    {"expm1(x) = Expm1(x)"},
    {"log(x) = Log(x)"},
    {"log1p(x) = Log1p(x)"},
    {"sqrt(x) = Sqrt(x)"},
    {"rsqrt(x) = Rsqrt(x)"},
    {"square(x) = Square(x)"},
    {"reciprocal(x) = Reciprocal(x)"},
    {"abs(x) = Abs(x)"},
    {"neg(x) = Neg(x)"},
    {"sign(x) = Sign(x)"},
    {"floor(x) = Floor(x)"},
    {"ceil(x) = Ceil(x)"},
    {"sin(x) = Sin(x)"},
    {"cos(x) = Cos(x)"},
    {"tan(x) = Tan(x)"},
    {"atan(x) = Atan(x)"},
    {"sinh(x) = Sinh(x)"},
    {"cosh(x) = Cosh(x)"},
    {"asinh(x) = Asinh(x)"},
    {"erf(x) = Erf(x)"},
    {"erfc(x) = Erfc(x)"},
    {"isnan(x) = IsNan(x)"},
    {"isfinite(x) = IsFinite(x)"},

    {"add(a, b) = Add(a, b)"},
    {"sub(a, b) = Sub(a, b)"},
    {"mul(a, b) = Mul(a, b)"},
    {"div(a, b) = Div(a, b)"},
    {"div(a, b) = RealDiv(a, b)"},
    {"pow(a, b) = Pow(a, b)"},
    {"floor_divide(a, b) = FloorDiv(a, b)"},
    {"remainder(a, b) = FloorMod(a, b)"},
    {"maximum(a, b) = Maximum(a, b)"},
    {"minimum(a, b) = Minimum(a, b)"},
    {"atan2(a, b) = Atan2(a, b)"},
    {"equal(a, b) = Equal(a, b)"},
    {"not_equal(a, b) = NotEqual(a, b)"},
    {"greater(a, b) = Greater(a, b)"},
    {"greater_equal(a, b) = GreaterEqual(a, b)"},
    {"less(a, b) = Less(a, b)"},
    {"less_equal(a, b) = LessEqual(a, b)"},
    {"logical_and(a, b) = LogicalAnd(a, b)"},
    {"logical_or(a, b) = LogicalOr(a, b)"},
    {"logical_not(x) = LogicalNot(x)"},
    {"where(c, a, b) = Select(c, a, b)"},
    {"masked_fill(x, m, v) = MaskedFill(x, m, v)"},
    {"clamp(x, a, b) = Minimum(Maximum(x, a), b)"},
    {"clamp(x, a, nil) = Maximum(x, a)"},
    {"clamp(x, nil, b) = Minimum(x, b)"},

    {"sum(x, nil, k) = ReduceSum(x, [], k, false)", keeps_dtype},
    {"sum(x, a, k) = ReduceSum(x, @list(a), k, false)", keeps_dtype},
    {"mean(x, nil, k) = ReduceMean(x, [], k)", keeps_dtype},
    {"mean(x, a, k) = ReduceMean(x, @list(a), k)", keeps_dtype},
    {"prod(x, nil, k) = ReduceProd(x, [], k)", keeps_dtype},
    {"prod(x, a, k) = ReduceProd(x, @list(a), k)", keeps_dtype},
    {"amax(x, nil, k) = ReduceMax(x, [], k)"},
    {"amax(x, a, k) = ReduceMax(x, @list(a), k)"},
    {"amin(x, nil, k) = ReduceMin(x, [], k)"},
    {"amin(x, a, k) = ReduceMin(x, @list(a), k)"},
    {"max(x, nil, k) = ReduceMax(x, [], k)"},
    {"min(x, nil, k) = ReduceMin(x, [], k)"},
    {"all(x, nil, k) = ReduceAll(x, [], k)", is_truth},
    {"all(x, a, k) = ReduceAll(x, @list(a), k)", is_truth},
    {"any(x, nil, k) = ReduceAny(x, [], k)", is_truth},
    {"any(x, a, k) = ReduceAny(x, @list(a), k)", is_truth},
    {"argmax(x, a, false) = Argmax(x, a, 35)"},
    {"vector_norm(x, 2, a, k) = Sqrt(ReduceSum(Square(x), @list(a), k, false))", keeps_dtype},
    {"cumsum(x, a, nil, e, r) = CumSum(x, a, e, r)", keeps_dtype},

    {"cast(x, t) = Cast(x, @dtype(t))"},
    {"reshape(x, s) = Reshape(x, @list(s))"},
    {"transpose(x, p) = Transpose(x, @list(p))"},
    {"transpose(x, nil) = Transpose(x, @reversed(x))"},
    {"transpose(x, a, b) = Transpose(x, @swapped(x, a, b))"},
    {"permute(x, p) = Transpose(x, @list(p))"},
    {"swapaxes(x, a, b) = Transpose(x, @swapped(x, a, b))"},
    {"expand_dims(x, a) = ExpandDims(x, a)"},
    {"squeeze(x, nil) = Squeeze(x, [])"},
    {"squeeze(x, a) = Squeeze(x, @list(a))"},
    {"broadcast_to(x, s) = BroadcastTo(x, @list(s))"},
    {"tile(x, r) = Tile(x, @list(r))", is_for_all},
    {"concat(l, a) = Concat(l, a)"},
    {"stack(l, a) = Stack(l; axis = a)"},
    {"split(x, n, a) = SplitWithSize(x, @list(n), a)", is_list},
    {"split(x, n, a) = SplitWithSize(x, @parts(a), a)", is_one_axis},
    {"chunk(x, n, a) = SplitWithSize(x, @parts(a), a)"},
    {"unbind(x, a) = Unstack(x; axis = a, num = @size(x, a))"},
    {"gather(x, i, a) = Gather(x, i, a, 0)"},
    {"gather_elements(x, a, i) = GatherD(x, a, i)"},
    {"slice(x, b, s) = Slice(x, @list(b), @list(s))"},
    {"narrow(x, a, b, n) = Slice(x, @begin(x, a, b), @result())"},
    {"strided_slice(x, b, e, s, m, n, l, w, r) = StridedSlice(x, @list(b), @list(e), @list(s), m, n, l, w, r)"},
    {"strided_slice(x, b, e, nil, m, n, l, w, r) = StridedSlice(x, @list(b), @list(e), @ones(b), m, n, l, w, r)"},
    {"flip(x, a) = ReverseV2(x, @list(a))"},
    {"triu(x, d) = Triu(x, d)"},
    {"tril(x, d) = Tril(x; diagonal = d)"},
    {"pad(x, p, \"constant\", v) = ConstantPadND(x, @list(p), v)"},
    {"identity(x) = x"},
    {"stop_gradient(x) = x"},
};

// Primitives that MindSpore creates in Python; all others come from its list of operators.
constexpr std::string_view kOfPython[] = {"Conv2D",
                                          "Conv2DBackpropInput",
                                          "MaxPool",
                                          "MaxPoolWithArgmaxV2",
                                          "AdaptiveAvgPool2D",
                                          "Mish",
                                          "SeLU",
                                          "Softplus",
                                          "Stack",
                                          "Unstack",
                                          "Tril",
                                          "MakeTuple",
                                          "TupleGetItem",
                                          "Switch",
                                          "Partial",
                                          "IsNan",
                                          "Reciprocal"};

}  // namespace

const Value& Bindings::operator[](std::string_view name) const {
    const auto found = values.find(name);
    if (found == values.end()) throw state_error("mindir", str("a rule has no variable '", name, "'"));
    return found->second;
}

Shape Bindings::shape(std::string_view name) const { return shape_of((*this)[name]); }
DType Bindings::dtype(std::string_view name) const { return type_of((*this)[name]).dtype; }

const std::vector<Rule>& rules() {
    static const std::vector<Rule> list = [] {
        std::vector<Rule> made;
        for (const Text& t : kRules) {
            made.push_back(RuleParser(t.rule).parse(t.condition));
            made.back().condition_on_reading = t.on_reading;
        }
        return made;
    }();
    return list;
}

bool Rule::is_nested() const {
    const auto nested = [](const auto& self, const Term& t) -> bool {
        if (t.kind == Term::Kind::call) return true;
        return std::ranges::any_of(t.items, [&](const Term& item) { return self(self, item); });
    };
    return std::ranges::any_of(theirs.items, [&](const Term& t) { return nested(nested, t); });
}

Value computed(const Term& function, const Bindings& bindings) {
    Values args;
    for (const Term& t : function.items) args.push_back(t.kind == Term::Kind::literal ? t.value : bindings[t.name]);
    return function_of(function.name).forward(args, bindings);
}

std::optional<Taken> taken_back(const Term& function, const Value& value) {
    const Function& f = function_of(function.name);
    std::optional<Value> v = f.back ? f.back(value) : std::nullopt;
    if (!v) return std::nullopt;
    return Taken{function.items.at(0).name, std::move(*v)};
}

bool is_told_by_others(const Term& function) { return !function_of(function.name).back; }

int primitive_type(std::string_view name) { return std::ranges::find(kOfPython, name) == std::end(kOfPython) ? 2 : 1; }

bool is_same_setting(const Value& a, const Value& b) {
    if (a.is_list() || b.is_list()) {
        Values p = list_of(a), q = list_of(b);
        // A single number means that number for each axis.
        if (!a.is_list()) p.resize(q.size(), a);
        if (!b.is_list()) q.resize(p.size(), b);
        if (p.size() != q.size() || p.empty() != q.empty()) return false;
        for (size_t i = 0; i < p.size(); ++i)
            if (!is_same_setting(p[i], q[i])) return false;
        return true;
    }
    // MindSpore keeps numbers as float32.
    if (a.is_number() && b.is_number())
        return a.number() == b.number() || static_cast<float>(a.number()) == static_cast<float>(b.number());
    const auto truth = [](const Value& v) { return v.kind() == Value::Kind::boolean; };
    if (truth(a) || truth(b))
        return (truth(a) || a.kind() == Value::Kind::integer) && (truth(b) || b.kind() == Value::Kind::integer) &&
               a.integer() == b.integer();
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::string:
            return a.string() == b.string();
        case Value::Kind::dtype:
            return a.dtype() == b.dtype();
        case Value::Kind::node:
            return a.node() == b.node();
        default:
            return false;
    }
}

}  // namespace lunaria::mindir
