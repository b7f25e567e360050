"""A private Slurm on this machine: munged, slurmctld, and a slurmd for each of some nodes.

    with slurm.Cluster(nodes=3, cores=2) as cluster:
        subprocess.run(["srun", "-N2", "hostname"], env=dict(os.environ, **cluster.environment))

Nodes share cores, files and network of this host; each has a host name, a /dev/shm and semaphores of its own, in namespaces, so that an
MPI takes them for several. Partition "urgent" preempts jobs of the other one, which are requeued.

Runs as the present user, in a folder of its own, on free ports; ends with all its processes, also when this process
is killed: a guard then ends them. Nothing of the system's own Slurm, if there is one, is touched. `reason()` says
what is missing for it.
"""
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

COMMANDS = ["unshare", "munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol", "sinfo", "scancel"]
SECONDS = 60

CONFIGURATION = """\
ClusterName=plait
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
FirstJobId={first_job}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=300
KillWait=1
{nodes}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 State=UP
"""

# The first process of a node: HOSTS NAME COMMAND...
NODE = """
mount -t tmpfs none /dev/shm
mount --bind "$1" /etc/hosts
hostname "$2"
shift 2
exec "$@"
"""


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def reason():
    """Why there can be no Slurm here; empty if there can."""
    missing = [name for name in COMMANDS if shutil.which(name, path=search_path()) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: munge slurmctld slurmd slurm-client)"
    allowed = subprocess.run([*own_namespaces(), "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return "" if allowed else "namespaces, which this machine lets nobody but root make"


def own_namespaces():
    return ["unshare", *([] if os.getuid() == 0 else ["--map-current-user", "--keep-caps"]), "--mount", "--uts", "--ipc"]


def free_ports(count):
    """Below those that the kernel gives to others' connections meanwhile."""
    sockets = []
    while len(sockets) < count:
        sockets.append(socket.socket())
        try:
            sockets[-1].bind(("127.0.0.1", random.randrange(10000, 32000)))
        except OSError:
            sockets.pop().close()
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def processes_of(folder):
    """Daemons, step daemons and what they started: those that know this cluster's configuration."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                known = b"SLURM_CONF=" + folder.encode() in file.read()
        except OSError:
            continue
        if known and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def end_all(folder):
    until = time.monotonic() + 10
    while processes_of(folder) and time.monotonic() < until:
        for pid in processes_of(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def guard(folder):
    """Starts a process that ends all of the cluster when this process has gone, however it went."""
    end_is_read, held_by_us = os.pipe()
    if os.fork() != 0:
        os.close(end_is_read)
        return held_by_us
    os.setsid()
    os.close(held_by_us)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.read(end_is_read, 1)
    end_all(folder)
    os._exit(0)


class Cluster:
    def __init__(self, nodes, cores):
        self.names = [f"node{number:03d}" for number in range(1, nodes + 1)]
        self.cores = cores
        # Sockets have short names; a test's own folder may have a long one.
        self.folder = tempfile.mkdtemp(prefix="slurm", dir="/tmp")
        self.daemons = []
        self.guarded = None
        self.environment = {"SLURM_CONF": self.folder + "/slurm.conf", "PATH": search_path()}

    def __enter__(self):
        self.guarded = guard(self.folder)
        try:
            self.configure()
            self.start_munge()
            self.start("slurmctld", "slurmctld", "-D", "-f", self.folder + "/slurm.conf")
            for name in self.names:
                for kind in ("spool", "tmp"):
                    os.mkdir(f"{self.folder}/{kind}-{name}")
                self.start("slurmd", *own_namespaces(), "sh", "-ec", NODE, "node", self.folder + "/hosts", name,
                           "slurmd", "-D", "-N", name, "-f", self.folder + "/slurm.conf")
            self.wait(self.all_idle, "the nodes to be idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def configure(self):
        host, ports = socket.gethostname(), free_ports(1 + len(self.names))
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={self.cores} State=UNKNOWN"
                          for name, port in zip(self.names, ports[1:]))
        os.mkdir(self.folder + "/state")
        with open(self.folder + "/hosts", "w", encoding="utf-8") as file:
            file.write(f"127.0.0.1 localhost {host} {' '.join(self.names)}\n")
        with open(self.folder + "/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=host, ports=ports, user=pwd.getpwuid(os.getuid()).pw_name,
                                            folder=self.folder, nodes=nodes,
                                            first_job=random.randrange(1000, 60000000)))

    def start_munge(self):
        # Containers often have no cgroups; nothing here needs them, but slurmd looks for version 2 unless told otherwise.
        with open(self.folder + "/cgroup.conf", "w", encoding="utf-8") as file:
            file.write("CgroupPlugin=cgroup/v1\n")
        with open(self.folder + "/munge.key", "wb") as file:
            os.chmod(self.folder + "/munge.key", 0o600)
            file.write(os.urandom(128))
        self.start("munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                   f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munged.pid",
                   f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed")
        self.wait(lambda: os.path.exists(self.folder + "/munge.socket"), "munged")

    def start(self, name, *command):
        with open(f"{self.folder}/{name}-{len(self.daemons)}.output", "w", encoding="utf-8") as output:
            self.daemons.append(subprocess.Popen(command, env=dict(os.environ, **self.environment), stdin=subprocess.DEVNULL,
                                                 stdout=output, stderr=output, start_new_session=True))

    def run(self, *command):
        return subprocess.run(command, env=dict(os.environ, **self.environment), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=SECONDS, check=False).stdout

    def all_idle(self):
        return self.run("sinfo", "--noheader", "--format=%T %D").split() == ["idle", str(len(self.names))]

    def wait(self, condition, what):
        until = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > until or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError(f"waited in vain for {what}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".output")):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-15:])
        return text

    def __exit__(self, *_):
        if len(self.daemons) > 2:
            self.run("scancel", "--full", "--signal=KILL", "--user=" + pwd.getpwuid(os.getuid()).pw_name)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        end_all(self.folder)
