"""What xarray makes of a sweep's file: sweep_file_test.py PROGRAM-THAT-WRITES-ONE."""

import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import xarray

warnings.simplefilter("error")


def main():
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    path = os.path.join(folder, "sweep.h5")
    subprocess.run([sys.argv[1], path], check=True)
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(path, engine=engine) as sweep:
            assert dict(sweep.sizes) == {"operation": 2, "group": 1, "size": 3, "rank": 2, "partner": 2}, sweep.sizes
            assert list(sweep.operation.values) == ["all_reduce", "barrier"], sweep.operation
            assert list(sweep.group.values) == ["world"], sweep.group
            assert list(sweep.size.values) == [8, 64, 512], sweep.size
            row = sweep.sel(operation="all_reduce", group="world")
            numpy.testing.assert_array_equal(row.time, [1e-6, 2e-6, 3e-6])
            numpy.testing.assert_allclose(row.bus_bandwidth, [8e6, 32e6, 512 / 3e-6])
            barrier = sweep.time.sel(operation="barrier", group="world").values
            assert barrier[0] == 4e-6 and numpy.isnan(barrier[1:]).all(), barrier
            assert float(sweep.pair_latency.sel(rank=0, partner=1)) == 5e-7
            assert float(sweep.pair_bandwidth.sel(rank=1, partner=0)) == 1e9
            assert sweep.time.attrs["units"] == "s" and sweep.attrs["type"] == "f32", sweep.attrs
            assert sweep.attrs["command"] == "µ test", sweep.attrs


main()
