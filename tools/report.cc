// Shows runs from their histories: tables, plots, comparison, a page. See tools/report_parts/README.md.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/flags.h"
#include "base/path.h"
#include "base/process_exit.h"
#include "comm/interrupt.h"
#include "data/plot/plot.h"
#include "tools/report_parts/follow.h"
#include "tools/report_parts/machine_text.h"
#include "tools/report_parts/mlflow_export.h"
#include "tools/report_parts/page.h"
#include "tools/report_parts/run_numbers.h"
#include "tools/report_parts/text_report.h"

ABSL_FLAG(std::string, metrics, "", "metrics to show, comma-separated, such as loss,dt (default: all)");
ABSL_FLAG(int, skip, 0, "number of draws to skip at the start (warm-up)");
ABSL_FLAG(std::string, format, "text",
          "output format: text, md (Markdown), json, or csv (the metrics' table)");
ABSL_FLAG(std::string, plots, "",
          "metrics to plot in the terminal, comma-separated; all, none; default: loss, times, speed");
ABSL_FLAG(std::string, html, "", "write one HTML page with charts, tables and timeline to this file");
ABSL_FLAG(std::string, mlflow, "",
          "write the runs into this directory in the layout of MLflow's file store (mlruns)");
ABSL_FLAG(bool, follow, false, "serve the page on this machine, updated while the runs continue");
ABSL_FLAG(int, port, 0, "port of --follow; 0: a free port, which is printed");
ABSL_FLAG(int, columns, 0, "width of the text; 0: the terminal's");

namespace plait::report {
namespace {

constexpr int kUsageError = 2;

base::ToolUsage Usage() {
  return {
      .name = "report",
      .summary =
          "Summarizes runs from their histories: statistics of each metric, throughput, overlap, slow ranks, "
          "and differences between runs.",
      .examples = {"report run.h5", "report run.h5 other.h5 --skip=10 --html=out.html",
                   "report run.h5 --metrics=loss,dt --format=json", "report run.h5 --follow --port=8000"},
      .groups = {{"What", {"metrics", "skip"}},
                 {"How", {"format", "plots", "html", "mlflow", "columns", "follow", "port"}}},
      .positional = "RUN.h5 [OTHER.h5 ...]"};
}

std::vector<std::string> Names(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

int Fail(const std::string& message, int code) {
  std::fprintf(stderr, "report: %s\n", message.c_str());
  return code;
}

std::string CheckFlags(const std::vector<std::string>& files) {
  const std::string format = absl::GetFlag(FLAGS_format);
  if (files.empty()) return "expected the file of a run: report run.h5 (--help lists all)";
  if (format != "text" && format != "md" && format != "json" && format != "csv") {
    return absl::StrCat("--format=", format, ": expected text, md, json or csv");
  }
  if (absl::GetFlag(FLAGS_skip) < 0) return "--skip: expected 0 or more";
  if (absl::GetFlag(FLAGS_columns) < 0) return "--columns: expected 0 or more";
  const int port = absl::GetFlag(FLAGS_port);
  const bool follows = absl::GetFlag(FLAGS_follow);
  if (port < 0 || port > 65535) return "--port: expected 0 to 65535";
  if (port > 0 && !follows) return "--port: expected with --follow";
  const bool writes = !absl::GetFlag(FLAGS_html).empty() || !absl::GetFlag(FLAGS_mlflow).empty();
  if (follows && writes) return "--follow: expected without --html and --mlflow";
  const std::string plots = absl::GetFlag(FLAGS_plots);
  const bool has_plots = !plots.empty() && plots != "none";
  if (follows && (has_plots || format != "text" || absl::GetFlag(FLAGS_columns) > 0)) {
    return "--follow: expected without --format, --plots and --columns, which are of the text";
  }
  if (has_plots && format != "text") return "--plots: expected with --format=text";
  return "";
}

RunOptions Options() {
  return {.metrics = Names(absl::GetFlag(FLAGS_metrics)),
          .skip = absl::GetFlag(FLAGS_skip),
          .timeline = !absl::GetFlag(FLAGS_html).empty() || absl::GetFlag(FLAGS_follow)};
}

void Print(const std::vector<RunNumbers>& runs) {
  data::TextStyle style = data::TextStyleOf(1);
  if (absl::GetFlag(FLAGS_columns) > 0) style.columns = absl::GetFlag(FLAGS_columns);
  const std::string format = absl::GetFlag(FLAGS_format);
  const std::string text = format == "json"  ? JsonText(runs)
                           : format == "csv" ? CsvText(runs)
                           : format == "md"  ? MarkdownReport(runs)
                                             : TextReport(runs, Names(absl::GetFlag(FLAGS_plots)), style);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int Main(int argc, char** argv) {
  std::vector<std::string> files = base::ParseFlagsOrExit(argc, argv, Usage());
  if (const std::string wrong = CheckFlags(files); !wrong.empty()) return Fail(wrong, kUsageError);
  const comm::InterruptHandler interrupt;
  for (std::string& file : files) file = base::FromUser(file);
  const std::string html = base::FromUser(absl::GetFlag(FLAGS_html));
  if (!html.empty() && !MayBecomePage(html, files)) {
    return Fail("--html=" + html + ": is no page of an earlier report; name a new file", kUsageError);
  }
  if (absl::GetFlag(FLAGS_follow)) {
    return Fail(std::string(Follow(files, Options(), absl::GetFlag(FLAGS_port)).message()), 1);
  }
  std::vector<absl::Status> unreadable;
  const std::vector<RunNumbers> runs = ReadRuns(files, Options(), unreadable);
  for (const absl::Status& error : unreadable) Fail(std::string(error.message()), 1);
  if (runs.empty()) return 1;
  if (absl::GetFlag(FLAGS_format) == "text") {
    if (const absl::Status known = CheckPlots(runs, Names(absl::GetFlag(FLAGS_plots))); !known.ok())
      return Fail(std::string(known.message()), 1);
  }
  Print(runs);
  if (const std::string folder = base::FromUser(absl::GetFlag(FLAGS_mlflow)); !folder.empty()) {
    if (const absl::Status done = ExportToMlflow(runs, folder); !done.ok())
      return Fail(std::string(done.message()), 1);
  }
  if (!html.empty()) {
    const absl::Status written = WritePage(runs, html);
    if (!written.ok()) return Fail(std::string(written.message()), 1);
    std::fflush(stdout);  // the tables come first, where both go to one file
    std::fprintf(stderr, "report: page written to %s\n", html.c_str());
  }
  return unreadable.empty() ? 0 : 1;
}

}  // namespace
}  // namespace plait::report

int main(int argc, char** argv) {
  return plait::base::RunTool("report", [&] { return plait::report::Main(argc, argv); });
}
