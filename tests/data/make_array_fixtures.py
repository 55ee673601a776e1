"""Writes array_print.txt and npy/: what NumPy prints and writes. Run with NumPy 2.4."""

import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))


def case(out, array):
    """One case: dtype and shape, the bytes in hexadecimal, the number of lines, the lines."""
    text = str(array).split("\n")
    out.write(f"{array.dtype} {' '.join(map(str, array.shape))}\n")
    out.write(np.ascontiguousarray(array).tobytes().hex() + "\n")
    out.write(f"{len(text)}\n" + "\n".join(text) + "\n")


def print_cases(rng):
    f4, f8 = np.float32, np.float64
    for t in (np.float16, f4, f8):
        yield np.array([1.5, 2, -3.25], t)
        yield np.array([0.1, 0.2, 1 / 3], t)
        yield np.array([1e-5, 1], t)
        yield np.array([1e-3, 999], t)
        yield np.array([0.001, 1.5], t)
        yield np.array([np.nan, 1, np.inf, -np.inf], t)
        yield np.array([np.nan, np.inf], t)
        yield np.array([-np.inf], t)
        yield np.array([np.nan, 1e-7, 12345.678], t)
        yield np.array([-0.0, 0.0], t)
        yield np.array([[1, 2], [3, 4]], t)
        yield np.zeros((2, 3, 2), t)
        yield np.array([999.5, 1000], t)
        yield np.array([65504, 1e-7], t)
        for v in (0, -0.0, 0.1, 1, -2.5, 1 / 3, 1e-4, 9.9e-5, 12345.678, np.nan, -np.inf):
            yield np.array(v, t)
    for v in (1e15, 1e16, 123456789, 1e22, 1e-300, 5e-324, 1.7976931348623157e308, 1e100):
        yield np.array(v, f8)
    for v in (1e15, 1e16, 123456789, 1e22, 1e-45, 3.4028235e38):
        yield np.array(v, f4)
    yield np.array([1e100, -1e-100, 0], f8)
    yield np.array([99999999.0, 1e5], f8)
    yield np.array([1e8], f8)
    yield np.array([999999.0, 1e5], f4)
    yield np.array([1e6, 1], f4)
    yield np.array([0.123456789012, 2.5], f8)
    yield np.array([16777216, 0.00012345], f4)
    yield rng.standard_normal((3, 4)).astype(f4)
    yield rng.standard_normal((20, 7)).astype(f8)
    yield rng.random(40).astype(f4)
    yield (rng.standard_normal(25) * 10.0 ** rng.integers(-20, 20, 25)).astype(f8)
    yield rng.standard_normal((2, 2, 3, 2)).astype(f4)
    for t in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(t)
        yield np.array([info.min, 0, info.max], t)
        yield np.array(info.max, t)
    yield np.arange(30)
    yield np.arange(24).reshape(2, 3, 4)
    yield np.array([[-1], [100]])
    yield np.array(True)
    yield np.array(False)
    yield np.array([True, True])
    yield np.array([[True, False], [False, True]])
    for shape in ((0,), (0, 3), (2, 0, 4)):
        yield np.zeros(shape, f4)
    yield np.arange(1001)
    yield np.arange(1000).reshape(250, 4).astype(np.int16)
    yield np.arange(1002).reshape(334, 3).astype(np.int16)
    yield np.arange(7 * 8 * 19).reshape(7, 8, 19).astype(np.int16)
    yield np.linspace(0, 1, 1500).astype(f4)
    yield np.arange(6 * 200).reshape(6, 200).astype(np.int16)
    yield np.arange(1, 1112).astype(np.uint16).reshape(1, 1111)
    yield np.tile(np.array([True, False]), 600)


def write_prints(path, cases):
    with open(path, "w") as out:
        for array in cases:
            case(out, array)



def write_npy(folder):
    def save(name, array, version=(1, 0)):
        with open(os.path.join(folder, name), "wb") as f:
            np.lib.format.write_array(f, array, version)

    base = np.arange(6).reshape(2, 3)
    for t in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
              "float16", "float32", "float64"):
        save(f"{t}.npy", (base - 1 if t[0] in "if" else base % 2 if t == "bool" else base).astype(t))
    save("fortran.npy", np.asfortranarray(base.astype("<f4")))
    save("big_endian.npy", base.astype(">f8"))
    save("big_endian_fortran.npy", np.asfortranarray(base.astype(">i2")))
    save("version2.npy", base.astype("<i4"), (2, 0))
    save("version3.npy", base.astype("<i4"), (3, 0))
    save("scalar.npy", np.array(2.5))
    save("empty.npy", np.zeros((0, 3), "<f4"))
    save("complex.npy", np.array([1j]))
    save("text.npy", np.array(["abc"]))
    save("record.npy", np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f4")]))
    save("raw2.npy", np.zeros(3, "V2"))
    np.save(os.path.join(folder, "object.npy"), np.array([None], object), allow_pickle=True)
    np.savez(os.path.join(folder, "plain.npz"), x=base.astype("<f4"), y=np.array([True, False]))
    np.savez_compressed(os.path.join(folder, "packed.npz"), x=np.zeros((50, 50), "<f8"), z=base)


if __name__ == "__main__":
    write_prints(os.path.join(here, "array_print.txt"), print_cases(np.random.default_rng(7)))
    os.makedirs(os.path.join(here, "npy"), exist_ok=True)
    write_npy(os.path.join(here, "npy"))
