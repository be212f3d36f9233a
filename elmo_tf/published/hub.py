"""Models on Hugging Face's hub, `hf://owner/name` or `hf://owner/name@revision`; settings are huggingface_hub's."""

import contextlib
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from elmo_tf import __version__, extras
from elmo_tf.errors import InputError, reason
from elmo_tf.files import intact

_ADDRESS = re.compile(r"hf://([\w.-]+/[\w.-]+)(?:@([^\s@]+))?", re.ASCII)
_LIBRARIES = ("hf_xet", "httpx", "httpx2", "huggingface_hub")  # not all of their errors are `OSError`


def parse(address: str) -> tuple[str, str | None]:
    """Returns the `owner/name` and the revision, if any, of an address; `InputError` if it is malformed."""
    if (match := _ADDRESS.fullmatch(address)) is None:
        raise InputError(address, "not an address on the hub; write hf://owner/name or hf://owner/name@revision")
    return match[1], match[2]


def fetch(address: str, patterns: Sequence[str]) -> tuple[pathlib.Path, str]:
    """Returns a folder in the hub's cache with the files that match, fetched if they are not there, and the address
    with their commit. Raises `InputError` if they cannot be fetched, are damaged, or are links out of the cache."""
    repository, revision = parse(address)
    with _explained(address):
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - only addresses on the hub need it

        about: Any = {"library_name": "elmo_tf", "library_version": __version__}
        folder = pathlib.Path(snapshot_download(repository, revision=revision, allow_patterns=[*patterns], **about))
    cache = (folder.parents[1].resolve(), folder.parents[2].resolve())  # this model's, and all models'
    for path in folder.rglob("*"):
        if path.is_symlink() and not any(map(path.resolve().is_relative_to, cache)):
            raise InputError(str(path), "a link out of the hub's cache, which is not followed")
        if path.is_symlink() and re.fullmatch("[0-9a-f]{64}", sha256 := os.path.basename(os.readlink(path))):
            intact.check(path, None, sha256)  # the name of a large file's blob
    return folder, f"hf://{repository}@{folder.name}"


def upload(address: str, folder: pathlib.Path, private: bool, replaced: Sequence[str]) -> str:
    """Commits a folder's files to a repository and a branch, which are made if needed; returns the commit's address.

    Files called as in `replaced` are removed if the folder lacks them. Raises `InputError` if the hub refuses, cannot
    be reached, or has a public model where a `private` one is asked for.
    """
    repository, branch = parse(address)
    with _explained(address):
        from huggingface_hub import HfApi  # noqa: PLC0415 - see `fetch`

        api = HfApi(library_name="elmo_tf", library_version=__version__)
        api.create_repo(repository, private=private or None, exist_ok=True)
        if private and not api.model_info(repository).private:
            raise InputError(address, "this model exists and is public; leave out --private, or choose another name")
        if branch is not None:
            api.create_branch(repository, branch=branch, exist_ok=True)
        settings: Any = {"revision": branch, "commit_message": "Upload by elmo_tf", "delete_patterns": [*replaced]}
        commit = api.upload_folder(repo_id=repository, folder_path=folder, **settings)
    return f"hf://{repository}@{commit.oid}"


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """Turns huggingface_hub's errors in the block into an `InputError` about `address`."""
    with extras.explain_missing_extra():
        try:
            yield
        except (InputError, ModuleNotFoundError):
            raise
        except Exception as error:
            library = type(error).__module__.partition(".")[0]
            if not isinstance(error, OSError | ValueError) and library not in _LIBRARIES:
                raise
            raise InputError(address, _problem(error)) from error


def _problem(error: BaseException) -> str:
    from huggingface_hub import constants, errors  # noqa: PLC0415 - see `fetch`

    if isinstance(error, errors.RepositoryNotFoundError):
        return f"not found at {constants.ENDPOINT}, or not for you; if it is private or gated, set HF_TOKEN"
    if isinstance(error, errors.RevisionNotFoundError):
        return "the model has no such revision"
    if isinstance(error, errors.LocalEntryNotFoundError):
        why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else _problem(error.__cause__ or OSError("offline"))
        return f"not, or not completely, in the cache {constants.HF_HUB_CACHE}, and {why}"
    if (response := getattr(error, "response", None)) is not None:
        said = response.headers.get("X-Error-Message", "")
        return f"{constants.ENDPOINT} answers {response.status_code} {response.reason_phrase}: {said}"
    return f"{getattr(error, 'filename', None) or constants.ENDPOINT}: {reason(error)}"
