#include "base/flags.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/flag_value.h"
#include "base/nearest_word.h"
#include "base/path.h"
#include "base/process_exit.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "base/text.h"

namespace plait::base {
namespace {

// An Abseil flag or a BoundFlag.
class Flag {
 public:
  explicit Flag(absl::CommandLineFlag* flag) : absl_(flag) {}
  explicit Flag(BoundFlag* flag) : bound_(flag), default_(ValueText(flag->value)) {}

  std::string name() const { return bound_ != nullptr ? bound_->name : std::string(absl_->Name()); }
  std::string help() const { return bound_ != nullptr ? bound_->help : absl_->Help(); }
  std::string default_value() const { return bound_ != nullptr ? default_ : absl_->DefaultValue(); }
  bool is_bool() const {
    return bound_ != nullptr ? std::holds_alternative<bool*>(bound_->value) : absl_->IsOfType<bool>();
  }
  std::string Shown() const {
    return bound_ != nullptr ? internal::ShownValue(bound_->value) : internal::ShownValue(*absl_);
  }
  // `by`: the name that the user typed.
  absl::Status Set(const std::string& value, const std::string& by) const;

 private:
  absl::CommandLineFlag* absl_ = nullptr;
  BoundFlag* bound_ = nullptr;
  std::string default_;
};

using FlagsByName = std::map<std::string, Flag>;

constexpr int kColumns = 100, kLeastColumns = 60;
constexpr int kHelpColumn = 30;
constexpr std::size_t kLargestFlagFile = std::size_t{1} << 20;

// All flags but those that Abseil's libraries define.
FlagsByName ToolFlags(const ToolUsage& usage) {
  FlagsByName flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (!absl::StrContains(flag->Filename(), "absl/flags/")) flags.emplace(std::string(name), Flag(flag));
  }
  if (usage.bound == nullptr) return flags;
  for (BoundFlag& flag : *usage.bound) flags.insert_or_assign(flag.name, Flag(&flag));
  return flags;
}

FlagsByName WithOldNames(FlagsByName flags, const ToolUsage& usage) {
  if (usage.bound == nullptr) return flags;
  for (BoundFlag& flag : *usage.bound) {
    if (!flag.old_name.empty()) flags.emplace(flag.old_name, Flag(&flag));
  }
  return flags;
}

std::string WithDashes(const std::string& name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }
std::string WithUnderscores(const std::string& name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

// The flag that `--name` refers to; negated for --noname.
struct Match {
  const Flag* flag = nullptr;
  bool negated = false;
};

Match FindFlag(const FlagsByName& flags, const std::string& name) {
  if (const auto found = flags.find(name); found != flags.end()) return {&found->second, false};
  for (const char* prefix : {"no_", "no"}) {
    if (!absl::StartsWith(name, prefix)) continue;
    const auto found = flags.find(name.substr(std::string(prefix).size()));
    if (found != flags.end() && found->second.is_bool()) return {&found->second, true};
  }
  return {};
}

absl::Status UnknownFlag(const FlagsByName& flags, const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const auto& [known, flag] : flags) names.push_back(known);
  return absl::InvalidArgumentError(absl::StrCat("unknown flag --", WithDashes(name), "; did you mean --",
                                                 WithDashes(NearestWord(name, names)),
                                                 "? (--help lists all)"));
}

absl::Status SetAbslFlag(absl::CommandLineFlag& flag, const std::string& value) {
  std::string error;
  if (flag.ParseFrom(value, &error)) return absl::OkStatus();
  const std::string shown = absl::StrCat("--", WithDashes(std::string(flag.Name())), "=", value, ": ");
  if (const std::string expected = internal::ExpectedValue(flag); !expected.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(shown, "expected ", expected));
  }
  // "Illegal value 'x' specified for flag 'gru'; expected implicit or classic": the type's own words come
  // last.
  const std::size_t semicolon = error.find("; ");
  return absl::InvalidArgumentError(
      absl::StrCat(shown, semicolon == std::string::npos ? error : error.substr(semicolon + 2)));
}

