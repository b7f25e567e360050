// Command lines of tools: Abseil flags, with Plait's own argument parser and help text.
//
//   ABSL_FLAG(int, lp_levels, 3, "levels of the time grid");
//   ABSL_FLAG(bool, use_sgd, false, "plain gradient descent instead of Adam");
//
//   int main(int argc, char** argv) {
//     const base::ToolUsage usage = {
//         .name = "train_gru",
//         .summary = "Trains a recurrent network layer-parallel.",
//         .examples = {"train_gru --lp-levels 3 --nproc=4"},
//         .groups = {{"Solver", {"lp_levels"}}, {"Optimizer", {"use_sgd"}}}};
//     base::ParseFlagsOrExit(argc, argv, usage);
//     std::cout << "INPUT: " << base::Settings(usage) << "\n";
//
// Accepted: --lp-levels 3, --lp-levels=3, --lp_levels=3; --use-sgd, --use-sgd=true, --nouse-sgd,
// --no-use-sgd; values that begin with a minus; --help and -h. A repeated flag takes its last value. An error is
// one line:
//
//   train_gru: unknown flag --lp-level; did you mean --lp-levels? (--help lists all)
//
// Unknown flags, missing or malformed values and positional arguments are errors, unless ToolUsage::positional declares
// the latter. Flags that Abseil defines for itself (--undefok, ...) are neither accepted nor shown.
//
// --flagfile=FILE reads flags from a regular file (ranks that a program starts read it again), one per line as above;
// flags that follow it on the command line override them. Empty lines and lines that begin with # are ignored. A value
// in double quotes may contain C escapes:
//
//   # a GPT for the CPU
//   --n-layer=4
//   --sample-prompt="\n"
//
// A program with many settings binds the members of a struct instead of defining Abseil flags:
//
//   std::vector<base::BoundFlag> flags = {{"lp_levels", &settings.lp_levels, "levels of the time grid"}};
//   base::ParseFlagsOrExit(argc, argv, {.name = "train_gru", ..., .bound = &flags});
//
// Local. Parsing sets process-wide flag values: do it once, in main.
#ifndef PLAIT_BASE_FLAGS_H_
#define PLAIT_BASE_FLAGS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace plait::base {

struct FlagGroup {
  std::string title;
  std::vector<std::string> flags;  // names as in ABSL_FLAG, in the order in which they are shown
};

// A flag bound to a variable; the variable's value before parsing is the default.
struct BoundFlag {
  using Value = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                             std::vector<int>*>;  // a list is written 4,2
  std::string name;                               // with underscores
  Value value;
  std::string help;
  std::string old_name = {};  // also accepted; ParseFlagsOrExit then prints a line with the new name
  bool given = false;         // set by parsing
  bool old_name_given = false;
};

// The value as written on a command line, "true", "4,2", "1e-05"; SetFromText reads it back.
std::string ValueText(const BoundFlag::Value& value);
// Parses `text` into the bound variable. INVALID_ARGUMENT "--NAME=TEXT: expected ..." if it has the wrong type; the
// variable is unchanged then.
absl::Status SetFromText(BoundFlag& flag, const std::string& text);

struct ToolUsage {
  std::string name;     // what errors begin with
  std::string summary;  // what the tool does, a sentence or two
  std::vector<std::string> examples = {};
  // Aborts if a group names a flag that does not exist or is in another group. Ungrouped flags come last, as "Other".
  std::vector<FlagGroup> groups = {};
  // Positional arguments as the help shows them, such as "RUN.h5 [OTHER.h5 ...]"; empty: none are accepted.
  std::string positional = {};
  std::vector<BoundFlag>* bound = nullptr;  // not owned; outlives the usage
};

enum class Request { kRun, kHelp };

// Sets flags from `arguments` (without the program's name). INVALID_ARGUMENT at the first invalid argument; flags
// before it have been set. The message names the argument and what was expected, without the tool's name.
//
// If the usage declares positional arguments, they are appended to `positional` (which must not be null) in order,
// wherever they stand; everything after "--" is positional. Before it, an argument that begins with a single dash
// ("-lr=1") is an error.
absl::StatusOr<Request> ParseFlags(absl::Span<const std::string> arguments, const ToolUsage& usage,
                                   std::vector<std::string>* positional = nullptr);

// The same for main: --help prints the help and exits with 0; an error is printed to standard error and exits with 2.
// Only rank 0 prints: pass the rank where a launcher started several processes. Returns the positional arguments.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv, const ToolUsage& usage, int rank = 0);

// Summary, usage, examples, and flags by group with their defaults, wrapped at 100 columns (examples are not wrapped).
std::string HelpText(const ToolUsage& usage);

// "--n-layer=4", as a line of a flag file that reads back as the same value.
std::string FlagLine(const BoundFlag& flag);

// Current values in the order of the groups, on one line, as Python's argparse shows them:
// "Namespace(seed=3649905550453979348, tf=128.0, use_sgd=False, data_dir='a b')".
std::string Settings(const ToolUsage& usage);

}  // namespace plait::base

#endif  // PLAIT_BASE_FLAGS_H_
