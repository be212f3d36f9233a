"""The message class `Example`, with the wire format of `tf.train.Example`, without importing TensorFlow."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

# tensorflow/core/example/feature.proto and example.proto, without lists of floats.
_FILE = """
name: "elmo_tf/example.proto" package: "elmo_tf" syntax: "proto3"
message_type { name: "BytesList" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "Int64List" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type {
  name: "Feature"
  oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type: TYPE_MESSAGE type_name: ".elmo_tf.BytesList" oneof_index: 0 }
  field { name: "int64_list" number: 3 type: TYPE_MESSAGE type_name: ".elmo_tf.Int64List" oneof_index: 0 }
}
message_type {
  name: "Features"
  field {
    name: "feature" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".elmo_tf.Features.FeatureEntry"
  }
  nested_type {
    name: "FeatureEntry"
    options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".elmo_tf.Feature" }
  }
}
message_type {
  name: "Example"
  field { name: "features" number: 1 type: TYPE_MESSAGE type_name: ".elmo_tf.Features" }
}
"""
_pool = descriptor_pool.DescriptorPool()
_pool.Add(text_format.Parse(_FILE, descriptor_pb2.FileDescriptorProto()))
Example = message_factory.GetMessageClass(_pool.FindMessageTypeByName("elmo_tf.Example"))
