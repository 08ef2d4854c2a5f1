"""``python -m aerogel``."""

import sys

from aerogel.run import main

main(sys.argv[1:])
