"""`python -m deploy.site dist/site`: build the site; exits 1 with the first thing that is wrong."""

import sys
from pathlib import Path

from deploy.site.build import build

sys.exit(build(Path(sys.argv[1])))
