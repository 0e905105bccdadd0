"""Converts a Minari or RLDS dataset to a file for `rewardwatch replay`.

python -m rewardwatch.convert SOURCE -o episodes.ndjson.gz
"""

import argparse
import contextlib
import gzip
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .datasets import Chosen, minari_events, rlds_events
from .emitter import Made
from .encoding import line

Out = BinaryIO | gzip.GzipFile

_SHOWN = 10  # steps that are left out of which each is named


def main(arguments: list[str] | None = None) -> int:
    """Runs the command.

    Args:
        arguments: The arguments of the command. Defaults to `sys.argv`.

    Returns:
        The exit code: 0, 1 if steps were skipped, or 2 if the dataset could not be read completely.
    """
    args = _parser().parse_args(arguments)
    try:
        with _opened(args.output) as out:
            steps, left_out = write(_events(args), out)
    except (ValueError, OSError, ImportError) as error:
        print(f"convert {args.source}: {error}", file=sys.stderr)
        return 2
    print(f"{steps} steps written, {left_out} skipped", file=sys.stderr)
    return 1 if left_out else 0


def write(events: Iterable[Made], out: Out) -> tuple[int, int]:
    """Writes events, one per line, and lists skipped events on stderr.

    Args:
        events: The events to write.
        out: The binary file to write to.

    Returns:
        The numbers of written and skipped events.
    """
    written = left_out = 0
    for event in events:
        if isinstance(event, dict):
            out.write(line(event) + b"\n")
            written += 1
            continue
        left_out += 1
        if left_out <= _SHOWN:
            print(f"skipped: {event}", file=sys.stderr)
    return written, left_out


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m rewardwatch.convert", description=__doc__.split("\n")[0])
    parser.add_argument("source", help="id or directory of a Minari dataset, or directory of an RLDS dataset")
    parser.add_argument(
        "-o", "--output", required=True, help="NDJSON file, compressed if its name ends in .gz; - for standard output"
    )
    parser.add_argument("--policy", help="policy of all steps (default: the name of the dataset)")
    parser.add_argument("--env", help="env of all steps (default: the id of the dataset's environment)")
    parser.add_argument("--split", default="train", help="split of an RLDS dataset (default: train)")
    parser.add_argument("--no-actions", action="store_true", help="omit actions")
    parser.add_argument(
        "--observations", nargs="*", metavar="NAME", help="include observations, or only these parts of them"
    )
    parser.add_argument(
        "--keep-last", action="store_true", help="the last step of an RLDS episode also contains an action"
    )
    return parser


def _events(args: argparse.Namespace) -> Iterator[Made]:
    chosen: Chosen = args.observations or args.observations is not None
    told: dict[str, Any] = {"env": args.env, "actions": not args.no_actions, "observations": chosen}
    source = Path(args.source)
    if (source / "dataset_info.json").exists():
        recorded = _recorded(source, chosen)
        episodes = recorded.episodes(args.split)
        policy, prefix = args.policy or recorded.name, f"{args.split}/"
        return rlds_events(episodes, policy=policy, prefix=prefix, keep_last=args.keep_last, **told)
    if source.is_dir() and not any((source / at / "metadata.json").exists() for at in ("", "data")):
        raise ValueError("the directory contains neither dataset_info.json (TensorFlow Datasets) nor data (Minari)")
    return minari_events(_minari(args.source, source), policy=args.policy, **told)


def _recorded(source: Path, chosen: Chosen) -> Any:
    try:
        from .records import Recorded
    except ImportError as error:
        raise ImportError(
            f"reading this dataset requires tensorflow-datasets (pip install 'rewardwatch[rlds]'): {error}"
        ) from None
    return Recorded(source, chosen)


def _minari(name: str, source: Path) -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError(
            f"reading this dataset requires minari (pip install 'rewardwatch[minari]'): {error}"
        ) from None
    if not source.is_dir():
        return minari.load_dataset(name)  # of the local ones: nothing is downloaded
    return minari.MinariDataset(str(source / "data" if (source / "data").is_dir() else source))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Out]:
    if path == "-":
        yield sys.stdout.buffer
    elif path.endswith(".gz"):
        with gzip.open(path, "wb") as zipped:
            yield zipped
    else:
        with open(path, "wb") as file:
            yield file


if __name__ == "__main__":
    sys.exit(main())
