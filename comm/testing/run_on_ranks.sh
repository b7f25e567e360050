#!/bin/sh
# run_on_ranks.sh RANKS PROGRAM [ARGUMENT...]: the program under mpirun, on this machine, one thread per rank.
set -eu
ranks=$1
shift
as_root=
if [ "$(id -u)" = 0 ]; then as_root=--allow-run-as-root; fi
export OMP_NUM_THREADS=1
# mpirun keeps sockets in its temporary folder; a test's own folder makes their path too long.
export TMPDIR=/tmp
export OMPI_MCA_btl_base_warn_component_unused=0
# The machine may have other work: a rank that polls gives its core away.
export OMPI_MCA_mpi_yield_when_idle=1
exec mpirun $as_root --oversubscribe --bind-to none -n "$ranks" "$@"
