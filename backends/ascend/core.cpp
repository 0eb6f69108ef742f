#include "backends/ascend/core.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace lunaria::ascend {

namespace {

constexpr size_t kMostFaults = 64;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t cycles_of(double bytes, double rate) { return static_cast<int64_t>(std::ceil(bytes / rate)); }

void join(Clock& into, const Clock& other) {
    for (size_t p = 0; p < kPipes; ++p) into[p] = std::max(into[p], other[p]);
}

bool is_transfer(Pipe pipe) { return pipe == Pipe::mte2 || pipe == Pipe::mte3; }

}  // namespace

GlobalTensor::GlobalTensor(std::string name, uint8_t* data, int64_t bytes, bool written)
    : name(std::move(name)),
      memory(data ? bytes : 0, data, written),
      writers(static_cast<size_t>(data ? divide_up(bytes, Memory::kBlock) : 0), -1),
      readers(writers.size(), -1),
      lines(static_cast<size_t>(divide_up(bytes, 512)), 0) {}

Core::Core(const CoreSettings& settings, std::vector<GlobalTensor>& tensors, Cache& cache)
    : settings_(settings), tensors_(tensors), cache_(cache) {
    // The queues keep the times of so many instructions.
    settings_.queue = std::min(settings_.queue, Recent::kMost - 1);
    settings_.transfers = std::min(settings_.transfers, Recent::kMost - 1);
    for (int64_t bytes : settings.bytes) buffers_.push_back(std::make_unique<Memory>(bytes));
}

CoreResult Core::run(const Program& program, int block) {
    program_ = &program;
    block_ = block;
    result_ = {};
    if (settings_.compute) {
        for (auto& buffer : buffers_) buffer->forget();
        for (auto& tensor : tensors_) tensor.memory.forget_accesses();
    }
    queues_ = {};
    flags_ = {};
    registers_ = {};
    dispatched_ = 0;
    transferred_ = 0;
    stopped_ = false;
    for (size_t i = 0; i < program.code.size() && !stopped_; ++i) dispatch(i);
    for (size_t p = 0; p < kPipes; ++p) {
        Queue& queue = queues_[p];
        if (!queue.aside.empty() && !stopped_) {
            current_ = queue.aside.front().index;
            fault("deadlock", str("the pipe ", name_of(static_cast<Pipe>(p)), " waits for a flag that is never set"));
        }
        result_.cycles = std::max({result_.cycles, queue.done, queue.free});
    }
    for (size_t from = 0; from < kPipes && !stopped_; ++from)
        for (size_t to = 0; to < kPipes; ++to)
            for (size_t id = 0; id < 16; ++id)
                if (!flags_[from][to][id].empty()) {
                    current_ = program.code.empty() ? 0 : program.code.size() - 1;
                    fault("flag", str("at the end the flag ", id, " from ", name_of(static_cast<Pipe>(from)), " to ",
                                      name_of(static_cast<Pipe>(to)),
                                      " is set and no wait_flag took it: the next kernel on "
                                      "this core would find it"));
                }
    result_.cycles = std::max(result_.cycles, dispatched_);
    // Both directions together cannot be faster than the core's share of the channel.
    if (transferred_ > 0)
        result_.cycles = std::max(result_.cycles, settings_.gm_read_head + cycles_of(transferred_, settings_.channel));
    return std::move(result_);
}

void Core::fault(const char* kind, std::string text) {
    const Instruction& i = program_->code[current_];
    if (result_.faults.size() < kMostFaults) {
        const auto place = static_cast<size_t>(i.place);
        result_.faults.push_back({kind, std::move(text), block_, current_,
                                  place < program_->places.size() ? program_->places[place] : std::string()});
    }
    if (result_.faults.size() >= kMostFaults) stopped_ = true;
}

Memory& Core::memory(const Operand& o) {
    if (o.space == Space::gm) return tensors_[static_cast<size_t>(o.tensor)].memory;
    return *buffers_[static_cast<size_t>(o.space)];
}

Core::Flag* Core::flag_of(const Instruction& i) {
    auto& set = flags_[static_cast<size_t>(i.n[0])][static_cast<size_t>(i.n[1])][static_cast<size_t>(i.n[2])];
    return set.empty() ? nullptr : &set.front();
}

bool Core::is_blocked(const Instruction& i) const {
    return i.op == Opcode::wait_flag &&
           flags_[static_cast<size_t>(i.n[0])][static_cast<size_t>(i.n[1])][static_cast<size_t>(i.n[2])].empty();
}

