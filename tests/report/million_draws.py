"""Time and peak memory of report on a long run: million_draws.py REPORT WRITE_RUN [DRAWS].

    bazel run //tests/report:million_draws
"""
import os
import subprocess
import sys
import tempfile

COMMANDS = [["--plots=none"], [], ["--format=json"], ["--plots=none", "--html=page.html"]]
REPEATS = 3


def measured(command, folder):
    """Seconds and MiB of one run, by itself: a child of a child, whose peak nobody else raises."""
    script = ("import os, resource, subprocess, sys, time\n"
              "start = time.perf_counter()\n"
              "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
              "seconds = time.perf_counter() - start\n"
              "print(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)\n")
    # Without the folder of `bazel run`, where report would look for the file.
    environment = {name: value for name, value in os.environ.items() if name != "BUILD_WORKING_DIRECTORY"}
    answer = subprocess.run([sys.executable, "-c", script, *command], cwd=folder, check=True, capture_output=True,
                            env=environment)
    return tuple(map(float, answer.stdout.split()))


def main():
    report, write_run = (os.path.abspath(path) for path in sys.argv[1:3])
    draws = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_run, "run", "run.h5", str(draws)], cwd=folder, check=True)
        size = os.path.getsize(os.path.join(folder, "run.h5")) / 2**20
        print("%d draws of 11 metrics and a vector over 2 ranks, %.0f MiB; best of %d" % (draws, size, REPEATS))
        for arguments in COMMANDS:
            runs = [measured([report, "run.h5", *arguments], folder) for _ in range(REPEATS)]
            print("report run.h5 %-32s %5.2f s  %4.0f MiB" % (" ".join(arguments), min(r[0] for r in runs),
                                                              max(r[1] for r in runs)))


if __name__ == "__main__":
    main()
