"""A GoogleTest of one process. `srcs` is NAME.cc where nothing else is said; GoogleTest, its matchers and the main are added.

    load("//:unit_test.bzl", "unit_test")

    unit_test(
        name = "seed_test",
        deps = [":seed"],
    )
"""

def unit_test(name, srcs = None, deps = [], size = "small", **kwargs):
    native.cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        size = size,
        deps = deps + ["@system_libraries//:gtest_main"],
        **kwargs
    )
