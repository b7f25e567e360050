#include "data/plot/picture.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace plait::data {
namespace {

// Okabe and Ito's palette, which colour-blind readers can tell apart, the stronger colours first.
constexpr std::array<const char*, 7> kOnLight = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000"};
constexpr std::array<const char*, 7> kOnDark = {"#56B4E9", "#E69F00", "#2DC79B", "#E29BC2",
                                                "#F0E442", "#FF8A4C", "#FFFFFF"};
constexpr int kNoteLetters = 100;  // on a line of 800 pixels

struct Colours {
  const char* background;
  const char* letters;
  const char* frame;
  const char* grid;
};

Colours ColoursOf(const PictureStyle& style) {
  if (style.dark) return {"#16191d", "#d5d9de", "#8b929a", "#343a40"};
  return {"#ffffff", "#202428", "#80868c", "#e3e6e9"};
}

std::string CurveColour(const PictureStyle& style, std::size_t series) {
  return (style.dark ? kOnDark : kOnLight)[series % kOnLight.size()];
}

// Where the colours are used up, dashes tell lines apart.
int DashOf(std::size_t series) { return 1 + static_cast<int>(series / kOnLight.size()) % 4; }

std::string Terminal(const PictureStyle& style, PictureFormat format) {
  const std::string background =
      style.transparent ? "" : absl::StrCat(" background '", ColoursOf(style).background, "'");
  if (format == PictureFormat::kSvg) {
    return absl::StrFormat("svg size %d,%d noenhanced font 'DejaVu Sans,14'%s", style.width, style.height,
                           background);
  }
  return absl::StrFormat("pngcairo size %d,%d noenhanced font 'DejaVu Sans,11'%s%s", style.width,
                         style.height, background, style.transparent ? " transparent" : "");
}

std::string TickCommand(const char* axis, const Axis& scale, const std::vector<Tick>& ticks) {
  std::string list;
  for (const Tick& tick : ticks) {
    absl::StrAppendFormat(&list, "%s%s %.7g", list.empty() ? "" : ", ", Quoted(tick.label),
                          scale.Position(tick.value));
  }
  return absl::StrCat("set ", axis, "tics (", list, ")\n");
}

std::vector<std::string> NoteLines(const View& view, const PictureStyle& style) {
  const std::size_t longest = std::max(20, kNoteLetters * style.width / 800);
  std::vector<std::string> lines;
  for (std::string rest : view.notes) {
    while (rest.size() > longest) {
      std::size_t end = rest.rfind(' ', longest);
      if (end == std::string::npos || end == 0) end = longest;
      lines.push_back(rest.substr(0, end));
      rest = "   " + rest.substr(end);
      if (end < 4) break;
    }
    lines.push_back(rest);
  }
  constexpr std::size_t kMost = 6;
  if (lines.size() > kMost) {
    lines.resize(kMost - 1);
    lines.push_back("and more; the text picture lists them all");
  }
  return lines;
}

std::string Frame(const Plot& plot, const View& view, const PictureStyle& style, int note_lines) {
  const Colours colours = ColoursOf(style);
  const std::string letters = absl::StrCat(" textcolor rgb '", colours.letters, "'");
  std::string text = absl::StrFormat(
      "set border 3 lw 1 lc rgb '%s'\n"
      "set tics nomirror out scale 0.5%s\n"
      "set grid lt 1 lw 0.8 lc rgb '%s'\n"
      "set xrange [0:1]\nset yrange [0:1]\nset clip two\n"
      "set rmargin 3\nset bmargin %g\n",
      colours.frame, letters, colours.grid, 3.4 + 1.1 * note_lines);
  absl::StrAppend(&text, TickCommand("x", view.x, Ticks(view.x, std::max(3, style.width / 90))),
                  TickCommand("y", view.y, Ticks(view.y, std::max(3, style.height / 60))));
  absl::StrAppend(&text, "set xlabel ", Quoted(Labelled(plot.x_label, plot.x_unit)), letters, "\n");
  absl::StrAppend(&text, "set ylabel ", Quoted(Labelled(plot.y_label, plot.unit)), letters, "\n");
  if (view.curves.size() < 2) {
    return absl::StrCat(text, "unset key\nset title ", Quoted(plot.title), letters, "\n");
  }
  // A title of the plot would stand between the legend and the curves.
  return absl::StrCat(text, "set key outside top center horizontal Left reverse samplen 2 width 1", letters,
                      "\nset key title ", Quoted(plot.title), letters, "\n");
}

std::string NoteCommands(const std::vector<std::string>& lines, const PictureStyle& style, int font) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double y = (6.0 + 16.0 * static_cast<double>(lines.size() - 1 - i)) / style.height;
    absl::StrAppendFormat(
        &text, "set label %d %s at screen %.4f,%.4f left font 'DejaVu Sans,%d' textcolor rgb '%s'\n", i + 1,
        Quoted(lines[i]), 10.0 / style.width, y + 8.0 / style.height, font, ColoursOf(style).letters);
  }
  return text;
}

