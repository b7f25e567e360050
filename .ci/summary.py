#!/usr/bin/env python3
"""Says what failed and where the time went: summary.py PHASES EVENTS.

PHASES has lines "name seconds status"; EVENTS is what Bazel writes with --build_event_json_file. Exit status 1 if a
phase or a test failed, could not be built, or if no test ran.
"""

import json
import sys

PASSED = ("PASSED", "FLAKY")


def read_events(path):
    """Status and seconds of each test, and other targets that could not be built."""
    tests, broken = {}, []
    try:
        lines = open(path, encoding="utf-8").read().splitlines()
    except OSError:
        return tests, ["no events from Bazel"]
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # Bazel ended while it wrote
            return tests, broken + ["events from Bazel that end early"]
        kind, place = next(iter(event["id"].items()))
        if kind == "testSummary":
            summary = event.get("testSummary", {})  # none of a test that was not reached
            seconds = int(summary.get("totalRunDurationMillis", 0)) / 1000
            tests[place["label"]] = (summary.get("overallStatus", "NO_STATUS"), seconds, summary.get("totalNumCached", 0))
        elif kind == "targetCompleted" and not event.get("completed", {}).get("success"):
            broken.append(place["label"])
    return tests, broken


def main():
    phases = [line.split() for line in open(sys.argv[1], encoding="utf-8")]
    tests, broken = read_events(sys.argv[2])
    failed = sorted(label for label, test in tests.items() if test[0] not in PASSED)
    failed += sorted(set(broken) - set(tests))
    print("\n=== where the time went")
    for name, seconds, _ in phases:
        print("%8s s  %s" % (seconds, name))
    for label, (status, seconds, cached) in sorted(tests.items(), key=lambda item: -item[1][1])[:12]:
        print("%8.1f s  %s%s" % (seconds, label, " (cached)" if cached else ""))
    for name, _, status in phases:
        if status != "0" and (name != "test" or not failed):
            failed.append(name)
    if not tests:
        failed.append("no test ran")
    for label in sorted(label for label, test in tests.items() if test[0] == "FLAKY"):
        print("FLAKY: %s failed once, then passed" % label)
    for label in failed:
        print("FAILED: %s%s" % (label, " (%s)" % tests[label][0] if label in tests else ""))
    good_phases = sum(1 for name, _, status in phases if name == "check" and status == "0")
    passed = sum(1 for status, _, _ in tests.values() if status in PASSED) + good_phases
    print("%d passed, %d failed" % (passed, len(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
