"""Compiler options of kernels. Sums are fused where the source says so, or a row could get other bits in another tile."""

KERNEL_COPTS = ["-O3", "-ffp-contract=off", "-fno-math-errno"]

AVX2_COPTS = KERNEL_COPTS + ["-mavx2", "-mfma"]

AVX512_COPTS = KERNEL_COPTS + ["-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma"]

AVX512_PAIR_COPTS = AVX512_COPTS + ["-mavx512bf16"]
