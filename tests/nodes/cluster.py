"""A cluster on one machine, for tests: nodes that share neither memory, processes, host name nor network.

    with Cluster(A=1, B=3) as cluster:                        # 1 rank on A, 3 on B
        run = cluster.run(PROGRAM, "--train-iters=10")        # under the real mpirun, over TCP
        print(cluster.sent_bytes("A"))                        # that left A's network interface

Each node is a set of Linux namespaces (network, processes, mounts, IPC, host name) with one core and a link to one bridge;
mpirun runs outside of them, like on a login node. run_test.sh puts the whole test into namespaces of its own: when it ends, the kernel
takes down everything. No files, interfaces or processes outlive it.
"""
import json
import os
import shutil
import subprocess
import tempfile
import time

NETWORK = "10.77.0.0/24"
HEAD_ADDRESS = "10.77.0.254"
SECONDS = 120  # longer than any run takes
TRAFFIC_TOLERANCE = 0.02
JUMBO_FRAME = 9000  # bytes: headers, and a packet that acknowledges each, are well within the tolerance

# The first process of a node: prepares its namespaces, and lives until the node is killed.
FIRST_PROCESS = """
set -e
hostname {name}
mount -t tmpfs none /dev/shm
ip link set lo up
ip link set eth0 up
ip address add {address}/24 dev eth0
echo ready
exec sleep infinity
"""

