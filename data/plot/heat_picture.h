// A heat map as an SVG or PNG file, drawn by gnuplot. Private to data/plot.
#ifndef PLAIT_DATA_PLOT_HEAT_PICTURE_H_
#define PLAIT_DATA_PLOT_HEAT_PICTURE_H_

#include "absl/status/statusor.h"
#include "data/plot/gnuplot.h"
#include "data/plot/picture_frame.h"
#include "data/plot/plot.h"

namespace plait::data {

// `format`: not kPage. Errors: those of HeatViewOf.
absl::StatusOr<GnuplotPage> HeatPage(const HeatMap& map, PictureFormat format);

}  // namespace plait::data

#endif  // PLAIT_DATA_PLOT_HEAT_PICTURE_H_
