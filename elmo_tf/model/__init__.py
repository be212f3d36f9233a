"""The network in TensorFlow: plain in `bilm.py`, for reading; fast in `fast.py`, for use."""
