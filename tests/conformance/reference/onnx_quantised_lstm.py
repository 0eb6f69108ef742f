"""Cases of onnxruntime's DynamicQuantizeLSTM with its results, added to the file that onnx_cases.py --small has written.

usage: onnx_quantised_lstm.py FILE [--random N]       --random: N other cases, as folders FILE/NAME in place of the file"""
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def quantised(rng, shape, dtype, per_channel):
    """Weights [directions, inputs, 4 hidden] as integers, their scales and zero points."""
    w = rng.standard_normal(shape).astype(np.float32) * 0.6
    axes = (1,) if per_channel else (1, 2)
    low, high = np.minimum(w.min(axes, keepdims=True), 0), np.maximum(w.max(axes, keepdims=True), 0)
    if dtype == np.int8:
        scale = np.maximum(-low, high) / 127
        zero = np.zeros_like(scale)
        least, most = -127, 127
    else:
        scale = (high - low) / 255
        zero = np.rint(-low / scale)
        least, most = 0, 255
    q = np.clip(np.rint(w / scale) + zero, least, most).astype(dtype)
    flat = (shape[0], -1) if per_channel else (shape[0],)
    return q, scale.astype(np.float32).reshape(flat), zero.astype(dtype).reshape(flat)


def case(number):
    rng = np.random.default_rng(number)
    directions = 2 if number % 3 == 2 else 1
    steps, batch, size, hidden = 1 + number % 5, 1 + number // 2 % 2, 3 + number % 3, 2 + number % 4
    dtype = np.int8 if number % 2 else np.uint8
    x = rng.standard_normal((steps, batch, size)).astype(np.float32)
    w, w_scale, w_zero = quantised(rng, (directions, size, 4 * hidden), dtype, number % 4 == 3)
    r, r_scale, r_zero = quantised(rng, (directions, hidden, 4 * hidden), dtype, number % 4 == 3)
    optional = [
        rng.standard_normal((directions, 8 * hidden)).astype(np.float32) if number % 5 else None,
        rng.integers(1, steps + 1, batch).astype(np.int32) if number % 6 == 4 else None,
        rng.standard_normal((directions, batch, hidden)).astype(np.float32) * 0.5 if number % 2 else None,
        rng.standard_normal((directions, batch, hidden)).astype(np.float32) * 0.5 if number % 2 else None,
        rng.standard_normal((directions, 3 * hidden)).astype(np.float32) if number % 7 == 5 else None,
    ]
    values = [x, w, r, *optional, w_scale, w_zero, r_scale, r_zero]
    names = [f"i{k}" if v is not None else "" for k, v in enumerate(values)]
    direction = "bidirectional" if directions == 2 else "reverse" if number % 4 == 1 else "forward"
    attributes = {"hidden_size": hidden, "direction": direction}
    if number % 8 == 6:
        attributes["clip"] = 0.7
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y", "h", "c"], domain="com.microsoft", **attributes)
    # Weights are part of the model: onnxruntime packs them.
    packed = {1, 2, 8, 9, 10, 11}
    given = [(n, v) for k, (n, v) in enumerate(zip(names, values)) if n and k not in packed]
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in given]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "yhc"]
    fixed = [numpy_helper.from_array(values[k], names[k]) for k in sorted(packed)]
    graph = helper.make_graph([node], "lstm", inputs, outputs, fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    options = onnxruntime.SessionOptions()
    # Several threads share the rows of a batch, and round those of each by itself.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    results = session.run(None, dict(given))
    files = {"model.onnx": model.SerializeToString()}
    for k, (n, v) in enumerate(given):
        files[f"test_data_set_0/input_{k}.pb"] = numpy_helper.from_array(v, n).SerializeToString()
    for k, v in enumerate(results):
        files[f"test_data_set_0/output_{k}.pb"] = numpy_helper.from_array(v, "yhc"[k]).SerializeToString()
    return files


def main():
    out = Path(sys.argv[1])
    if "--random" in sys.argv:
        for number in range(100, 100 + int(sys.argv[-1])):
            for name, data in case(number).items():
                path = out / f"lstm_{number}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return
    head, _, rest = out.read_bytes().partition(b"\n")
    index = json.loads(head)
    assert not any(entry["name"].startswith("runtime_") for entry in index)
    for number in range(1, 9):
        files = case(number)
        index.append({"name": f"runtime_dynamic_quantize_lstm_{number}", "rtol": 1e-4, "atol": 1e-5,
                      "files": [[name, len(data)] for name, data in files.items()]})
        rest += b"".join(files.values())
    out.write_bytes(json.dumps(index).encode() + b"\n" + rest)


main()
