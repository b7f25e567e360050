"""Package groups that open up when Plait is used from another workspace.

Inside this repository a group names the packages that may use a layer (docs/architecture.md). From another
workspace every library behind such a group is public.
"""

def _everyone():
    # Up to Bazel 6, "//..." means the packages of every repository; Bazel 7 spells that "public".
    version = getattr(native, "bazel_version", "")
    return "public" if version and int(version.split(".")[0]) >= 7 else "//..."

def users(name, packages):
    """Declares package group `name`: `packages` in this repository, everyone outside it."""
    inside = native.repository_name() == "@"
    native.package_group(name = name, packages = packages if inside else [_everyone()])
