"""Batches for PyTorch, PyG and DGL. None of them is imported before it is asked for."""