// The scalar unit reads the program and hands instructions to their pipes. It stands still while a queue is full, while
// it waits itself, and at barriers of all pipes.
void Core::dispatch(size_t index) {
    const Instruction& i = program_->code[index];
    current_ = index;
    Queue& queue = queues_[static_cast<size_t>(i.pipe)];
    if (i.op == Opcode::barrier && i.n[0] < 0) {
        Clock all{};
        for (Queue& q : queues_) {
            if (!q.aside.empty()) {
                fault("deadlock", str("a barrier of all pipes stands before the flag that the pipe ",
                                      name_of(program_->code[q.aside.front().index].pipe), " waits for"));
                stopped_ = true;
                return;
            }
            dispatched_ = std::max({dispatched_, q.done, q.free});
            join(all, q.clock);
        }
        for (Queue& q : queues_) q.clock = all, q.free = std::max(q.free, dispatched_);
        ++dispatched_;
        ++result_.instructions[static_cast<size_t>(Pipe::s)];
        return;
    }
    if (static_cast<int64_t>(queue.aside.size()) >= settings_.queue ||
        (i.pipe == Pipe::s && (is_blocked(i) || !queue.aside.empty()))) {
        if (i.pipe != Pipe::s) current_ = queue.aside.front().index;
        fault("deadlock", i.pipe == Pipe::s ? "the scalar unit waits for a flag that nothing before sets"
                                            : "the queue is full and its first instruction waits for a flag that "
                                              "nothing before sets");
        stopped_ = true;
        return;
    }
    if (queue.starts.size() >= settings_.queue && queue.aside.empty())
        dispatched_ = std::max(dispatched_, queue.starts.front());
    dispatched_ += settings_.issue;
    const bool reads_register = i.reg >= 0 && i.op != Opcode::scalar_load && i.op != Opcode::scalar_op;
    Waiting waiting{index, dispatched_, queues_[static_cast<size_t>(Pipe::s)].clock,
                    reads_register ? registers_[static_cast<size_t>(i.reg)] : i.number};
    if (!queue.aside.empty() || is_blocked(i)) {
        queue.aside.push_back(waiting);
        return;
    }
    carry_out(waiting);
}

// Carries out the instructions that were deferred until a flag that is set now.
void Core::release(Pipe pipe) {
    Queue& queue = queues_[static_cast<size_t>(pipe)];
    while (!queue.aside.empty() && !stopped_ && !is_blocked(program_->code[queue.aside.front().index])) {
        const Waiting next = queue.aside.front();
        queue.aside.pop_front();
        carry_out(next);
    }
}

// The instruction with the addresses computed from its register.
const Instruction& Core::resolve(const Waiting& w, Instruction& moved) const {
    const Instruction& i = program_->code[w.index];
    if (i.op != Opcode::move || i.reg < 0) return i;
    moved = i;
    Operand& outside = i.a.space == Space::gm ? moved.a : moved.dst;
    const double address = static_cast<double>(outside.address) + static_cast<double>(w.number) * i.n[4];
    constexpr auto kMost = static_cast<double>(kMostAddress - 1);
    outside.address = static_cast<int64_t>(std::isnan(address) ? kMost : std::clamp(address, -kMost, kMost));
    return moved;
}

void Core::carry_out(const Waiting& w) {
    Instruction moved;
    const Instruction& i = resolve(w, moved);
    const size_t before = current_;
    current_ = w.index;
    const auto p = static_cast<size_t>(i.pipe);
    Queue& queue = queues_[p];
    int64_t start = std::max(w.issued + settings_.decode, queue.free);
    ++queue.clock[p];
    join(queue.clock, w.after);
    ++result_.instructions[p];
    if (i.op == Opcode::set_flag || i.op == Opcode::wait_flag || i.op == Opcode::barrier) {
        synchronise(i, start, queue);
    } else {
        clock_ = queue.clock;
        if (is_transfer(i.pipe)) {
            if (queue.ends.size() >= settings_.transfers) {
                start = std::max(start, queue.ends.front());
                queue.ends.pop_front();
            }
        }
        if (settings_.compute) access(i, w);
        int64_t latency = 0;
        const int64_t busy = duration(i, latency);
        queue.free = start + busy;
        queue.done = std::max(queue.done, start + busy + latency);
        result_.busy[p] += busy;
        if (is_transfer(i.pipe)) queue.ends.push_back(queue.done);
        if (i.pipe == Pipe::s) dispatched_ = std::max(dispatched_, queue.free);
        if (static_cast<int64_t>(result_.trace.size()) < settings_.trace_limit)
            result_.trace.push_back({static_cast<uint32_t>(w.index), i.pipe, start, start + busy + latency});
    }
    queue.starts.push_back(start);
    if (queue.starts.size() > settings_.queue) queue.starts.pop_front();
    if (i.op == Opcode::set_flag) release(static_cast<Pipe>(i.n[1]));
    current_ = before;
}

