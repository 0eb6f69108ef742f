#include "backends/gpu/writer.h"

#include <cassert>
#include <utility>

#include "core/loops/thread_loop.h"

namespace lunaria::gpu {

namespace {

using Kind = graph::ThreadInstruction::Kind;

constexpr uint8_t kNearAlign = 16;

Writer*& slot() {
    static thread_local Writer* current = nullptr;
    return current;
}

Number binary(Kind kind, Number a, Number b) {
    assert(a.dtype == b.dtype);
    return Writer::current().add(kind, a.dtype, {a.at, b.at});
}
Number compare(Kind kind, Number a, Number b) {
    assert(a.dtype == b.dtype);
    return Writer::current().add(kind, DType::boolean, {a.at, b.at});
}

// Over the threads of a warp.
Number warp_sum(Number v) {
    for (int bits = graph::kWarp / 2; bits >= 1; bits /= 2) v += Writer::current().exchange(v, bits);
    return v;
}

}  // namespace

Writer::Writer(bool narrow, int threads)
    : index_(narrow ? DType::i32 : DType::i64), threads_(threads), outer_(std::exchange(slot(), this)) {}
Writer::~Writer() { slot() = outer_; }
Writer& Writer::current() {
    assert(slot());
    return *slot();
}
graph::ThreadProgram Writer::finish() {
    program_.threads = threads_;
    return std::move(program_);
}

Number Writer::add(Kind kind, DType dtype, std::initializer_list<uint32_t> args, int64_t integer) {
    program_.code.push_back({.kind = kind, .dtype = dtype, .args = args, .integer = integer});
    return {static_cast<uint32_t>(program_.code.size() - 1), dtype};
}
Number Writer::formula(std::string_view name, DType result, std::initializer_list<Number> args) {
    const Number v = add(Kind::formula, result, {});
    program_.code.back().name = name;
    for (Number a : args) program_.code.back().args.push_back(a.at);
    return v;
}
Number Writer::add_aligned_load(const Near& from, Number i) {
    const Number v = add(Kind::near_load, from.dtype, {i.at}, from.start);
    program_.code.back().align = kNearAlign;
    return v;
}
Number Writer::index(Kind kind) { return cast(add(kind, DType::i32, {}), index_); }

Number Writer::word() { return add(Kind::word, DType::i64, {}, static_cast<int64_t>(program_.words++)); }
Elements Writer::tensor(DType dtype) { return {word(), dtype}; }
Number Writer::size() { return cast(word(), index_); }
Number Writer::real(DType dtype) { return cast(bits(word(), DType::f64), dtype); }

Number Writer::constant(DType dtype, double number, int64_t integer) {
    const Number v = add(Kind::constant, dtype, {}, integer);
    if (is_float(dtype) || dtype == DType::boolean) {
        program_.code.back().number = number;
        program_.code.back().integer = 0;
    }
    return v;
}
Near Writer::near(DType dtype, int64_t count) {
    const size_t start = program_.near_bytes;
    program_.near_bytes += (static_cast<size_t>(count) * size_of(dtype) + kNearAlign - 1) / kNearAlign * kNearAlign;
    return {static_cast<int64_t>(start), dtype};
}
void Writer::barrier() { add(Kind::barrier, index_, {}); }
Number Writer::exchange(Number v, int bits) { return add(Kind::exchange, v.dtype, {v.at}, bits); }
Variable Writer::variable(Number first) {
    const Number v = add(Kind::variable, first.dtype, {first.at});
    return {v.at, v.dtype};
}

Writer::Fragment Writer::fragment(const Near& from, Number first, int pitch, bool turned) {
    std::array<Variable, 4> parts;
    for (Variable& part : parts) part = variable(constant(DType::i32, 0, 0));
    add(Kind::fragment, DType::i32, {first.at, parts[0].at, parts[1].at, parts[2].at, parts[3].at}, from.start);
    program_.code.back().number = pitch;
    if (turned) program_.code.back().name = "turned";
    return {parts[0].get(), parts[1].get(), parts[2].get(), parts[3].get()};
}
void Writer::multiply(DType dtype, const Fragment& a, Number b_upper, Number b_lower,
                      std::span<const Variable, 4> sums) {
    add(Kind::product, dtype,
        {a[0].at, a[1].at, a[2].at, a[3].at, b_upper.at, b_lower.at, sums[0].at, sums[1].at, sums[2].at, sums[3].at});
}
Number Writer::pair(Number low, Number high, DType dtype) {
    return add(Kind::pair, DType::i32, {low.at, high.at}, dtype == DType::bf16);
}

Number Variable::get() const { return Writer::current().add(Kind::get, dtype, {at}); }
void Variable::set(Number v) const { Writer::current().add(Kind::set, dtype, {at, v.at}); }
Number Near::get(Number i) const { return Writer::current().add(Kind::near_load, dtype, {i.at}, start); }
Number Near::get_aligned(Number i) const { return Writer::current().add_aligned_load(*this, i); }
void Near::set(Number i, Number v) const { Writer::current().add(Kind::near_store, dtype, {i.at, v.at}, start); }
Number Elements::get(Number i) const { return Writer::current().add(Kind::load, dtype, {address.at, i.at}); }
void Elements::set(Number i, Number v) const { Writer::current().add(Kind::store, dtype, {address.at, i.at, v.at}); }
void Elements::add(Number i, Number v) const { Writer::current().add(Kind::add_to, dtype, {address.at, i.at, v.at}); }
void Elements::raise(Number i, Number v) const {
    Writer::current().add(Kind::raise_to, dtype, {address.at, i.at, v.at});
}

Number cast(Number v, DType to) { return v.dtype == to ? v : Writer::current().add(Kind::cast, to, {v.at}); }
Number quotient(Number a, Number b) { return binary(Kind::quotient, a, b); }
Number remainder(Number a, Number b) { return binary(Kind::remainder, a, b); }
Number select(Number condition, Number a, Number b) {
    assert(a.dtype == b.dtype);
    return Writer::current().add(Kind::select, a.dtype, {condition.at, a.at, b.at});
}
Number widen(Number v) { return Writer::current().add(Kind::widen, DType::i64, {v.at}); }
Number bits(Number v, DType to) { return Writer::current().add(Kind::bits, to, {v.at}); }
Number shift_left(Number v, int64_t count) { return binary(Kind::shift_left, v, like(v, count)); }
Number shift_right(Number v, int64_t count) { return binary(Kind::shift_right, v, like(v, count)); }
Number formula(std::string_view name, Number a) { return Writer::current().formula(name, a.dtype, {a}); }
Number formula(std::string_view name, Number a, Number b) { return Writer::current().formula(name, a.dtype, {a, b}); }

Number operator+(Number a, Number b) { return binary(Kind::add, a, b); }
Number operator-(Number a, Number b) { return binary(Kind::sub, a, b); }
Number operator*(Number a, Number b) { return binary(Kind::mul, a, b); }
Number operator/(Number a, Number b) { return binary(Kind::div, a, b); }
Number operator&(Number a, Number b) { return binary(Kind::bit_and, a, b); }
Number operator|(Number a, Number b) { return binary(Kind::bit_or, a, b); }
Number operator^(Number a, Number b) { return binary(Kind::bit_xor, a, b); }
Number operator<(Number a, Number b) { return compare(Kind::less, a, b); }
Number operator==(Number a, Number b) { return compare(Kind::equal, a, b); }
Number operator!(Number a) { return a ^ Writer::current().constant(DType::boolean, 1, 1); }

Number block_sum(Number v, const Near& memory) {
    Writer& w = Writer::current();
    v = warp_sum(v);
    const Number lane = remainder(w.thread(), graph::kWarp), warp = quotient(w.thread(), graph::kWarp);
    w.when(lane == 0, [&] { memory.set(warp, v); });
    w.barrier();
    const Variable part = w.variable(like(v, 0));
    w.when(lane < quotient(w.threads(), graph::kWarp), [&] { part.set(memory.get(lane)); });
    // The memory is free again once all threads have read it.
    w.barrier();
    return warp_sum(part.get());
}

}  // namespace lunaria::gpu
