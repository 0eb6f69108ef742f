-- Every number of the Ascend model, each with where it comes from. Nothing else in the model holds a number about the
-- hardware, and none is there for a single network. "assumed" marks what no public text gives; "fitted" what was chosen
-- by the calibration cases of bench/ascend_validation.lua (ResNet and BERT families), or by the steps that are named.
local hot_chips = "Hot Chips 31 (2019), Ascend 910"
local hpca = "HPCA 2021, Da Vinci"
-- ResNet-18 and ResNet-34 take the same 110 ms for 256 pictures of 224 x 224 on each of 8 devices, bound by 12 threads that make
-- pictures ready: 5.16 ms of a thread for each. Shares of the operations in that: by MindSpore's own on one thread of an x86 processor.
local threads = "fitted: ResNet-18 and ResNet-34 of mindspore-ai/models, 256 pictures in 110 ms by 12 threads; shares measured"
-- An eager decoder of 10 steps, which waits for its host: 365.0 ms, in which it allocates 10,640 results (docs/pi05_npu_fusion_plan.md).
local eager = "flashrt-project/FlashRT, Pi0.5 on a 910B4 with torch_npu: 365 ms of the host for 10,640 results of operators"
local runtime = "Ascend toolkit runtime, config_define.hpp"
local hccl = "Ascend toolkit 8.0, environment variables of HCCL"
local debug_ini = "Ascend toolkit asc-tools, ascend910_ini.h"

local P = {}

-- Goes up with every change of the model or of a number, so that figures can be told apart.
P.version = "3"

-- Rates are bytes per cycle and core where nothing else is said; heads are cycles.
P.chips = {
  ["910"] = {
    cores = { 32, hot_chips },
    hertz = { 1.0e9, hpca .. ", table 5" },
    cube_macs = { 4096, hot_chips .. ": 16 x 16 x 16 products of float16 a cycle" },
    vector_bytes = { 256, hot_chips .. ": 2048 bits" },
    l0a = { 65536, debug_ini }, l0b = { 65536, debug_ini }, l0c = { 262144, debug_ini },
    l1 = { 1048576, debug_ini }, ub = { 262144, debug_ini },
    l1_to_l0a = { 512, runtime }, l1_to_l0b = { 256, runtime }, l0c_to_ub = { 256, runtime }, ub_to_l1 = { 128, runtime },
    gm_per_core = { 80, runtime .. ": L2READBW" },
    l2_bytes = { 32.0e6, hot_chips .. " (the runtime's table says 64 MB)" },
    l2_bytes_per_second = { 4.0e12, hpca },
    hbm_bytes_per_second = { 1.2e12, hot_chips },
    hbm_efficiency = { 0.75, "assumed: of long streams" },
    memory_parameters = { 5.0e9, "MindSpore's split of 32 GB" },
    memory_features = { 26.0e9, "MindSpore's split of 32 GB" },
    memory_communication = { 1.0e9, "MindSpore's split of 32 GB" },
    ai_cpus = { 16, hot_chips },
    gm_read_head = { 700, "assumed: half of the pypto cost model's 1400, which counts at 2 GHz" },
    gm_write_head = { 150, "assumed: half of the pypto cost model's 300" },
    transfers = { 4, "assumed" }, burst = { 512, "pypto cost model: line of 512 bytes" },
    issue = { 1, "assumed" }, decode = { 4, "assumed" }, queue = { 32, "assumed" },
    move_head = { 16, "assumed" }, cube_head = { 16, "assumed" },
    vector_head = { 6, "pypto cost model: add" }, slow_vector_head = { 12, "pypto cost model: exp" },
    reduce_head = { 9, "pypto cost model: row maximum" }, scalar_cycles = { 4, "assumed" },
    core_start = { 500, "assumed" },
    saturate = { true, "torch_npu: the saturation mode is that of the training chips" },
    divides = { false, debug_ini .. ": no vdiv, no vsqrt" },
    -- Whole operators.
    operator_hbm_efficiency = { 0.67, "fitted, with 0.6 to 0.85 as what is plausible" },
    cube_efficiency = { 0.80, "assumed" },
    vector_efficiency = { 0.50, "assumed" },
    operator_head = { 800, "assumed: the first transfer and the last" },
    l2_read = { 0.15, "assumed: part of the cost of a read from HBM that a tensor just written and half as large as the cache has" },
    task_seconds = { 2.5e-6, "assumed, with 1 to 3 microseconds as what is plausible" },
    ai_cpu_seconds = { 20e-6, "assumed" },
    ai_cpu_bytes_per_second = { 20e9, "assumed" },
  },
  -- 11.1 TFLOPS of float16 at the clock of the table; published are 8 at 8 W (HiSilicon, 2018).
  ["310"] = {
    base = "910",
    cores = { 2, runtime }, hertz = { 680e6, runtime }, l2_bytes = { 8.0e6, runtime },
    gm_per_core = { 67, runtime }, hbm_bytes_per_second = { 91e9, runtime .. ": 67 bytes a cycle and core" },
    l2_bytes_per_second = { 174e9, runtime .. ": 128 bytes a cycle and core" },
    memory_parameters = { 1.0e9, "assumed: 8 GB" }, memory_features = { 6.5e9, "assumed: 8 GB" },
    memory_communication = { 0.5e9, "assumed: 8 GB" },
  },
  -- 354 TFLOPS of float16; public figures go from 256 to 320.
  ["910B"] = {
    base = "910",
    cores = { 24, "assumed: cores with a cube; the variants have 20 to 25" },
    hertz = { 1.8e9, "assumed" },
    l0c = { 131072, "Ascend toolkit asc-tools, ascend910B1_ini.h" }, l1 = { 524288, "Ascend toolkit asc-tools, ascend910B1_ini.h" },
    ub = { 196608, "Ascend toolkit asc-tools, ascend910B1_ini.h" },
    l2_bytes = { 192.0e6, runtime }, hbm_bytes_per_second = { 1.6e12, "assumed" },
    memory_parameters = { 10.0e9, "assumed: 64 GB split alike" }, memory_features = { 52.0e9, "assumed: 64 GB split alike" },
    memory_communication = { 2.0e9, "assumed: 64 GB split alike" },
    saturate = { false, "torch_npu: infinities and NaN are the default there" },
    divides = { true, "Ascend toolkit asc-tools, ascend910B1_ini.h" },
  },
}

