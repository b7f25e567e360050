#!/bin/sh
# Collects gpu_checklist, the programs that it runs, and their libraries, for a GPU machine that has LibTorch's
# wheel but neither Bazel nor MPI nor HDF5:
#
#   tools/gpu_checks/bundle.sh DIRECTORY
#
# There: DIRECTORY/run SITE_PACKAGES [PROGRAM] [flags of gpu_checklist, or of PROGRAM], where SITE_PACKAGES contains torch/ and nvidia/.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: tools/gpu_checks/bundle.sh DIRECTORY" >&2
  exit 2
fi
directory=$1
cd "$(dirname "$(realpath "$0")")/../.."
set -- //tools:gpu_checklist //tools:test_dist //tools:train_gpt //tools:train_cnn //tools:train_gru //tools:doctor \
  //comm/nccl:conformance_nccl_test //tests/benchmarks:batched_relaxation
./bazelw build "$@"
mkdir -p "$directory/lib"
for target; do
  program=bazel-bin/$(echo "${target#//}" | tr : /)
  cp -fL "$program" "$directory/"
  # Not the C library, and not what comes with LibTorch's wheel or CUDA.
  ldd "$program" | awk '$3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|librt|libpthread)\.so|/site-packages/|/cuda' |
    xargs -r cp -fLt "$directory/lib"
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
program=gpu_checklist
case "${1:-}" in
  "" | -*) ;;
  *)
    program=$1
    shift
    ;;
esac
LD_LIBRARY_PATH=$libraries exec "$directory/$program" "$@"
END
chmod +x "$directory/run"
echo "bundle in $directory; copy it to the GPU machine, then: $directory/run SITE_PACKAGES"
