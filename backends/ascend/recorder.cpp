#include "backends/ascend/recorder.h"

#include "core/base/program_place.h"
#include "core/operator/op.h"
#include "core/run/profile.h"

namespace lunaria::ascend {

Recorder::Written& Recorder::at(const void* data) {
    const auto [entry, fresh] = written_.try_emplace(data);
    if (fresh) entry->second.id = ++last_;
    return entry->second;
}

OutlinedCall* Recorder::add() {
    if (record_.calls.size() == kMostCalls) {
        ++record_.left_out;
        return nullptr;
    }
    OutlinedCall& row = record_.calls.emplace_back();
    row.stream = stream_;
    row.place = program_place();
    return &row;
}

OutlinedTensor Recorder::describe(const Tensor& t, const Written& written) const {
    const DType dtype = written.was_half && t.dtype() == DType::f32 ? DType::f16 : t.dtype();
    return {written.id, dtype, t.shape(), layout_of(t), t.parameter() ? t.parameter()->name : std::string(), 0};
}

void Recorder::launched(const KernelCall& call, bool on_cpu) {
    std::lock_guard lock(mutex_);
    OutlinedCall* added = add();
    if (!added) return;
    OutlinedCall& row = *added;
    row.op = &call.op;
    row.on_cpu = on_cpu;
    auto take = [&](const Value& v, size_t argument) {
        if (!v.is_tensor() || !v.tensor()) return;
        row.inputs.push_back(describe(v.tensor(), at(v.tensor())));
        row.inputs.back().argument = static_cast<int>(argument);
    };
    for (size_t i = 0; i < call.args.size(); ++i) {
        take(call.args[i], i);
        if (call.args[i].is_list())
            for (const Value& item : call.args[i].items()) take(item, i);
    }
    std::vector<TensorType> results;
    for (const Tensor& out : call.out) {
        if (!out) continue;
        Written& written = at(out);
        written = {++last_, false};
        made_by_[written.id] = {record_.calls.size() - 1, row.outputs.size()};
        row.outputs.push_back(describe(out, written));
        results.push_back({out.dtype(), out.shape()});
    }
    row.flops = flops_of(call.op, call.args, results);
}

void Recorder::transferred(const void* device, size_t bytes, bool to_device) {
    std::lock_guard lock(mutex_);
    // A single number travels with the launch of the kernel that reads it.
    if (to_device && bytes <= sizeof(double)) {
        at(device) = {++last_, false};
        return;
    }
    OutlinedCall* row = add();
    if (!row) return;
    row->kind = to_device ? OutlinedCall::Kind::to_device : OutlinedCall::Kind::to_host;
    Written& written = at(device);
    if (to_device) written = {++last_, false};
    OutlinedTensor tensor;
    tensor.id = written.id;
    tensor.dtype = DType::u8;
    tensor.shape = {static_cast<int64_t>(bytes)};
    (to_device ? row->outputs : row->inputs).push_back(std::move(tensor));
}

int Recorder::set_stream(int stream) {
    std::lock_guard lock(mutex_);
    return std::exchange(stream_, stream);
}

void Recorder::mark(int stream, int64_t event, bool waits) {
    std::lock_guard lock(mutex_);
    OutlinedCall* row = add();
    if (!row) return;
    row->kind = waits ? OutlinedCall::Kind::wait_event : OutlinedCall::Kind::record_event;
    row->stream = stream;
    row->event = event;
}

void Recorder::copied(const Tensor& source, const Tensor& destination) {
    std::lock_guard lock(mutex_);
    const Written from = at(source);
    Written& to = at(destination);
    if (source.dtype() == destination.dtype() && !source.is_contiguous()) {
        to = {++last_, from.was_half};
        record_.rearranged.push_back(to.id);
        return;
    }
    to = from;
    if (source.dtype() == DType::f16 && destination.dtype() == DType::f32) to.was_half = true;
    if (source.dtype() != DType::f32 || destination.dtype() != DType::f16) return;
    // The result of a kernel that computes in float32, with the type of the operator's result.
    const auto made = made_by_.find(from.id);
    if (made != made_by_.end()) record_.calls[made->second.first].outputs[made->second.second].dtype = DType::f16;
}

Record Recorder::take() {
    std::lock_guard lock(mutex_);
    made_by_.clear();
    return std::exchange(record_, {});
}

}  // namespace lunaria::ascend
