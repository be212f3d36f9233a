"""The network in TensorFlow: plain in `bilm.py`, which is to be read; fast in `fast.py`, which is used."""
