import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.storage import checkpoints
from kwire.storage.checkpoints import CorruptCheckpoint

names = st.text("abc.-_XYZ09", min_size=1, max_size=20)
numbers = st.integers(0, 2**63 - 1)


def test_the_form_is_kafkas():
    assert checkpoints.encode_offsets({("orders", 0): 4711, ("t", 12): 0}) == b"0\n2\norders 0 4711\nt 12 0\n"
    assert checkpoints.encode_offsets({}) == b"0\n0\n"
    assert checkpoints.encode_epochs([(0, 0), (3, 42)]) == b"0\n2\n0 0\n3 42\n"
    assert checkpoints.encode_partition_metadata("7d8X9wEhQ0iNjRJ6QKIW2A") == (
        b"version: 0\ntopic_id: 7d8X9wEhQ0iNjRJ6QKIW2A"
    )
    assert checkpoints.encode_clean_shutdown(7) == b'{"version":0,"brokerEpoch":7}'
    assert checkpoints.encode_meta_properties({"version": "1", "cluster.id": "x"}) == b"#\ncluster.id=x\nversion=1\n"


@given(st.dictionaries(st.tuples(names, st.integers(0, 10_000)), numbers))
def test_offsets_come_back(offsets):
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(offsets)) == offsets


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), numbers)))
def test_epochs_come_back(epochs):
    assert checkpoints.decode_epochs(checkpoints.encode_epochs(epochs)) == epochs


def test_an_empty_file_says_nothing():
    assert checkpoints.decode_offsets(b"") == {}
    assert checkpoints.decode_epochs(b"") == []


@given(st.binary(max_size=60))
def test_garbage_is_refused_in_one_way(data):
    for decode in (
        checkpoints.decode_offsets,
        checkpoints.decode_epochs,
        checkpoints.decode_partition_metadata,
        checkpoints.decode_meta_properties,
    ):
        with contextlib.suppress(CorruptCheckpoint):
            decode(data)


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n", b"0\n2\nt 0 1\n", b"0\n1\nt 0\n", b"0\n1\nt 0 x\n", b"0\n1\nt 0 1\nt 1 1\n", b"\xff"]
)
def test_torn_offset_checkpoints(data):
    with pytest.raises(CorruptCheckpoint):
        checkpoints.decode_offsets(data)


def test_partition_metadata_comes_back():
    text = "7d8X9wEhQ0iNjRJ6QKIW2A"
    assert checkpoints.decode_partition_metadata(checkpoints.encode_partition_metadata(text)) == text
    with pytest.raises(CorruptCheckpoint):
        checkpoints.decode_partition_metadata(b"")


def test_meta_properties_as_java_writes_them():
    data = b"#\n#Fri Oct 25 00:33:01 UTC 2024\ncluster.id=abc\ndirectory.id=d\nnode.id=1\nversion=1\n"
    properties = {"cluster.id": "abc", "directory.id": "d", "node.id": "1", "version": "1"}
    assert checkpoints.decode_meta_properties(data) == properties
    assert checkpoints.decode_meta_properties(checkpoints.encode_meta_properties(properties)) == properties
