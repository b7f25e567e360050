#!/bin/sh
# Collects gpu_checklist, the programs that it runs, their libraries and Open MPI, for a GPU machine that has LibTorch's
# wheel but neither Bazel nor MPI nor HDF5:
#
#   tools/gpu_checks/bundle.sh DIRECTORY
#
# There: DIRECTORY/run SITE_PACKAGES [PROGRAM] [flags of gpu_checklist, or of PROGRAM], where SITE_PACKAGES contains torch/ and nvidia/.
# PROGRAM may also be mpirun.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: tools/gpu_checks/bundle.sh DIRECTORY" >&2
  exit 2
fi
directory=$(realpath -m -- "$1")
cd "$(dirname "$(realpath "$0")")/../.."

# Not the C library, and not what comes with LibTorch's wheel or CUDA.
libraries_of() {
  ldd "$1" | awk '$3 ~ /^\// { print $3 }' | grep -Ev '/(libc|libm|libdl|librt|libpthread)\.so|/site-packages/|/cuda' || true
}
mpi_path() {
  ompi_info --parsable --path "$1" | sed -n "1s/^path:$1://p"
}

set -- //tools:gpu_checklist //tools:test_dist //tools:train_gpt //tools:train_llama //tools:train_vit //tools:train_cnn \
  //tools:train_gru //tools:train_odenet //tools:doctor //comm/nccl:conformance_nccl_test_on_ranks \
  //tests/benchmarks:batched_relaxation //tests/benchmarks:gpt_step //tests/benchmarks:llama_step
./bazelw build "$@"
mkdir -p "$directory/lib" "$directory/mpi/bin" "$directory/mpi/components" "$directory/mpi/pmix"
for target; do
  program=bazel-bin/$(echo "${target#//}" | tr : /)
  cp -fL "$program" "$directory/"
  libraries_of "$program" | xargs -r cp -fLt "$directory/lib"
done

# Open MPI without its components for networks, whose libraries are those of the machine's drivers: ranks of one machine.
cp -fL "$(command -v mpirun)" "$directory/mpi/bin/mpirun"
cp -fL "$(command -v orted)" "$directory/mpi/bin/orted"
cp -fLr "$(mpi_path pkgdatadir)" "$directory/mpi/data"
for component in "$(mpi_path pkglibdir)"/mca_*.so; do
  case "$component" in
    *ofi* | *ucx* | *psm* | *openib* | *flux*) continue ;;
  esac
  cp -fL "$component" "$directory/mpi/components/"
done
pmix=$(libraries_of "$(mpi_path pkglibdir)/mca_pmix_ext3x.so" | grep libpmix)
find "$(dirname "$(realpath "$pmix")")" -name 'pmix_mca_*.so' -exec cp -fLt "$directory/mpi/pmix" {} +
for file in "$directory"/mpi/*/*; do
  case "$file" in
    */data/*) ;;
    *) libraries_of "$file" | xargs -r cp -fLt "$directory/lib" ;;
  esac
done

cat > "$directory/run" <<'END'
#!/bin/sh
# run SITE_PACKAGES [PROGRAM] [flags of gpu_checklist, or of PROGRAM]
set -eu
directory=$(dirname "$(realpath "$0")")
site=$1
shift
libraries=$directory/lib:$site/torch/lib
for folder in "$site"/nvidia/*/lib; do libraries=$libraries:$folder; done
export LD_LIBRARY_PATH="$libraries" PATH="$directory/mpi/bin:$PATH"
export OPAL_PREFIX="$directory/mpi" OPAL_BINDIR="$directory/mpi/bin" OPAL_LIBDIR="$directory/lib"
export OPAL_PKGLIBDIR="$directory/mpi/components" OPAL_PKGDATADIR="$directory/mpi/data" OPAL_SYSCONFDIR="$directory/mpi"
export PMIX_PREFIX="$directory/mpi" PMIX_PKGLIBDIR="$directory/mpi/pmix"
program=gpu_checklist
case "${1:-}" in
  "" | -*) ;;
  *)
    program=$1
    shift
    ;;
esac
if [ "$program" = mpirun ]; then exec mpirun "$@"; fi
exec "$directory/$program" "$@"
END
chmod +x "$directory/run"
echo "bundle in $directory; copy it to the GPU machine, then: $directory/run SITE_PACKAGES"
