"""TensorFlow Serving's warm-up requests: messages of its format, to every signature, that the model answers."""

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from elmo_tf.savedmodel import contract, sample_calls
from tests.savedmodel.calls import assert_same, numbers_of

# From tensorflow_serving/apis: the messages and fields that a warm-up request uses.
MESSAGES = """
name: "prediction_log.proto" package: "tensorflow.serving" syntax: "proto3"
dependency: "tensorflow/core/framework/tensor.proto"
message_type { name: "ModelSpec"
    field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "signature_name" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "PredictRequest"
    field { name: "model_spec" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: "ModelSpec" }
    field { name: "inputs" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: "PredictRequest.InputsEntry" }
    nested_type { name: "InputsEntry" options { map_entry: true }
        field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
        field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".tensorflow.TensorProto" }
    } }
message_type { name: "PredictLog"
    field { name: "request" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: "PredictRequest" } }
message_type { name: "PredictionLog"
    field { name: "predict_log" number: 6 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: "PredictLog" } }
"""


def prediction_log_class():
    pool = descriptor_pool.DescriptorPool()

    def add(file):
        for needed in file.dependencies:
            add(needed)
        pool.AddSerializedFile(file.serialized_pb)

    add(tf.make_tensor_proto(0).DESCRIPTOR.file)
    pool.Add(text_format.Parse(MESSAGES, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.serving.PredictionLog"))


def test_each_signature_has_a_request_by_the_letter_of_protobuf_and_all_are_answered_alike(savedmodel, loaded):
    path, answers = savedmodel.path, {}
    for record in tf.data.TFRecordDataset(str(path / contract.WARMUP_FILE)).as_numpy_iterator():
        log = prediction_log_class().FromString(record)
        assert log.SerializeToString(deterministic=True) == record
        request = log.predict_log.request
        spec = request.model_spec
        assert spec.name == path.parent.name and spec.signature_name not in answers
        inputs = {
            name: tf.constant(tf.make_ndarray(tf.make_tensor_proto(0).FromString(value.SerializeToString())))
            for name, value in request.inputs.items()
        }
        answers[spec.signature_name] = numbers_of(loaded.signatures[spec.signature_name](**inputs))
    assert answers.keys() == loaded.signatures.keys()
    lengths = [len(sentence.split()) for sentence in sample_calls.WARMUP_SENTENCES]
    np.testing.assert_array_equal(answers["tokens"]["mask"].sum(1), lengths)
    assert len(set(lengths)) > 2
    for answer in answers.values():
        assert_same(answer, answers["default"])
