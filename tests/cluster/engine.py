"""Fetches the engine of the cluster into a cache: Flink's distribution, and Beam's job server for it.

    .venv/bin/python -m tests.cluster.engine

Flink comes from PyPI, the parts of the job server from Maven's repository. Beam's own job servers, one jar each, were
not in the mirror of it that this was written with. They are made of the same parts.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

FLINK_VERSION = "1.19"
_FLINK = "apache-flink-libraries==1.19.3"
# The newest versions in that mirror of a runner, and of its job service. Their API serves newer SDKs as well.
_RUNNER = "2.70.0"
_JOB_SERVICE = "2.65.0"
_SLF4J = "2.0.16"
_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>job-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.beam</groupId>
      <artifactId>beam-runners-flink-{FLINK_VERSION}</artifactId>
      <version>{_RUNNER}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.beam</groupId>
      <artifactId>beam-runners-java-job-service</artifactId>
      <version>{_JOB_SERVICE}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId>
      <artifactId>slf4j-simple</artifactId>
      <version>{_SLF4J}</version>
    </dependency>
  </dependencies>
</project>
"""
_MAIN = "org.apache.beam.runners.flink.FlinkJobServerDriver"
_LIBRARIES = ("flink-dist", "log4j")
_SIGNATURES = (".SF", ".DSA", ".RSA")
CACHE_VARIABLE = "ELMO_TF_CLUSTER_HOME"
ROOT = pathlib.Path(__file__).parents[2]


class Engine:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.libraries = folder / f"flink-{_FLINK.rpartition('=')[2]}"  # the folder of Flink's jars
        self.job_server = folder / f"job-server-{FLINK_VERSION}-{_RUNNER}.jar"  # Beam's

    def missing(self) -> str | None:
        """Returns in words what is missing to run a cluster; None if nothing is."""
        if shutil.which("java") is None:
            return "needs Java"
        if not self.libraries.is_dir() or not self.job_server.is_file():
            return f"needs the files that `make test-cluster` fetches into {self.folder}"
        return None

    def fetch(self) -> None:
        """Fetches what is missing. Raises CalledProcessError if it cannot be had."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            if not self.libraries.is_dir():
                _fetch_flink(pathlib.Path(folder)).rename(self.libraries)
            if not self.job_server.is_file():
                _fetch_job_server(pathlib.Path(folder)).rename(self.job_server)


def engine() -> Engine:
    """Returns the engine of this machine, in `$ELMO_TF_CLUSTER_HOME` or `build/cluster`."""
    return Engine(pathlib.Path(os.environ.get(CACHE_VARIABLE) or ROOT / "build" / "cluster"))


def _fetch_flink(folder: pathlib.Path) -> pathlib.Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--dest", str(folder), _FLINK], check=True)
    libraries = folder / "lib"
    libraries.mkdir()
    for package in folder.glob("*.tar.gz"):
        with tarfile.open(package) as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name)
                if name.parent.name == "lib" and name.name.startswith(_LIBRARIES):
                    (libraries / name.name).write_bytes(archive.extractfile(member).read())
    return libraries


def _fetch_job_server(folder: pathlib.Path) -> pathlib.Path:
    """Returns the job server with all that it depends on, as one jar."""
    (folder / "pom.xml").write_text(_POM)
    parts = folder / "parts"
    maven = ["mvn", "--batch-mode", "--quiet", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    subprocess.run([*maven, f"-DoutputDirectory={parts}"], cwd=folder, check=True)
    return _joined(sorted(parts.glob("*.jar")), folder / "server.jar")


def _joined(parts: list[pathlib.Path], path: pathlib.Path) -> pathlib.Path:
    """Writes a jar with the files of others. Of files with one name the first stays; lists of services are joined."""
    services: dict[str, list[bytes]] = {}
    seen = {"META-INF/MANIFEST.MF"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as joined:
        joined.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nMain-Class: {_MAIN}\r\n\r\n")
        for part in parts:
            with zipfile.ZipFile(part) as archive:
                for name in archive.namelist():
                    if name.startswith("META-INF/services/") or name == "reference.conf":
                        services.setdefault(name, []).append(archive.read(name))
                    elif name not in seen and not name.endswith(("/", *_SIGNATURES)):
                        seen.add(name)
                        joined.writestr(name, archive.read(name))
        for name, lists in services.items():
            if not name.endswith("/"):
                joined.writestr(name, b"\n".join(lists))
    return path


if __name__ == "__main__":
    if shutil.which("java") and shutil.which("mvn"):
        engine().fetch()
    else:
        print("java and mvn are not installed: the tests of the cluster will be skipped", file=sys.stderr)
