"""C++ of a .proto file, by the system's protoc.

    load("//third_party:proto_code.bzl", "cpp_proto_library")

    cpp_proto_library(
        name = "cluster_file",
        src = "cluster.proto",
    )

Also where this repository is another workspace's: includes are as the folders of this one.
"""

def cpp_proto_library(name, src, visibility = None):
    base = src[:-len(".proto")]
    repository = native.repository_name().lstrip("@")
    root = "external/" + repository if repository else "."
    native.genrule(
        name = name + "_code",
        srcs = [src],
        outs = [base + ".pb.cc", base + ".pb.h"],
        cmd = "protoc --proto_path={root} --cpp_out=$(GENDIR)/{root} $(SRCS)".format(root = root),
    )

    # Generated code is not checked for warnings.
    native.cc_library(
        name = name,
        srcs = [base + ".pb.cc"],
        hdrs = [base + ".pb.h"],
        copts = ["-w"],
        visibility = visibility or ["//visibility:private"],
        deps = ["@system_libraries//:protobuf"],
    )
