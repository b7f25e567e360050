#!/bin/sh
# The interpreter that set-up uses, whatever Bazel takes for Python.
exec python3 -B data/har/fetch_recordings_test.py
