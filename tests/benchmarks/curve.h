// Gradient error against cost, setting by setting: as lines of a table, as a file for gnuplot or a
// spreadsheet, as a plot.
#ifndef PLAIT_TESTS_BENCHMARKS_CURVE_H_
#define PLAIT_TESTS_BENCHMARKS_CURVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::benchmarks {

struct CurvePoint {
  std::string setting;
  std::string mark;            // "published", "default", or empty
  int train_batches = 0;       // batches of serial training before
  double gradient_error = 0;   // relative 2-norm, against the serial gradient
  double cosine = 0;           // between both gradients
  double state_error = 0;      // relative 2-norm of the last state
  double forward_sweeps = 0;   // evaluations of Phi over steps
  double backward_sweeps = 0;  // of its adjoint
  double seconds = 0;          // per batch: forward, loss, backward; median
  double serial_seconds = 0;   // of the plain loop beside it
};

std::string CurveHeader();
std::string CurveLine(const CurvePoint& point);

// CSV with a header line; `data` goes into a comment line that begins with #. `plot "FILE" using 11:4` plots error
// against seconds. PERMISSION_DENIED if the file cannot be written.
absl::Status WriteCurve(const std::string& path, const std::string& data,
                        const std::vector<CurvePoint>& points);

// An SVG by gnuplot: error against seconds, both logarithmic, a series per train_batches, marks labelled.
// NOT_FOUND without gnuplot, UNAVAILABLE or UNKNOWN if it fails.
absl::Status PlotCurve(const std::string& path, const std::string& data,
                       const std::vector<CurvePoint>& points);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_CURVE_H_
