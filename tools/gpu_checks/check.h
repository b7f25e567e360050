// The checks of gpu_checklist, which a machine with a GPU must pass before its results are trusted.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<Check> checks, Select(AllChecks(), "gru_cell,test_dist"));
//   for (const Check& check : checks) std::puts(Line(check, RunCheck(check, context)).c_str());
#ifndef PLAIT_TOOLS_GPU_CHECKS_CHECK_H_
#define PLAIT_TOOLS_GPU_CHECKS_CHECK_H_

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::gpu_checks {

enum class Outcome { kPassed, kFailed, kSkipped };

struct Result {
  Outcome outcome = Outcome::kFailed;
  std::string numbers;  // one line: errors and tolerances, or why the check failed or was skipped
};

struct ProgramRun {
  int code = 0;        // exit code; -1: a signal, or it cannot be started
  std::string output;  // both streams
};

// How programs are found and run: on this machine in gpu_checklist, made up in tests.
struct Programs {
  std::string directory = "";  // with test_dist, the trainers, doctor and conformance_nccl_test_on_ranks
  std::string scratch = "";    // directory for their files
  std::function<bool(const std::string& name)> exists = {};  // in `directory`, or "mpirun" on the PATH
  std::function<ProgramRun(const std::vector<std::string>& command)> run = {};
};
// `log`: file to which each command and what it printed is appended; empty: none.
Programs ProgramsOfMachine(const std::string& directory, const std::string& scratch, const std::string& log);

struct Context {
  comm::Communicator world;  // of one rank
  c10::Device device = c10::kCPU;
  int gpus = 0;
  Programs programs = {};
};

struct Check {
  std::string name;
  std::string what;
  std::function<Result(const Context& context)> run;
};

// In the order of docs/gpu.md.
std::vector<Check> AllChecks();

// `names`: comma-separated; empty: all. INVALID_ARGUMENT with the known names for an unknown one.
absl::StatusOr<std::vector<Check>> Select(std::vector<Check> checks, absl::string_view names);

// check.run(context); an exception is a failure with the first line of its message.
Result RunCheck(const Check& check, const Context& context);

// "PASSED   doctor: no ERROR: 15 OK, 1 WARNING": outcome, name, what is checked, numbers.
std::string Line(const Check& check, const Result& result);

// The report: `facts` of the machine, the lines, and a summary.
struct Finished {
  Check check;
  Result result;
};
std::string Report(const std::vector<std::pair<std::string, std::string>>& facts,
                   const std::vector<Finished>& finished);
// "8 passed, 0 failed, 1 skipped"
std::string Summary(const std::vector<Finished>& finished);
// 0 if at least one check passed and none failed, else 1.
int ExitCode(const std::vector<Finished>& finished);

// Passed if error <= tolerance; NaN fails.
Result Compared(double error, double tolerance);

// tensor_checks.cc: in this process, on context.device, against float64 on the host.
Result CheckGruCell(const Context& context);
Result CheckLayerParallel(const Context& context);

// cross_entropy_check.cc: the same.
Result CheckCrossEntropy(const Context& context);

// program_checks.cc: other programs of the build.
Result CheckNccl(const Context& context);
Result CheckTestDist(const Context& context);
Result CheckTestDistRanks(const Context& context);
// `program`: train_gpt, train_llama, train_vit, train_cnn, train_gru or train_odenet.
Result CheckTrainer(const Context& context, const std::string& program);
Result CheckDoctor(const Context& context);

// mesh_checks.cc: trainers on 2 and 4 ranks with NCCL, one GPU each, or all on one GPU where there are fewer (as root).
Result CheckMeshes(const Context& context);

}  // namespace plait::gpu_checks

#endif  // PLAIT_TOOLS_GPU_CHECKS_CHECK_H_
