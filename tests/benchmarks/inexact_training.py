"""Accuracy against evaluations of layers: serial, fixed iterations, and iterations that keep the gradient's bias below a limit.

  bazel build //tools:train_odenet
  PYTHON_WITH_H5PY tests/benchmarks/inexact_training.py --program=bazel-bin/tools/train_odenet --mnist=DIR --fashion=DIR --pines=DIR --plot=FILE.svg

Trains the four problems of train_odenet on one rank with each setting of the solver and each seed, from the same initial weights and in the same
order of samples. A line per run: evaluations of layers and of their adjoints on all levels (those that measure the bias are among them); the
chain, which is those that follow one another with a rank for each C-interval (fine evaluations are shared by the ranks, coarse ones are not); the
last bias measured and iterations (forward/backward); loss and accuracy of the last validation. Then a line per setting with the means
over the seeds. Random numbers are fixed, so that the figures are the same again on the same machine; nothing is timed. Needs h5py.
"""

import argparse
import collections
import os
import re
import statistics
import subprocess
import sys
import tempfile

import h5py

Problem = collections.namedtuple("Problem", "flags layers cfactor")
PROBLEMS = {
    "peaks": Problem(["--samples=2500", "--epochs=16", "--batch-size=100", "--validation-samples=1000"], 32, 4),
    "indian_pines": Problem(["--epochs=3", "--batch-size=100", "--final-time=5"], 32, 4),
    "mnist": Problem(["--max-samples=400", "--epochs=5", "--batch-size=25", "--final-time=5"], 16, 4),
    "fashion": Problem(["--max-samples=400", "--epochs=5", "--batch-size=25", "--final-time=5"], 16, 4),
}


def controlled(eta, reference="iteration"):
    return ["--lp-fwd-iters=1", "--lp-iters=1", f"--lp-bias-limit={eta}", "--lp-bias-every=10", f"--lp-bias-reference={reference}"]


SETTINGS = {
    "serial": ["--lp-levels=1"],
    **{f"{f}/{b}": [f"--lp-fwd-iters={f}", f"--lp-iters={b}"] for f, b in ((1, 1), (2, 1), (2, 2), (3, 3))},
    **{f"eta={eta}": controlled(eta) for eta in (1, 0.5, 0.2, 0.05)},
    "eta=0.2 serial": controlled(0.2, "serial"),
}
Result = collections.namedtuple("Result", "evaluations chain bias iterations loss accuracy")


def run(program, problem, data, setting, seed):
    parts = PROBLEMS[problem]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--nproc=1", "--force-lp", "--no-plots", f"--problem={problem}", f"--layers={parts.layers}", f"--lp-cfactor={parts.cfactor}",
                   f"--seed={seed}", "--outputs=" + folder, *parts.flags, *([f"--data={data}"] if data else []), *SETTINGS[setting]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        source, = set(re.findall(r"Data: .*", done.stdout))
        with h5py.File(os.path.join(folder, "history.h5")) as file:
            last = {name: file[name][-1] for name in ("gradient_bias", "val_loss", "val_acc")}
            chosen = re.findall(r"next (\d+) forward and (\d+) backward", done.stdout)
            fixed = [int(file[name][-1]) for name in ("forward_iterations", "backward_iterations")]
            iterations = "/".join(chosen[-1] if chosen else map(str, fixed))
            evaluations, fine = sum(file["evaluations"]), sum(file["fine_evaluations"])
            chain = evaluations if setting == "serial" else evaluations - fine * (1 - parts.cfactor / parts.layers)
            return source, Result(int(evaluations), int(chain), last["gradient_bias"], iterations, last["val_loss"], last["val_acc"])


# Symbol and colour: hollow with fixed iterations, filled below a limit.
STYLES = dict(zip(SETTINGS, ((7, "#000000"), (6, "#0072b2"), (8, "#0072b2"), (4, "#0072b2"), (12, "#0072b2"), (7, "#d55e00"),
                             (9, "#d55e00"), (5, "#d55e00"), (13, "#d55e00"), (11, "#009e73"))))


def plot(path, means):
    """Points of several settings may lie side by side: a key names them, not labels."""
    used = [name for name in SETTINGS if any(name in rows for rows in means.values())]
    script = [f"set terminal svg size 1100,760 font 'sans,12'\nset output '{path}'\nset multiplot layout 2,2 margins 0.08,0.83,0.09,0.95 spacing 0.1,0.15",
              "set grid\nset xlabel 'evaluations one after another, thousands'\nset ylabel 'validation loss'",
              "set offsets graph 0.08, graph 0.08, graph 0.08, graph 0.08\nset key at screen 0.985, 0.93 right top noenhanced spacing 1.3 samplen 1"]
    for problem, rows in means.items():
        series = [f"'-' using 1:2 with points pt {symbol} ps 1.3 lw 1.5 lc '{colour}' title '{name}'"
                  for name, (symbol, colour) in STYLES.items() if name in used]
        script.append(f"set title '{problem}' noenhanced\nplot " + ", ".join(series))
        script += [(f"{rows[name][1] / 1000} {rows[name][2]}" if name in rows else "NaN NaN") + "\ne" for name in used]
        script.append("set key off")
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="train_odenet")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--seeds", type=int, default=2)
    for name in ("pines", "mnist", "fashion"):
        parser.add_argument("--" + name, default="", help="train_odenet's --data of this problem")
    parser.add_argument("--plot", default="", help="an SVG of loss against evaluations, by gnuplot")
    args = parser.parse_args()
    data = {"peaks": "", "indian_pines": args.pines, "mnist": args.mnist, "fashion": args.fashion}
    means = {}
    for problem in args.problems.split(","):
        means[problem] = {}
        for setting in args.settings.split(","):
            results = []
            for seed in range(1, args.seeds + 1):
                source, result = run(args.program, problem, data[problem], setting, seed)
                results.append(result)
                if len(results) == 1 and not means[problem]:
                    print(f"{problem}, {PROBLEMS[problem].layers} layers, factor {PROBLEMS[problem].cfactor}: {source}")
                print(f"{problem:12s} {setting:14s} seed={seed} evaluations={result.evaluations} chain={result.chain} bias={result.bias:.3g} "
                      f"iterations={result.iterations} val_loss={result.loss:.4f} val_acc={result.accuracy:.2f}", flush=True)
            means[problem][setting] = [statistics.mean(getattr(r, name) for r in results) for name in ("evaluations", "chain", "loss", "accuracy")]
    print(f"\n{'problem':12s} {'setting':14s} {'evaluations':>12s} {'/ serial':>8s} {'chain':>10s} {'/ serial':>8s} {'val loss':>8s} {'val acc':>8s}")
    for problem, rows in means.items():
        serial = rows["serial"][0] if "serial" in rows else float("nan")
        for setting, (evaluations, chain, loss, accuracy) in rows.items():
            print(f"{problem:12s} {setting:14s} {evaluations:12.0f} {evaluations / serial:8.2f} {chain:10.0f} {chain / serial:8.2f} "
                  f"{loss:8.4f} {accuracy:8.2f}")
    if args.plot:
        plot(args.plot, means)


if __name__ == "__main__":
    main()
