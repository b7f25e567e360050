"""CUDA and NCCL, where nvcc and nccl.h are found; else an empty repository and `HAVE_CUDA = False`.

    load("@local_cuda//:cuda.bzl", "HAVE_CUDA")

BUILD files choose between a backend and its stub file with it; no `#ifdef` is needed in the code.
"""

load("//third_party:libtorch_location.bzl", "find_site_packages")

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudart",
    hdrs = glob(["cuda_include/**/*.h", "cuda_include/**/*.hpp"]),
    includes = ["cuda_include"],
    linkopts = ["-L{cuda}/lib64", "-Wl,-rpath,{cuda}/lib64", "-lcudart"],
)

cc_library(
    name = "nccl",
    hdrs = ["nccl_include/nccl.h"],
    includes = ["nccl_include"],
    linkopts = {nccl_link},
    deps = [":cudart"],
)
"""

def _first(repository_ctx, paths):
    for path in paths:
        if path and repository_ctx.path(path).exists:
            return path
    return None

def _cuda_root(repository_ctx):
    """The first folder with bin/nvcc; of those on the PATH not /usr, whose headers are the system's."""
    environ = repository_ctx.os.environ
    nvcc = repository_ctx.which("nvcc")
    on_path = str(nvcc.realpath.dirname.dirname) if nvcc else "/usr"
    roots = [environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for root in roots + ([on_path] if on_path != "/usr" else []):
        if root and repository_ctx.path(root + "/bin/nvcc").exists:
            return root
    return None

def _nccl(repository_ctx):
    """Header (or None) and link options: the wheel's NCCL, which LibTorch uses, else the system's."""
    root = (find_site_packages(repository_ctx) or "") + "/nvidia/nccl"
    if repository_ctx.path(root + "/include/nccl.h").exists:
        return root + "/include/nccl.h", ["-L" + root + "/lib", "-l:libnccl.so.2", "-Wl,-rpath," + root + "/lib"]
    header = _first(repository_ctx, ["/usr/include/nccl.h", "/usr/local/cuda/include/nccl.h"])
    return header, ["-lnccl"]

def _cuda_impl(repository_ctx):
    cuda = _cuda_root(repository_ctx)
    header, link = _nccl(repository_ctx)
    have = bool(cuda and header)
    repository_ctx.file("cuda.bzl", "HAVE_CUDA = {}\nNVCC = \"{}\"\n".format(have, cuda + "/bin/nvcc" if have else ""))
    if have:
        repository_ctx.symlink(cuda + "/include", "cuda_include")
        repository_ctx.symlink(header, "nccl_include/nccl.h")
        repository_ctx.file("BUILD", _BUILD.format(cuda = cuda, nccl_link = link))
    else:
        repository_ctx.file("BUILD", "")

cuda_repository = repository_rule(implementation = _cuda_impl, local = True)
