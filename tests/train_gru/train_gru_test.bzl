"""A Python test that runs train_gru: NAME.py, on the module runs.py."""

def train_gru_test(name, tags = []):
    native.sh_test(
        name = name,
        srcs = ["run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location //tools:train_gru)",
            "$(location :print_history)",
        ],
        data = [
            name + ".py",
            "runs.py",
            ":print_history",
            "//:WORKSPACE",
            "//tools:train_gru",
        ],
        size = "medium",
        tags = tags + ["cpu:2"],
    )
