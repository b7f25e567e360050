"""Libraries of the Debian system, asked from pkg-config: one target per module.

    @system_libraries//:absl  @system_libraries//:mpi  @system_libraries//:hdf5 ...
"""

# target -> pkg-config modules
_MODULES = {
    # All of Abseil that Plait uses, except its flags, which register themselves when linked.
    "absl": "absl_flat_hash_map absl_flat_hash_set absl_hash absl_span absl_status " +
            "absl_statusor absl_strings absl_str_format absl_synchronization absl_time",
    "absl_flags": "absl_flags absl_flags_parse absl_flags_usage absl_flags_reflection",
    "benchmark": "benchmark",
    "ffmpeg": "libavcodec libavutil libswscale",
    "ffmpeg_files": "libavformat libavcodec libavutil",
    "gmock": "gmock gtest",
    "hdf5": "hdf5-openmpi",
    "httplib": "cpp-httplib",
    "mpi": "ompi",
    "nlohmann_json": "nlohmann_json",
    "protobuf": "protobuf",
    "spdlog": "spdlog",
    "zlib": "zlib",
}

# mpi.h includes Open MPI's deprecated C++ bindings unless OMPI_SKIP_MPICXX is defined.
# cpp-httplib's defines are those that Debian compiles it with; they change the layout of its classes.
_DEFINES = {
    "mpi": ["OMPI_SKIP_MPICXX"],
    "hdf5": ["OMPI_SKIP_MPICXX"],
    "httplib": ["CPPHTTPLIB_OPENSSL_SUPPORT", "CPPHTTPLIB_ZLIB_SUPPORT", "CPPHTTPLIB_BROTLI_SUPPORT"],
}

def _pkg_config(repository_ctx, option, modules):
    result = repository_ctx.execute(["pkg-config", option] + modules.split(" "))
    if result.return_code != 0:
        fail("pkg-config {}: {}\nRun ./bazelw setup: it installs what is missing.".format(modules, result.stderr))
    return [flag for flag in result.stdout.strip().split(" ") if flag]

def _target(repository_ctx, name, modules):
    includes = []
    for index, flag in enumerate(_pkg_config(repository_ctx, "--cflags-only-I", modules)):
        if flag.startswith("-I/usr/include/") and flag.endswith("-linux-gnu"):
            continue  # the compiler looks there itself
        folder = "include/{}_{}".format(name, index)
        repository_ctx.symlink(flag[2:], folder)
        includes.append(folder)
    return """
cc_library(
    name = "{name}",
    hdrs = glob([{globs}]),
    includes = {includes},
    defines = {defines},
    linkopts = {linkopts},
)
""".format(
        name = name,
        globs = ", ".join(["\"{}/**/*.h\"".format(folder) for folder in includes]),
        includes = includes,
        defines = _DEFINES.get(name, []) + ["SPDLOG_COMPILED_LIB", "SPDLOG_FMT_EXTERNAL"] if name == "spdlog" else _DEFINES.get(name, []),
        linkopts = _pkg_config(repository_ctx, "--libs", modules),
    )

def _system_libraries_impl(repository_ctx):
    if not repository_ctx.which("pkg-config"):
        fail("pkg-config was not found. Run ./bazelw setup: it installs what is missing.")
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    for name, modules in _MODULES.items():
        build += _target(repository_ctx, name, modules)
    build += """
cc_library(name = "gtest_main", linkopts = ["-lgtest_main"], deps = [":gmock"])

# HDF5's dimension scales: beside HDF5 itself, without a pkg-config file.
cc_library(name = "hdf5_hl", linkopts = {hdf5_folders} + ["-lhdf5_hl"], deps = [":hdf5"])
""".format(hdf5_folders = _pkg_config(repository_ctx, "--libs-only-L", _MODULES["hdf5"]))
    repository_ctx.file("BUILD", build)

system_libraries_repository = repository_rule(implementation = _system_libraries_impl, local = True)