absl::Status Flag::Set(const std::string& value, const std::string& by) const {
  if (bound_ == nullptr) return SetAbslFlag(*absl_, value);
  bound_->given = true;
  bound_->old_name_given |= by == bound_->old_name;
  return SetFromText(*bound_, value);
}

bool LooksLikeFlag(const std::string& argument) {
  return argument.size() > 2 && absl::StartsWith(argument, "--") && absl::ascii_isalpha(argument[2]);
}

bool LooksLikeTruth(const std::string& argument) {
  const std::set<std::string> words = {"true", "false", "yes", "no", "1", "0", "on", "off"};
  return words.count(absl::AsciiStrToLower(argument)) > 0;
}

absl::Status Leftover(const std::string& argument, const Flag* previous) {
  if (previous != nullptr && previous->is_bool() && LooksLikeTruth(argument)) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", argument, "'; write --",
                                                   WithDashes(previous->name()), "=", argument));
  }
  return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", argument,
                                                 "'; settings are given as --flag=value (--help lists all)"));
}

// Walks over the arguments; a flag may take the one after it as its value.
class ArgumentReader {
 public:
  // `positional` receives positional arguments; if null, these are errors.
  ArgumentReader(absl::Span<const std::string> arguments, const FlagsByName& flags,
                 std::vector<std::string>* positional)
      : arguments_(arguments), flags_(flags), positional_(positional) {}

