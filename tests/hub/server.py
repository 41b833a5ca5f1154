"""A small Hugging Face Hub on a loopback port: the protocol that huggingface_hub speaks, and faults on demand.

Content is stored by its SHA-256; a commit is a mapping of paths to content, taken whole or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

LFS_PATTERNS = re.compile(r"\.(safetensors|bin|pt|pkl|parquet|onnx|h5|msgpack)$")
LFS_SIZE = 10_000_000
LICENSES = {"apache-2.0", "mit", "bsd-3-clause", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "other"}
PIPELINES = {"sentence-similarity", "feature-extraction", "text-ranking", "text-classification"}


@dataclass
class User:
    name: str
    organizations: tuple[str, ...] = ()
    can_write: bool = True


@dataclass(frozen=True)
class Entry:
    """One file of a commit."""

    size: int
    sha256: str
    blob_id: str
    is_lfs: bool

    @property
    def etag(self) -> str:
        return self.sha256 if self.is_lfs else self.blob_id


@dataclass
class Commit:
    oid: str
    tree: dict[str, Entry]
    title: str
    parent: str | None


@dataclass
class Repository:
    name: str
    private: bool = False
    gated: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    pull_requests: int = 0

    def resolve(self, revision: str) -> Commit | None:
        return self.commits.get(self.refs.get(revision, revision))

    def history(self, revision: str = "main") -> list[str]:
        """Titles of the commits, newest first."""
        titles, commit = [], self.resolve(revision)
        while commit is not None:
            titles.append(commit.title)
            commit = self.commits.get(commit.parent) if commit.parent else None
        return titles


class HubServer:
    """The server; use as a context manager.

    ``drop_uploads``, ``drop_downloads`` and ``drop_commits`` say how many of the next uploads and downloads break off
    in the middle, and how many of the next commits are taken without an answer.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users: dict[str, User] = {}
        self.repositories: dict[str, Repository] = {}
        self.requests: list[tuple[str, str]] = []
        self.drop_uploads = 0
        self.drop_downloads = 0
        self.drop_commits = 0
        self.lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"hub": self}))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        # Large files come from another host, as with the Hub's CDN: clients send no token there.
        self.cdn = f"http://localhost:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    # --- storage ---

    def store(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / digest
        if not path.exists():
            temporary = self.folder / f"{digest}.{threading.get_ident()}"
            temporary.write_bytes(content)
            temporary.rename(path)
        return digest

    def read(self, sha256: str) -> bytes:
        return (self.folder / sha256).read_bytes()

    def has(self, sha256: str) -> bool:
        return (self.folder / sha256).exists()

    def entry(self, sha256: str, is_lfs: bool) -> Entry:
        content = self.read(sha256)
        stored = content
        if is_lfs:  # git holds a pointer in its place
            stored = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n".encode()
        blob = hashlib.sha1(b"blob %d\0" % len(stored) + stored).hexdigest()
        return Entry(len(content), sha256, blob, is_lfs)

    def commit(self, repository: Repository, ref: str, tree: dict[str, Entry], title: str) -> Commit:
        with self.lock:
            parent = repository.refs.get(ref)
            source = json.dumps([parent, title, {name: entry.blob_id for name, entry in tree.items()}], sort_keys=True)
            commit = Commit(hashlib.sha1(source.encode()).hexdigest(), tree, title, parent)
            repository.commits[commit.oid] = commit
            repository.refs[ref] = commit.oid
            return commit

    def create(self, name: str, private: bool = False) -> Repository:
        repository = self.repositories[name] = Repository(name, private)
        attributes = self.entry(self.store(b"*.safetensors filter=lfs diff=lfs merge=lfs -text\n"), False)
        self.commit(repository, "main", {".gitattributes": attributes}, "initial commit")
        return repository

    def upload(self, name: str, files: dict[str, bytes], private: bool = False) -> Repository:
        """Put files into a repository past the protocol, as somebody else's push would."""
        repository = self.repositories.get(name) or self.create(name, private)
        tree = dict(repository.resolve("main").tree)
        for path, content in files.items():
            tree[path] = self.entry(self.store(content), is_lfs(path, len(content)))
        self.commit(repository, "main", tree, "Upload")
        return repository

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        commit = self.repositories[name].resolve(revision)
        assert commit is not None
        return {path: self.read(entry.sha256) for path, entry in commit.tree.items()}

    def count(self, method: str, pattern: str) -> int:
        return sum(1 for found, path in self.requests if found == method and re.search(pattern, path))


def is_lfs(path: str, size: int) -> bool:
    return bool(LFS_PATTERNS.search(path)) or size > LFS_SIZE


def card_errors(content: str) -> list[str]:
    """What the Hub would not take in a card's metadata."""
    from huggingface_hub.repocard_data import model_index_to_eval_results  # reads HF_ENDPOINT when first imported

    match = re.match(r"---\n(.*?)\n---\n", content, re.DOTALL)
    if match is None:
        return ["the metadata is missing"]
    data = yaml.safe_load(match[1])
    if not isinstance(data, dict):
        return ["the metadata is no mapping"]
    errors = []
    if "license" in data and data["license"] not in LICENSES:
        errors.append(f'"license" must be one of {sorted(LICENSES)}')
    if data.get("license") == "other" and "license_name" not in data:
        errors.append('"license_name" is required with the license "other"')
    if data.get("pipeline_tag", "sentence-similarity") not in PIPELINES:
        errors.append('"pipeline_tag" is unknown')
    for key in ("tags", "datasets", "language", "metrics"):
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            errors.append(f'"{key}" must be a list of strings')
    for key in ("base_model", "library_name"):
        if not isinstance(data.get(key, ""), str):
            errors.append(f'"{key}" must be a string')
    if re.search(r"[^\w./-]", data.get("base_model", "")) or data.get("base_model", "").startswith(("/", ".")):
        errors.append('"base_model" is no model id')
    if any(len(code) not in (2, 3) for code in data.get("language", [])):
        errors.append('"language" must hold ISO 639 codes')
    if "model-index" in data:
        try:
            _, results = model_index_to_eval_results(data["model-index"])
            if not all(isinstance(result.metric_value, int | float) for result in results):
                errors.append('"model-index" holds a value that is no number')
        except (KeyError, TypeError) as error:
            errors.append(f'"model-index" is malformed: {error!r}')
    return errors


class RefusedError(Exception):
    def __init__(self, status: int, code: str | None = None, message: str = "") -> None:
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.handle_request()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def handle_request(self) -> None:
        url = urlsplit(self.path)
        self.query = {key: values[0] for key, values in parse_qs(url.query).items()}
        self.parts = [unquote(part) for part in url.path.strip("/").split("/")]
        self.hub.requests.append((self.command, unquote(url.path)))
        self.body_read = False
        try:
            self.dispatch()
        except RefusedError as refusal:
            self.read_body()
            headers = {"X-Error-Message": refusal.message}
            if refusal.code:
                headers["X-Error-Code"] = refusal.code
            self.answer({"error": refusal.message}, refusal.status, headers)
        except ConnectionError:
            self.close_connection = True

    # --- requests and answers ---

    def read_body(self) -> bytes:
        if self.body_read:
            return b""
        self.body_read = True
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def json_body(self) -> Any:
        return json.loads(self.read_body() or b"{}")

    def answer(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        if not isinstance(content, bytes):
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionError

    # --- who may do what ---

    def user(self) -> User | None:
        header = self.headers.get("Authorization")
        if header is None:
            return None
        user = self.hub.users.get(header.removeprefix("Bearer "))
        if user is None:
            raise RefusedError(401, message="Invalid credentials in Authorization header")
        return user

    def member(self, namespace: str) -> bool:
        user = self.user()
        return user is not None and namespace in (user.name, *user.organizations)

    def repository(self, namespace: str, name: str) -> Repository:
        user = self.user()
        repository = self.hub.repositories.get(f"{namespace}/{name}")
        if repository is None or (repository.private and not self.member(namespace)):
            raise RefusedError(404 if user else 401, "RepoNotFound", "Repository not found")
        return repository

    def writable(self, namespace: str) -> None:
        user = self.user()
        if user is None:
            raise RefusedError(401, message="Invalid username or password.")
        if not user.can_write or not self.member(namespace):
            raise RefusedError(403, message=f"You don't have the rights to write to the namespace {namespace}")

    # --- routes ---

    def dispatch(self) -> None:
        match (self.command, *self.parts):
            case ("GET", "api", "whoami-v2"):
                self.whoami()
            case ("POST", "api", "repos", "create"):
                self.create_repository()
            case ("POST", "api", "validate-yaml"):
                errors = card_errors(self.json_body()["content"])
                body = {"errors": [{"message": text} for text in errors], "warnings": []}
                self.answer(body, 400 if errors else 200)
            case ("GET", "api", "models", _, "revision", *_):  # an id without an organization
                raise RefusedError(404 if self.user() else 401, "RepoNotFound", "Repository not found")
            case ("GET", "api", "models", namespace, name):
                self.model_info(self.repository(namespace, name), "main")
            case ("GET", "api", "models", namespace, name, "revision", *revision):
                self.model_info(self.repository(namespace, name), "/".join(revision))
            case ("GET", "api", "models", namespace, name, "tree", revision, *_):
                self.tree(self.repository(namespace, name), revision)
            case ("GET", "api", "models", namespace, name, "refs"):
                self.refs(self.repository(namespace, name))
            case ("POST", "api", "models", namespace, name, "branch", *branch):
                self.create_ref(namespace, name, "/".join(branch), self.json_body().get("startingPoint", "main"))
            case ("POST", "api", "models", namespace, name, "tag", *revision):
                self.create_ref(namespace, name, self.json_body()["tag"], "/".join(revision))
            case ("POST", "api", "models", namespace, name, "preupload", revision):
                self.preupload(self.repository(namespace, name), revision)
            case ("POST", "api", "models", namespace, name, "commit", revision):
                self.take_commit(namespace, self.repository(namespace, name), revision)
            case ("POST", namespace, name, "info", "lfs", "objects", "batch"):
                self.lfs_batch(namespace, self.repository(namespace, name.removesuffix(".git")))
            case ("PUT", "lfs", sha256):
                self.lfs_upload(sha256)
            case ("GET", "lfs", sha256):
                self.send_content(self.hub.read(sha256), {"ETag": f'"{sha256}"'})
            case ("GET" | "HEAD", namespace, name, "resolve", revision, *path):
                self.resolve(self.repository(namespace, name), revision, "/".join(path))
            case _:
                raise RefusedError(404, message=f"No route {self.command} {self.path}")

    def whoami(self) -> None:
        user = self.user()
        if user is None:
            raise RefusedError(401, message="Invalid username or password.")
        role = "write" if user.can_write else "read"
        self.answer(
            {
                "type": "user",
                "name": user.name,
                "orgs": [{"name": name} for name in user.organizations],
                "auth": {"type": "access_token", "accessToken": {"role": role}},
            }
        )

    def create_repository(self) -> None:
        body = self.json_body()
        user = self.user()
        namespace = body.get("organization") or (user.name if user else "")
        self.writable(namespace)
        name = f"{namespace}/{body['name']}"
        with self.hub.lock:
            if name in self.hub.repositories:
                self.answer({"error": "You already created this model repo", "url": f"{self.hub.url}/{name}"}, 409)
                return
            self.hub.create(name, body.get("visibility") == "private" or bool(body.get("private")))
        self.answer({"url": f"{self.hub.url}/{name}", "name": name})

    def find(self, repository: Repository, revision: str) -> Commit:
        commit = repository.resolve(revision)
        if commit is None:
            raise RefusedError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def model_info(self, repository: Repository, revision: str) -> None:
        commit = self.find(repository, revision)
        siblings: list[dict[str, Any]] = []
        for path, entry in commit.tree.items():
            sibling: dict[str, Any] = {"rfilename": path}
            if self.query.get("blobs"):
                sibling |= {"size": entry.size, "blobId": entry.blob_id}
                if entry.is_lfs:
                    sibling["lfs"] = {"size": entry.size, "sha256": entry.sha256, "pointerSize": 134}
            siblings.append(sibling)
        self.answer(
            {
                "id": repository.name,
                "modelId": repository.name,
                "author": repository.name.split("/")[0],
                "sha": commit.oid,
                "private": repository.private,
                "gated": "auto" if repository.gated else False,
                "disabled": False,
                "tags": [],
                "siblings": siblings,
            }
        )

    def tree(self, repository: Repository, revision: str) -> None:
        items = []
        for path, entry in self.find(repository, revision).tree.items():
            item: dict[str, Any] = {"type": "file", "path": path, "size": entry.size, "oid": entry.blob_id}
            if entry.is_lfs:
                item["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": 134}
            items.append(item)
        self.answer(items)

    def refs(self, repository: Repository) -> None:
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": oid}
            for name, oid in repository.refs.items()
            if not name.startswith("refs/pr/")
        ]
        self.answer({"branches": branches, "converts": [], "tags": [], "pullRequests": []})

    def create_ref(self, namespace: str, name: str, ref: str, start: str) -> None:
        self.writable(namespace)
        repository = self.repository(namespace, name)
        if ref in repository.refs:
            self.answer({"error": "Reference already exists"}, 409)
            return
        repository.refs[ref] = self.find(repository, start).oid
        self.answer({})

    def preupload(self, repository: Repository, revision: str) -> None:
        commit = self.find(repository, revision)
        files = []
        for file in self.json_body()["files"]:
            mode = "lfs" if is_lfs(file["path"], file["size"]) else "regular"
            answer = {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
            if file["path"] in commit.tree:
                answer["oid"] = commit.tree[file["path"]].etag
            files.append(answer)
        self.answer({"files": files})

    def lfs_batch(self, namespace: str, repository: Repository) -> None:
        if self.query.get("create_pr") is None and repository.pull_requests == 0:
            user = self.user()
            if user is None or not user.can_write:
                raise RefusedError(403, message="You don't have the rights to upload")
        objects = []
        for item in self.json_body()["objects"]:
            answer = {"oid": item["oid"], "size": item["size"]}
            if not self.hub.has(item["oid"]):
                answer["actions"] = {"upload": {"href": f"{self.hub.cdn}/lfs/{item['oid']}"}}
            objects.append(answer)
        self.answer({"transfer": "basic", "objects": objects})

    def lfs_upload(self, sha256: str) -> None:
        size = int(self.headers["Content-Length"])
        if self.hub.drop_uploads > 0:
            self.hub.drop_uploads -= 1
            self.rfile.read(size // 2)
            self.hang_up()
        content = self.read_body()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RefusedError(400, message="The content does not match its digest")
        self.hub.store(content)
        self.answer({})

    def take_commit(self, namespace: str, repository: Repository, revision: str) -> None:
        lines = [json.loads(line) for line in self.read_body().splitlines() if line]
        header = next(line["value"] for line in lines if line["key"] == "header")
        create_pr = bool(self.query.get("create_pr"))
        user = self.user()
        if create_pr:
            if user is None:
                raise RefusedError(401, message="Invalid username or password.")
        else:
            self.writable(namespace)
        with self.hub.lock:
            head = self.find(repository, revision)
            if header.get("parentCommit") not in (None, head.oid):
                raise RefusedError(412, message="A commit has happened since. Please refresh and try again.")
            tree = dict(head.tree)
            for line in lines:
                value = line["value"]
                match line["key"]:
                    case "file":
                        tree[value["path"]] = self.hub.entry(self.hub.store(base64.b64decode(value["content"])), False)
                    case "lfsFile":
                        if not self.hub.has(value["oid"]):
                            raise RefusedError(400, message=f"The LFS object {value['oid']} was never uploaded")
                        tree[value["path"]] = self.hub.entry(value["oid"], True)
                    case "deletedFile":
                        if value["path"] not in tree:
                            raise RefusedError(404, "EntryNotFound", "A file with this name doesn't exist")
                        del tree[value["path"]]
            ref = revision
            if create_pr:
                repository.pull_requests += 1
                ref = f"refs/pr/{repository.pull_requests}"
                repository.refs[ref] = head.oid
            commit = self.hub.commit(repository, ref, tree, header["summary"])
        if self.hub.drop_commits > 0:
            self.hub.drop_commits -= 1
            self.hang_up()
        answer = {
            "success": True,
            "commitOid": commit.oid,
            "commitUrl": f"{self.hub.url}/{repository.name}/commit/{commit.oid}",
        }
        if create_pr:
            answer["pullRequestUrl"] = f"{self.hub.url}/{repository.name}/discussions/{repository.pull_requests}"
        self.answer(answer)

    def resolve(self, repository: Repository, revision: str, path: str) -> None:
        if repository.gated and not self.member(repository.name.split("/")[0]):
            raise RefusedError(
                403 if self.user() else 401, "GatedRepo", f"Access to model {repository.name} is restricted"
            )
        commit = self.find(repository, revision)
        if path not in commit.tree:
            raise RefusedError(404, "EntryNotFound", "Entry not found")
        entry = commit.tree[path]
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{entry.etag}"'}
        if entry.is_lfs:
            headers |= {"X-Linked-Size": str(entry.size), "X-Linked-Etag": f'"{entry.sha256}"'}
            self.answer(b"", 302, {**headers, "Location": f"{self.hub.cdn}/lfs/{entry.sha256}"})
        else:
            self.send_content(self.hub.read(entry.sha256), headers)

    def send_content(self, content: bytes, headers: dict[str, str]) -> None:
        status = 200
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            start, end = int(match[1]), int(match[2]) if match[2] else len(content) - 1
            headers = {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
            content, status = content[start : end + 1], 206
        headers = {**headers, "Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
        if self.command == "GET" and self.hub.drop_downloads > 0 and len(content) > 1000:
            self.hub.drop_downloads -= 1
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.hang_up()
        self.answer(content, status, headers)
