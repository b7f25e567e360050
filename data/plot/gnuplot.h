// Runs gnuplot. Private to data/plot.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> pictures, RunGnuplot(pages));
//
// The program is started without a shell and without the user's settings; script and pictures are files in a
// temporary folder, which is removed afterwards.
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
  std::string commands;  // settings and one plot; run after gnuplot's `reset`
};

// Returns the contents of each picture, in order. FAILED_PRECONDITION: `program` is not installed (names the
// package); INTERNAL: it failed or drew nothing (with its first message); DEADLINE_EXCEEDED: it took more than a
// minute; errors of the temporary folder.
absl::StatusOr<std::vector<std::string>> RunGnuplot(absl::Span<const GnuplotPage> pages,
                                                    const std::string& program = "gnuplot");

// Returns `text`, after Printable() (base/text.h), as a string expression of gnuplot: quoted so that nothing in it is
// interpreted.
std::string Quoted(absl::string_view text);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_GNUPLOT_H_
