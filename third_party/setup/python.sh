# Python packages that tests compare with, what other programs make of the files that Plait writes, and MkDocs. Sourced by
# setup.sh, which defines say and fail, after libtorch.sh, which names LIBTORCH_VERSION.
# shellcheck shell=bash

# Counts the sets of packages below: a new set is a new folder.
PYTHON_SET=5
PYTHON_PACKAGES=(
  numpy==2.4.6 pandas==3.1.1
  h5py==3.16.0 h5netcdf==1.8.2 netCDF4==1.7.5.1.post1 xarray==2026.9.0
  tensorboard==2.21.0 protobuf==7.36.2
  safetensors==0.8.0 transformers==5.23.0
  mkdocs==1.6.1 mlflow-skinny==3.17.2
)
# Of that torch; without what it depends on, which is torch and is there (below), and numpy and Pillow of the others.
TORCHVISION=torchvision==0.26.0

# install_python CACHE: CACHE/python-N with a file .complete in it, made under another name and renamed. Not having
# it is no obstacle to building: only the tests that need it fail, and say so.
# Transformers needs torch. There is one already, the wheel that LibTorch comes from: the set has the same Python, and
# finds torch through a .pth file instead of installing 5 GB again. The set's own packages come first. The file is
# made last, as pip would take that wheel's dependencies for its own.
install_python() {
  local place="$1/python-$PYTHON_SET" torch="$1/libtorch-$LIBTORCH_VERSION" log="$1/tmp/python.log" packages
  if [ -f "$place/.complete" ]; then return; fi
  say "installing what tests compare with (xarray, netCDF4, TensorBoard, MLflow, Transformers, torchvision) and MkDocs into $place: 700 MB, a minute"
  rm -rf "$place" "$1"/python-*.partial
  if ! "$torch/bin/python" -m venv "$place.partial" >"$log" 2>&1 ||
    ! TMPDIR="$1/tmp" PYTHONNOUSERSITE=1 "$place.partial/bin/python" -m pip install --no-input --no-cache-dir \
      --disable-pip-version-check "${PYTHON_PACKAGES[@]}" >>"$log" 2>&1 ||
    ! TMPDIR="$1/tmp" PYTHONNOUSERSITE=1 "$place.partial/bin/python" -m pip install --no-input --no-cache-dir \
      --disable-pip-version-check --no-deps "$TORCHVISION" >>"$log" 2>&1 ||
    ! packages="$(cd "$place.partial" && echo lib/python3*/site-packages)" ||
    ! echo "$torch/$packages" >"$place.partial/$packages/torch.pth" ||
    ! "$place.partial/bin/python" -I -c \
      'import h5netcdf, mkdocs, mlflow, netCDF4, safetensors.torch, tensorboard, torch, torchvision, transformers, xarray' >>"$log" 2>&1; then
    tail -n 3 "$log" >&2
    rm -rf "$place.partial"
    say "without them the tests tagged python fail; run ./bazelw setup to try again"
    return
  fi
  touch "$place.partial/.complete"
  mv "$place.partial" "$place"
}
