"""The tests of the kit, on its sources: it need not be installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
