"""Reads TensorFlow Datasets datasets from disk without TensorFlow."""

import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import tensorflow_datasets as tfds
from array_record.python.array_record_module import ArrayRecordReader
from tensorflow_datasets.core.example_parser import ExampleParserNp

from .datasets import Chosen, check_features

_ACTS = ("action", "reward", "is_last", "is_terminal")

Episode = Mapping[str, Any] | Exception


class Recorded:
    """A dataset in RLDS format, as stored by TensorFlow Datasets in TFRecord or ArrayRecord files."""

    def __init__(self, directory: Path, observations: Chosen) -> None:
        """Reads the features of a dataset. Images are not parsed.

        Args:
            directory: The directory with `dataset_info.json`.
            observations: Whether to include the observations, or the names of the parts to include.

        Raises:
            ValueError: If the dataset has another format.
        """
        self._info = tfds.builder_from_directory(os.fspath(directory)).info
        self.name: str = self._info.name
        self.splits: list[str] = list(self._info.splits)
        features = self._info.features
        if "steps" not in features or not isinstance(features["steps"], tfds.features.Dataset):
            raise ValueError("not an RLDS dataset: its features have no steps")
        step = features["steps"].feature
        needed = {name: step[name] for name in _ACTS if name in step}
        if observations:
            needed["observation"] = check_features(step["observation"], observations)
        self._features = tfds.features.FeaturesDict({"steps": tfds.features.Dataset(needed)})
        self._parser = ExampleParserNp(self._features.get_serialized_info())

    def episodes(self, split: str) -> Iterator[Episode]:
        """Reads the episodes of a split.

        Args:
            split: The name of the split.

        Yields:
            An episode, or the error in an episode that cannot be read.

        Raises:
            ValueError: If the split does not exist, or nothing can be read after an error.
        """
        if split not in self.splits:
            raise ValueError(
                f"the dataset has no split {split!r}; its splits are: {', '.join(map(repr, self.splits)) or 'none'}"
            )
        kind = self._info.file_format
        readers = {tfds.core.FileFormat.TFRECORD: tfrecords, tfds.core.FileFormat.ARRAY_RECORD: _array_records}
        if kind not in readers:
            raise ValueError(f"its files are {kind}, but only tfrecord and array_record are supported")
        for path in self._info.splits[split].filepaths:
            for number, record in enumerate(readers[kind](Path(path))):
                try:
                    if isinstance(record, Exception):
                        raise record
                    yield self._features.decode_example_np(self._parser.parse_example(record))
                except Exception as error:
                    yield ValueError(f"{path}, record {number}: {error}")


def tfrecords(path: Path) -> Iterator[bytes | Exception]:
    """Reads a TFRecord file (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details).

    Args:
        path: The file.

    Yields:
        A record, or the error in a damaged record.

    Raises:
        ValueError: If no records can be found after an error.
    """
    with path.open("rb") as file:
        while head := file.read(12):
            at = file.tell() - len(head)
            if len(head) < 12 or struct.unpack("<I", head[8:])[0] != _masked(head[:8]):
                raise ValueError(f"{path}: no TFRecord begins at byte {at}")
            (length,) = struct.unpack("<Q", head[:8])
            record, check = file.read(length), file.read(4)
            if len(check) < 4:
                raise ValueError(f"{path}: the record at byte {at} is truncated")
            intact = struct.unpack("<I", check)[0] == _masked(record)
            yield record if intact else ValueError(f"its checksum at byte {at} is wrong")


def _masked(data: bytes) -> int:
    crc = int(google_crc32c.value(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _array_records(path: Path) -> Iterator[bytes]:
    reader = ArrayRecordReader(os.fspath(path))
    for number in range(reader.num_records()):
        yield reader.read([number])[0]
