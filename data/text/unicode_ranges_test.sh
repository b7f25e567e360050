#!/bin/sh
# The interpreter that set-up uses, whatever Bazel takes for Python.
exec python3 -B data/text/make_unicode_ranges.py --check data/text/unicode_ranges.cc
