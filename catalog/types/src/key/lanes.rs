//! BLAKE3 of eight records at a time, one record in each lane of AVX2 registers.
//!
//! BLAKE3 is fast on long inputs, because it hashes their chunks in parallel. A record is one chunk of a few blocks,
//! and each block depends on the one before, so parallelism comes from several records instead.
//!
//! Invariant: every key equals the result of [`blake3::Hasher`]. Records of more than one chunk, and groups that do not
//! fill enough lanes, are left to that hasher.

use std::arch::x86_64::__m256i;

use blake3::{BLOCK_LEN, CHUNK_LEN};
use pulp::bytemuck::cast_ref;
use pulp::x86::V3;
use pulp::{NullaryFnOnce, cast, u32x8};

use super::RecordKey;

/// The number of records that are hashed at a time.
const LANES: usize = 8;
/// The number of used lanes from which a group costs less than hashing one record after another.
const MIN_LANES: usize = 4;

/// The length of a full block in bytes.
const BLOCK_BYTES: u32 = 64;

// BLAKE3 specification, sections 2.1 to 2.3.
const IV: [u32; 4] = [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A];
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const ROUNDS: usize = 7;
const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 1 << 1;
const ROOT: u32 = 1 << 3;
const DERIVE_KEY_MATERIAL: u32 = 1 << 6;

/// The word of the block that each step of each round takes.
const SCHEDULE: [[usize; 16]; ROUNDS] = schedule();

/// Derives the schedule by applying the permutation once per round.
const fn schedule() -> [[usize; 16]; ROUNDS] {
    let mut words = [[0; 16]; ROUNDS];
    let mut round = 0;
    while round < ROUNDS {
        let mut word = 0;
        while word < 16 {
            words[round][word] = if round == 0 {
                word
            } else {
                words[round - 1][PERMUTATION[word]]
            };
            word += 1;
        }
        round += 1;
    }
    words
}

/// One word per lane.
type Words = [u32; LANES];

/// A hasher for machines with AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    simd: V3,
    key: [u32; 8],
}

impl Lanes {
    /// Creates a hasher for keys derived in this context, or `None` if the machine lacks AVX2.
    pub(super) fn new(context: &[u8; 32]) -> Option<Self> {
        let (words, _) = context.as_chunks::<4>();
        let mut key = [0; 8];
        for (word, bytes) in key.iter_mut().zip(words) {
            *word = u32::from_le_bytes(*bytes);
        }
        V3::try_new().map(|simd| Self { simd, key })
    }

    /// Hashes the rows that fill lanes and returns the rows that are left.
    pub(super) fn hash(self, canonical: &[&[u8]], keys: &mut [RecordKey]) -> Vec<usize> {
        // Rows are grouped by their number of blocks, because a group takes as long as its
        // longest row.
        let mut by_blocks: [Vec<usize>; CHUNK_LEN / BLOCK_LEN + 1] = Default::default();
        let mut rest = Vec::new();
        for (row, text) in canonical.iter().enumerate() {
            match by_blocks.get_mut(blocks_of(text)) {
                Some(rows) => rows.push(row),
                None => rest.push(row),
            }
        }
        let rows: Vec<usize> = by_blocks.into_iter().flatten().collect();
        for rows in rows.chunks(LANES) {
            if rows.len() < MIN_LANES {
                rest.extend(rows);
                continue;
            }
            let mut texts = [&[][..]; LANES];
            for (text, row) in texts.iter_mut().zip(rows) {
                *text = canonical[*row];
            }
            let found = self.simd.vectorize(LaneGroup { lanes: self, texts });
            for (row, key) in rows.iter().zip(found) {
                keys[*row] = key;
            }
        }
        rest
    }
}

/// Returns the number of blocks of a text. An empty text has one.
fn blocks_of(text: &[u8]) -> usize {
    text.len().div_ceil(BLOCK_LEN).max(1)
}

/// One text per lane, none longer than a chunk.
struct LaneGroup<'a> {
    lanes: Lanes,
    texts: [&'a [u8]; LANES],
}