  absl::StatusOr<Request> ReadAll() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--help" || argument == "-h") return Request::kHelp;
      if (argument == "--") {
        TakeRest();
      } else if (LooksLikeFlag(argument)) {
        PLAIT_RETURN_IF_ERROR(ReadFlag(argument.substr(2)));
      } else {
        PLAIT_RETURN_IF_ERROR(TakePositional(argument));
      }
    }
    return Request::kRun;
  }

 private:
  // After "--" everything is positional; if the tool takes no positional arguments, "--" is ignored.
  void TakeRest() {
    if (positional_ == nullptr) return;
    positional_->insert(positional_->end(), arguments_.begin() + next_, arguments_.end());
    next_ = arguments_.size();
  }

  absl::Status TakePositional(const std::string& argument) {
    const bool mistaken_truth = previous_ != nullptr && previous_->is_bool() && LooksLikeTruth(argument);
    if (positional_ == nullptr || argument.empty() || argument[0] == '-' || mistaken_truth) {
      return Leftover(argument, previous_);
    }
    positional_->push_back(argument);
    previous_ = nullptr;
    return absl::OkStatus();
  }

  // `text`: without the dashes.
  absl::Status ReadFlag(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string name = WithUnderscores(text.substr(0, equals));
    if (name == "flagfile") {
      if (equals == std::string::npos && next_ == arguments_.size()) {
        return absl::InvalidArgumentError("--flagfile needs a value, such as --flagfile=settings.flags");
      }
      return ReadFile(equals == std::string::npos ? arguments_[next_++] : text.substr(equals + 1));
    }
    const auto [flag, negated] = FindFlag(flags_, name);
    if (flag == nullptr) return UnknownFlag(flags_, name);
    previous_ = flag;
    if (equals != std::string::npos) {
      if (!negated) return flag->Set(text.substr(equals + 1), name);
      return absl::InvalidArgumentError(absl::StrCat("--", WithDashes(name), " takes no value"));
    }
    if (flag->is_bool()) return flag->Set(negated ? "false" : "true", name);
    if (next_ == arguments_.size() || LooksLikeFlag(arguments_[next_])) return MissingValue(*flag);
    return flag->Set(arguments_[next_++], name);
  }

  absl::Status ReadFile(const std::string& path) {
    const auto refuse = [&](auto... words) {
      return absl::InvalidArgumentError(absl::StrCat("--flagfile=", path, ": ", words...));
    };
    if (in_file_)
      return refuse("--flagfile inside a flag file is not supported; give it on the command line");
    const std::string place = FromUser(path);
    std::error_code missing;
    // The ranks that a program starts read the file once more.
    if (std::filesystem::exists(place, missing) && !std::filesystem::is_regular_file(place, missing)) {
      return refuse("expected a regular file, which can be read again");
    }
    std::ifstream file(place);
    if (!file) return refuse("cannot be read; expected a file with a flag per line");
    std::string lines;
    for (char piece[4096]; file && lines.size() <= kLargestFlagFile;) {
      file.read(piece, sizeof(piece));
      lines.append(piece, file.gcount());
    }
    if (file.bad()) return refuse("cannot be read");
    if (lines.size() > kLargestFlagFile) {
      return refuse("has more than ", kLargestFlagFile, " bytes; expected a file with a flag per line");
    }
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
      ++number;
      const std::string text(absl::StripAsciiWhitespace(line));
      if (text.empty() || text[0] == '#') continue;
      absl::StatusOr<std::string> argument = Unquoted(text);
      if (argument.ok() && !LooksLikeFlag(*argument)) {
        argument = absl::InvalidArgumentError(absl::StrCat("'", text, "': expected --flag=value"));
      }
      absl::Status status = argument.status();
      const std::string words[1] = {argument.value_or("")};
      ArgumentReader line_reader(words, flags_, nullptr);
      line_reader.in_file_ = true;
      if (status.ok()) status = line_reader.ReadAll().status();
      // An error is one line, whatever a value's escapes stand for.
      if (!status.ok())
        return refuse("line ", number, ": ", absl::StrReplaceAll(status.message(), {{"\n", "\\n"}}));
    }
    return absl::OkStatus();
  }

  // "--name="text"" with its escapes resolved.
  static absl::StatusOr<std::string> Unquoted(const std::string& text) {
    const std::size_t value = text.find('=') + 1;
    const std::size_t end = text.size() - 1;
    if (value == 0 || value >= end || text[value] != '"' || text[end] != '"') return text;
    std::string plain;
    if (absl::CUnescape(text.substr(value + 1, end - value - 1), &plain))
      return text.substr(0, value) + plain;
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': invalid C escape sequence"));
  }

  static absl::Status MissingValue(const Flag& flag) {
    const std::string name = WithDashes(flag.name());
    return absl::InvalidArgumentError(
        absl::StrCat("--", name, " needs a value, such as --", name, "=", flag.default_value()));
  }

  absl::Span<const std::string> arguments_;
  const FlagsByName& flags_;
  std::vector<std::string>* positional_;
  std::size_t next_ = 0;
  const Flag* previous_ = nullptr;
  bool in_file_ = false;
};

// `text` in lines of at most `columns`, where the first line already has `used` characters; later lines are indented by
// `indent`.
std::string Wrapped(const std::string& text, int indent, int used, int columns) {
  const std::vector<std::string> lines =
      WrapText(absl::StrReplaceAll(text, {{"\n", " "}}), columns - used, indent - used);
  return absl::StrJoin(lines, "\n" + std::string(used, ' ')) + "\n";
}

std::string FlagHelp(const Flag& flag, int columns) {
  std::string left = absl::StrCat("  --", flag.is_bool() ? "[no]" : "", WithDashes(flag.name()));
  left += std::ssize(left) + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                             : std::string(kHelpColumn - left.size(), ' ');
  const std::string value = flag.default_value();
  const std::string shown = value.empty() ? "" : absl::StrCat(" (default: ", value, ")");
  return left + Wrapped(absl::StrCat(flag.help(), shown), kHelpColumn, kHelpColumn, columns);
}

