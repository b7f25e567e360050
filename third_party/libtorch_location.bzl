"""Finds the wheel's `site-packages` by searching known folders, as the environment differs from shell to shell."""

VERSION = "2.11.0"

def _caches(repository_ctx):
    """Folders in which ./bazelw may have installed LibTorch, the most likely first."""
    written = str(repository_ctx.path(Label("//third_party:BUILD")).dirname) + "/libtorch_location.txt"
    found = []
    if repository_ctx.path(written).exists:
        found.append(repository_ctx.read(written).strip())
    environ = repository_ctx.os.environ
    homes = [environ.get("XDG_CACHE_HOME"), environ.get("HOME", "") + "/.cache"]
    found += [home + "/plait/libtorch-" + VERSION for home in homes if home and home.startswith("/")]
    return found + ["/opt/plait/libtorch-" + VERSION]

def find_site_packages(repository_ctx):
    """The folder that holds `torch/` and `nvidia/`, or None."""
    candidates = []
    for cache in _caches(repository_ctx):
        lib = repository_ctx.path(cache + "/lib")
        if lib.exists:
            candidates += [str(entry) + "/site-packages" for entry in lib.readdir() if entry.basename.startswith("python3")]
    for python in ["3.10", "3.11", "3.12", "3.13"]:
        candidates.append("/usr/local/lib/python{}/dist-packages".format(python))
    candidates.append("/usr/lib/python3/dist-packages")
    for candidate in candidates:
        if _is_right(repository_ctx, candidate + "/torch"):
            return candidate
    return None

def _is_right(repository_ctx, torch):
    if not repository_ctx.path(torch + "/lib/libtorch_cpu.so").exists:
        return False
    version = torch + "/version.py"
    return repository_ctx.path(version).exists and "'" + VERSION in repository_ctx.read(version)
