#!/bin/bash
# behave.sh HOW [RANK [MARK]]: the program of a rank in the tests of launch. RANK (default 1) is the rank that fails.
rank=${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}
size=${OMPI_COMM_WORLD_SIZE:-${SLURM_NTASKS:-1}}
guilty=${2:-1}
say() { printf '%s\n' "$*"; }
# Sleeps by steps, so that traps run at once.
rest() { while :; do sleep 0.05; done; }
case "$1" in
  place) say "rank $rank of $size" ;;
  command) say "command $PLAIT_LAUNCH_COMMAND" ;;
  streams)
    for i in 1 2 3; do
      say "out $rank $i"
      sleep 0.05
      say "err $rank $i" >&2
      sleep 0.05
    done
    printf 'no newline %s' "$rank"
    ;;
  bulk) # many short lines and long ones of several bytes a character, in few writes
    exec python3 -c '
import os, sys
print("\n" * 3000 + ("\u2588" * 1500 + "\n") * 4 + "end", flush=True)
os.write(2, b"0123456789abcde\n" * 3750)  # as much as a pipe holds, and the end at once
os._exit(0)' ;;
  flood) # more than the connections hold, and a pipe full at the end
    exec python3 -c '
import os
rest = b"0123456789abcde\n" * 500000
while rest: rest = rest[os.write(1, rest):]
os.write(2, b"0123456789abcde\n" * 4096)
os._exit(0)' ;;
  exit | signal)
    say "start $rank"
    if [ "$rank" != "$guilty" ]; then rest; fi
    sleep 0.3
    say "before the end of $rank"
    say "reason of $rank" >&2
    if [ "$1" = exit ]; then exit 3; fi
    kill -SEGV $$
    ;;
  mute) # the guilty rank says nothing, another one why it had to end
    if [ "$rank" != "$guilty" ]; then
      say "rank $guilty hangs" >&2
      rest
    fi
    sleep 2
    exit 70
    ;;
  hang)
    say "start $rank"
    sleep "$((2 * rank)).1"
    say "last of $rank"
    rest
    ;;
  slow) # five seconds with a line now and then
    for i in 1 2 3 4 5; do
      say "line $i of $rank"
      sleep 1
    done
    ;;
  silent) rest ;;
  tough)
    trap 'say "term $rank"' TERM
    trap 'say "int $rank"' INT
    say "ready $rank"
    rest
    ;;
  polite)
    trap 'say "saving $rank"; sleep 0.5; say "saved $rank"; exit 0' TERM INT HUP
    trap 'say "usr1 $rank"' USR1
    trap 'say "usr2 $rank"' USR2
    say "ready $rank"
    rest
    ;;
  saver) # saves for longer than mpirun leaves its ranks after a signal, however many more come
    exec python3 -c '
import signal, sys, time
ends = (signal.SIGTERM, signal.SIGINT)
signal.pthread_sigmask(signal.SIG_BLOCK, ends)
print("ready", sys.argv[1], flush=True)
signal.sigwait(ends)
time.sleep(3)
print("saved", sys.argv[1])' "$rank" "$3" ;;
  plain)
    say "ready $rank"
    exec sleep 1000
    ;;
  daemon) # leaves a process behind that left the group and the session
    setsid bash -c "exec -a $3 sleep 1000" >/dev/null 2>&1 </dev/null &
    sleep 0.2
    say "done $rank"
    ;;
  tough_daemon) # the same, and ignores SIGTERM
    trap '' TERM
    setsid bash -c "exec -a $3 sleep 1000" >/dev/null 2>&1 </dev/null &
    say "ready $rank"
    rest
    ;;
  polite_chatter)
    trap 'exit 0' TERM
    while :; do say "line of $rank"; done
    ;;
  terminal)
    if [ -t 1 ] && [ "$TERM" != dumb ]; then printf '\033[1mbold\033[0m\r\n'; fi
    say "plain $rank"
    ;;
  input)
    read -r line
    say "rank $rank read '$line'"
    ;;
  chatter) while :; do say "line of $rank"; done ;;
esac
