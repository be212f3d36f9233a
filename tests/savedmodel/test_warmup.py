"""TensorFlow Serving's warm-up requests: messages of its format, to every signature, that the model answers."""

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from elmo_tf.savedmodel import contract, warmup
from tests.savedmodel.calls import assert_same, numbers_of

STRING, MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
# From tensorflow_serving/apis: name, number and type of the fields that a warm-up request uses.
MESSAGES = {
    "ModelSpec": [("name", 1, STRING), ("signature_name", 3, STRING)],
    "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "PredictRequest.InputsEntry")],
    "PredictLog": [("request", 1, "PredictRequest")],
    "PredictionLog": [("predict_log", 6, "PredictLog")],
}


def prediction_log_class():
    """Builds the class of PredictionLog from descriptions of the messages."""
    tensor = tf.make_tensor_proto(0).DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto(
        name="prediction_log.proto", package="tensorflow.serving", syntax="proto3", dependency=[tensor.file.name]
    )

    def add_field(message, name, number, kind):
        field = message.field.add(name=name, number=number, label=field_label(kind))
        if kind == STRING:
            field.type = STRING
        else:
            field.type, field.type_name = MESSAGE, kind if kind.startswith(".") else f".tensorflow.serving.{kind}"

    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            add_field(message, *field)
        if name == "PredictRequest":
            entry = message.nested_type.add(name="InputsEntry")
            entry.options.map_entry = True
            add_field(entry, "key", 1, STRING)
            add_field(entry, "value", 2, f".{tensor.full_name}")
    pool = descriptor_pool.DescriptorPool()

    def add(known):
        for needed in known.dependencies:
            add(needed)
        pool.AddSerializedFile(known.serialized_pb)

    add(tensor.file)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.serving.PredictionLog"))


def field_label(kind):
    labels = descriptor_pb2.FieldDescriptorProto
    return labels.LABEL_REPEATED if kind == "PredictRequest.InputsEntry" else labels.LABEL_OPTIONAL


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
        found = loaded.signatures[request.model_spec.signature_name](**inputs)
        answers[request.model_spec.signature_name] = numbers_of(found)
    lengths = [len(sentence.split()) for sentence in warmup.SENTENCES]
    np.testing.assert_array_equal(answers["tokens"]["mask"].sum(1), lengths)
    assert len(set(lengths)) > 2
    # That of `stream` has states, too.
    for answer in answers.values():
        assert_same({name: answer[name] for name in answers["default"]}, answers["default"])
    assert answers.keys() == loaded.signatures.keys()
