"""Writes parameters.safetensors and parameters.npz: the same arrays, by the Python packages. Run with
NumPy 2.4, safetensors 0.8 and ml_dtypes 0.6. The npz has no bfloat16."""

import os

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

here = os.path.dirname(os.path.abspath(__file__))
arrays = {"layer/w": np.arange(6, dtype="float32").reshape(2, 3) / 4 - 0.5,
          "scalar": np.array(-2.5), "empty": np.zeros((3, 0), "float32"),
          "flags": np.array([True, False, True]), 'q"\u00e9': np.array([1, -2], "int16")}
for name in "int8 int32 int64 uint8 uint16 uint32 uint64 float16 float64".split():
    arrays[name] = np.array([0, 1, 100]).astype(name)
np.savez(os.path.join(here, "parameters.npz"), **arrays)
arrays["bfloat16"] = np.array([0, 1, 100]).astype(ml_dtypes.bfloat16)
save_file(arrays, os.path.join(here, "parameters.safetensors"), {"format": "np"})
