"""Local replacements of the repositories that Bazel 4 would download.

Debian's Bazel reports no version; releases do. Nothing is replaced from Bazel 5 on.
"""

def _stand_in_impl(repository_ctx):
    for target, label in repository_ctx.attr.files.items():
        repository_ctx.symlink(repository_ctx.path(Label(label)), target)
    repository_ctx.file("WORKSPACE", "")

_stand_in = repository_rule(implementation = _stand_in_impl, attrs = {"files": attr.string_dict()}, local = True)

def offline_rule_repositories():
    version = getattr(native, "bazel_version", "")
    if version and int(version.split(".")[0]) >= 5:
        return
    existing = native.existing_rules()
    if "rules_cc" not in existing:
        _stand_in(name = "rules_cc", files = {
            "BUILD": "@plait//third_party/bazel_rules_cc:BUILD.stand_in",
            "cc/BUILD": "@plait//third_party/bazel_rules_cc:BUILD.stand_in",
            "cc/defs.bzl": "@plait//third_party/bazel_rules_cc:defs.bzl",
        })
    if "rules_java" not in existing:
        native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")
    if "remote_coverage_tools" not in existing:
        _stand_in(name = "remote_coverage_tools", files = {
            "BUILD": "@plait//third_party/bazel_coverage:BUILD.stand_in",
            "no_coverage.sh": "@plait//third_party/bazel_coverage:no_coverage.sh",
        })
