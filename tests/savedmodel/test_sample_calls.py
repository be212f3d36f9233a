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


def requests_of(path):
    """Returns the requests as protobuf reads them, and the records they came from."""
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path / contract.WARMUP_FILE))]
    return [prediction_log_class().FromString(record) for record in records], records


def test_one_request_to_each_signature_by_the_letter_of_protobuf(savedmodel, loaded):
    logs, records = requests_of(savedmodel.path)
    specs = [log.predict_log.request.model_spec for log in logs]
    assert sorted(spec.signature_name for spec in specs) == sorted(loaded.signatures)
    assert {spec.name for spec in specs} == {savedmodel.path.parent.name}
    assert [log.SerializeToString(deterministic=True) for log in logs] == records


def test_the_model_answers_all_requests_alike(savedmodel, loaded):
    answers = {}
    for log in requests_of(savedmodel.path)[0]:
        request = log.predict_log.request
        inputs = {
            name: tf.constant(tf.make_ndarray(tf.make_tensor_proto(0).FromString(value.SerializeToString())))
            for name, value in request.inputs.items()
        }
        outputs = loaded.signatures[request.model_spec.signature_name](**inputs)
        answers[request.model_spec.signature_name] = numbers_of(outputs)
    lengths = [len(sentence.split()) for sentence in sample_calls.WARMUP_SENTENCES]
    np.testing.assert_array_equal(answers["tokens"]["mask"].sum(1), lengths)
    assert len(set(lengths)) > 2
    for answer in answers.values():
        assert_same(answer, answers["default"])
    assert answers.keys() == loaded.signatures.keys()
