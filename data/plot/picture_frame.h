// gnuplot commands for everything around curves and cells: frame, ticks, labels, title, notes. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_PICTURE_FRAME_H_
#define PLAIT_DATA_PLOT_PICTURE_FRAME_H_

#include <string>
#include <vector>

#include "data/plot/axis.h"

namespace plait::data {

enum class PictureFormat { kSvg, kPng, kPage };

inline constexpr int kPictureWidth = 800, kPictureHeight = 500;
inline constexpr int kPageChartWidth = 360, kPageChartHeight = 210;

// Those of a page are placeholders, which PageHeatSvg replaces by CSS variables.
struct PictureColours {
  const char *letters, *frame, *grid;
};
inline constexpr PictureColours kFileColours = {"#202428", "#80868c", "#e3e6e9"};
inline constexpr PictureColours kPageColours = {"#000001", "#000002", "#000003"};

struct PictureTexts {
  std::string title, x_label, y_label;
  bool legend = false;
};

std::string Terminal(PictureFormat format);

// Sets the ticks of gnuplot's axis `name`, whose coordinates are positions from 0 to 1.
std::string TickCommand(const char* name, const Axis& axis, int most);

// Both axes, in positions from 0 to 1.
std::string FrameCommands(const Axis& x, const Axis& y, const PictureColours& colours, int x_ticks,
                          int y_ticks);

// Title, labels and notes of a file.
std::string LetterCommands(const PictureTexts& texts, const std::vector<std::string>& all_notes,
                           PictureFormat format);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PICTURE_FRAME_H_
