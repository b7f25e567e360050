// Command lines of tools: Abseil flags, with an argument parser and a help text of our own.
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
// --no-use-sgd; values that begin with a minus; --help and -h. The last of several values counts. An error is
// one line:
//
//   train_gru: unknown flag --lp-level; did you mean --lp-levels? (--help lists all)
//
// Unknown flags, missing or malformed values and arguments that are no flag are errors; a tool that takes
// files says so in ToolUsage::positional and asks for them. Flags that Abseil defines for itself (--undefok, ...) are
// neither accepted nor shown.
//
// --flagfile=FILE stands for the flags in a file, one per line as above; later flags of the command line win. Empty lines
// and those that begin with # are left out. A value in double quotes has escapes as in C:
//
//   # a GPT for a processor
//   --n-layer=4
//   --sample-prompt="\n"
//
// A program with many settings binds the members of a struct instead, each written once:
//
//   std::vector<base::BoundFlag> flags = {{"lp_levels", &settings.lp_levels, "levels of the time grid"}};
//   base::ParseFlagsOrExit(argc, argv, {.name = "train_gru", ..., .bound = &flags});
//
// Local. Parsing changes the values of the flags, which Abseil keeps for the process: do it once, in main.
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

// A flag that sets a variable, whose value until then is the default.
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

std::string ValueText(const BoundFlag::Value& value);
// InvalidArgument "--NAME=TEXT: expected ..." where `text` is no value of this type.
absl::Status SetFromText(BoundFlag& flag, const std::string& text);

struct ToolUsage {
  std::string name;     // what errors begin with
  std::string summary;  // what the tool does, a sentence or two
  std::vector<std::string> examples = {};
  // A name without its ABSL_FLAG or bound flag aborts. Flags that no group names are shown last, as "Other".
  std::vector<FlagGroup> groups = {};
  // How the help names arguments that are no flags, such as "RUN.h5 [OTHER.h5 ...]"; empty: there are none.
  std::string positional = {};
  std::vector<BoundFlag>* bound = nullptr;  // outlives the usage
};

enum class Request { kRun, kHelp };

// Sets flags from `arguments` (without the program's name). InvalidArgument at the first argument that is
// wrong; those before it are set by then. The message names the argument and what was expected, without the
// tool's name.
//
// Where the usage has positional arguments they go to `positional`, in their order, between flags or after
// them; all that follows "--" is positional. A single dash and a letter ("-lr=1") stays an error before it.
absl::StatusOr<Request> ParseFlags(absl::Span<const std::string> arguments, const ToolUsage& usage,
                                   std::vector<std::string>* positional = nullptr);

// The same for main: --help prints the help and exits 0; an error prints its line to standard error and
// exits 2. Only rank 0 speaks: pass the rank where a launcher started several processes. Returns the
// positional arguments.
std::vector<std::string> ParseFlagsOrExit(int argc, char** argv, const ToolUsage& usage, int rank = 0);

// Lines of at most 100 columns: summary, examples, flags by group with their defaults.
std::string HelpText(const ToolUsage& usage);

// "--n-layer=4", as a line of a flag file that reads back as the same value.
std::string FlagLine(const BoundFlag& flag);

// Present values in the order of the groups, on one line, as Python's argparse shows them:
// "Namespace(seed=3649905550453979348, tf=128.0, use_sgd=False, data_dir='a b')".
std::string Settings(const ToolUsage& usage);

}  // namespace plait::base

#endif  // PLAIT_BASE_FLAGS_H_
