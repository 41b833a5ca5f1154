"""Publish a saved model: ``python -m hub.publish DIR org/name``; ``--help`` lists the options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from numcolbert.modeling.publishing import publish


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments
        Command line; that of the process by default.

    Returns
    -------
    int
        0, or 1 if something stood in the way; the reason is printed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m hub.publish",
        description="Send a saved model to the Hugging Face Hub in one commit. Log in first (`hf auth login`), or set "
        "HF_TOKEN to a token with write permission.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="DIR", help="folder that training or save_pretrained wrote")
    parser.add_argument("repo_id", metavar="org/name", help="repository on the Hub; created if there is none")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--revision", help="branch to commit to, created if there is none")
    parser.add_argument("--create-pr", action="store_true", help="open a pull request instead of committing")
    parser.add_argument("--message", help="title of the commit")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be sent")
    options = parser.parse_args(arguments)
    try:
        publication = publish(
            options.folder,
            options.repo_id,
            private=options.private or None,
            revision=options.revision,
            create_pr=options.create_pr,
            commit_message=options.message,
            dry_run=options.dry_run,
        )
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(publication)
    return 0


if __name__ == "__main__":
    sys.exit(main())
