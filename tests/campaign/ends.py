"""The final state of a run: its last checkpoint and history, bit for bit."""
import json
import os
import re

import h5py

# Metrics of a history that do not depend on time.
METRICS = re.compile(r"(draw|step|iter|epoch|batch|level|lr|gradient_norm|forward_residual|\w*loss|\w*acc|\w*accuracy)$")
# Texts of a checkpoint with the paths of its run.
PATHS = {"settings", "setting.data"}
TIMES = re.compile(r"story\.\d+\.dt")


def values_of(path, wanted):
    """Bytes, type and shape of the data sets whose names `wanted` accepts."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and wanted(name):
            value = item[()]
            found[name] = (str(item.dtype), item.shape, value.tobytes() if hasattr(value, "tobytes") else value)
    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def latest_step(kept):
    """Of the newest checkpoint; 0: there is none."""
    try:
        with open(os.path.join(kept, "latest"), encoding="ascii") as file:
            return int(file.read().split("-")[1])
    except FileNotFoundError:
        return 0


def end_of(folder):
    """Name to content: tensors, numbers and texts of the last checkpoint, metrics of the history."""
    step = os.path.join(folder, "kept", f"step-{latest_step(os.path.join(folder, 'kept')):09d}")
    found = {}
    with h5py.File(os.path.join(step, "index.h5")) as file:
        contents = json.loads(file["plait/contents"][()].tobytes())
    texts = contents.pop("texts")
    found.update({f"texts/{name}": text for name, text in texts.items() if name not in PATHS and not TIMES.match(name)})
    found.update({f"contents/{name}": value for name, value in contents.items()})
    for name in sorted(os.listdir(step)):
        if name.startswith("rank-"):
            parts = values_of(os.path.join(step, name), lambda part: part != "plait/checksums")
            found.update({f"{name}/{part}": value for part, value in parts.items()})
    history = values_of(os.path.join(folder, "history.h5"), METRICS.match)
    if not any("loss" in name for name in history):
        raise ValueError(f"{folder}/history.h5: no loss")
    found.update({f"history/{name}": value for name, value in history.items()})
    return found


def differences(expected, folder):
    """Names of entries that differ from `expected`, the result of end_of."""
    try:
        found = end_of(folder)
    except (OSError, KeyError, ValueError) as error:
        return [f"unreadable: {error}"]
    return sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
