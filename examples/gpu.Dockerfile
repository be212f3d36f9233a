# Training on NVIDIA GPUs. TensorFlow brings the CUDA libraries; the machine needs NVIDIA's driver and container toolkit.
#
#     make wheel
#     docker build -f examples/gpu.Dockerfile -t elmo-tf-gpu .
#     docker run --gpus all --shm-size=8g -v /shared:/shared elmo-tf-gpu \
#         train --data /shared/data --heldout /shared/heldout --workdir /shared/run --preset original
FROM python:3.12-slim
COPY dist/elmo_tf-*.whl /tmp/
RUN wheel=$(ls /tmp/elmo_tf-*.whl) && pip install --no-cache-dir "$wheel[beam,gpu]" && rm "$wheel"
ENV TF_CPP_MIN_LOG_LEVEL=2
ENTRYPOINT ["elmo-tf"]
