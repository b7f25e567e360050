"""launch under the real mpirun: output, logs, failures, timeouts, signals, and no process left after any end."""
import ctypes
import os
import signal
import subprocess
import sys
import time

import launches


class OutputTest(launches.LaunchTest):
    def test_ranks_and_their_command(self):
        run = self.ranks(3, "place")
        self.assertEqual(sorted(run.lines), ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"])
        self.assertEqual(len(run.errors), 1)
        self.assertRegex(run.errors[0], r"^launch: mpirun .*-n 3 .*behave.sh place")
        told = self.ranks(2, "command")
        self.assertEqual(told.lines, ["command " + told.errors[0][len("launch: "):]] * 2)

    def test_label(self):
        run = self.ranks(2, "place", flags=["--label"])
        self.assertEqual(sorted(run.lines), ["[0] rank 0 of 2", "[1] rank 1 of 2"])
        run = self.ranks(2, "streams", flags=["--label"])
        self.assertEqual([line for line in sorted(run.lines) if "newline" in line], ["[0] no newline 0", "[1] no newline 1"])

    def test_input_goes_to_rank_0(self):
        self.assertIn("rank 0 read 'the line'", self.ranks(2, "input", input="the line\n").lines)

    def test_logs(self):
        logs = self.path("deep/logs")
        self.ranks(4, "place", flags=["--log-dir=" + logs])
        run = self.ranks(2, "streams", flags=["--log-dir=deep/logs"])
        self.assertEqual(sorted(os.listdir(logs)), ["launcher.log", "rank-0000.log", "rank-0001.log"])
        for rank in (0, 1):
            lines = [f"{stream} {rank} {i}\n" for i in (1, 2, 3) for stream in ("out", "err")]
            with open(f"{logs}/rank-000{rank}.log", encoding="utf-8") as file:
                self.assertEqual(file.read(), "".join(lines) + f"no newline {rank}")
        self.assertEqual(sorted(run.lines), sorted([f"out {r} {i}" for r in (0, 1) for i in (1, 2, 3)] +
                                                   ["no newline 0", "no newline 1"]))

    def test_logs_of_a_job_that_runs(self):
        process = self.started(2, "plain", flags=["--log-dir=logs"])
        run = self.ranks(1, "place", flags=["--log-dir=logs"], code=1)
        self.assertEqual(run.lines, [])
        self.assertRegex(run.errors[-1], "^launch: --log-dir=.*/logs: in use by another launch; choose another folder$")
        with open(self.path("logs/rank-0001.log"), encoding="utf-8") as file:
            self.assertIn("ready", file.read())
        process.send_signal(signal.SIGTERM)
        self.ended(process, 128 + signal.SIGTERM)
        self.ranks(1, "place", flags=["--log-dir=logs"])

    def test_nothing_is_lost_in_bulk(self):
        whole = "\n" * 3000 + ("\u2588" * 1500 + "\n") * 4 + "end\n"
        run = self.ranks(1, "bulk", flags=["--log-dir=logs"])
        errors = "0123456789abcde\n" * 3750
        self.assertEqual(run.out, whole)
        self.assertEqual(run.err, run.errors[0] + "\n" + errors)
        with open(self.path("logs/rank-0000.log"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(sorted(text.split("\n")), sorted((whole + errors).split("\n")))

    def test_nothing_is_lost_by_a_slow_reader(self):
        reader = "import os, time\nwhile os.write(1, os.read(0, 1 << 16)): time.sleep(0.05)"
        with open(self.path("read"), "wb") as read:
            slow = subprocess.Popen([sys.executable, "-c", reader], stdin=subprocess.PIPE, stdout=read)
        process = self.start("--nproc=1", "--", launches.BEHAVE, "flood", "", self.mark, stdout=slow.stdin,
                             stderr=slow.stdin)
        slow.stdin.close()
        self.assertEqual(process.wait(timeout=launches.SECONDS), 0)
        self.assertEqual(slow.wait(timeout=launches.SECONDS), 0)
        with open(self.path("read"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("0123456789abcde\n"), 504096)

    def test_a_reader_who_stops_does_not_keep_a_job_alive(self):
        """A pager, or ^S. The ranks' output fills what the connections hold; a signal and a timeout are served all the same."""
        for how, flags, code in (("signal", [], 143), ("timeout", ["--timeout=4s"], 124)):
            for bulk in ("chatter", "polite_chatter"):
                with self.subTest(how=how, bulk=bulk):
                    process = self.start("--nproc=2", "--grace=2s", *flags, "--", launches.BEHAVE, bulk, "", self.mark)
                    self.addCleanup(self.close, process)
                    time.sleep(3)
                    if how == "signal":
                        process.send_signal(signal.SIGTERM)
                    self.assertIn(process.wait(timeout=20), (code, 0) if bulk != "chatter" else (code,))
                    self.assert_nothing_left()

    def test_no_codes_for_terminals_in_files(self):
        run = self.ranks(2, "terminal")
        self.assertEqual(sorted(run.lines), ["plain 0", "plain 1"])
        self.assertNotIn("\033", run.out + run.err)
        self.assertNotIn("\r", run.out + run.err)

    def test_disk_that_is_full(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = self.start("--nproc=1", "--", launches.BEHAVE, "polite", "", self.mark, stdout=full)
            _, err = process.communicate(timeout=launches.SECONDS)
        self.assertEqual(process.returncode, 1, err)
        self.assert_last_lines(launches.Run(1, "", err), "launch: standard output cannot be written: No space left on device")

    def test_reader_that_goes_away(self):
        process = self.start("--nproc=2", "--", launches.BEHAVE, "chatter", "", self.mark)
        process.stdout.readline()
        process.stdout.close()
        self.assertNotEqual(process.wait(timeout=launches.SECONDS), 0)
        process.stderr.close()
        self.assert_nothing_left()


class FailureTest(launches.LaunchTest):
    def test_exit_code(self):
        run = self.ranks(3, "exit", "2", code=3)
        self.assert_last_lines(run, r"launch: rank 2 \(\S+, pid \d+\) failed first, \d+\.\d s after the start: exit code 3; "
                               "its last lines:", "    start 2", "    before the end of 2", "    reason of 2")
        self.assert_nothing_left()

    def test_rank_that_wrote_nothing(self):
        run = self.ranks(2, "mute", "1", code=70)
        self.assert_last_lines(run, r"launch: rank 1 .* failed first, .*: exit code 70; it wrote nothing",
                               "launch: last errors of other ranks:", r"    \[0\] rank 1 hangs")

    def test_signal(self):
        run = self.ranks(2, "signal", "0", code=128 + signal.SIGSEGV, flags=["--log-dir=logs"])
        self.assert_last_lines(run, r"launch: rank 0 .* failed first, .*: signal 11 \(Segmentation fault\); its last lines "
                               r"\(.*/logs/rank-0000.log\):", "    start 0", "    before the end of 0", "    reason of 0")
        self.assert_nothing_left()

    def test_rank_killed_with_its_agent(self):
        process = self.started(2, "plain")
        agent = next(line for line in self.processes() if "--rank-agent" in line and "mpirun" not in line)
        os.kill(int(agent.split()[0]), signal.SIGKILL)
        run = self.ended(process, 1)
        self.assertRegex(run.own()[-1], r"rank \d .* failed first, .*: lost \(killed together with its agent")
        self.assert_nothing_left()

    def launcher(self, script):
        """An environment whose mpirun is this script."""
        os.mkdir(self.path("bin"))
        self.write("bin/mpirun", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4' && exit\n" + script)
        os.chmod(self.path("bin/mpirun"), 0o755)
        return self.environment(PATH=self.path("bin") + ":" + os.environ["PATH"])

    def test_launcher_that_fails_itself(self):
        run = self.ranks(2, "place", code=9, environment=self.launcher("echo 'no slots' >&2; exit 9\n"))
        self.assertEqual(run.errors[-2:], ["no slots", "launch: mpirun ended with exit code 9; no rank has started"])

    def test_variables_for_other_hosts(self):
        hosts = self.write("hosts", "localhost slots=1\n127.0.0.2 slots=1\n")
        run = self.ranks(2, "place", code=1, flags=["--hostfile=" + hosts],
                         environment=dict(self.launcher('echo " $* "\n'), LOG_LEVEL="debug"))
        for name in ("LOG_LEVEL", "NO_COLOR", "TERM", "PLAIT_TERMINAL"):
            self.assertIn(f" -x {name} ", run.out)

    def test_launcher_that_claims_success(self):
        run = self.ranks(2, "place", code=1, environment=self.launcher("exit 0\n"))
        self.assertEqual(run.errors[-1], "launch: mpirun ended with exit code 0; no rank has started")

    def test_ranks_that_cannot_reach_launch(self):
        # The agent's command is the last six words.
        script = 'while [ $# -gt 6 ]; do shift; done\nPLAIT_LAUNCH_AGENT="x 1 127.0.0.1" exec "$@"\n'
        run = self.ranks(1, "place", environment=self.launcher(script))
        self.assertEqual(run.lines, ["rank 0 of 1"])
        self.assertRegex(run.errors[-1], "^launch: rank 0 on .* cannot reach launch and runs without its agent$")

    def test_processes_that_ranks_leave_behind(self):
        self.launch("--nproc=2", "--", launches.BEHAVE, "daemon", "", self.mark)
        self.assertEqual(self.processes(), [])


class TimeoutTest(launches.LaunchTest):
    def test_idle_output(self):
        run = self.ranks(3, "hang", flags=["--idle-timeout=10s"], code=124)
        self.assertEqual([line for line in run.lines if "last" in line], ["last of 0", "last of 1", "last of 2"])
        self.assertIn("launch: no output for 10 s; ending the job (SIGTERM, SIGKILL after 10 s)", run.errors)
        who = r"rank {} at \d\d:\d\d:\d\d \(\d+\.\d s ago\)"
        self.assert_last_lines(run, r"launch: ended after 10 s without output \(--idle-timeout\); last wrote: " +
                               ", ".join(who.format(rank) for rank in (2, 1, 0)))
        self.assert_nothing_left()

    def test_output_keeps_a_job_alive(self):
        self.ranks(2, "slow", flags=["--idle-timeout=4s"])

    def test_time_of_a_suspended_job_does_not_count(self):
        process = self.started(2, "slow", flags=["--idle-timeout=6s"], ready="line 1")
        every = [process.pid] + [int(line.split()[0]) for line in self.processes()]
        for pid in every:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(8)
        for pid in every:
            os.kill(pid, signal.SIGCONT)
        self.ended(process, 0)

    def test_silent_ranks_are_named(self):
        run = self.ranks(2, "silent", flags=["--idle-timeout=1"], code=124)
        self.assertRegex(run.errors[-1], "last wrote: nothing from any rank$")

    def test_ranks_that_ignore_sigterm(self):
        run = self.ranks(2, "tough", flags=["--idle-timeout=10", "--grace=3"], code=124)
        self.assertIn("term 0", run.lines)
        self.assertIn("term 1", run.lines)
        self.assert_nothing_left()

    def test_whole_run(self):
        process = self.start("--nproc=2", "--timeout=5s", "--", launches.BEHAVE, "chatter", "", self.mark,
                             stdout=subprocess.DEVNULL)
        run = Ended(process)
        self.assertEqual(run.code, 124)
        self.assertRegex(run.err.splitlines()[-1], r"^launch: ended after 5 s \(--timeout\); last wrote: rank ")
        self.assert_nothing_left()


class Ended(launches.Run):
    def __init__(self, process):
        _, err = process.communicate(timeout=launches.SECONDS)
        super().__init__(process.returncode, "", err)


class SignalTest(launches.LaunchTest):
    def test_those_that_end_a_job(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                process = self.started(2, "plain")
                process.send_signal(number)
                run = self.ended(process, 128 + number)
                how = "interrupted$" if number == signal.SIGINT else f"ended by signal {int(number)} "
                self.assertRegex(run.own()[-1], "^launch: " + how)
                self.assertEqual(run.errors[-1], run.own()[-1])
                self.assert_nothing_left()

    def test_ranks_have_time_to_save(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number):
                process = self.started(2, "polite")
                process.send_signal(number)
                run = self.ended(process, 0)
                self.assertEqual(sorted(run.lines), ["saved 0", "saved 1", "saving 0", "saving 1"])

    def test_schedulers_signal_every_process(self):
        """mpirun and the agents must not end the ranks a second later."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number):
                process = self.started(2, "saver")
                for line in self.processes():
                    os.kill(int(line.split()[0]), number)
                self.assertEqual(sorted(self.ended(process, 0).lines), ["saved 0", "saved 1"])

    def test_users_signals_reach_each_rank_once(self):
        process = self.started(2, "polite")
        for number, name in ((signal.SIGUSR1, "usr1"), (signal.SIGUSR2, "usr2")):
            process.send_signal(number)
            self.assertEqual(sorted(process.stdout.readline() for _ in range(2)), [f"{name} 0\n", f"{name} 1\n"])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(sorted(self.ended(process, 0).lines), ["saved 0", "saved 1", "saving 0", "saving 1"])

    def test_those_that_the_parent_ignored(self):
        """nohup and a shell's background jobs ignore SIGHUP and SIGINT, some services SIGCHLD."""
        def ignore():
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
        process = self.started(2, "polite", preexec_fn=ignore)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
            process.send_signal(number)
        self.assertEqual(sorted(process.stdout.readline() for _ in range(2)), ["usr1 0\n", "usr1 1\n"])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(sorted(self.ended(process, 0).lines), ["saved 0", "saved 1", "saving 0", "saving 1"])

    def test_user_who_insists(self):
        process = self.started(2, "tough", flags=["--grace=1h"])
        for name in ("int", "term"):
            process.send_signal(signal.SIGINT)
            self.assertEqual(sorted(process.stdout.readline() for _ in range(2)), [f"{name} 0\n", f"{name} 1\n"])
        process.send_signal(signal.SIGINT)
        self.ended(process, 130)
        self.assert_nothing_left()

    def test_grace_runs_out(self):
        process = self.started(2, "tough", flags=["--grace=3s"])
        process.send_signal(signal.SIGINT)
        run = self.ended(process, 130)
        self.assertEqual(sorted(run.lines), ["int 0", "int 1", "term 0", "term 1"])
        self.assert_nothing_left()


class SuddenEndTest(launches.LaunchTest):
    def test_launch_is_killed(self):
        for behaviour in ("plain", "tough", "tough_daemon"):
            with self.subTest(behaviour=behaviour):
                process = self.started(2, behaviour)
                self.assertNotEqual(self.processes(), [])
                process.kill()
                process.wait(timeout=launches.SECONDS)
                self.assert_nothing_left()

    def mpirun(self):
        return int(next(line for line in self.processes() if line.split()[2].endswith("mpirun")).split()[0])

    def test_agents_end_ranks_without_the_launchers_help(self):
        # A stopped process group whose last tie to the session is cut is woken by the kernel, and mpirun would help. With
        # this process as the next parent the tie holds.
        prctl = ctypes.CDLL(None).prctl
        set_child_subreaper = 36
        prctl(set_child_subreaper, 1, 0, 0, 0)
        self.addCleanup(prctl, set_child_subreaper, 0, 0, 0, 0)
        process = self.started(2, "tough")
        mpirun = self.mpirun()
        os.kill(mpirun, signal.SIGSTOP)
        self.addCleanup(self.resume, mpirun)
        process.kill()
        process.wait(timeout=launches.SECONDS)
        until = time.monotonic() + launches.SECONDS
        while len(self.processes()) > 1 and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual([int(line.split()[0]) for line in self.processes()], [mpirun])
        self.resume(mpirun)
        self.assert_nothing_left()

    @staticmethod
    def resume(pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def test_mpirun_is_killed(self):
        process = self.started(2, "tough")
        os.kill(self.mpirun(), signal.SIGKILL)
        out, err = process.communicate(timeout=launches.SECONDS)
        self.assertNotEqual(process.returncode, 0, out + err)
        self.assertEqual(self.processes(), [])


if __name__ == "__main__":
    launches.main()
