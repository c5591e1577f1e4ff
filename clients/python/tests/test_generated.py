"""The generated code is that of the contract."""

import os
import subprocess
import tempfile
import unittest
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hive_client import v1

KIT = Path(__file__).parent.parent


class Generated(unittest.TestCase):
    def test_it_is_that_of_the_contract(self):
        script, tools = KIT / "generate.sh", KIT.parent.parent / ".cache/python/bin/python"
        if not script.exists() or not ("HIVE_PYTHON" in os.environ or tools.exists()):
            self.skipTest(
                "grpcio-tools or the contract is missing: run tests/setup.sh in a checkout"
            )
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([script, directory], check=True)
            fresh = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
        committed = Path(v1.__file__).parent
        kept = {path.name: path.read_bytes() for path in committed.iterdir() if path.is_file()}
        self.assertEqual(fresh.keys(), kept.keys())
        self.assertEqual([name for name in fresh if fresh[name] != kept[name]], [])

    def test_the_version_has_one_place(self):
        from hive_client import __version__

        try:
            self.assertEqual(version("hive-client"), __version__)
        except PackageNotFoundError:
            self.skipTest("the package is not installed")
