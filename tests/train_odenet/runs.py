"""Runs train_odenet for the tests."""
import os
import sys

import image_runs
import program_runs

try:
    import h5py
    import numpy
except ImportError:
    sys.exit("no Python with numpy and h5py: run ./bazelw setup, which names it in .bazelrc.local")

PROGRAM, = program_runs.programs(1)


def write_matlab(path, values):
    """A file of MATLAB 7.3: HDF5 with dimensions in reverse."""
    with h5py.File(path, "w", userblock_size=512) as file:
        data = file.create_dataset("x", data=numpy.ascontiguousarray(values.transpose()))
        data.attrs["MATLAB_class"] = numpy.bytes_(values.dtype.name.replace("float64", "double"))
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(126) + b"IM")


def write_pines(folder, rows=12, cube_rows=None, bands=9):
    """Three classes and a background; band k of class c is bright where k is a multiple of c + 1."""
    os.makedirs(folder)
    random = numpy.random.default_rng(3)
    truth = random.integers(0, 4, (rows, 10)).astype(numpy.uint8)
    write_matlab(os.path.join(folder, "Indian_pines_gt.mat"), truth)
    if bands:
        spectra = numpy.array([[2000 + (band % (c + 1) == 0) * 1000.0 for band in range(bands)] for c in range(4)])
        cube = spectra[truth] + random.normal(0, 50, (rows, 10, bands))
        write_matlab(os.path.join(folder, "Indian_pines_corrected.mat"), cube[:cube_rows].astype(numpy.uint16))


class Run(program_runs.Run):
    def points(self):
        """The line of each validation, numbers by name."""
        return [{name: float(value) for name, value in (part.split("=") for part in line.split())}
                for line in self.logged("level=")]


class OdeNetTest(program_runs.ProgramTest):
    run_class = Run

    def flags(self, *flags, ranks=1, outputs="out"):
        peaks = not any(flag.startswith("--problem=") for flag in flags)
        return ["--layers=8", *(["--samples=1000", "--validation-samples=200"] if peaks else []), "--epochs=2", "--no-plots", f"--nproc={ranks}",
                *([] if "--study" in flags else ["--outputs=" + self.path(outputs)]), *flags]

    def train(self, *flags, code=0, **kwargs):
        return self.finish(self.start([PROGRAM, *self.flags(*flags, **kwargs)]), code)

    def model(self, *flags, name="model", **kwargs):
        """Trains, and returns the run with its parameters."""
        os.mkdir(self.path(name))
        run = self.train("--save-model=" + self.path(name), *flags, outputs=name + "_out", **kwargs)
        return run, image_runs.read_model(self.path(name))

    def history(self, outputs="out"):
        with h5py.File(self.path(os.path.join(outputs, "history.h5"))) as file:
            return {name: values[:] for name, values in file.items()}


def main():
    program_runs.main(1)
