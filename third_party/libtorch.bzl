"""Finds LibTorch in an installed `torch` wheel and offers it in tiers.

    @libtorch//:aten      tensors and operators: ATen, c10
    @libtorch//:autograd  + torch/csrc: custom autograd functions
    @libtorch//:nn        + torch/nn, torch/optim, torch/data
    @libtorch//:cuda      the CUDA half, where the program really uses it

A tier's headers cannot be reached from the tiers below it: each has an include folder of its own.
The wheel also carries an old google/protobuf and fmt; they would shadow the system's and are left out.
"""

load("//third_party:libtorch_location.bzl", "VERSION", "find_site_packages")

_BUILD = """
package(default_visibility = ["//visibility:public"])

_LINK = ["-L{lib}", "-Wl,-rpath,{lib}"]

cc_library(
    name = "aten",
    hdrs = glob(["aten/**/*.h", "aten/**/*.hpp"]),
    includes = ["aten"],
    defines = ["AT_PER_OPERATOR_HEADERS"],
    linkopts = _LINK + ["-ltorch_cpu", "-lc10"],
)

cc_library(
    name = "autograd",
    hdrs = glob(["autograd/**/*.h"]),
    includes = ["autograd"],
    deps = [":aten"],
)

cc_library(
    name = "nn",
    includes = ["autograd/torch/csrc/api/include"],
    deps = [":autograd"],
)

cc_library(
    name = "cuda",
    linkopts = _LINK + ["-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda", "-ltorch", "-Wl,--as-needed"],
    deps = [":aten"],
)
"""

def _libtorch_impl(repository_ctx):
    site_packages = find_site_packages(repository_ctx)
    if not site_packages:
        fail("LibTorch {} was not found. Run ./bazelw setup: it installs it.".format(VERSION))
    root = site_packages + "/torch"
    include = root + "/include"
    for folder in ["ATen", "c10", "caffe2", "torch/headeronly"]:
        repository_ctx.symlink(include + "/" + folder, "aten/" + folder)
    for folder in ["csrc", "library.h", "custom_class.h", "custom_class_detail.h"]:
        repository_ctx.symlink(include + "/torch/" + folder, "autograd/torch/" + folder)
    repository_ctx.file("BUILD", _BUILD.format(lib = root + "/lib"))

libtorch_repository = repository_rule(implementation = _libtorch_impl, local = True)
