import pytest

from kwire.storage import layout


def test_segment_names():
    assert layout.segment_name(42, layout.LOG) == "00000000000000000042.log"
    assert layout.parse_segment_name("00000000000000000042.log") == (42, ".log")
    assert layout.parse_segment_name("00000000000000000042.log.deleted") == (42, ".log.deleted")


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "partition.metadata", "1.log", "", ".log", "0" * 21 + ".log", "٣" * 20 + ".log"]
)
def test_other_names_are_no_segments(name):
    assert layout.parse_segment_name(name) is None


def test_partition_dirs():
    assert layout.parse_partition_dir("my-topic.x-17") == ("my-topic.x", 17, "")
    assert layout.parse_partition_dir(layout.partition_dir_name("t", 3)) == ("t", 3, "")


@pytest.mark.parametrize("suffix", [layout.DELETE_DIR, layout.STRAY_DIR, layout.FUTURE_DIR])
def test_renamed_partition_dirs(suffix):
    name = layout.renamed_dir_name("a.b-c", 5, bytes(range(16)), suffix)
    assert name == f"a.b-c-5.000102030405060708090a0b0c0d0e0f{suffix}"
    assert layout.parse_partition_dir(name) == ("a.b-c", 5, suffix)


def test_a_long_topic_name_is_cut_so_that_the_folder_name_fits():
    name = layout.renamed_dir_name("t" * 249, 123, bytes(16), layout.DELETE_DIR)
    assert len(name) == 255
    parsed = layout.parse_partition_dir(name)
    assert parsed is not None
    assert parsed.partition == 123


@pytest.mark.parametrize("name", ["", "-", "t", "t-", "-1", "t-x", "t-0-delete", "t-0.abc-delete", "lost+found", "t-٣"])
def test_other_names_are_no_partitions(name):
    assert layout.parse_partition_dir(name) is None


@pytest.mark.parametrize(
    "name",
    ["7.log", "7.log.deleted", "7.log.cleaned", "7.log.swap", "7.log.swap.deleted", layout.deleted_again("7.log", 12)],
)
def test_what_a_file_was_called_when_it_was_in_use(name: str) -> None:
    assert layout.live_name(name) == "7.log"


def test_a_checkpoint_set_aside_has_no_number_in_its_name() -> None:
    assert layout.live_name("00000000000000000042.snapshot.deleted") == "00000000000000000042.snapshot"
