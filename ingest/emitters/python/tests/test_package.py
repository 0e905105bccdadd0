"""The package as it is installed: its wheel, its types and its style."""

import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command, **options):
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class PackageTest(unittest.TestCase):
    def test_the_distributions_hold_the_typed_package_and_its_license(self):
        with tempfile.TemporaryDirectory() as directory:
            sdist, wheel = self.build(Path(directory, "first"))
            version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
            base = f"rewardwatch-{version}"
            self.assertEqual([sdist.name, wheel.name], [f"{base}.tar.gz", f"{base}-py3-none-any.whl"])
            package = {
                f"rewardwatch/{p.name}" for p in (ROOT / "rewardwatch").iterdir() if p.suffix in (".py", ".typed")
            }
            self.assertIn("rewardwatch/py.typed", package)
            inside = zipfile.ZipFile(wheel)
            self.assertEqual({name for name in inside.namelist() if ".dist-info/" not in name}, package)
            with tarfile.open(sdist) as archive:
                members = {member.name for member in archive if member.isfile()}
            around = {"LICENSE", "NOTICE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
            self.assertEqual(
                {name for name in members if ".egg-info/" not in name}, {f"{base}/{name}" for name in package | around}
            )
            metadata = inside.read(f"{base}.dist-info/METADATA").decode()
            for line in (f"Version: {version}", "License-Expression: Apache-2.0", "License-File: LICENSE"):
                self.assertIn(f"\n{line}\n", metadata)
            repository = ROOT.parent.parent.parent
            for name in ("LICENSE", "NOTICE"):
                packed = inside.read(f"{base}.dist-info/licenses/{name}")
                self.assertEqual(packed, (repository / name).read_bytes())
            self.installs(wheel, version, Path(directory, "venv"))
            again = self.build(Path(directory, "second"))
            self.assertEqual([path.read_bytes() for path in again], [sdist.read_bytes(), wheel.read_bytes()])

    def build(self, directory):
        script = ROOT.parent.parent.parent / "deploy/package/python.sh"
        done = subprocess.run(
            [script, sys.executable, directory], capture_output=True, text=True, timeout=300, check=False
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (sdist,) = directory.glob("*.tar.gz")
        (wheel,) = directory.glob("*.whl")
        return sdist, wheel

    def installs(self, wheel, version, venv):
        """The wheel needs nothing but an empty environment, without an index."""
        run("-m", "venv", "--without-pip", str(venv))
        run("-m", "pip", "--python", str(venv), "install", "-q", "--no-index", str(wheel))
        script = (
            "import importlib.metadata, rewardwatch; rewardwatch.Emitter(url='http://127.0.0.1:1').flush(); "
            "print(importlib.metadata.version('rewardwatch'))"
        )
        done = subprocess.run([venv / "bin/python", "-I", "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, f"{version}\n", done.stderr)

    def test_it_is_imported_without_any_library_of_environments(self):
        script = "import rewardwatch, sys; print(*{'numpy', 'gymnasium', 'pettingzoo', 'torch'} & set(sys.modules))"
        self.assertEqual(run("-c", script), "\n")

    def test_types(self):
        run("-m", "mypy", "--cache-dir", tempfile.gettempdir() + "/rewardwatch-mypy")

    def test_style(self):
        run("-m", "ruff", "check", "--no-cache", ".")
        run("-m", "ruff", "format", "--no-cache", "--check", "rewardwatch", "tests")


if __name__ == "__main__":
    unittest.main()
