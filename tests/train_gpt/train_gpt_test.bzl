"""A Python test that runs train_gpt and generate: NAME.py, on the module runs.py."""

def train_gpt_test(name, tags = []):
    native.sh_test(
        name = name,
        srcs = ["run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location //tools:train_gpt)",
            "$(location //tools:generate)",
            "$(location //tests/train_gru:print_history)",
        ],
        data = [
            name + ".py",
            "runs.py",
            "//tests/train_gru:print_history",
            "//tools:generate",
            "//tools:train_gpt",
        ],
        size = "medium",
        tags = tags + ["cpu:2"],
    )