# Started by mpirun in place of ssh: enter NODE COMMAND... Open MPI's files lie in the node's own /dev/shm: /tmp is shared, where
# nodes of one name, whose processes have the same numbers, would take each other's; so would jobs that start at once on a node.
ENTER = """#!/bin/sh
while case "$1" in -*) true;; *) false;; esac; do shift; done
node=$1
shift
read -r pid core <{folder}/$node.node
export OMPI_MCA_orte_tmpdir_base=/dev/shm/$$
exec nsenter --net --uts --ipc --mount --pid --wd={folder} --target "$pid" taskset --cpu-list "$core" /bin/sh -c "mkdir -p /dev/shm/$$ && $*"
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Run:
    """A program that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class Cluster:
    def __init__(self, host_name=None, **ranks):
        """host_name: what all nodes call themselves, in place of their own names."""
        self.ranks = ranks
        self.host_name = host_name
        self.folder = tempfile.mkdtemp(prefix="nodes", dir="/tmp")
        self.cores = sorted(os.sched_getaffinity(0))
        self.nodes = {}
        self.newest = None

    def __enter__(self):
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.nodes):
            self.kill(name)
        subprocess.run(["ip", "link", "delete", "bridge"], check=False)
        subprocess.run(["umount", "/etc/hosts"], check=False)
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_folder(self):
        """Empty: a run that is measured again begins as the first one did."""
        return tempfile.mkdtemp(dir=self.folder)

    def set_up(self):
        addresses = {name: f"10.77.0.{i + 1}" for i, name in enumerate(self.ranks)}
        hosts = self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in addresses.items()))
        subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
        os.chmod(self.write("enter", ENTER.format(folder=self.folder)), 0o755)
        ip("link", "set", "lo", "up")
        # An address of its own: by default a bridge has that of one of its links, and another one when that goes.
        ip("link", "add", "bridge", "address", "02:00:0a:4d:00:fe", "type", "bridge")
        ip("address", "add", HEAD_ADDRESS + "/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")
        for name, address in addresses.items():
            self.start_node(name, address)

    def start_node(self, name, address):
        # The link is made before the first process needs it.
        script = "read _\n" + FIRST_PROCESS.format(name=self.host_name or name, address=address)
        process = subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.nodes[name] = process
        first = self.child_of(process.pid)
        ip("link", "add", "to" + name, "mtu", str(JUMBO_FRAME), "type", "veth", "peer", "name", "eth0", "mtu", str(JUMBO_FRAME),
           "netns", str(first))
        ip("link", "set", "to" + name, "master", "bridge", "up")
        process.stdin.write("\n")
        process.stdin.close()
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"node {name} could not be set up")
        core = self.cores[len(self.nodes) % len(self.cores)]
        self.write(name + ".node", f"{first} {core}")

    @staticmethod
    def child_of(pid):
        while True:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = file.read().split()
            if children:
                return int(children[0])
            time.sleep(0.01)

    def in_node(self, name, *command):
        """Standard output of a command that runs there."""
        return subprocess.run([self.path("enter"), name, *command], check=True, stdout=subprocess.PIPE, text=True).stdout

    def cut(self, name):
        """Takes the node's link down: nothing arrives there or leaves it any more."""
        ip("link", "set", "to" + name, "down")

    def kill(self, name):
        """Cuts the node off and ends all its processes, as a loss of power does."""
        subprocess.run(["ip", "link", "delete", "to" + name], check=False)
        process = self.nodes.pop(name)
        process.kill()
        process.wait()
        process.stdout.close()

    def sent_bytes(self, name):
        """Bytes that have left the node, with the headers of TCP and IP, since it was set up."""
        shown = json.loads(self.in_node(name, "ip -s -j link show eth0"))
        return shown[0]["stats64"]["tx"]["bytes"]

    def sent_per_call(self, few, many, run):
        """Bytes per call, by node; run(calls) makes that many calls. The difference of two runs cancels start-up and shutdown."""
        sent = []
        for calls in (few, many):
            before = {name: self.sent_bytes(name) for name in self.ranks}
            run(calls)
            sent.append({name: self.sent_bytes(name) - before[name] for name in self.ranks})
        return {name: (sent[1][name] - sent[0][name]) / (many - few) for name in self.ranks}

    def expect_sent(self, test, expected, few, many, run):
        """Expects each node to have sent `expected` bytes per call (one number, or by node), within 2 %; returns bytes per call by node.
        Measures up to three times: on a busy machine TCP retransmits segments, which no formula counts; a program that sends too
        much or too little does so every time."""
        if not isinstance(expected, dict):
            expected = dict.fromkeys(self.ranks, expected)
        for _ in range(3):
            sent = self.sent_per_call(few, many, run)
            ratios = {name: sent[name] / expected[name] for name in self.ranks}
            if all(abs(ratio - 1) <= TRAFFIC_TOLERANCE for ratio in ratios.values()):
                break
        for name, ratio in ratios.items():
            test.assertAlmostEqual(ratio, 1, delta=TRAFFIC_TOLERANCE, msg=f"node {name}")
        return sent

    def environment(self, **more):
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH", "GLIBC_TUNABLES") if name in os.environ}
        return {**keep, "OMP_NUM_THREADS": "1", "TMPDIR": self.folder, "LC_ALL": "C.UTF-8",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_plm_rsh_agent": self.path("enter"), "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                "OMPI_MCA_btl": "tcp,self,vader", "OMPI_MCA_btl_tcp_if_include": NETWORK,
                "OMPI_MCA_oob_tcp_if_include": NETWORK, **more}

    def start_here(self, *command, **environment):
        """Starts `command` outside of the nodes, in an environment whose mpirun reaches them. Standard output is a pipe."""
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="err", delete=False) as err:
            process = subprocess.Popen(command, env=self.environment(**environment), cwd=self.folder, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err)
        process.err, self.newest = err.name, process
        return process

    def start(self, *command, **environment):
        """mpirun of `command` on all ranks."""
        hosts = ",".join(f"{name}:{count}" for name, count in self.ranks.items())
        return self.start_here("mpirun", "-H", hosts, "-n", str(sum(self.ranks.values())), "--bind-to", "none",
                               *command, **environment)

    def errors(self, process=None):
        """Standard error so far, of the newest process where none is named."""
        with open((process or self.newest).err, encoding="utf-8", errors="backslashreplace") as err:
            return err.read()

    def finish(self, process, seconds=SECONDS):
        """Waits for a process of start(), of whose output a part may have been read; kills it after `seconds`."""
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            out += f"\nstill running after {seconds} s"
        return Run(process.returncode, out, self.errors(process))

    def run(self, *command, **environment):
        return self.finish(self.start(*command, **environment))

    def processes(self, program):
        """Those of all nodes that run `program`, as (pid, command), zombies left out."""
        listed = subprocess.run(["ps", "-eo", "pid=,stat=,args="], check=True, stdout=subprocess.PIPE, text=True).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()]
        return [(int(pid), args) for pid, stat, args in rows if stat[0] != "Z" and args.startswith(program)]