// A named block of points; true if there are any.
bool AppendBlock(std::string& text, const std::string& name, const std::vector<Stretch>& stretches) {
  if (stretches.empty()) return false;
  absl::StrAppend(&text, "$", name, " << END_OF_DATA\n");
  for (const Stretch& stretch : stretches) {
    for (const Position& p : stretch) absl::StrAppendFormat(&text, "%.7g %.7g\n", p.x, p.y);
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(&text, "END_OF_DATA\n");
  return true;
}

// gnuplot leaves entries out of a legend that would be wider than the picture.
std::string LegendName(const std::string& name) {
  constexpr std::size_t kLongest = 48;
  if (name.size() <= kLongest) return name;
  std::size_t end = kLongest - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

Stretch AtHeight(const std::vector<double>& marks, double y) {
  Stretch points;
  for (const double x : marks) points.push_back({x, y});
  return points;
}

// Blocks of data go to `blocks`, what to draw of them to `drawn`.
struct Drawing {
  std::string blocks;
  std::vector<std::string> drawn;

  void AddMarks(const std::string& name, const std::vector<double>& marks, double y, int point_type,
                const std::string& colour) {
    if (marks.empty() || !AppendBlock(blocks, name, {AtHeight(marks, y)})) return;
    drawn.push_back(
        absl::StrFormat("$%s with points pt %d ps 0.7 lc rgb '%s' notitle", name, point_type, colour));
  }

  void AddCurve(const Curve& curve, std::size_t index, const std::string& colour) {
    const std::string name = absl::StrCat("c", index);
    std::vector<Stretch> lonely;
    for (const Stretch& s : curve.stretches) {
      if (s.size() == 1) lonely.push_back(s);
    }
    const std::string title = absl::StrCat("title ", Quoted(LegendName(curve.name)));
    if (AppendBlock(blocks, name, curve.stretches)) {
      drawn.push_back(absl::StrFormat("$%s with %s lw 1.5 dt %d lc rgb '%s' %s", name,
                                      curve.few_points ? "linespoints pt 7 ps 0.35" : "lines", DashOf(index),
                                      colour, title));
    } else {
      drawn.push_back(absl::StrFormat("NaN with lines lw 1.5 lc rgb '%s' %s", colour, title));
    }
    if (!curve.few_points && AppendBlock(blocks, name + "lonely", lonely)) {
      drawn.push_back(
          absl::StrFormat("$%slonely with points pt 7 ps 0.35 lc rgb '%s' notitle", name, colour));
    }
    AddMarks(name + "above", curve.above, 1, 9, colour);
    AddMarks(name + "below", curve.below, 0, 11, colour);
    AddMarks(name + "nan", curve.not_a_number, 0, 2, colour);
  }
};

// gnuplot names what it draws, "gnuplot_plot_1", in titles that browsers show under the pointer.
std::string WithoutInnerTitles(absl::string_view svg) {
  constexpr absl::string_view kOpen = "<title>gnuplot_plot_", kClose = "</title>";
  std::string kept;
  for (std::size_t at; (at = svg.find(kOpen)) != absl::string_view::npos;) {
    absl::StrAppend(&kept, svg.substr(0, at));
    svg.remove_prefix(std::min(svg.size(), svg.find(kClose, at) + kClose.size()));
  }
  return absl::StrCat(kept, svg);
}

}  // namespace

GnuplotPage PicturePage(const Plot& plot, const View& view, const PictureStyle& style, PictureFormat format) {
  Drawing drawing;
  for (std::size_t i = 0; i < view.curves.size(); ++i) {
    drawing.AddCurve(view.curves[i], i, CurveColour(style, i));
  }
  if (drawing.drawn.empty()) drawing.drawn.push_back("NaN notitle");
  const std::vector<std::string> notes = NoteLines(view, style);
  std::string commands = Frame(plot, view, style, static_cast<int>(notes.size()));
  absl::StrAppend(&commands, NoteCommands(notes, style, format == PictureFormat::kSvg ? 11 : 9),
                  drawing.blocks, "plot ");
  for (std::size_t i = 0; i < drawing.drawn.size(); ++i) {
    absl::StrAppend(&commands, i == 0 ? "" : ", ", drawing.drawn[i]);
  }
  return {Terminal(style, format), std::move(commands)};
}

std::string TidySvg(absl::string_view svg, const std::string& name, const std::string& title) {
  if (const std::size_t begin = svg.find("<svg"); begin != absl::string_view::npos) svg.remove_prefix(begin);
  const std::string escaped =
      absl::StrReplaceAll(Printable(title), {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  const std::string prefix = name + "_";
  return absl::StrReplaceAll(
      WithoutInnerTitles(svg),
      {{"<title>Gnuplot</title>", absl::StrCat("<title>", escaped, "</title>")},
       {"font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, Helvetica, Arial, sans-serif\""},
       {"'gpDot'", "'" + prefix + "gpDot'"},
       {"'gpPt", "'" + prefix + "gpPt"},
       {"'#gpDot'", "'#" + prefix + "gpDot'"},
       {"'#gpPt", "'#" + prefix + "gpPt"},
       {"id='textbox'", "id='" + prefix + "textbox'"},
       {"id='greybox'", "id='" + prefix + "greybox'"},
       {"\"gnuplot_plot_", "\"" + prefix + "plot_"},
       {"\"gnuplot_canvas\"", "\"" + prefix + "canvas\""}});
}

}  // namespace plait::data
