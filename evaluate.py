"""Evaluate models on a benchmark; ``python evaluate.py --help`` tells how."""

import sys

from numcolbert.evaluation.cli import main

if __name__ == "__main__":
    sys.exit(main())
