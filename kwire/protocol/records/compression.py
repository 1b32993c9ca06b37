"""The codecs of record batches, as Kafka frames them. Each codec's library is imported when first needed.

- gzip: RFC 1952 members; one is written.
- snappy: xerial's stream, a 16-byte header and then int32 length + raw block, again and again (blocks of 32 KiB are
  written); one raw block without any of that is read, too.
- lz4: an LZ4 frame; independent blocks of 64 KiB without checksums are written, for Java reads no dependent ones.
- zstd: frames; one is written.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.errors import CorruptBatchError

DEFAULT_LIMIT = 128 << 20
"""Most bytes a batch may decompress to where the caller names no limit: a bomb is refused, not unpacked."""

_XERIAL_HEADER = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x01"
_XERIAL_MAGIC = _XERIAL_HEADER[:8]
_XERIAL_BLOCK = 32 * 1024

# What Kafka takes for lz4's default level: the fast compressor. Any other level is LZ4 HC's.
_LZ4_FAST_LEVEL = 9
_LZ4_HC_MAX_LEVEL = 12
_ZSTD_DEFAULT_LEVEL = 3
_GZIP_DEFAULT_LEVEL = -1

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_STEP = 256
"""Bytes that a further member is begun with: what lies beyond its end is copied, and a batch may have thousands."""
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_MAX = 128 * 1024


class Compression(IntEnum):
    """The codec in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """As in `compression.type`."""
        return self.name.lower() if self else "uncompressed"


def compress(codec: Compression, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the frame of `codec`. Levels mean what `compression.<codec>.level` means; None is Kafka's default."""
    if codec is Compression.NONE:
        return bytes(data)
    if codec is Compression.GZIP:
        import zlib

        packer = zlib.compressobj(_GZIP_DEFAULT_LEVEL if level is None else level, wbits=31)
        return packer.compress(data) + packer.flush()
    if codec is Compression.SNAPPY:
        return _compress_snappy(data)
    if codec is Compression.LZ4:
        import lz4.frame

        fast = level is None or level == _LZ4_FAST_LEVEL
        packed: bytes = lz4.frame.compress(
            data,
            compression_level=0 if fast else min(level or 0, _LZ4_HC_MAX_LEVEL),
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
        return packed
    import cramjam

    return bytes(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT_LEVEL if level is None else level))


def decompress(codec: Compression, data: Buffer, limit: int = DEFAULT_LIMIT) -> bytes:
    """What was compressed. CorruptBatchError if `data` is no whole frame, or unpacks to more than `limit` bytes."""
    if codec is Compression.NONE:
        return bytes(data)
    try:
        return _DECOMPRESSORS[codec](data, limit)
    except CorruptBatchError:
        raise
    except MemoryError:
        raise CorruptBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, "No memory to decompress a record batch") from None
    except Exception as failure:  # the libraries raise RuntimeError, ValueError, zlib.error, cramjam's own
        raise CorruptBatchError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream ({codec.name.lower()}: {failure})"
        ) from failure


def _too_large(limit: int) -> CorruptBatchError:
    return CorruptBatchError(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream (it unpacks to more than {limit} bytes)"
    )


def _truncated() -> CorruptBatchError:
    return CorruptBatchError(
        ErrorCode.UNKNOWN_SERVER_ERROR, "Failed to decompress record stream (it ends before its end mark)"
    )


def _decompress_gzip(data: Buffer, limit: int) -> bytes:
    import zlib

    view = memoryview(data)
    parts: list[bytes] = []
    left = limit
    position = 0
    step = len(view)  # there is one member, nearly always
    while True:
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            if position == len(view):
                raise _truncated()
            piece = view[position : position + step]
            part = unpacker.decompress(piece, left + 1)
            if len(part) > left:
                raise _too_large(limit)
            parts.append(part)
            left -= len(part)
            position += len(piece) - len(unpacker.unused_data)
            step *= 2
        if view[position : position + 2] != _GZIP_MAGIC:  # Java, too, overlooks what follows and is no member
            return parts[0] if len(parts) == 1 else b"".join(parts)
        step = _GZIP_STEP


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    blocks: list[memoryview] = []
    if view[:8] == _XERIAL_MAGIC:
        position = 0
        while len(view) - position >= 4:  # too little for another length is overlooked, as snappy-java does
            if view[position : position + 8] == _XERIAL_MAGIC:  # also between blocks: concatenated streams
                position += len(_XERIAL_HEADER)
                if position > len(view):
                    raise _truncated()
                continue
            end = position + 4 + int.from_bytes(view[position : position + 4], "big", signed=True)
            if not position + 4 <= end <= len(view):
                raise _truncated()
            blocks.append(view[position + 4 : end])
            position = end
    else:
        blocks.append(view)
    sizes = [snappy.decompress_raw_len(block) for block in blocks]
    if sum(sizes) > limit:
        raise _too_large(limit)
    parts = []
    for block, size in zip(blocks, sizes, strict=True):
        # a block expands 64 times at most: a size beyond that is a lie, and not worth allocating for
        if size > 64 * len(block):
            raise _truncated()
        parts.append(bytes(snappy.decompress_raw(block)))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_lz4(data: Buffer, limit: int) -> bytes:
    import lz4.frame

    unpacker: Any = lz4.frame.LZ4FrameDecompressor()
    output: bytes = unpacker.decompress(data, max_length=limit + 1)
    if len(output) > limit:
        raise _too_large(limit)
    if not unpacker.eof:
        raise _truncated()
    return output


def _decompress_zstd(data: Buffer, limit: int) -> bytes:
    import cramjam

    if not data:  # no frame at all is nothing, to Kafka's library
        return b""
    bound = zstd_bound(memoryview(data))
    output = bytearray(min(bound, limit))
    try:
        size = cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError:
        if bound > limit:
            raise _too_large(limit) from None
        raise
    return bytes(memoryview(output)[:size])


def zstd_bound(view: memoryview) -> int:
    """Most bytes these zstd frames can unpack to, from their block headers alone (RFC 8878, 3.1.1).

    Raises CorruptBatchError where they are not whole.
    """
    position = 0
    bound = 0
    while position < len(view):
        magic = int.from_bytes(view[position : position + 4], "little")
        if magic & 0xFFFFFFF0 == 0x184D2A50:  # a skippable frame
            position += 8 + int.from_bytes(view[position + 4 : position + 8], "little")
            continue
        if magic != _ZSTD_MAGIC or position + 5 > len(view):
            raise _truncated()
        descriptor = view[position + 4]
        single_segment = descriptor >> 5 & 1
        content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
        position += 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
        last = False
        while not last:
            block = view[position : position + 3]
            if len(block) < 3:
                raise _truncated()
            block_header = int.from_bytes(block, "little")
            last = block_header & 1 == 1
            kind = block_header >> 1 & 3
            size = block_header >> 3
            bound += size if kind < 2 else _ZSTD_BLOCK_MAX
            position += 3 + (1 if kind == 1 else size)
        position += 4 * (descriptor >> 2 & 1)
    return bound


_DECOMPRESSORS = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