void Core::synchronise(const Instruction& i, int64_t start, Queue& queue) {
    if (i.op == Opcode::set_flag) {
        auto& set = flags_[static_cast<size_t>(i.n[0])][static_cast<size_t>(i.n[1])][static_cast<size_t>(i.n[2])];
        if (!set.empty())
            fault("flag", str("the flag ", i.n[2], " from ", name_of(static_cast<Pipe>(i.n[0])), " to ",
                              name_of(static_cast<Pipe>(i.n[1])), " is set again before wait_flag took it"));
        set.push_back({std::max(start, queue.done) + 1, queue.clock});
        queue.free = start + 1;
        return;
    }
    if (i.op == Opcode::wait_flag) {
        Flag* flag = flag_of(i);
        start = std::max(start, flag->time);
        join(queue.clock, flag->clock);
        auto& set = flags_[static_cast<size_t>(i.n[0])][static_cast<size_t>(i.n[1])][static_cast<size_t>(i.n[2])];
        set.erase(set.begin());
        queue.free = start + 1;
        if (i.pipe == Pipe::s) dispatched_ = std::max(dispatched_, queue.free);
        return;
    }
    queue.free = std::max(start, queue.done) + 1;
}

int64_t Core::duration(const Instruction& i, int64_t& latency) {
    const auto fractals = static_cast<double>(i.n[0]);
    switch (i.op) {
        case Opcode::move:
            return move_duration(i, latency);
        case Opcode::load2d: {
            const double rate = i.dst.space == Space::l0a ? settings_.l1_to_l0a : settings_.l1_to_l0b;
            latency = settings_.move_head;
            return cycles_of(fractals * 512 * (i.n[3] ? 2 : 1), rate);
        }
        case Opcode::load3d: {
            const Window& n = window(i);
            const double count = double(n[kRowFractals]) * n[kStepFractals];
            const bool strided = n[kStrideH] > 1 || n[kStrideW] > 1;
            const double rate = i.dst.space == Space::l0a ? settings_.l1_to_l0a : settings_.l1_to_l0b;
            latency = settings_.move_head;
            return cycles_of(count * 512, rate) + (strided ? static_cast<int64_t>(count) : 0);
        }
        case Opcode::mmad: {
            latency = settings_.cube_head;
            return divide_up(i.n[0], 16) * divide_up(i.n[1], i.type == DType::i8 ? 32 : 16) * divide_up(i.n[2], 16);
        }
        case Opcode::drain:
            latency = settings_.vector_head;
            return cycles_of(fractals * 1024, settings_.l0c_to_ub);
        case Opcode::scalar_load:
        case Opcode::scalar_op:
            return settings_.scalar;
        default:
            return vector_duration(i);
    }
}

int64_t Core::move_duration(const Instruction& i, int64_t& latency) {
    const double bytes = double(i.n[0]) * i.n[1];
    const bool reads = i.a.space == Space::gm, writes = i.dst.space == Space::gm;
    if (!reads && !writes) {
        latency = settings_.move_head;
        return cycles_of(bytes, i.pipe == Pipe::v ? settings_.vector : settings_.ub_to_l1);
    }
    const Operand& outside = reads ? i.a : i.dst;
    const int64_t stride = reads ? i.n[2] : i.n[3];
    for (int64_t b = 0; b < i.n[0]; ++b) cache_lines(outside, outside.address + b * stride, i.n[1]);
    latency = reads ? settings_.gm_read_head : settings_.gm_write_head;
    const bool dense = stride == i.n[1];
    const double moved = dense ? bytes : double(i.n[0]) * divide_up(i.n[1], settings_.burst) * settings_.burst;
    transferred_ += moved;
    return settings_.move_head + cycles_of(moved, std::min(settings_.gm, settings_.channel));
}

// Counts the bytes that come from global memory; the others are in the on-chip cache already.
void Core::cache_lines(const Operand& o, int64_t from, int64_t bytes) {
    GlobalTensor& t = tensors_[static_cast<size_t>(o.tensor)];
    const int64_t end = std::min<int64_t>((from + bytes - 1) / 512, static_cast<int64_t>(t.lines.size()) - 1);
    for (int64_t line = std::max<int64_t>(from / 512, 0); line <= end; ++line) {
        uint32_t& came = t.lines[static_cast<size_t>(line)];
        if (came == 0 || cache_.clock - came >= cache_.lines) {
            came = ++cache_.clock;
            cache_.hbm_bytes += 512;
        }
    }
    cache_.moved_bytes += static_cast<double>(bytes);
}

int64_t Core::vector_duration(const Instruction& i) const {
    const bool slow = (i.kind >= Arithmetic::exp && i.kind <= Arithmetic::sqrt) || i.kind == Arithmetic::div;
    int64_t each = 1;
    if (slow && i.type == DType::f32) each = 2;
    if (i.op == Opcode::transpose) each = 2;
    // Two operands in the same group of banks are read one after the other.
    if (i.op == Opcode::binary && i.a.address / 32 % 16 == i.b.address / 32 % 16 && i.a.address != i.b.address)
        each *= 2;
    const int64_t head = i.op == Opcode::reduce ? settings_.reduce_head
                         : slow                 ? settings_.slow_vector_head
                                                : settings_.vector_head;
    return head + i.n[0] * each * cycles_of(256, settings_.vector);
}

void Core::access(const Instruction& i, const Waiting& w) {
    if (is_legal(i) && touch_all(i)) compute(i, w.number);
}

}  // namespace lunaria::ascend
