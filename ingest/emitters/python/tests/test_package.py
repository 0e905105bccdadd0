"""The package as it is installed: its wheel, its types and its style."""

import subprocess
import sys
import tempfile
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
    def test_the_wheel_holds_the_typed_package(self):
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, "source")
            run("-c", f"import shutil; shutil.copytree('.', {str(source)!r})")
            run("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", directory, str(source))
            (wheel,) = Path(directory).glob("rewardwatch-*.whl")
            inside = zipfile.ZipFile(wheel)
            files = (ROOT / "rewardwatch").iterdir()
            expected = {f"rewardwatch/{path.name}" for path in files if path.suffix in (".py", ".typed")}
            self.assertIn("rewardwatch/py.typed", expected)
            packed = {name for name in inside.namelist() if ".dist-info/" not in name}
            self.assertEqual(packed, expected)
            run(
                "-I", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); import rewardwatch; rewardwatch.Emitter()"
            )

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
