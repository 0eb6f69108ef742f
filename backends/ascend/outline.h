// A device that computes nothing and records the operators of a program with the types of their operands, for
// estimates. Large results share one reserved piece of address space, which is never filled, so that networks of any
// size fit; small ones are zeros.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/memory/unfilled_memory.h"
#include "core/tensor/device.h"

namespace lunaria::ascend {

struct OutlinedTensor {
    int64_t id = 0;  // of the memory that it is in
    DType dtype = DType::f32;
    Shape shape;
    enum class Layout : uint8_t {
        dense,
        swapped,
        broadcast,
        permuted
    } layout = Layout::dense;  // swapped: the last two axes
    std::string parameter;     // its name, if it is one
    int argument = 0;          // of an operand: number of the argument that it is, or that lists it
};

OutlinedTensor::Layout layout_of(const Tensor& t);

struct OutlinedCall {
    // Records beside operators: copies between the device's memory and the host's, and events of streams.
    enum class Kind : uint8_t {
        operation,
        to_device,
        to_host,
        record_event,
        wait_event,
        collective
    } kind = Kind::operation;
    const Op* op = nullptr;  // of an operation
    int stream = 0;
    int64_t event = 0;
    // Of a collective: its kind, the axis of the mesh, the ranks along it, and the bytes of one of them.
    struct Collective {
        std::string name, axis;
        int64_t stride = 1, size = 1;
        double bytes = 0;
    } collective;
    int layer = -1;     // that stands for several equal ones
    std::string place;  // "file:line" of the program
    double flops = 0;
    bool on_cpu = false;  // left to the chip's processors
    std::vector<OutlinedTensor> inputs, outputs;
};

class Outline {
  public:
    // Operators of this thread on the host go to the outline until it is closed; the host's kernels work as usual for
    // other devices. `model` is the host, `copy` the function that set_fast_copy got for it. One outline may be open at
    // a time.
    Outline(Device& model, CopyFn copy, std::function<std::string()> place);
    ~Outline();
    Outline(const Outline&) = delete;
    static bool is_open() { return open_.load() != nullptr; }

    std::vector<OutlinedCall> calls;
    // A request to other ranks, which makes `out` of `in`.
    void note_collective(OutlinedCall::Collective collective, std::string place, const Tensor& in, const Tensor& out);
    // The number of the tensor's memory, as in the calls.
    int64_t id_of(const Tensor& t) { return describe(t).id; }

  private:
    class OutlineDevice;
    static bool note(const KernelCall& call);
    static bool leave_out_copy(const Tensor& source, const Tensor& destination);
    OutlinedTensor describe(const Tensor& t);

    static std::atomic<Outline*> open_;
    static std::atomic<CopyFn> copy_;   // for elements, when no outline is open
    static std::atomic<Device*> host_;  // of the last outline: a device may be about to ask for its kernels
    const std::thread::id thread_ = std::this_thread::get_id();
    UnfilledMemory unfilled_;
    std::unique_ptr<OutlineDevice> device_;
    Device* before_;
    std::function<std::string()> place_;
    std::unordered_map<const Storage*, int64_t> ids_;
    std::vector<Tensor> kept_;  // so that no other tensor gets the memory of one of them
};

}  // namespace lunaria::ascend
