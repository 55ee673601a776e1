"""Writes losses.npz: losses and metrics of two outputs by Keras's formulas, in float64. Run with NumPy
2.4.

"digit" holds probabilities of 4 classes, "parity" one of a yes, "place" two coordinates.
"""

import os

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(5)
rows = 7
logits = np.round(rng.standard_normal((rows, 4)), 3)
digit = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
parity = np.round(rng.uniform(0.05, 0.95, (rows, 1)), 3)
place = np.round(rng.standard_normal((rows, 2)), 3)
classes = np.array([0, 3, 1, 1, 2, 0, 3])
yes = np.array([[1.0], [0], [0], [1], [1], [0], [1]])
at = np.round(rng.standard_normal((rows, 2)), 3)
weights = np.array([1.0, 0.5, 0.0, 2.0, 1.0, 0.25, 0.0])
factors = np.array([1.0, 2.0, 0.5, 3.0])
one_hot = np.eye(4)[classes]

rows_of = {
    "digit.sparse_categorical_crossentropy": -np.log(digit[np.arange(rows), classes]),
    "digit.categorical_crossentropy": -(one_hot * np.log(digit)).sum(-1),
    "parity.binary_crossentropy": -(yes * np.log(parity) + (1 - yes) * np.log(1 - parity)).mean(-1),
    "place.mse": ((at - place)**2).mean(-1),
    "place.mae": abs(at - place).mean(-1),
    "digit.accuracy": (digit.argmax(-1) == classes).astype(float),
    "parity.accuracy": ((parity > 0.5) == (yes > 0.5)).astype(float).mean(-1),
}
arrays = {"logits": logits, "parity": parity, "place": place, "classes": classes, "yes": yes,
          "at": at, "weights": weights, "factors": factors}
for name, values in rows_of.items():
    arrays[name] = values.mean()
    arrays[name + " weighted"] = (weights * values).sum() / weights.sum()
    # Keras divides by the number of rows ("sum_over_batch_size").
    arrays[name + " by rows"] = (weights * values).sum() / rows
    by_class = weights * factors[classes]
    arrays[name + " by class"] = (by_class * values).sum() / by_class.sum()
    by_answer = np.array([1.0, 4.0])[yes[:, 0].astype(int)]
    arrays[name + " by answer"] = (by_answer * values).sum() / by_answer.sum()
np.savez_compressed(os.path.join(here, "losses.npz"), **arrays)
