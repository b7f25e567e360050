"""Kernels that are compiled for several processor families; one is selected at run time."""

# No implicit contraction: a row must be bitwise identical in any tile.
_COPTS = ["-O3", "-ffp-contract=off", "-fno-math-errno"]

_AVX512 = _COPTS + ["-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma"]

FAMILY_COPTS = {
    "portable": _COPTS,
    "avx2": _COPTS + ["-mavx2", "-mfma"],
    "avx512": _AVX512,
    "avx512_pair": _AVX512 + ["-mavx512bf16"],
}

def kernels(name, stem, hdrs, visibility, other = "none", families = ["avx512", "avx512_pair"], deps = []):
    """Declares library `name`, which selects the kernels at run time, and library `headers`.

    Args:
      name: name of the library. Its source is NAME_x86.cc, or NAME_OTHER.cc on other architectures.
      stem: the kernels of each family are in STEM_FAMILY.cc.
      hdrs: the table of kernels, which users include, and the kernels themselves.
      visibility: of both.
      other: see `name`.
      families: keys of FAMILY_COPTS. "portable" is built for all architectures, the others for x86 only.
      deps: dependencies of headers and sources; //models/simd is added.
    """
    native.cc_library(
        name = "headers",
        hdrs = hdrs,
        visibility = visibility,
        deps = deps + ["//models/simd"],
    )
    for family in families:
        native.cc_library(
            name = family,
            srcs = ["{}_{}.cc".format(stem, family)],
            copts = FAMILY_COPTS[family],
            deps = [":headers"],
        )
    native.cc_library(
        name = name,
        srcs = select({
            "//models/simd:x86_64": [name + "_x86.cc"],
            "//conditions:default": ["{}_{}.cc".format(name, other)],
        }),
        visibility = visibility,
        deps = [":headers"] + [":" + family for family in families if family == "portable"] + select({
            "//models/simd:x86_64": [":" + family for family in families if family != "portable"],
            "//conditions:default": [],
        }),
    )
