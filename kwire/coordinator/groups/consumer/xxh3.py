"""XXH3, the 64 bit variant without a seed: a fast hash function, here for a few KB at a time.

Kafka keeps such hashes in the records of consumer groups, so that both have to compute the same. By the specification,
https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

_MASK: Final = (1 << 64) - 1
_P32_1: Final = 0x9E3779B1
_P32_2: Final = 0x85EBCA77
_P32_3: Final = 0xC2B2AE3D
_P64_1: Final = 0x9E3779B185EBCA87
_P64_2: Final = 0xC2B2AE3D27D4EB4F
_P64_3: Final = 0x165667B19E3779F9
_P64_4: Final = 0x85EBCA77C2B2AE63
_P64_5: Final = 0x27D4EB2F165667C5
_MX_1: Final = 0x165667919E3779F9
_MX_2: Final = 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_STRIPES_OF_BLOCK: Final = (len(_SECRET) - _STRIPE) // 8
_LANES: Final = Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The hash of the data, as an unsigned number."""
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _up_to_240(data)
    if size > 16:
        return _up_to_128(data)
    if size > 8:
        return _up_to_16(data)
    if size > 3:
        return _up_to_8(data)
    if size:
        return _up_to_3(data)
    return _avalanche_64(_secret(56) ^ _secret(64))


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _secret(at: int) -> int:
    return _u64(_SECRET, at)


def _fold(one: int, other: int) -> int:
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _avalanche(number: int) -> int:
    number ^= number >> 37
    number = number * _MX_1 & _MASK
    return number ^ number >> 32


def _avalanche_64(number: int) -> int:
    number ^= number >> 33
    number = number * _P64_2 & _MASK
    number ^= number >> 29
    number = number * _P64_3 & _MASK
    return number ^ number >> 32


def _up_to_3(data: bytes) -> int:
    size = len(data)
    combined = data[-1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
    return _avalanche_64((_u32(_SECRET, 0) ^ _u32(_SECRET, 4)) ^ combined)


def _up_to_8(data: bytes) -> int:
    size = len(data)
    combined = _u32(data, size - 4) | _u32(data, 0) << 32
    number = (_secret(8) ^ _secret(16)) ^ combined
    number ^= _rotate(number, 49) ^ _rotate(number, 24)
    number = number * _MX_2 & _MASK
    number ^= (number >> 35) + size
    number = number * _MX_2 & _MASK
    return number ^ number >> 28


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK


def _up_to_16(data: bytes) -> int:
    size = len(data)
    low = (_secret(24) ^ _secret(32)) ^ _u64(data, 0)
    high = (_secret(40) ^ _secret(48)) ^ _u64(data, size - 8)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(size + swapped + high + _fold(low, high) & _MASK)


def _mix(data: bytes, at: int, secret: int) -> int:
    return _fold(_u64(data, at) ^ _secret(secret), _u64(data, at + 8) ^ _secret(secret + 8))


def _up_to_128(data: bytes) -> int:
    size = len(data)
    total = size * _P64_1
    for step in range((size - 1) // 32, -1, -1):
        total += _mix(data, 16 * step, 32 * step)
        total += _mix(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _up_to_240(data: bytes) -> int:
    size = len(data)
    total = size * _P64_1
    for step in range(8):
        total += _mix(data, 16 * step, 16 * step)
    total = _avalanche(total & _MASK)
    for step in range(8, size // 16):
        total += _mix(data, 16 * step, 16 * (step - 8) + 3)
    total += _mix(data, size - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _long(data: bytes) -> int:
    sums = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    size = len(data)
    stripes = (size - 1) // _STRIPE
    scramble = _lanes(_SECRET, len(_SECRET) - _STRIPE)
    for stripe in range(stripes):
        within = stripe % _STRIPES_OF_BLOCK
        _accumulate(sums, _lanes(data, stripe * _STRIPE), _lanes(_SECRET, 8 * within))
        if within == _STRIPES_OF_BLOCK - 1:
            for lane, key in enumerate(scramble):
                sums[lane] = (sums[lane] ^ sums[lane] >> 47 ^ key) * _P32_1 & _MASK
    _accumulate(sums, _lanes(data, size - _STRIPE), _lanes(_SECRET, len(_SECRET) - _STRIPE - 7))
    total = size * _P64_1
    for pair in range(4):
        total += _fold(sums[2 * pair] ^ _secret(11 + 16 * pair), sums[2 * pair + 1] ^ _secret(19 + 16 * pair))
    return _avalanche(total & _MASK)


def _lanes(data: bytes, at: int) -> tuple[int, ...]:
    return _LANES.unpack_from(data, at)


def _accumulate(sums: list[int], lanes: tuple[int, ...], keys: tuple[int, ...]) -> None:
    for lane in range(8):
        mixed = lanes[lane] ^ keys[lane]
        sums[lane ^ 1] += lanes[lane]
        sums[lane] = sums[lane] + (mixed & 0xFFFFFFFF) * (mixed >> 32) & _MASK
        sums[lane ^ 1] &= _MASK