impl NullaryFnOnce for LaneGroup<'_> {
    type Output = [RecordKey; LANES];

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
    #[inline(always)]
    fn call(self) -> [RecordKey; LANES] {
        let Self { lanes, texts } = self;
        let blocks = texts.map(blocks_of);
        let mut chaining = [lanes.simd.splat_u32x8(0); 8];
        for (word, key) in chaining.iter_mut().zip(lanes.key) {
            *word = lanes.simd.splat_u32x8(key);
        }
        // Lanes with fewer blocks run on without effect until the longest is done.
        for block in 0..blocks.iter().copied().max().unwrap_or(0) {
            let mut halves = [[lanes.simd.splat_u32x8(0); LANES]; 2];
            let mut lengths = [0; LANES];
            let mut flags = [DERIVE_KEY_MATERIAL | if block == 0 { CHUNK_START } else { 0 }; LANES];
            for lane in 0..LANES {
                // A lane that is done reads an empty block.
                let rest = texts[lane].get(block * BLOCK_LEN..).unwrap_or_default();
                let mut padded = [0; BLOCK_LEN];
                let bytes = if let Some(whole) = rest.first_chunk() {
                    lengths[lane] = BLOCK_BYTES;
                    whole
                } else {
                    padded[..rest.len()].copy_from_slice(rest);
                    lengths[lane] = u32::try_from(rest.len()).unwrap_or(BLOCK_BYTES);
                    &padded
                };
                if block + 1 == blocks[lane] {
                    flags[lane] |= CHUNK_END | ROOT;
                }
                let [first, second] = cast::<[u8; BLOCK_LEN], [u32x8; 2]>(*bytes);
                halves[0][lane] = first;
                halves[1][lane] = second;
            }
            // Lanes that are done keep their chaining value; the others take the new one.
            let words = [transpose(lanes.simd, halves[0]), transpose(lanes.simd, halves[1])];
            let next = compress(lanes.simd, &chaining, &words, lengths, flags);
            let mut done: Words = [0; LANES];
            for lane in 0..LANES {
                done[lane] = if block < blocks[lane] { 0 } else { u32::MAX };
            }
            let done = cast(done);
            for word in 0..8 {
                chaining[word] = lanes.simd.select_u32x8(done, chaining[word], next[word]);
            }
        }
        let mut keys = [RecordKey([0; 16]); LANES];
        for (key, bytes) in keys.iter_mut().zip(transpose(lanes.simd, chaining)) {
            [key.0, _] = cast::<u32x8, [[u8; 16]; 2]>(bytes);
        }
        keys
    }
}

/// Transposes a square of words.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn transpose(simd: V3, rows: [u32x8; LANES]) -> [u32x8; LANES] {
    let V3 { avx2, .. } = simd;
    let rows: [__m256i; LANES] = cast(rows);
    // First pairs of words, then pairs of pairs, of four rows each; then the halves of the
    // registers.
    let mut fours = [[rows[0]; 4]; 2];
    for four in 0..2 {
        let [first, second, third, fourth] = [
            rows[four * 4],
            rows[four * 4 + 1],
            rows[four * 4 + 2],
            rows[four * 4 + 3],
        ];
        let low = [
            avx2._mm256_unpacklo_epi32(first, second),
            avx2._mm256_unpacklo_epi32(third, fourth),
        ];
        let high = [
            avx2._mm256_unpackhi_epi32(first, second),
            avx2._mm256_unpackhi_epi32(third, fourth),
        ];
        fours[four] = [
            avx2._mm256_unpacklo_epi64(low[0], low[1]),
            avx2._mm256_unpackhi_epi64(low[0], low[1]),
            avx2._mm256_unpacklo_epi64(high[0], high[1]),
            avx2._mm256_unpackhi_epi64(high[0], high[1]),
        ];
    }
    let [upper, lower] = fours;
    let mut columns = rows;
    for column in 0..4 {
        columns[column] = avx2._mm256_permute2x128_si256::<0x20>(upper[column], lower[column]);
        columns[column + 4] = avx2._mm256_permute2x128_si256::<0x31>(upper[column], lower[column]);
    }
    cast(columns)
}

