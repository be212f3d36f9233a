"""The cost of Beam and of the command itself for many tasks.

    .venv/bin/python benchmarks/driver_scale.py [--tasks 150000]

Runs `embed`'s pipeline on the local runner over a text that is one empty file of the right size; the tasks answer at
once, with made-up counts, instead of reading and computing. Prints the time, the peak memory and the size of the graph;
the last line is JSON.
"""

import argparse
import json
import pathlib
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from elmo_tf import config as config_lib  # noqa: E402
from elmo_tf import sources  # noqa: E402
from elmo_tf.beam import job_config, output_folder, runners  # noqa: E402
from elmo_tf.beam.embed import EmbedConfig, embed_task, numbering, run  # noqa: E402

_TASK_TEXT = 27_000  # bytes, which make 64 MB of vectors
_COUNTS = numbering.Counts({"a.txt": 200}, 5000, {}, b"")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=150_000, metavar="N", help="tasks, and shards (150,000)")
    count = parser.parse_args().tasks
    numbering.CountLines.process = lambda self, task: [(task.number, _COUNTS)]
    embed_task.EmbedTask.process = lambda self, task, numbered: [(task.number, 64 << 20)]
    with tempfile.TemporaryDirectory(prefix="elmo_tf-scale-") as folder:
        text, output = pathlib.Path(folder, "a.txt"), f"{folder}/vectors"
        with text.open("wb") as file:
            file.truncate(count * _TASK_TEXT)
        config = EmbedConfig(model="none", input=text, output=output, format="tfrecord", tokenizer="whitespace")
        corpus = job_config.corpus(config.input, [output], config.tokenizer)
        model = sources.SavedModel("none", config_lib.ModelConfig())
        layout = embed_task.Layout(model.shape("all"), "float32")
        settings = embed_task.Settings(config.settings(), "none", "all", layout, config.batch_tokens, None)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        start = time.monotonic()
        with (
            runners.configured_pipeline(runners.parse([]), run.__name__) as pipeline,
            output_folder.claim({"vectors": output}, {"command": "embed"}) as folders,
        ):
            run.build(pipeline, config, folders["vectors"], settings, corpus, count, "0" * 64)
            graph = len(pipeline.to_runner_api().SerializeToString())
            runners.run(pipeline, folders["vectors"])
        assert json.loads(pathlib.Path(output, "info.json").read_text())["lines"] == 200 * count
    measured = {
        "tasks": count,
        "seconds": round(time.monotonic() - start, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "peak_before_mb": before,
        "graph_bytes": graph,
    }
    for name, value in measured.items():
        print(f"{name:<16} {value}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
