"""The one exception that means "the input is wrong", as opposed to "the program is wrong"."""


class InputError(ValueError):
    """A user's argument, file or setting cannot be used.

    The message is one line that names the argument, what was expected and what was found. The command line prints it
    and exits with status 1; any other exception is a defect and keeps its traceback.
    """
