// Requests to other ranks by NCCL, NVIDIA's library, opened at run time.
#pragma once

#include "backends/gpu/queue.h"
#include "core/operator/device_link.h"

namespace lunaria::gpu {

// Of the processor that this queue is of; the same in every call.
parallel::DeviceLinks& nccl_links(Queue& queue);

}  // namespace lunaria::gpu
