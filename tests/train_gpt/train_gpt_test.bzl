"""A Python test that runs a program of tools/text_training and generate: NAME.py, on the module runs.py."""

def text_training_test(name, program, data = [], tags = []):
    native.sh_test(
        name = name,
        srcs = ["//tests/train_gpt:run_test.sh"],
        args = [
            "$(location %s.py)" % name,
            "$(location %s)" % program,
            "$(location //tools:generate)",
            "$(location //tests/train_gru:print_history)",
        ],
        data = data + [
            name + ".py",
            "//tests/train_gpt:runs.py",
            "//tests/train_gru:print_history",
            "//tools:generate",
            program,
        ],
        size = "medium",
        tags = tags + ["cpu:2"],
    )

def train_gpt_test(name, tags = []):
    text_training_test(name = name, program = "//tools:train_gpt", tags = tags)
