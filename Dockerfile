# CPU image of CoCoS-Lab. Its default command trains the laboratory's model, without GPU and network:
#   docker build -t cocos .
#   docker run --rm cocos
#   docker run --rm cocos doctor
#   docker run --rm -v "$PWD:/work" cocos eval --model_name_or_path model --test_data problems.jsonl --output_dir out
# docs/training.md has the sizes, the page, the build for CUDA, and what isolates programs in a container.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS wheel
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python3 -m venv /opt/build && /opt/build/bin/pip wheel --quiet --no-deps --wheel-dir /wheels /src

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt /opt/
# PyPI's torch for Linux is the build for CUDA, several GB larger. This layer is kept when only the code changes.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python3 -m venv /opt/cocos \
    && /opt/cocos/bin/pip install --quiet --no-cache-dir --no-deps --index-url ${TORCH_INDEX} \
        --constraint /opt/constraints.txt torch
COPY --from=wheel /wheels /wheels
RUN /opt/cocos/bin/pip install --quiet --no-cache-dir --constraint /opt/constraints.txt \
    "$(ls /wheels/*.whl)[page]"
ENV PATH=/opt/cocos/bin:$PATH
WORKDIR /work
EXPOSE 8501
ENTRYPOINT ["cocos"]
CMD ["demo"]
