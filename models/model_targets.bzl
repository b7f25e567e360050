"""Targets that models have besides the library of their own name.

    load("//models:model_targets.bzl", "hugging_face_files", "layer_table")

    hugging_face_files(model = "gpt")
    layer_table(model = "gpt")
"""

load("//:unit_test.bzl", "unit_test")

def hugging_face_files(model):
    """Declares :config (config.json, without LibTorch), :safetensors (the model's Hugging Face files) and :safetensors_test."""
    native.cc_library(
        name = "config",
        srcs = ["config.cc"],
        hdrs = ["config.h"],
        visibility = ["//:models_users"],
        deps = [
            ":options",
            "//base:status_macros",
            "//models/hugging_face:config",
            "@system_libraries//:absl",
            "@system_libraries//:nlohmann_json",
        ],
    )
    native.cc_library(
        name = "safetensors",
        srcs = ["safetensors.cc"],
        hdrs = ["safetensors.h"],
        visibility = ["//:models_users"],
        deps = [
            ":" + model,
            ":config",
            ":options",
            "//base:status_macros",
            "//data/hdf5:atomic_file",
            "//data/safetensors",
            "//models/hugging_face:config",
            "//models/hugging_face:safetensors",
            "@libtorch//:aten",
            "@system_libraries//:absl",
        ],
    )
    unit_test(
        name = "safetensors_test",
        deps = [
            ":safetensors",
            "//data/safetensors",
            "//models/hugging_face:safetensors_files",
            "@libtorch//:aten",
        ],
    )

def layer_table(model, deps = []):
    """Declares :summary, the model's rows of the table of models/summary, and :summary_test."""
    native.cc_library(
        name = "summary",
        srcs = ["summary.cc"],
        hdrs = ["summary.h"],
        visibility = ["//:models_users"],
        deps = deps + [
            ":options",
            "//models/summary:model_table",
        ],
    )
    unit_test(
        name = "summary_test",
        deps = [
            ":" + model,
            ":summary",
            "//models:block_model",
            "@libtorch//:aten",
        ],
    )
