#!/usr/bin/env bash
# Everything that takes a GPU, in one call of at most ten minutes: the conformance sets, the training references and the
# kernels on the device, memory checks, and the benches, beside PyTorch where that is installed. Prints a table with the
# date and the device, for bench/README.md.
#   usage: bench/gpu.sh [--quick] [LUNARIA]
# --quick: small sizes and few cases, to try the script itself. The exit status is 77 where there is no GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

quick=""
if [[ ${1:-} == --quick ]]; then
    quick=quick
    shift
fi
lunaria=${1:-build/lunaria}
data=tests/data/conformance
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

if ! "$lunaria" -l ms=lunaria -e 'ms.set_device "GPU"' >"$results/device" 2>&1; then
    echo "skipped: $(head -n 1 "$results/device")"
    exit 77
fi
device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)

# check SECONDS NAME COMMAND...: one line of the table of checks.
check() {
    local limit=$1 name=$2 verdict
    shift 2
    if timeout "$limit" "$@" >"$results/$name" 2>&1; then verdict=passed; else
        verdict="**failed** ($?)"
        touch "$results/failed"
    fi
    echo "| $name | $verdict | $(tail -n 1 "$results/$name" | tr '|' ' ') |"
}
# The same in the background, for checks whose time does not matter; show prints their lines, in order.
lines=()
beside() {
    lines+=("$results/line of $2")
    check "$@" >"${lines[-1]}" &
}
show() {
    wait
    ((${#lines[@]} == 0)) || cat "${lines[@]}"
}

echo "### $(date -u +%F), ${device:-a device of the driver in the path}"
echo
"$lunaria" -l ms=lunaria -e 'for _, line in ipairs(ms.runtime.libraries "GPU") do print(line) end'
echo
echo "| check | verdict | last line |"
echo "| --- | --- | --- |"
if [[ $quick ]]; then
    check 60 conformance "$lunaria" tests/conformance/ops.lua $data --prio P0 --op matmul --grads --device GPU
else
    on_gpu="require('lunaria').set_context{ device_target = 'GPU' }"
    export LUNARIA_NUM_THREADS=2
    for mode in eager graph; do
        beside 120 "conformance_$mode" "$lunaria" tests/conformance/ops.lua $data --prio P0 --api ops,nn,mint --grads \
            --mode $mode --device GPU
    done
    beside 120 random env LUA_INIT="$on_gpu" "$lunaria" tests/conformance/random.lua $data/random.json
    for mode in eager graph; do
        beside 120 "training_$mode" env LUA_INIT="$on_gpu" "$lunaria" tests/conformance/training.lua $data --mode $mode
    done
    beside 120 kernels "$lunaria" tests/gpu/kernels.lua
    beside 120 own_kernels env LUNARIA_GPU_LIBRARIES=0 "$lunaria" tests/gpu/kernels.lua
    if command -v compute-sanitizer >/dev/null; then
        for part in 1 2 3 4; do
            beside 100 "memory_$part" compute-sanitizer --error-exitcode 1 "$lunaria" tests/gpu/kernels.lua $part 4
        done
    fi
    unset LUNARIA_NUM_THREADS
    show
fi
check 130 benches "$lunaria" bench/gpu.lua $quick

torch=/dev/null
if [[ ! $quick ]] && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    check 130 pytorch env PYTHONPATH=bench python3 bench/gpu.py
    torch=$results/pytorch
fi

echo
echo "| workload | µs | PyTorch's µs | ratio |"
echo "| --- | --- | --- | --- |"
awk 'NF != 2 || $2 !~ /^[0-9.]+$/ { next }
    FILENAME == ARGV[1] { other[$1] = $2; next }
    { print "| " $1 " | " $2 " | " ($1 in other ? other[$1] " | " sprintf("%.2f", other[$1] / $2) : " | ") " |" }' \
    "$torch" "$results/benches"
[[ ! -e $results/failed ]]
