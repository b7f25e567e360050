"""A Python test that runs train_cnn: NAME.py, on the module runs.py."""

def train_cnn_test(name, tags = []):
    native.sh_test(
        name = name,
        srcs = ["run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location //tools:train_cnn)",
        ],
        data = [
            name + ".py",
            "runs.py",
            "//tools:train_cnn",
        ],
        size = "large",
        tags = tags + ["cpu:2"],
    )
