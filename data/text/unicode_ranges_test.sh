#!/bin/sh
# The system's python3, as in ./bazelw setup, rather than Bazel's.
exec python3 -B data/text/make_unicode_ranges.py --check data/text/unicode_ranges.cc
