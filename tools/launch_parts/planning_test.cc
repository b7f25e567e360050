#include "tools/launch_parts/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "tools/launch_parts/running.h"

namespace plait::launching {
namespace {

using comm::LauncherKind;
using comm::Scheduler;
using comm::Starter;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Surroundings Workstation(int cores, int devices = 0) {
  Surroundings here;
  here.job.host = "desk";
  here.job.hosts = {{.host = "desk", .slots = 1}};
  here.job.devices_per_node = devices;
  here.cores = cores;
  here.threads_set = true;
  here.starter = {.starter = Starter::kOpenMpi, .executable = "mpirun", .reason = "mpirun is on the PATH"};
  here.resolves = [](const std::string& host) { return host == "desk2"; };
  return here;
}

// Two nodes of four accelerators and 32 cores, as on Polaris.
Surroundings Polaris(const std::string& node_file) {
  Surroundings here = Workstation(32, 4);
  here.job.scheduler = Scheduler::kPbs;
  here.job.host = "x3205c0s25b0n0";
  here.job.host_file = node_file;
  here.job.hosts = {{.host = "x3205c0s25b0n0", .slots = 1}, {.host = "x3205c0s25b1n0", .slots = 1}};
  here.starter = {.starter = Starter::kPals, .executable = "mpiexec"};
  here.resolves = [](const std::string&) { return true; };
  return here;
}

Surroundings SlurmJob(Starter starter) {
  Surroundings here = Workstation(8);
  here.job.scheduler = Scheduler::kSlurm;
  here.job.host = "n1";
  here.job.hosts = {{.host = "n1", .slots = 4}, {.host = "n2", .slots = 4}, {.host = "n3", .slots = 2}};
  here.starter = {.starter = starter, .executable = starter == Starter::kSrun ? "srun" : "mpirun"};
  if (starter == Starter::kSrun) here.starter.mpi_plugin = "pmix";
  return here;
}

std::string File(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

// The command, or the error.
std::string Plan(Settings settings, const Surroundings& here) {
  if (settings.program.empty()) settings.program = {"/bin/true"};
  const absl::StatusOr<PlannedJob> job = PlanJob(settings, here);
  if (!job.ok()) return std::string(job.status().message());
  return base::ShellCommand(comm::LaunchCommand(job->plan));
}

TEST(PlanJob, OnOneMachine) {
  EXPECT_EQ(Plan({}, Workstation(4)), "mpirun --bind-to core -n 4 /bin/true");
  EXPECT_EQ(Plan({.nproc = 2}, Workstation(4)), "mpirun --map-by slot:PE=2 --bind-to core -n 2 /bin/true");
  EXPECT_EQ(Plan({.nproc = 3}, Workstation(4)), "mpirun --bind-to core -n 3 /bin/true");
  EXPECT_EQ(Plan({.nproc = 5}, Workstation(4)), "mpirun --oversubscribe --bind-to none -n 5 /bin/true");
  EXPECT_EQ(Plan({}, Workstation(32, 4)), "mpirun --map-by slot:PE=8 --bind-to core -n 4 /bin/true");
  EXPECT_EQ(Plan({.ppn = 2}, Workstation(2)), "mpirun --bind-to core -n 2 /bin/true");
  EXPECT_EQ(Plan({.nproc = 2, .bind = "socket"}, Workstation(4)), "mpirun --bind-to socket -n 2 /bin/true");
}

TEST(PlanJob, ThreadsWhereNothingElseLimitsThem) {
  Surroundings here = Workstation(8);
  here.threads_set = false;
  EXPECT_EQ(Plan({.nproc = 4}, here), "mpirun --map-by slot:PE=2 --bind-to core -n 4 /bin/true");
  EXPECT_EQ(Plan({.nproc = 4, .bind = "none"}, here),
            "mpirun --bind-to none -n 4 -x OMP_NUM_THREADS=2 /bin/true");
  EXPECT_EQ(Plan({.nproc = 9}, here),
            "mpirun --oversubscribe --bind-to none -n 9 -x OMP_NUM_THREADS=1 /bin/true");
}

TEST(PlanJob, OnPolaris) {
  const std::string nodes = File("3061463.polaris", "x3205c0s25b0n0\nx3205c0s25b1n0\n");
  EXPECT_EQ(Plan({}, Polaris(nodes)), "mpiexec --verbose --envall -n 8 -ppn 4 --hostfile " + nodes +
                                          " --cpu-bind depth -d 8 /bin/true");
  EXPECT_EQ(Plan({.nhosts = 1}, Polaris(nodes)),
            "mpiexec --verbose --envall -n 4 -ppn 4 --hosts x3205c0s25b0n0 --cpu-bind depth -d 8 /bin/true");
  EXPECT_EQ(Plan({.ppn = 2}, Polaris(nodes)), "mpiexec --verbose --envall -n 4 -ppn 2 --hostfile " + nodes +
                                                  " --cpu-bind depth -d 16 /bin/true");
}

TEST(PlanJob, InASlurmJob) {
  const std::string srun = "srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --mpi=pmix ";
  EXPECT_EQ(Plan({}, SlurmJob(Starter::kSrun)),
            srun + "-n 10 --ntasks-per-node=4 -c 2 --cpu-bind=cores /bin/true");
  EXPECT_EQ(Plan({.nproc = 4, .nhosts = 2}, SlurmJob(Starter::kSrun)),
            srun + "--nodes=2 --nodelist=n1,n2 -n 4 --ntasks-per-node=2 -c 4 --cpu-bind=cores /bin/true");
  Surroundings threads = SlurmJob(Starter::kSrun);  // two of each core
  threads.slurm_cpus = 2 * threads.cores;
  EXPECT_EQ(Plan({}, threads), srun + "-n 10 --ntasks-per-node=4 -c 4 --cpu-bind=cores /bin/true");
  EXPECT_EQ(Plan({.nproc = 2, .nhosts = 2}, SlurmJob(Starter::kOpenMpi)),
            "mpirun --map-by ppr:1:node:PE=8 --bind-to core -n 2 --host n1:1,n2:1 /bin/true");
  // Fewer ranks than the first host takes: the others stay idle.
  EXPECT_EQ(Plan({.nproc = 3}, SlurmJob(Starter::kOpenMpi)),
            "mpirun --map-by slot:PE=2 --bind-to core -n 3 --host n1:3 /bin/true");
}

// A number per host would give the first host the most.
TEST(PlanJob, UnequalHosts) {
  const std::string small_first = File("small_first", "desk slots=1\ndesk2 slots=3\n");
  EXPECT_EQ(Plan({.host_file = small_first}, Workstation(4)),
            "mpirun --map-by slot --bind-to core -n 4 --hostfile " + small_first + " /bin/true");
  EXPECT_EQ(Plan({.host_file = small_first}, Workstation(6)),
            "mpirun --map-by slot:PE=2 --bind-to core -n 4 --hostfile " + small_first + " /bin/true");
  Surroundings slurm = SlurmJob(Starter::kOpenMpi);
  slurm.job.hosts[1].slots = 1;
  EXPECT_EQ(Plan({}, slurm), "mpirun --map-by slot:PE=2 --bind-to core -n 7 /bin/true");
  const std::string two_last = File("two_last", "desk slots=3\ndesk2 slots=1\n");
  EXPECT_EQ(Plan({.host_file = two_last}, Workstation(3)),
            "mpirun --map-by ppr:3:node --bind-to core -n 4 --hostfile " + two_last + " /bin/true");
}

// mpirun takes no more ranks than a file or Slurm gives it slots.
TEST(PlanJob, MoreRanksThanSlots) {
  const std::string one_each = File("one_each", "desk slots=1\ndesk2 slots=1\n");
  EXPECT_EQ(Plan({.ppn = 2, .host_file = one_each}, Workstation(2)),
            "mpirun --map-by ppr:2:node --bind-to core -n 4 --host desk:2,desk2:2 /bin/true");
  Surroundings slurm = SlurmJob(Starter::kOpenMpi);
  for (comm::HostSlots& host : slurm.job.hosts) host.slots = 1;
  EXPECT_EQ(Plan({.ppn = 2}, slurm),
            "mpirun --oversubscribe --map-by ppr:2:node:PE=4 --bind-to core -n 6 /bin/true");
  const std::string vast = File("vast", "desk slots=2000000000\ndesk2 slots=2000000000\n");
  EXPECT_EQ(Plan({.host_file = vast}, Workstation(2)),
            "the hosts have 4000000000 slots together, more ranks than can be counted");
}

TEST(PlanJob, RanksThatHostsDoNotDivide) {
  const std::string four = File("four", "desk slots=2\ndesk2 slots=2\ndesk3 slots=2\ndesk4 slots=2\n");
  Surroundings here = Workstation(2);
  here.resolves = [](const std::string&) { return true; };
  // No host without a rank: 3, 2, 2, 2 of nine, where a number per host would give 3, 3, 3, 0; 2, 1, 1, 1 of five.
  EXPECT_THAT(Plan({.nproc = 9, .host_file = four}, here),
              HasSubstr("--host desk:3,desk2:2,desk3:2,desk4:2"));
  EXPECT_THAT(Plan({.nproc = 5, .nhosts = 4, .host_file = four}, here),
              HasSubstr("--host desk:2,desk2:1,desk3:1,desk4:1"));
  EXPECT_THAT(Plan({.nproc = 4, .nhosts = 3}, SlurmJob(Starter::kOpenMpi)),
              HasSubstr("--host n1:2,n2:1,n3:1"));
}

TEST(PlanJob, HostFiles) {
  const std::string own = File("own", "desk slots=2\ndesk2 slots=2\n");
  EXPECT_EQ(Plan({.host_file = own}, Workstation(2)),
            "mpirun --map-by ppr:2:node --bind-to core -n 4 --hostfile " + own + " /bin/true");
  const std::string colons = File("colons", "desk:2\ndesk2:2\n");
  EXPECT_EQ(Plan({.host_file = colons}, Workstation(2)),
            "mpirun --map-by ppr:2:node --bind-to core -n 4 --host desk:2,desk2:2 /bin/true");
  const std::string unknown = File("unknown", "desk\nnowhere7\n");
  EXPECT_EQ(Plan({.host_file = unknown}, Workstation(2)),
            unknown + ": no host is known by the name nowhere7; correct it or add it to /etc/hosts");
  EXPECT_EQ(Plan({.host_file = unknown}, SlurmJob(Starter::kSrun)),
            unknown + ": host desk is not one of this SLURM job's (n1,n2,n3)");
  EXPECT_THAT(Plan({.host_file = "/nonexistent"}, Workstation(2)), HasSubstr("/nonexistent"));
}

TEST(PlanJob, NumbersThatContradictEachOther) {
  EXPECT_EQ(Plan({.nhosts = 2}, Workstation(2)), "--nhosts=2: there is 1 host");
  EXPECT_EQ(Plan({.nhosts = 4}, SlurmJob(Starter::kSrun)), "--nhosts=4: there are 3 hosts");
  EXPECT_EQ(Plan({.nproc = 4, .ppn = 3}, Workstation(2)), "--nproc=4 with --ppn=3: 1 host takes 3");
  EXPECT_EQ(Plan({.nproc = 1, .nhosts = 2}, SlurmJob(Starter::kSrun)),
            "--nproc=1 with --nhosts=2: a host has no rank");
  EXPECT_EQ(Plan({.nproc = 3, .bind = "core"}, Workstation(2)),
            "--bind=core: 3 ranks share 2 cores of a host; leave --bind out");
  EXPECT_EQ(Plan({.bind = "cores"}, Workstation(2)),
            "--bind: 'cores' is no binding; expected none, core, depth, hwthread, socket, numa, auto");
}

TEST(PlanJob, ProgramsThatAreNotThere) {
  EXPECT_THAT(Plan({.program = {"/nonexistent/train"}}, Workstation(2)),
              HasSubstr("cannot start /nonexistent/train: there is no such file"));
  EXPECT_THAT(Plan({.program = {File("text", "no program")}}, Workstation(2)),
              HasSubstr("it is no executable file"));
  EXPECT_EQ(Plan({.program = {"no-such-program"}}, Workstation(2)),
            "cannot start no-such-program: it is not on the PATH");
  EXPECT_EQ(PlanJob({}, Workstation(2)).status().message(),
            "no program; write it behind two dashes: launch -- PROGRAM [ARGUMENT ...]");
}

TEST(PlanJob, ADryRunNeedsNone) {
  const absl::StatusOr<PlannedJob> job = PlanJob({.nproc = 4, .dry_run = true}, Workstation(4));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(base::ShellCommand(comm::LaunchCommand(job->plan)), "mpirun --bind-to core -n 4 PROGRAM");
  EXPECT_FALSE(PlanJob({.dry_run = true, .program = {"/absent"}}, Workstation(4)).ok());
}

TEST(PlanJob, HostsOfPbsThatNobodyKnows) {
  Surroundings here = Polaris(File("nodes", "x3205c0s25b0n0\nx3205c0s25b1n0\n"));
  here.resolves = [](const std::string&) { return false; };
  EXPECT_THAT(Plan({}, here), HasSubstr("nodes: no host is known by the name x3205c0s25b1n0"));
}

TEST(PlanJob, SurroundingsThatDoNotFit) {
  Surroundings half = SlurmJob(Starter::kSrun);
  half.job.contradictions = {"SLURM_JOB_ID is set, SLURM_JOB_NODELIST is not"};
  EXPECT_EQ(Plan({}, half),
            "this SLURM job's environment cannot be trusted: SLURM_JOB_ID is set, SLURM_JOB_NODELIST is not");
  Surroundings inside = Workstation(2);
  inside.job.launcher = LauncherKind::kOpenMpi;
  inside.job.rank = 1;
  inside.job.size = 2;
  EXPECT_EQ(Plan({}, inside),
            "it was itself started by mpirun (Open MPI), as rank 1 of 2; start it once, outside");
}

TEST(Summary, ShowsWhatTheJobHas) {
  const std::string nodes = File("nodes", "x3205c0s25b0n0\nx3205c0s25b1n0\n");
  const Surroundings here = Polaris(nodes);
  const absl::StatusOr<PlannedJob> job = PlanJob({.program = {"/bin/true"}}, here);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(
      Summary(*job, here, true),
      HasSubstr(
          "[HOSTS]\n    • [host:0] - x3205c0s25b0n0 (4 ranks)\n    • [host:1] - x3205c0s25b1n0 (4 "
          "ranks)\n\n[DIST INFO]\n    • NGPUS=8\n    • NHOSTS=2\n    • NGPU_PER_HOST=4\n    • HOSTFILE=" +
          nodes + "\n    • DIST_LAUNCH=mpiexec --verbose --envall -n 8 -ppn 4 --hostfile " + nodes +
          " --cpu-bind depth -d 8\n"));
}

TEST(PassedVariables, WhatRanksOfOtherHostsNeed) {
  const char* const environment[] = {"HOME=/root",
                                     "NCCL_ALGO=Ring",
                                     "OMP_NUM_THREADS=8",
                                     "OMP_NUM_THREADS_2=1",
                                     "XDG_CACHE_HOME=/",
                                     "PLAIT_PRODUCTS=own",
                                     "LOG_LEVEL=debug",
                                     "LOG_FROM_ALL_RANKS=1",
                                     "NO_COLOR=1",
                                     "TERM=xterm",
                                     nullptr};
  EXPECT_EQ(PassedVariables(environment, Scheduler::kLocal),
            (std::vector<std::string>{"LOG_FROM_ALL_RANKS", "LOG_LEVEL", "NCCL_ALGO", "NO_COLOR",
                                      "OMP_NUM_THREADS", "PLAIT_LAUNCH_AGENT", "PLAIT_LAUNCH_COMMAND",
                                      "PLAIT_PRODUCTS", "XDG_CACHE_HOME"}));
}

TEST(PassedVariables, SchedulersGiveEachHostItsOwnDevices) {
  const char* const environment[] = {"CUDA_VISIBLE_DEVICES=2,3", nullptr};
  EXPECT_THAT(PassedVariables(environment, Scheduler::kLocal), Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(PassedVariables(environment, Scheduler::kSlurm), Not(Contains("CUDA_VISIBLE_DEVICES")));
}

TEST(AllocatedCores, AreTheLeastOfAHost) {
  EXPECT_EQ(AllocatedCores("72(x2),36", 4), 36);
  EXPECT_EQ(AllocatedCores("2", 4), 2);
  EXPECT_EQ(AllocatedCores(nullptr, 4), 4);
  EXPECT_EQ(AllocatedCores("many", 4), 4);
}

TEST(ParseSeconds, Durations) {
  EXPECT_EQ(*ParseSeconds("30s"), 30);
  EXPECT_EQ(*ParseSeconds("90"), 90);
  EXPECT_EQ(*ParseSeconds("1.5m"), 90);
  EXPECT_EQ(*ParseSeconds("2h"), 7200);
  EXPECT_EQ(*ParseSeconds("none"), 0);
  for (const char* bad : {"", "s", "-1s", "3d", "1e99", "nan", "1 s "})
    EXPECT_FALSE(ParseSeconds(bad).ok()) << bad;
}

}  // namespace
}  // namespace plait::launching
