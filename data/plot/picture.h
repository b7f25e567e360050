// Plots as SVG or PNG files, drawn by gnuplot; SVG for HTML pages. Private to data/plot.
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

// Post-processes gnuplot's SVG: sets the title, adds fallback fonts, removes the XML declaration, and prefixes ids with
// `name`.
std::string FileSvg(absl::string_view svg, const std::string& name, const std::string& title);

// Converts gnuplot's SVG of a heat map to what RenderPageHeatMaps (plot.h) describes; prefixes ids with `name`.
std::string PageHeatSvg(absl::string_view svg, const std::string& title, const std::string& name);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_PICTURE_H_
