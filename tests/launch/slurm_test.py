"""srun, salloc, sbatch and launch in a real Slurm that the test sets up on this machine."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import launches
import slurm

SHOW_PLACE, DOCTOR = (os.path.abspath(sys.argv.pop(3)) for _ in range(2))
NODES, CORES = 3, 2
TWO_NODES = "^node00[12]:2,node00[23]:2$"  # one may still be completing an earlier job
cluster = None


def setUpModule():
    global cluster
    missing = slurm.reason()
    if missing:
        raise RuntimeError("this test starts a Slurm of its own; " + missing)
    cluster = slurm.Cluster(NODES, CORES).__enter__()
    unittest.addModuleCleanup(cluster.__exit__)


class SlurmTest(launches.LaunchTest):
    def environment(self, **more):
        environment = super().environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        return dict(environment, **dict(cluster.environment, **more))

    def run_command(self, *command, code=0, **more):
        ran = subprocess.run(command, env=self.environment(**more), cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=2 * launches.SECONDS, check=False)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr + cluster.logs())
        return launches.Run(ran.returncode, ran.stdout, ran.stderr)

    def salloc(self, nodes, tasks, *command, **options):
        return self.run_command("salloc", f"--nodes={nodes}", f"--ntasks={tasks}", *command, **options)

    def places(self, run, when="before"):
        """What the ranks said, in their order."""
        lines = [line for line in run.lines if line.startswith(when + " ")]
        found = [dict(word.split("=", 1) for word in line.split(" command=")[0].split()[1:]) for line in lines]
        for place, line in zip(found, lines):
            place["command"] = line.split(" command=")[1]
        return sorted(found, key=lambda place: int(place["rank"]))

    def column(self, places, name):
        return [place[name] for place in places]

    def wait_for_end_of_jobs(self):
        cluster.wait(lambda: cluster.run("squeue", "--noheader") == "", "the end of all jobs")
        self.assert_nothing_left()


class PlacesTest(SlurmTest):
    def test_host_lists(self):
        for wanted in ("node[001-003]", "node001,node003", "frontier[001-004,007],login1", "a[1-2]b[08-10]"):
            expected = cluster.run("scontrol", "show", "hostnames", wanted).split()
            self.assertGreater(len(expected), 1)
            run = self.run_command(SHOW_PLACE, SLURM_JOB_ID="1", SLURM_JOB_NODELIST=wanted,
                                   SLURM_JOB_NUM_NODES=str(len(expected)), SLURM_NNODES=str(len(expected)))
            hosts = [host.split(":")[0] for host in self.places(run)[0]["hosts"].split(",")]
            self.assertEqual(hosts, expected)

    def test_srun(self):
        run = self.run_command("srun", "--nodes=3", "--ntasks=6", SHOW_PLACE)
        places = self.places(run)
        self.assertEqual(self.column(places, "rank"), list("012345"))
        self.assertEqual(set(self.column(places, "size")), {"6"})
        self.assertEqual(self.column(places, "local_rank"), list("010101"))
        self.assertEqual(set(self.column(places, "local_size")), {"2"})
        self.assertEqual(self.column(places, "node_id"), list("001122"))
        self.assertEqual(set(self.column(places, "hosts")), {"node001:2,node002:2,node003:2"})
        self.assertEqual(set(self.column(places, "scheduler")), {"SLURM"})
        self.assertEqual(set(self.column(places, "contradictions")), {"0"}, run.out)

    def test_srun_with_unequal_nodes(self):
        places = self.places(self.run_command("srun", "--nodes=3", "--ntasks=5", SHOW_PLACE))
        self.assertEqual(set(self.column(places, "size")), {"5"})
        self.assertEqual(sorted(self.column(places, "node_id")), sorted("00112"))
        self.assertEqual(set(self.column(places, "hosts")), {"node001:2,node002:2,node003:1"})

    def test_shell_of_an_allocation_is_no_rank(self):
        place, = self.places(self.salloc(2, 4, SHOW_PLACE))
        self.assertEqual((place["rank"], place["size"]), ("0", "1"))
        self.assertRegex(place["hosts"], TWO_NODES)

    def test_single_task_without_pmi_is_a_shell(self):
        """As in srun --pty bash."""
        run = self.run_command("srun", "--mpi=none", "--nodes=1", "--ntasks=1", SHOW_PLACE, "--mpi")
        place, = self.places(run, "after")
        self.assertEqual((place["rank"], place["size"], place["contradictions"]), ("0", "1", "0"), run.out)

    def test_mpi_by_srun(self):
        run = self.run_command("srun", "--mpi=pmix", "--nodes=3", "--ntasks=6", SHOW_PLACE, "--mpi")
        for when in ("before", "after"):
            places = self.places(run, when)
            self.assertEqual(self.column(places, "rank"), list("012345"), run.out)
            self.assertEqual(set(self.column(places, "size")), {"6"})

    def test_srun_without_pmi(self):
        for program, *flags in ((SHOW_PLACE, "--mpi"), (DOCTOR,)):
            with self.subTest(program):
                run = self.run_command("srun", "--mpi=none", "--nodes=1", "--ntasks=2", program, *flags, code=1)
                own = [line for line in run.errors if not line.startswith(("srun:", "slurmstepd:"))]
                self.assertEqual(own, 2 * [f"{os.path.basename(program)}: srun started this process without PMI, which MPI needs to find the other "
                                           "ranks; use srun --mpi=pmix (srun --mpi=list shows what there is), launch, or mpirun"])


class LaunchInSlurmTest(SlurmTest):
    def test_srun_where_it_knows_the_mpi(self):
        run = self.salloc(1, 2, launches.LAUNCH, "--", SHOW_PLACE, "--mpi")
        command = run.own()[0][len("launch: "):]
        self.assertRegex(command, r"^srun .*--mpi=pmix .*-n 2 .*show_place --mpi$")
        places = self.places(run, "after")
        self.assertEqual(self.column(places, "rank"), ["0", "1"], run.out)
        self.assertEqual(set(self.column(places, "command")), {command})

    def test_mpirun_where_srun_does_not(self):
        # An srun that lists no plugin for Open MPI, as many sites have.
        real = shutil.which("srun", path=slurm.search_path())
        os.mkdir(self.path("bin"))
        self.write("bin/srun", f'#!/bin/sh\n[ "$*" = --mpi=list ] && echo "none pmi2" && exit\nexec {real} "$@"\n')
        os.chmod(self.path("bin/srun"), 0o755)
        run = self.salloc(3, 6, launches.LAUNCH, "--", SHOW_PLACE, "--mpi",
                          PATH=self.path("bin") + ":" + slurm.search_path())
        self.assertRegex(run.own()[0], r"^launch: mpirun .*--map-by ppr:2:node --bind-to core -n 6 ")
        places = self.places(run, "before")
        self.assertEqual(self.column(places, "rank"), list("012345"))
        self.assertEqual(set(self.column(places, "size")), {"6"})
        self.assertEqual(self.column(places, "local_rank"), list("010101"))
        self.assertEqual(self.column(places, "node_id"), list("001122"))
        hosts = {",".join(host.split(":")[0] for host in place["hosts"].split(",")) for place in places}
        self.assertEqual(hosts, {"node001,node002,node003"}, run.out)
        self.assertEqual(self.column(self.places(run, "after"), "rank"), list("012345"))

    def test_all_nodes_by_srun(self):
        run = self.salloc(3, 6, launches.LAUNCH, "--label", "--", SHOW_PLACE, "--mpi")
        self.assertRegex(run.own()[0], "^launch: srun .*--mpi=pmix -n 6 --ntasks-per-node=2 ")
        for rank in range(6):
            for when in ("before", "after"):
                self.assertEqual(len([line for line in run.lines if line.startswith(f"[{rank}] {when} rank={rank} ")]), 1)

    def test_two_ranks_on_each_of_two_nodes(self):
        """Ranks of a node share memory, and none with those of the other node."""
        for starter in ("srun", "mpirun"):
            with self.subTest(starter):
                run = self.salloc(2, 4, launches.LAUNCH, "--starter=" + starter, "--", SHOW_PLACE, "--mpi")
                places = self.places(run, "after")
                self.assertEqual(self.column(places, "rank"), list("0123"), run.out)
                self.assertEqual(self.column(places, "node_id"), list("0011"))
                self.assertEqual(self.column(places, "local_rank"), list("0101"))
                hosts, = set(self.column(places, "hosts"))
                self.assertRegex(hosts, TWO_NODES)

    def test_some_of_the_nodes(self):
        run = self.salloc(3, 6, launches.LAUNCH, "--nhosts=2", "--ppn=1", "--starter=srun", "--dry-run", "--", "true")
        self.assertRegex(run.lines[-1], "--nodes=2 --nodelist=node001,node002 -n 2 --ntasks-per-node=1 -c 2 ")
        self.assertIn("SCHEDULER=SLURM", run.out)
        self.assertIn("    * CORES_PER_HOST=1", self.salloc(1, 1, launches.LAUNCH, "--dry-run", "--", "true", LC_ALL="C").lines)
        self.write("hosts", "node002\nnode007\n")
        # All nodes: one of them may still be completing an earlier job.
        wrong = self.salloc(3, 3, launches.LAUNCH, "--hostfile=hosts", "--", "true", code=2)
        self.assertIn("host node007 is not one of this SLURM job's (node001,node002,node003)", wrong.own()[-1])

    def test_batch_job(self):
        script = self.write("job.sh", f"#!/bin/sh\n#SBATCH --nodes=3 --ntasks=6\nexec {launches.LAUNCH} --starter=mpirun "
                            f"--log-dir=logs -- {SHOW_PLACE} --mpi\n")
        self.run_command("sbatch", "--wait", "--output=out", "--error=err", script)
        with open(self.path("out"), encoding="utf-8") as file:
            places = self.places(launches.Run(0, file.read(), ""), "after")
        self.assertEqual(self.column(places, "rank"), list("012345"))
        self.assertEqual(len([name for name in os.listdir(self.path("logs")) if name.startswith("rank-")]), 6)

    def test_first_failure_last(self):
        run = self.salloc(1, 2, launches.LAUNCH, "--", launches.BEHAVE, "exit", "1", self.mark, code=3)
        own = [line for line in run.errors if not line.startswith("salloc:")]
        self.assertRegex(own[-4], r"^launch: rank 1 \(\S+, pid \d+\) failed first, .*: exit code 3; its last lines:$")
        self.assertEqual(own[-3:], ["    start 1", "    before the end of 1", "    reason of 1"])
        self.wait_for_end_of_jobs()

    def test_signal_of_a_rank(self):
        self.salloc(1, 2, launches.LAUNCH, "--", launches.BEHAVE, "signal", "1", self.mark, code=128 + signal.SIGSEGV)
        self.wait_for_end_of_jobs()

    def test_idle_job(self):
        run = self.salloc(1, 2, launches.LAUNCH, "--idle-timeout=2", "--grace=1", "--", launches.BEHAVE, "tough", "",
                          self.mark, code=124)
        self.assertIn("launch: ended after 2 s without output", run.err)
        self.wait_for_end_of_jobs()

    def test_killed_launch_and_cancelled_job(self):
        for how in ("kill launch", "cancel job"):
            with self.subTest(how=how):
                process = subprocess.Popen(["salloc", "--nodes=1", "--ntasks=2", launches.LAUNCH, "--", launches.BEHAVE,
                                            "tough", "", self.mark], env=self.environment(), stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertIn("ready", process.stdout.readline() + process.stdout.readline())
                if how == "cancel job":
                    cluster.run("scancel", "--state=RUNNING", "--full", "--user=" + str(os.getuid()))
                else:
                    listed = [line.split() for line in self.processes()]
                    launch = next(words for words in listed if words[2] == launches.LAUNCH and "--rank-agent" not in words)
                    os.kill(int(launch[0]), signal.SIGKILL)
                process.communicate(timeout=2 * launches.SECONDS)
                self.wait_for_end_of_jobs()


class TeardownTest(unittest.TestCase):
    def test_nothing_is_left_when_a_test_is_killed(self):
        program = "import time, slurm\nwith slurm.Cluster(1, 1) as c: print(c.folder, flush=True); time.sleep(1000)"
        process = subprocess.Popen([sys.executable, "-c", program], cwd=os.path.dirname(os.path.abspath(__file__)),
                                   stdout=subprocess.PIPE, text=True)
        folder = process.stdout.readline().strip()
        self.assertNotEqual(slurm.processes_of(folder), [])
        process.kill()
        process.communicate()
        until = time.monotonic() + launches.SECONDS
        while slurm.processes_of(folder) + [name for name in [folder] if os.path.exists(name)] and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(slurm.processes_of(folder), [])
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    launches.main()
