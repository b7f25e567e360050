#!/bin/sh
# The system's python3, as in ./bazelw setup, rather than Bazel's.
exec python3 -B data/har/fetch_recordings_test.py
