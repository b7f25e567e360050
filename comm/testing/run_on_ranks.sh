#!/bin/sh
# run_on_ranks.sh RANKS PROGRAM [ARGUMENT...]: runs PROGRAM under mpirun on this machine, one thread per rank.
set -eu
ranks=$1
shift
as_root=
if [ "$(id -u)" = 0 ]; then as_root=--allow-run-as-root; fi
export OMP_NUM_THREADS=1
# mpirun creates sockets in TMPDIR; the path of Bazel's test directory is too long for them.
export TMPDIR=/tmp
export OMPI_MCA_btl_base_warn_component_unused=0
# The machine may be busy: polling ranks yield.
export OMPI_MCA_mpi_yield_when_idle=1
exec mpirun $as_root --oversubscribe --bind-to none -n "$ranks" "$@"