// The flags by group, in order, then the ungrouped ones as "Other".
std::vector<std::pair<std::string, std::vector<Flag>>> GroupedFlags(const ToolUsage& usage) {
  FlagsByName flags = ToolFlags(usage);
  std::vector<std::pair<std::string, std::vector<Flag>>> groups;
  for (const FlagGroup& group : usage.groups) {
    groups.emplace_back(group.title, std::vector<Flag>());
    for (const std::string& name : group.flags) {
      const auto found = flags.find(name);
      PLAIT_CHECK(found != flags.end()) << "group '" << group.title << "' names --" << name
                                        << ", which nothing defines or another group has";
      groups.back().second.push_back(found->second);
      flags.erase(found);
    }
  }
  if (flags.empty()) return groups;
  groups.emplace_back("Other", std::vector<Flag>());
  for (const auto& [name, flag] : flags) groups.back().second.push_back(flag);
  return groups;
}

// Examples have a line each, however long, which can be pasted.
std::string HelpTextIn(int columns, const ToolUsage& usage) {
  std::string text =
      absl::StrCat(Wrapped(absl::StrCat(usage.name, ": ", usage.summary), 2, 0, columns), "\n");
  absl::StrAppend(&text, "Usage: ", usage.name, " [--flagfile=FILE] [--flag=value ...]",
                  usage.positional.empty() ? "" : " ", usage.positional, "\n");
  if (!usage.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : usage.examples) absl::StrAppend(&text, "  ", example, "\n");
  for (const auto& [title, flags] : GroupedFlags(usage)) {
    absl::StrAppend(&text, "\n", title, ":\n");
    for (const Flag& flag : flags) text += FlagHelp(flag, columns);
  }
  return text;
}

int ColumnsOfHelp() {
  const Terminal terminal = DetectTerminal(1);
  return terminal.interactive ? std::clamp(terminal.columns, kLeastColumns, kColumns) : kColumns;
}

}  // namespace

absl::StatusOr<Request> ParseFlags(absl::Span<const std::string> arguments, const ToolUsage& usage,
                                   std::vector<std::string>* positional) {
  PLAIT_CHECK(usage.positional.empty() || positional != nullptr)
      << usage.name << " takes " << usage.positional << ", and nobody asks for it";
  const FlagsByName flags = WithOldNames(ToolFlags(usage), usage);
  return ArgumentReader(arguments, flags, usage.positional.empty() ? nullptr : positional).ReadAll();
}

std::vector<std::string> ParseFlagsOrExit(int argc, char** argv, const ToolUsage& usage, int rank) {
  PrepareExit(usage.name);
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  // Before a bound flag's variable loses its default.
  const std::string help = rank == 0 ? HelpTextIn(ColumnsOfHelp(), usage) : "";
  std::vector<std::string> positional;
  const absl::StatusOr<Request> request = ParseFlags(arguments, usage, &positional);
  if (!request.ok()) {
    if (rank == 0) std::cerr << absl::StrCat(usage.name, ": ", request.status().message(), "\n");
    std::exit(2);
  }
  if (*request == Request::kHelp) {
    std::cout << help << std::flush;
    std::exit(0);
  }
  if (rank == 0 && usage.bound != nullptr) {
    for (const BoundFlag& flag : *usage.bound) {
      if (!flag.old_name_given) continue;
      std::cerr << absl::StrCat(usage.name, ": --", WithDashes(flag.old_name), " has been renamed to --",
                                WithDashes(flag.name), "\n");
    }
  }
  return positional;
}

std::string FlagLine(const BoundFlag& flag) {
  const std::string value = ValueText(flag.value);
  const bool plain = value == absl::StripAsciiWhitespace(value) && value == absl::Utf8SafeCEscape(value);
  return absl::StrCat("--", WithDashes(flag.name), "=",
                      plain ? value : absl::StrCat("\"", absl::Utf8SafeCEscape(value), "\""));
}

std::string HelpText(const ToolUsage& usage) { return HelpTextIn(kColumns, usage); }

std::string Settings(const ToolUsage& usage) {
  std::string text = "Namespace(";
  const char* separator = "";
  for (const auto& [title, flags] : GroupedFlags(usage)) {
    for (const Flag& flag : flags) {
      absl::StrAppend(&text, separator, flag.name(), "=", flag.Shown());
      separator = ", ";
    }
  }
  return text + ")";
}

}  // namespace plait::base
