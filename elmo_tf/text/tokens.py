"""A user's token as bytes."""

from elmo_tf.errors import InputError


def to_bytes(token: object, parameter: str) -> bytes:
    """Returns a token as UTF-8 bytes; bytes are returned unchanged.

    Args:
        token: `str` or `bytes`, NumPy's included.
        parameter: what the error is about.

    Raises:
        InputError: if it is neither, or has half of a surrogate pair, which UTF-8 cannot hold.
    """
    if isinstance(token, bytes):
        return bytes(token)
    try:
        if isinstance(token, str):
            return token.encode()
    except UnicodeEncodeError:
        raise InputError(parameter, "tokens without half a surrogate pair", ascii(token)) from None
    raise InputError(parameter, "tokens that are str or bytes", repr(token))
