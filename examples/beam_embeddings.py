"""Sentence vectors in your own Apache Beam pipeline.

    python examples/beam_embeddings.py --model english --input sentences.txt --output vectors

Reads a sentence per line, averages the ELMo vectors of its tokens, and writes lines of JSON with `text` and `vector` to
`vectors-00000-of-00001.jsonl`. All other options are Beam's. For a large corpus, use `elmo-tf embed --pool mean`, which
resumes after a kill.
"""

import argparse
import json
import sys
import tempfile

import apache_beam as beam
from apache_beam.ml.transforms.base import MLTransform
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.beam import ElmoEmbeddings
from elmo_tf.errors import InputError


def embed(sentences: beam.PCollection, model: str, artifacts: str) -> beam.PCollection:
    """Returns dictionaries of `text` and `vector`, a list of floats, given sentences.

    Later pipelines can embed other sentences in the same way: `MLTransform(read_artifact_location=artifacts)`.
    """
    embeddings = ElmoEmbeddings(model, layers="mix", pool="mean", columns=["vector"])
    return (
        sentences
        | "Rows" >> beam.Map(lambda text: {"text": text, "vector": text})
        | "Embed" >> MLTransform(write_artifact_location=artifacts).with_transform(embeddings)
    )


def main() -> None:
    """Runs the pipeline."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="a SavedModel or the name of a published model")
    parser.add_argument("--input", required=True, help="files with one sentence per line, a glob")
    parser.add_argument("--output", required=True, help="prefix of the output files' names")
    arguments, rest = parser.parse_known_args()
    # `FnApiRunner` needs no network; Beam's default runner first downloads a program.
    options = PipelineOptions(["--runner=FnApiRunner", *rest])
    with tempfile.TemporaryDirectory() as folder, beam.Pipeline(options=options) as pipeline:
        lines = pipeline | "Read" >> beam.io.ReadFromText(arguments.input)
        rows = embed(lines, arguments.model, f"{folder}/artifacts")
        as_json = rows | "AsJson" >> beam.Map(json.dumps, ensure_ascii=False)
        _ = as_json | "Write" >> beam.io.WriteToText(arguments.output, file_name_suffix=".jsonl")


if __name__ == "__main__":
    try:
        main()
    except (InputError, OSError) as error:
        sys.exit(f"beam_embeddings.py: error: {error}")
