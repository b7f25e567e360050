"""A test again, with the products of models/linear/kernels on every CPU that can run them (UsableProducts).

    load("//models/linear:own_products_test.bzl", "own_products_test")

    own_products_test("linear_test")

makes :linear_test_with_own_products of the program :linear_test.
"""

def own_products_test(test):
    native.sh_test(
        name = test + "_with_own_products",
        size = "small",
        srcs = ["//models/linear:own_products_test.sh"],
        args = ["$(location :%s)" % test],
        data = [":" + test],
    )
