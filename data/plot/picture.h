// A plot as an SVG or PNG file, drawn by gnuplot; the SVG of a page. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_PICTURE_H_
#define PLAIT_DATA_PLOT_PICTURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "data/plot/gnuplot.h"
#include "data/plot/picture_frame.h"
#include "data/plot/plot.h"
#include "data/plot/view.h"

namespace plait::data {

GnuplotPage PicturePage(const Plot& plot, const View& view, PictureFormat format);

// gnuplot's SVG with the plot's title, fonts that every browser has, and without the XML declaration; ids
// begin with `name`.
std::string FileSvg(absl::string_view svg, const std::string& name, const std::string& title);

// gnuplot's SVG of a heat map as RenderPageHeatMaps (plot.h) describes it; ids begin with `name`.
std::string PageHeatSvg(absl::string_view svg, const std::string& title, const std::string& name);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PICTURE_H_
