"""Packed data on disk: sequences of any number as memory-mapped shards, written in memory that is bounded."""

from m3n.shards.arrays import ShardError
from m3n.shards.reader import ReaderState, Shard, Shards

__all__ = ["ReaderState", "Shard", "ShardError", "Shards"]
