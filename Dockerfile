# Plait with its programs built: docker build -t plait . && docker run --rm plait bazel run //tools:train_gru
# For clusters without root: apptainer build plait.sif docker-daemon://plait:latest (docs/install.md)
FROM debian:12
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /plait
COPY . .
# Ranks of a container are often root; Open MPI wants to be told.
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 XDG_CACHE_HOME=/var/cache
RUN ./bazelw build //tools:all && bazel shutdown
ENV PATH="/plait/bazel-bin/tools:${PATH}"
