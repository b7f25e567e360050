"""A GoogleTest that runs on several ranks: one binary, one test per count of ranks.

    load("@plait//comm/testing:mpi_cc_test.bzl", "mpi_cc_test")

    mpi_cc_test(
        name = "ring_test",
        srcs = ["ring_test.cc"],
        ranks = [1, 2, 4],
        deps = [":ring"],
    )

makes //pkg:ring_test_1, //pkg:ring_test_2, //pkg:ring_test_4 and the suite //pkg:ring_test. The sources hold TESTs
and no main; comm/testing/world.h gives them the communicator.
"""

def mpi_cc_test(
        name,
        srcs,
        ranks = [1, 2, 4],
        filters = {},
        deps = [],
        data = [],
        args = [],
        tags = [],
        size = "medium",
        timeout = None,
        visibility = None,
        **kwargs):
    """Declares the tests.

    Args:
      name: of the suite; each test's name ends in its number of ranks.
      srcs: the tests' sources.
      ranks: the numbers of ranks to run on.
      filters: GoogleTest's filters by number of ranks, for numbers on which not all tests run.
      deps: what the sources use; GoogleTest and the main are added.
      data: files that the tests read.
      args: further arguments of the program.
      tags: further tags of the tests.
      size: of each test.
      timeout: of each test.
      visibility: of the tests and of the binary, NAME_on_ranks.
      **kwargs: passed on to the cc_binary.
    """
    binary = name + "_on_ranks"
    native.cc_binary(
        name = binary,
        testonly = True,
        srcs = srcs,
        visibility = visibility,
        deps = deps + [
            str(Label("//comm/testing:mpi_test_main")),
            str(Label("//comm/testing:world")),
            "@system_libraries//:gmock",
        ],
        **kwargs
    )
    for count in ranks:
        native.sh_test(
            name = "{}_{}".format(name, count),
            srcs = [str(Label("//comm/testing:run_on_ranks.sh"))],
            args = [str(count), "$(location :{})".format(binary)] + args + (
                ["--gtest_filter=" + filters[count]] if count in filters else []
            ),
            data = data + [":" + binary],
            size = size,
            timeout = timeout,
            tags = tags + ["cpu:2"],
            visibility = visibility,
        )
    native.test_suite(
        name = name,
        tests = [":{}_{}".format(name, count) for count in ranks],
        # A suite without the tag is part of //..., and brings its tests along.
        tags = ["manual"] if "manual" in tags else [],
        visibility = visibility,
    )
