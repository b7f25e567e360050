#include "tests/benchmarks/curve.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::benchmarks {
namespace {

// Within single quotes of gnuplot, a quote is doubled.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

std::string Points(const std::vector<CurvePoint>& points, int train_batches, bool marked) {
  std::string lines;
  std::set<std::string> marks;  // a marked setting may also be one of the list
  for (const CurvePoint& p : points) {
    if (p.train_batches != train_batches || (marked && p.mark.empty())) continue;
    if (marked && !marks.insert(p.mark).second) continue;
    absl::StrAppendFormat(&lines, "%.6g %.6g \"%s\"\n", p.seconds, p.gradient_error, p.mark);
  }
  return lines;
}

std::string Script(const std::string& path, const std::string& data, const std::vector<CurvePoint>& points) {
  std::set<int> series;
  for (const CurvePoint& p : points) series.insert(p.train_batches);
  std::string script = absl::StrCat(
      "set terminal svg size 900,600 font 'sans,13'\nset output ", Quoted(path),
      "\nset logscale xy\nset grid\nset format y '10^{%L}'\nset offsets graph 0.05, graph 0.1, 0, 0\n",
      "set title ", Quoted("Gradient error against cost, " + data), " noenhanced\n",
      "set xlabel 'seconds per batch: forward, loss, backward, one rank'\nset "
      "ylabel 'relative error of the gradient'\n",
      "set key bottom left\n");
  std::string plot;
  for (const int batches : series) {
    const std::string own = Points(points, batches, false), marked = Points(points, batches, true);
    absl::StrAppend(&script, "$all", batches, " << EOD\n", own, "EOD\n");
    absl::StrAppend(&plot, plot.empty() ? "plot " : ", ", "$all", batches,
                    " using 1:2 with points pt 7 ps 0.6 title ",
                    Quoted(absl::StrCat("after ", batches, " batches of training")));
    if (marked.empty()) continue;
    absl::StrAppend(&script, "$marked", batches, " << EOD\n", marked, "EOD\n");
    absl::StrAppend(&plot, ", $marked", batches,
                    " using 1:2 with points pt 6 ps 1.6 lc 'black' notitle, $marked", batches,
                    " using 1:2:3 with labels offset 1,0.8 left notitle");
  }
  return script + plot + "\n";
}

}  // namespace

std::string CurveHeader() {
  return absl::StrFormat("%9s %8s %8s %8s %7s %7s %8s %7s  %s", "grad.err", "cosine", "state", "trained",
                         "forward", "backwd", "seconds", "/serial", "setting");
}

std::string CurveLine(const CurvePoint& p) {
  return absl::StrFormat("%9.5f %8.5f %8.5f %8d %7.2f %7.2f %8.4f %7.2f  %s%s%s", p.gradient_error, p.cosine,
                         p.state_error, p.train_batches, p.forward_sweeps, p.backward_sweeps, p.seconds,
                         p.seconds / p.serial_seconds, p.setting, p.mark.empty() ? "" : "  <- ", p.mark);
}

absl::Status WriteCurve(const std::string& path, const std::string& data,
                        const std::vector<CurvePoint>& points) {
  std::ofstream file(path);
  file
      << "# data: " << data << "\n"
      << "setting,mark,train_batches,gradient_error,cosine,state_error,forward_sweeps,backward_sweeps,sweeps,"
         "serial_seconds,seconds\n";
  for (const CurvePoint& p : points) {
    file << absl::StrFormat("\"%s\",%s,%d,%.8f,%.8f,%.8f,%.4f,%.4f,%.4f,%.6f,%.6f\n", p.setting, p.mark,
                            p.train_batches, p.gradient_error, p.cosine, p.state_error, p.forward_sweeps,
                            p.backward_sweeps, p.forward_sweeps + p.backward_sweeps, p.serial_seconds,
                            p.seconds);
  }
  file.close();
  return file ? absl::OkStatus() : absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written"));
}

absl::Status PlotCurve(const std::string& path, const std::string& data,
                       const std::vector<CurvePoint>& points) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {
    return absl::NotFoundError("--plot: gnuplot is not installed (Debian: gnuplot-nox)");
  }
  std::FILE* gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) return absl::UnavailableError("--plot: gnuplot cannot be started");
  const std::string script = Script(path, data, points);
  std::fwrite(script.data(), 1, script.size(), gnuplot);
  return pclose(gnuplot) == 0 ? absl::OkStatus()
                              : absl::UnknownError(absl::StrCat(path, ": gnuplot has failed"));
}

}  // namespace plait::benchmarks
