"""Everything that Plait needs from outside, for its own and for other workspaces.

A workspace that uses single libraries of Plait writes

    local_repository(name = "plait", path = "path/to/plait")
    load("@plait//third_party:repositories.bzl", "plait_repositories")
    plait_repositories()
"""

load("//third_party:cuda.bzl", "cuda_repository")
load("//third_party:libtorch.bzl", "libtorch_repository")
load("//third_party:rules_stand_ins.bzl", "offline_rule_repositories")
load("//third_party:system_libraries.bzl", "system_libraries_repository")

def plait_repositories():
    offline_rule_repositories()
    system_libraries_repository(name = "system_libraries")
    libtorch_repository(name = "libtorch")
    cuda_repository(name = "local_cuda")
