"""A Python test that runs test_dist: NAME.py, on the module runs.py."""

def test_dist_test(name, tags = ["cpu:2"]):
    native.sh_test(
        name = name,
        srcs = ["run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location //tools:test_dist)",
        ],
        data = [
            name + ".py",
            "runs.py",
            "//tools:test_dist",
        ],
        size = "medium",
        tags = tags,
    )
