"""``python -m aerogel``."""

import sys

from aerogel.cli import main

main(sys.argv[1:])
