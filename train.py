"""Train NumColBERT, or the ColBERT_ft baseline, from one YAML file.

accelerate launch train.py --config configs/quickstart.yaml [--training.seed 1] [--resume]
"""

from __future__ import annotations

import logging
import sys

from jsonargparse import ArgumentParser

from numcolbert.training.configuration import RunConfig
from numcolbert.training.run import train


def main(arguments: list[str] | None = None) -> None:
    """Read the configuration from the command line and train."""
    parser = ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--config", action="config", help="YAML file of the run; later options override its values")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in output_dir")
    parser.add_class_arguments(RunConfig)
    parsed = parser.instantiate(parser.parse_args(arguments)).as_dict()
    parsed.pop("config")
    resume = parsed.pop("resume")
    logging.basicConfig(level=logging.WARNING)
    try:
        train(RunConfig(**parsed), resume=resume)
    except (FileExistsError, FileNotFoundError, ValueError, RuntimeError) as error:
        sys.exit(f"train.py: {error}")


if __name__ == "__main__":
    main()
