#include "data/plot/picture_frame.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "data/plot/gnuplot.h"

namespace plait::data {
namespace {

std::vector<std::string> NoteLines(const std::vector<std::string>& notes) {
  constexpr int kColumns = 100;
  constexpr std::size_t kMost = 6;
  std::vector<std::string> lines;
  for (const std::string& note : notes) {
    for (std::string& line : base::WrapText(note, kColumns, 3)) lines.push_back(std::move(line));
  }
  if (lines.size() > kMost) {
    lines.resize(kMost - 1);
    lines.push_back("and more; the text plot lists them all");
  }
  return lines;
}

}  // namespace

std::string Terminal(PictureFormat format) {
  switch (format) {
    case PictureFormat::kSvg:
      return absl::StrFormat("svg size %d,%d noenhanced font 'DejaVu Sans,14' background '#ffffff'",
                             kPictureWidth, kPictureHeight);
    case PictureFormat::kPng:
      return absl::StrFormat("pngcairo size %d,%d noenhanced font 'DejaVu Sans,11' background '#ffffff'",
                             kPictureWidth, kPictureHeight);
    case PictureFormat::kPage:
      break;
  }
  return absl::StrFormat("svg size %d,%d noenhanced font 'DejaVu Sans,11'", kPageChartWidth,
                         kPageChartHeight);
}

std::string TickCommand(const char* name, const Axis& axis, int most) {
  std::vector<std::string> list;
  for (const Tick& tick : Ticks(axis, most)) {
    list.push_back(absl::StrFormat("%s %.7g", Quoted(tick.label), axis.Position(tick.value)));
  }
  return absl::StrCat("set ", name, "tics (", absl::StrJoin(list, ", "), ")\n");
}

std::string FrameCommands(const Axis& x, const Axis& y, const PictureColours& colours, int x_ticks,
                          int y_ticks) {
  return absl::StrFormat(
             "set border 3 lw 1 lc rgb '%s'\nset tics nomirror out scale 0.5 textcolor rgb '%s'\n"
             "set grid lt 1 lw 0.8 lc rgb '%s'\nset xrange [0:1]\nset yrange [0:1]\nset clip two\n",
             colours.frame, colours.letters, colours.grid) +
         TickCommand("x", x, x_ticks) + TickCommand("y", y, y_ticks);
}

std::string LetterCommands(const PictureTexts& texts, const std::vector<std::string>& all_notes,
                           PictureFormat format) {
  const std::string letters = absl::StrCat(" textcolor rgb '", kFileColours.letters, "'");
  const std::vector<std::string> notes = NoteLines(all_notes);
  std::string text = absl::StrFormat("set rmargin 3\nset bmargin %g\nset xlabel %s%s\nset ylabel %s%s\n",
                                     3.4 + 1.1 * static_cast<double>(notes.size()), Quoted(texts.x_label),
                                     letters, Quoted(texts.y_label), letters);
  // A title of the plot would stand between the legend and the curves.
  absl::StrAppend(&text,
                  !texts.legend ? "unset key\nset title "
                                : "set key outside top center horizontal Left reverse samplen 2 width 1" +
                                      letters + "\nset key title ",
                  Quoted(texts.title), letters, "\n");
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const double y = 14 + 16.0 * static_cast<double>(notes.size() - 1 - i);
    absl::StrAppendFormat(&text, "set label %d %s at screen %.4f,%.4f left font 'DejaVu Sans,%d'%s\n", i + 1,
                          Quoted(notes[i]), 10.0 / kPictureWidth, y / kPictureHeight,
                          format == PictureFormat::kSvg ? 11 : 9, letters);
  }
  return text;
}

}  // namespace plait::data
