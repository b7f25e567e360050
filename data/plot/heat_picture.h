// A heat map as an SVG or PNG file, or as a chart of an HTML page, drawn by gnuplot. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_HEAT_PICTURE_H_
#define PLAIT_DATA_PLOT_HEAT_PICTURE_H_

#include "absl/status/statusor.h"
#include "data/plot/gnuplot.h"
#include "data/plot/heat_view.h"
#include "data/plot/picture_frame.h"
#include "data/plot/plot.h"

namespace plait::data {

GnuplotPage HeatPage(const HeatMap& map, const HeatView& view, PictureFormat format);

// A view with at most as many cells as the picture has room for. Errors of HeatViewOf.
absl::StatusOr<HeatView> HeatPictureView(const HeatMap& map, PictureFormat format);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_HEAT_PICTURE_H_
