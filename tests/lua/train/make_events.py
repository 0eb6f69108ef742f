"""Writes tests/lua/train/tensorboard.events, as TensorBoard's own classes make it: python3 make_events.py"""
import struct
from pathlib import Path

import numpy
from tensorboard.compat.proto import event_pb2, histogram_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.scalar import metadata as scalar_metadata
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.util.tensor_util import make_tensor_proto

Value = summary_pb2.Summary.Value


def events():
    yield event_pb2.Event(wall_time=1.5, file_version="brain.Event:2")
    yield event_pb2.Event(wall_time=2.5, step=1, summary=summary_pb2.Summary(value=[Value(tag="old", simple_value=0.25)]))
    new = Value(tag="new", metadata=scalar_metadata.create_summary_metadata("", ""),
                tensor=make_tensor_proto(numpy.float32(0.75)))
    yield event_pb2.Event(wall_time=3.5, step=2, summary=summary_pb2.Summary(value=[new]))
    note = Value(tag="note", metadata=text_metadata.create_summary_metadata("", ""), tensor=make_tensor_proto(["one", "two"]))
    yield event_pb2.Event(wall_time=4.5, step=3, summary=summary_pb2.Summary(value=[note]))
    histogram = histogram_pb2.HistogramProto(min=-1, max=2, num=3, sum=1.5, sum_squares=5, bucket_limit=[0, 2], bucket=[1, 2])
    yield event_pb2.Event(step=4, summary=summary_pb2.Summary(value=[Value(tag="spread", histo=histogram)]))
    numbers = numpy.arange(6, dtype=numpy.float64).reshape(2, 3)
    listed = tensor_pb2.TensorProto(dtype=types_pb2.DT_INT64, int64_val=[7, 8], tensor_shape=tensor_shape_pb2.TensorShapeProto(
        dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=2)]))
    yield event_pb2.Event(step=5, summary=summary_pb2.Summary(value=[Value(tag="numbers", tensor=make_tensor_proto(numbers)),
                                                                     Value(tag="listed", tensor=listed)]))
    picture = summary_pb2.Summary.Image(height=2, width=3, colorspace=1, encoded_image_string=b"\x89PNG")
    yield event_pb2.Event(step=6, summary=summary_pb2.Summary(value=[Value(tag="picture", image=picture)]))


def main():
    with open(Path(__file__).with_name("tensorboard.events"), "wb") as file:
        for event in events():
            content = event.SerializeToString()
            length = struct.pack("<Q", len(content))
            file.write(length + struct.pack("<I", masked_crc32c(length)) + content + struct.pack("<I", masked_crc32c(content)))


if __name__ == "__main__":
    main()
