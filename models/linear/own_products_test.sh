#!/bin/sh
# own_products_test.sh PROGRAM
PLAIT_PRODUCTS=own exec "$1"
