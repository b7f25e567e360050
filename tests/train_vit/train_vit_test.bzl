"""A Python test that runs train_vit: NAME.py, on the module runs.py."""

def train_vit_test(name, tags = []):
    native.sh_test(
        name = name,
        srcs = ["run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location //tools:train_vit)",
        ],
        data = [
            name + ".py",
            "runs.py",
            "//tools:train_vit",
        ],
        size = "large",
        tags = tags + ["cpu:2"],
    )
