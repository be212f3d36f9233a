"""A stand-in for Hugging Face's hub on 127.0.0.1: the part of its protocol by which huggingface_hub fetches and pushes.

Files of more than 1,000 bytes are large ones, stored by their SHA-256 (Git LFS); Xet is not offered.
"""

import base64
import contextlib
import dataclasses
import hashlib
import http.server
import json
import re
import urllib.parse

from tests.files.file_server import running

TOKEN = "hf_secret"
_LARGE = 1000  # bytes


@dataclasses.dataclass
class Repository:
    private: bool = False
    branches: dict[str, str] = dataclasses.field(default_factory=dict)  # name to commit
    commits: dict[str, dict[str, bytes]] = dataclasses.field(default_factory=dict)

    def commit(self, branch: str, files: dict[str, bytes]) -> str:
        content = json.dumps([sorted(map(repr, files.items())), len(self.commits)])
        self.branches[branch] = hashlib.sha1(content.encode()).hexdigest()
        self.commits[self.branches[branch]] = files
        return self.branches[branch]


class HubServer(http.server.ThreadingHTTPServer):
    """The server.

    Attributes:
        repositories: by `owner/name`.
        requests: the method and path of each request.
        downloads: of large files, broken ones too.
        cuts: for each coming download, after how many bytes the connection breaks; then, downloads are complete.
        status: of all answers, if it is not 0.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}
        self.requests: list[str] = []
        self.downloads = 0
        self.cuts: list[int] = []
        self.status = 0
        self.uploads: dict[str, bytes] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_) -> None:
        """A client that was killed is no error of the server's."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def _handle(self) -> None:
        server, self.content = self.server, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.urlsplit(self.path).path
        server.requests.append(f"{self.command} {path}")
        if server.status:
            self._error(server.status, None, "out of order")
        elif self.command == "PUT":
            self._put(path.rpartition("/")[2])
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(self.content))
        elif matched := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/([a-z]+)/([^/]+))?", path):
            self._with_repository(matched[1], matched[2] or "revision", urllib.parse.unquote(matched[3] or "main"))
        elif matched := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._with_repository(matched[1], matched[3], urllib.parse.unquote(matched[2]))
        elif path.endswith(".git/info/lfs/objects/batch"):
            self._batch(json.loads(self.content)["objects"])
        else:
            self._error(404, None, "no such path")

    do_GET = do_HEAD = do_POST = do_PUT = _handle

    @property
    def _is_owner(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _with_repository(self, name: str, what: str, revision: str) -> None:
        repository = self.server.repositories.get(name)
        if repository is None or (repository.private and not self._is_owner):
            self._error(404 if self._is_owner else 401, "RepoNotFound", "Repository not found")
            return
        if what == "branch":
            repository.branches.setdefault(revision, repository.branches["main"])
            self._json({})
            return
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        files = repository.commits[commit]
        if what == "revision":
            siblings = [{"rfilename": path} for path in files]
            self._json({"id": name, "sha": commit, "private": repository.private, "tags": [], "siblings": siblings})
        elif what == "tree":
            self._json([{"type": "file", "path": path, **_identity(files[path])} for path in files])
        elif what == "preupload":
            modes = {file["path"]: "lfs" if file["size"] > _LARGE else "regular" for file in self._sent()["files"]}
            self._json({"files": [{"path": path, "uploadMode": modes[path], "shouldIgnore": False} for path in modes]})
        elif what == "commit":
            self._commit(name, repository, revision, dict(files))
        elif what in files:
            self._send_file(files[what], commit)
        else:
            self._error(404, "EntryNotFound", "Entry not found")

    def _sent(self) -> dict:
        return json.loads(self.content)

    def _create(self, asked: dict) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if not self._is_owner:
            self._error(401, None, "Invalid username or password.")
        elif name in self.server.repositories:
            url = json.dumps({"url": f"{self.server.url}/{name}"}).encode()
            self._answer(409, url, {"X-Error-Message": "You already created this model repo"})
        else:
            private = asked.get("visibility") == "private" or asked.get("private") is True
            self.server.repositories[name] = Repository(private)
            self.server.repositories[name].commit("main", {".gitattributes": b""})
            self._json({"url": f"{self.server.url}/{name}"})

    def _batch(self, objects: list[dict]) -> None:
        for item in objects:
            item["actions"] = {"upload": {"href": f"{self.server.url}/uploads/{item['oid']}", "header": {}}}
        self._json({"objects": objects, "transfer": "basic"})

    def _put(self, oid: str) -> None:
        assert hashlib.sha256(self.content).hexdigest() == oid
        self.server.uploads[oid] = self.content
        self._json({})

    def _commit(self, name: str, repository: Repository, branch: str, files: dict[str, bytes]) -> None:
        for line in self.content.splitlines():
            kind, value = json.loads(line).values()
            if kind == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif kind == "lfsFile":
                files[value["path"]] = self.server.uploads[value["oid"]]
            elif kind == "deletedFile":
                del files[value["path"]]
        oid = repository.commit(branch, files)
        self._json({"commitUrl": f"{self.server.url}/{name}/commit/{oid}", "commitOid": oid})

    def _send_file(self, content: bytes, commit: str) -> None:
        identity = _identity(content)
        start = int(re.findall(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[0])
        self.send_response(206 if start else 200)
        etag = identity["lfs"]["oid"] if "lfs" in identity else identity["oid"]
        self.send_header("ETag", f'"{etag}"')
        self.send_header("X-Repo-Commit", commit)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.server.downloads += "lfs" in identity
        cut = self.server.cuts.pop(0) if self.server.cuts and "lfs" in identity else None
        self.wfile.write(content[start : None if cut is None else start + cut])
        self.close_connection = cut is not None

    def _json(self, value: object) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: int, code: str | None, message: str) -> None:
        self._answer(status, b"", {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {}))

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _identity(content: bytes) -> dict:
    """Returns a file's size and hashes, as the hub lists them."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    if len(content) <= _LARGE:
        return {"oid": git, "size": len(content)}
    lfs = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return {"oid": git, "size": len(content), "lfs": lfs}


def serve() -> contextlib.AbstractContextManager[HubServer]:
    """Returns a context manager for a running server without repositories."""
    return running(HubServer())