/// Computes the compression function in each lane (BLAKE3 specification, section 2.2) and returns the first half of its
/// output.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn compress(simd: V3, before: &[u32x8; 8], block: &[[u32x8; LANES]; 2], lengths: Words, flags: Words) -> [u32x8; 8] {
    let constant = |word: u32| simd.splat_u32x8(word);
    let mut state = [
        before[0],
        before[1],
        before[2],
        before[3],
        before[4],
        before[5],
        before[6],
        before[7],
        constant(IV[0]),
        constant(IV[1]),
        constant(IV[2]),
        constant(IV[3]),
        constant(0),
        constant(0),
        cast(lengths),
        cast(flags),
    ];
    let block: &[u32x8; 16] = cast_ref(block);
    round::<0>(simd, &mut state, block);
    round::<1>(simd, &mut state, block);
    round::<2>(simd, &mut state, block);
    round::<3>(simd, &mut state, block);
    round::<4>(simd, &mut state, block);
    round::<5>(simd, &mut state, block);
    round::<6>(simd, &mut state, block);
    let mut after = *before;
    for word in 0..8 {
        after[word] = simd.xor_u32x8(state[word], state[word + 8]);
    }
    after
}

/// Mixes the columns of the state, then its diagonals.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn round<const ROUND: usize>(simd: V3, state: &mut [u32x8; 16], block: &[u32x8; 16]) {
    let word = |word: usize| block[SCHEDULE[ROUND][word]];
    mix(simd, state, [0, 4, 8, 12], word(0), word(1));
    mix(simd, state, [1, 5, 9, 13], word(2), word(3));
    mix(simd, state, [2, 6, 10, 14], word(4), word(5));
    mix(simd, state, [3, 7, 11, 15], word(6), word(7));
    mix(simd, state, [0, 5, 10, 15], word(8), word(9));
    mix(simd, state, [1, 6, 11, 12], word(10), word(11));
    mix(simd, state, [2, 7, 8, 13], word(12), word(13));
    mix(simd, state, [3, 4, 9, 14], word(14), word(15));
}

/// Computes the quarter round G, which mixes two words of the block into four of the state.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn mix(simd: V3, state: &mut [u32x8; 16], at: [usize; 4], first: u32x8, second: u32x8) {
    let [a, b, c, d] = at;
    state[a] = simd.wrapping_add_u32x8(simd.wrapping_add_u32x8(state[a], state[b]), first);
    state[d] = rotate_bytes::<2>(simd, simd.xor_u32x8(state[d], state[a]));
    state[c] = simd.wrapping_add_u32x8(state[c], state[d]);
    state[b] = rotate::<12, 20>(simd, simd.xor_u32x8(state[b], state[c]));
    state[a] = simd.wrapping_add_u32x8(simd.wrapping_add_u32x8(state[a], state[b]), second);
    state[d] = rotate_bytes::<1>(simd, simd.xor_u32x8(state[d], state[a]));
    state[c] = simd.wrapping_add_u32x8(state[c], state[d]);
    state[b] = rotate::<7, 25>(simd, simd.xor_u32x8(state[b], state[c]));
}

/// Rotates every lane right by `RIGHT` bits; `LEFT` is 32 - `RIGHT`.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn rotate<const RIGHT: i32, const LEFT: i32>(simd: V3, words: u32x8) -> u32x8 {
    simd.or_u32x8(
        simd.shr_const_u32x8::<RIGHT>(words),
        simd.shl_const_u32x8::<LEFT>(words),
    )
}

/// Rotates every lane right by `BYTES` bytes with one shuffle instead of three instructions.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for AVX2")]
#[inline(always)]
fn rotate_bytes<const BYTES: usize>(simd: V3, words: u32x8) -> u32x8 {
    let from = const { shuffle_mask::<BYTES>() };
    cast(simd.avx2._mm256_shuffle_epi8(cast(words), cast(from)))
}

/// Returns the shuffle mask that rotates each word right by `BYTES` bytes, for both halves of a register.
const fn shuffle_mask<const BYTES: usize>() -> [u8; 32] {
    const OF_WORD: [u8; 8] = [0, 1, 2, 3, 0, 1, 2, 3];
    let mut from = [0; 32];
    let mut byte = 0;
    while byte < 32 {
        let word = [0, 4, 8, 12][byte / 4 % 4];
        from[byte] = word + OF_WORD[byte % 4 + BYTES];
        byte += 1;
    }
    from
}
