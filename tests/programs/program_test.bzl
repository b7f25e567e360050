"""A Python test that runs programs: NAME.py, usually with a module runs.py.

    load("//tests/programs:program_test.bzl", "program_test")

    program_test(
        name = "output_test",
        programs = ["//tools:train_cnn"],
    )
"""

def program_test(name, programs, data = ["runs.py"], size = "large", tags = ["cpu:2"]):
    """`programs`: the test's first arguments; `data`: further files that it reads."""
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/programs:run_test.sh"],
        args = ["$(location %s)" % path for path in [name + ".py"] + programs],
        data = data + programs + [
            name + ".py",
            "//tests/programs:modules",
        ],
        tags = tags,
    )
