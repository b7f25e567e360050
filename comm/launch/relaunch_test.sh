#!/bin/sh
# relaunch_test.sh PROGRAM: PROGRAM restarts itself on three ranks; arguments are preserved, and OMP_NUM_THREADS is 1
# unless set.
set -eu
export TMPDIR=/tmp
unset OMP_NUM_THREADS
expected="rank 0/3: <3> <--> <-n> <a b> threads 1
rank 1/3: <3> <--> <-n> <a b> threads 1
rank 2/3: <3> <--> <-n> <a b> threads 1"
all=$("$1" 3 -- -n "a b" | tr -d '\r' | sort)
got=$(echo "$all" | grep -v "^command ")
[ "$got" = "$expected" ] || { echo "got: $got" >&2; exit 1; }
# The ranks find the command in PLAIT_LAUNCH_COMMAND; pasted into a shell it does the same.
command=$(echo "$all" | sed -n 's/^command //p')
echo "$command" | grep -q -- "--oversubscribe --bind-to none -n 3 -x OMP_NUM_THREADS=1 /.* 3 -- -n 'a b'$"
got=$(sh -c "$command" | tr -d '\r' | grep -v "^command " | sort)
[ "$got" = "$expected" ] || { echo "pasted: $got" >&2; exit 1; }
OMP_NUM_THREADS=2 "$1" 1 | grep -q "threads 2"
# With too few open files mpirun would hang.
if prlimit --nofile=32 "$1" 2 2>"$TEST_TMPDIR/error"; then exit 1; fi
grep -q "^relaunch_program: this process may have 32 files open; 2 ranks need 80: raise the limit (ulimit -n)$" "$TEST_TMPDIR/error"
# Where mpirun's files for shared memory may not have their size, it would hang, too.
if prlimit --fsize=100000 "$1" 2 2>"$TEST_TMPDIR/error"; then exit 1; fi
grep -q "^relaunch_program: this process may write files of 100000 bytes; to start 2 ranks needs 16 MiB: raise the limit (ulimit -f)$" "$TEST_TMPDIR/error"
# With too little address space MPI would crash.
if prlimit --as=300000000 "$1" 2 2>"$TEST_TMPDIR/error"; then exit 1; fi
grep -Eq "^relaunch_program: a limit on address space leaves [0-9]+ MiB; a rank needs 512 MiB to start: raise the limit \(ulimit -v\)$" "$TEST_TMPDIR/error"
# A few open files are enough to begin with.
prlimit --nofile=4: timeout -k 1 40 "$1" 2 || { echo "with four open files it does not end" >&2; exit 1; }
# Where the parent ignored SIGCHLD, the job's end is noticed.
timeout -k 1 40 env --ignore-signal=CHLD "$1" 2 || { echo "with SIGCHLD ignored it does not end" >&2; exit 1; }
# nohup and shells' background jobs: signals that were ignored before stay ignored.
for signal in HUP INT; do
  env --ignore-signal=$signal "$1" 2 --sleep >"$TEST_TMPDIR/output" &
  job=$!
  until [ "$(grep -c "^rank" "$TEST_TMPDIR/output")" = 2 ]; do sleep 0.05; done
  kill -$signal $job
  wait $job || { echo "ended by SIG$signal, which was ignored" >&2; exit 1; }
done
# Without standard output: a line that says so, and an exit code.
code=0
"$1" 2 >&- 2>"$TEST_TMPDIR/error" || code=$?
[ "$code" != 0 ] || { echo "without standard output: exit code 0" >&2; exit 1; }
grep -q "^relaunch_program: standard output cannot be written: Bad file descriptor$" "$TEST_TMPDIR/error"
# Without mpirun: one line that says so, and an exit code.
if PATH=/nowhere "$1" 2 2>"$TEST_TMPDIR/error"; then exit 1; fi
grep -q "cannot start mpirun" "$TEST_TMPDIR/error"
