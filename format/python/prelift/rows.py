"""Feature rows of SPEC 5.4 as float32, whatever they are stored as."""

from __future__ import annotations

import numpy as np

from .layout import DType


def to_float32(rows: np.ndarray, dtype: DType, scale: np.ndarray | None = None, out: np.ndarray | None = None) -> np.ndarray:
    """rows [n, columns] of a stored dtype as float32 [n, columns].

    f32 rows are returned as they are (a view), unless out is given. bf16 rows are the u16 that a section's view has. An element of i8
    rows is multiplied by scale [columns] of its column, without scale by 1 (files have one, C24); the product is rounded to float32 once.
    """
    if dtype == DType.F32 and out is None:
        return rows
    if out is None:
        out = np.empty(rows.shape, np.float32)
    if dtype == DType.BF16:
        np.left_shift(rows, np.uint32(16), out=out.view(np.uint32), casting="unsafe", dtype=np.uint32)
    else:
        out[...] = rows
    if dtype == DType.I8 and scale is not None:
        out *= scale
    return out
