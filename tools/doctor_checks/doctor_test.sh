#!/bin/bash
# doctor_test.sh DOCTOR: the program itself, with ranks that mpirun starts and without.
set -u
doctor=$PWD/$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset BUILD_WORKING_DIRECTORY
export TMPDIR=/tmp LANG=C.UTF-8
unset LC_ALL LC_CTYPE NO_COLOR
failures=0

# expect CODE PATTERN... : of the last run; each pattern is one grep -E finds in its output.
expect() {
  local wanted=$1
  shift
  if [ "$code" != "$wanted" ]; then echo "FAILED: exit code $code, not $wanted"; failures=$((failures + 1)); fi
  for pattern in "$@"; do
    if ! grep -qE -- "$pattern" <<<"$output"; then echo "FAILED: no line with $pattern"; failures=$((failures + 1)); fi
  done
  if [ $failures -gt 0 ]; then echo "$output"; exit 1; fi
}
run() { output=$("$@" 2>&1); code=$?; }

run "$doctor" --nproc=2 --folder="$folder"
expect 0 '^OK       MPI: Open MPI [0-9.]+, started by mpirun' '^OK       ranks: 2 ranks on 1 host$' \
  '^OK       environment: ' "^OK       HDF5: 2 ranks wrote one file in $folder and read it back"
if grep -qvE '^(OK|WARNING) ' <<<"$output"; then echo "FAILED: other lines"; echo "$output"; exit 1; fi
if [ -n "$(ls -A "$folder")" ]; then echo "FAILED: files are left in the folder"; exit 1; fi

run "$doctor" --nproc=3 --folder="$folder/absent"
expect 1 "^ERROR    disk: ranks 0-2 \(.*\): there is no folder $folder/absent; make it" '^ERROR    HDF5: ranks 0-2 '

# Half a Slurm environment reaches the ranks.
run env SLURM_JOB_ID=7 "$doctor" --nproc=2 --folder="$folder"
expect 1 '^ERROR    environment: SLURM_JOB_ID=7 is set, SLURM_JOB_NODELIST is not: half a Slurm environment; start'

# A host file that names hosts which the scheduler has not given.
printf 'elsewhere1\nelsewhere2\n' >"$folder/hosts"
run env SLURM_JOB_ID=7 SLURM_JOB_NODELIST="$(hostname)" HOSTFILE="$folder/hosts" "$doctor" --nproc=1 --folder="$folder"
expect 1 "^ERROR    environment: HOSTFILE=$folder/hosts names elsewhere1, elsewhere2, which SLURM has not given to job 7; "

# Bytes beyond ASCII are not printed where the locale does not have them.
run env LANG=C "$doctor" --nproc=1 --folder="$folder"
expect 0 '^WARNING  locale: rank 0 '
if LC_ALL=C grep -qP '[^\x00-\x7f]' <<<"$output"; then echo "FAILED: not plain ASCII"; exit 1; fi

# No launcher at all: the checks of this host are still made.
run env PATH="$folder" "$doctor" --nproc=2 --folder="$folder"
expect 1 '^ERROR    start: 2 ranks do not start: cannot start mpirun' '^OK       ranks: 1 rank on 1 host' \
  '^WARNING  gnuplot: ' '^WARNING  MPI: '

# A launcher that fails.
cat >"$folder/mpirun" <<'END'
#!/bin/sh
if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; exit; fi
echo no network
exit 3
END
chmod +x "$folder/mpirun"
run env PATH="$folder:$PATH" "$doctor" --nproc=2 --folder="$folder"
expect 1 '^ERROR    start: 2 ranks do not start: mpirun .* ended with exit code 3 before it gave a report' 'no network'

run "$doctor" --nproc=2 --folder="$folder" --json
expect 0 '"name": "HDF5"' '"severity": "OK"'

run "$doctor" --nproc=-1
expect 2 'doctor: --nproc=-1: expected a number of ranks'
run "$doctor" --timeout=nan
expect 2 'doctor: --timeout=nan: expected a positive number of seconds'
run "$doctor" --foldr=x
expect 2 'unknown flag --foldr; did you mean --folder'
