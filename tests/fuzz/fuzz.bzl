"""Fuzz targets: NAME_fuzz.cc defines LLVMFuzzerTestOneInput and nothing else that is seen outside.

    load("//tests/fuzz:fuzz.bzl", "fuzz_target")

    fuzz_target(
        name = "idx",
        deps = ["//data/idx"],
    )

:NAME_fuzz is a program under libFuzzer, which ./run builds with clang; :NAME_replayed is the same function under the
name Take_NAME, for replay_test.cc.
"""

_DEPS = [
    ":memory_file",
    "//base:check",
]

def fuzz_target(name, deps):
    native.cc_library(
        name = name + "_replayed",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        local_defines = ["LLVMFuzzerTestOneInput=Take_" + name],
        deps = deps + _DEPS,
    )
    native.cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        linkopts = ["-fsanitize=fuzzer", "-Wl,--as-needed"],
        tags = ["manual"],
        deps = deps + _DEPS,
    )
