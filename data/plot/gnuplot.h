// One run of gnuplot: a script in, pictures out. Private to data/plot.
//
//   std::vector<std::string> pictures;
//   RunGnuplot(pages, "gnuplot");
//
// The program is started without a shell and without the user's settings; script and pages are files in a
// temporary folder of its own, which is removed.
#ifndef PLAIT_DATA_PLOT_GNUPLOT_H_
#define PLAIT_DATA_PLOT_GNUPLOT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::data {

struct GnuplotPage {
  std::string terminal;  // "svg size 800,500 ..."
  std::string commands;  // settings and one plot; begins from gnuplot's defaults
};

// The output of each page, in order. FAILED_PRECONDITION: `program` is not installed (names the package);
// INTERNAL: it failed or drew nothing (its first message); DEADLINE_EXCEEDED after a minute.
absl::StatusOr<std::vector<std::string>> RunGnuplot(absl::Span<const GnuplotPage> pages,
                                                    const std::string& program = "gnuplot");

// `text` as a string expression of gnuplot: nothing in it is a command, an escape or the end of the string.
// Printable() (base/text.h) is applied.
std::string Quoted(absl::string_view text);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_GNUPLOT_H_
