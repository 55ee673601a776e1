"""Writes promotion.txt (NumPy's result types) and half.txt (doubles rounded to float16)."""

import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
names = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64").split()

with open(os.path.join(here, "promotion.txt"), "w") as out:
    for a in names:
        for b in names:
            out.write(f"{a} {b} {np.promote_types(a, b)}\n")

rng = np.random.default_rng(3)
values = list(rng.standard_normal(150) * 10.0 ** rng.integers(-9, 6, 150))
# Halfway cases between neighbours, and a hair above and below them, which double rounding misses.
for bits in (0x0000, 0x0001, 0x03FF, 0x0400, 0x3BFF, 0x3C00, 0x3C01, 0x7BFE, 0x7BFF):
    low = float(np.array(bits, np.uint16).view(np.float16))
    high = 65536.0 if bits == 0x7BFF else float(np.array(bits + 1, np.uint16).view(np.float16))
    middle = (low + high) / 2
    values += [middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf), -middle]
with open(os.path.join(here, "half.txt"), "w") as out, np.errstate(all="ignore"):
    for v in values:
        out.write(f"{float(v).hex()} {int(np.float16(v).view(np.uint16))}\n")
