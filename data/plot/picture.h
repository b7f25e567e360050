// A plot as an SVG or PNG page of gnuplot's. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_PICTURE_H_
#define PLAIT_DATA_PLOT_PICTURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "data/plot/curve.h"
#include "data/plot/gnuplot.h"
#include "data/plot/plot.h"

namespace plait::data {

enum class PictureFormat { kSvg, kPng };

GnuplotPage PicturePage(const Plot& plot, const View& view, const PictureStyle& style, PictureFormat format);

// gnuplot's SVG with the plot's title, fonts that every browser has, ids that stay apart from those of other
// pictures on the same page (they begin with `name`), and without the XML declaration.
std::string TidySvg(absl::string_view svg, const std::string& name, const std::string& title);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PICTURE_H_