-- How chips are joined and what drives them.
P.clusters = {
  ["atlas"] = {
    group = { 4, hpca .. ": two groups of four chips in a server" },
    server = { 8, hpca },
    hccs_bytes_per_second = { 30e9, hpca .. "; 240 Gb/s are one port of " .. hot_chips },
    hccs_ports = { 3, hot_chips .. ": each chip of a group has one to each of the others" },
    hccs_latency = { 5e-6, "assumed" },
    pcie_bytes_per_second = { 32e9, hpca .. ": between the two groups of a server" },
    pcie_latency = { 10e-6, "assumed" },
    roce_bytes_per_second = { 12.5e9, hot_chips .. ": 100 Gb/s a port" },
    roce_latency = { 15e-6, "assumed" },
    link_efficiency = { 0.8, "assumed: of the rates above, what collectives reach" },
    reduce_bytes_per_second = { 300e9, "assumed: adding what came to what is there" },
    -- What a collective has in its buffers at a time: a larger one goes through them in pieces.
    collective_buffer = { 200e6, hccl .. ": default of HCCL_BUFFSIZE, once for what comes and once for what goes" },
    communicators = { 1, "assumed: data parallel training has one, of all devices" },
    collective_seconds = { 100e-6, "assumed: to start a collective" },
    step_jitter = { 0.02, "fitted: by how much the slowest chip of a server is slower than the mean one" },
    buckets = { 4, "assumed: MindSpore's examples split gradients at two to eight places" },
    last_bucket = { 0.05, "assumed: part of the gradients that the last bucket holds; the places are for the user to choose" },
    -- An operator of an eager program: the front end, the dispatch and the toolkit's two calls. A host that launches the kernels of a
    -- compiled graph does less; no figure of that is public.
    host_launch = { 34e-6, eager },
    launch_queue = { 1024, "assumed: tasks that a host may be ahead of the device" },
    host_synchronous = { 65e-6, "candle-org/candle, pull request 127: torch_npu.add of 64 x 64 on a 910B3, waited for" },
    picture_threads = { 12, "mindspore-ai/models, ResNet: threads of a device" },
    picture_decode = { 3.9e-3, threads .. ": decoding a picture of ImageNet and cutting a piece out" },
    picture_pixel = { 25.4e-9, threads .. ": a pixel of the result, resized, flipped, normalised, transposed" },
    picture_colour = { 11.1e-9, threads .. ": a pixel whose colours are changed at random" },
    picture_rescale = { 2.3e-9, threads .. ": a pixel that is rescaled" },
    host_step = { 300e-6, "assumed: from the host to the device and back, once a step without loop sink" },
  },
}

return P
