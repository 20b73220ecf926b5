//! Partitioning of keys.
//!
//! Invariant: the function is frozen. Records of one key stay in one partition only while every build, of every
//! version, computes the same number. The golden vectors below were computed by an independent program.

/// Returns the partition of `key` among `partitions`, counted from 0.
///
/// FNV-1a (64 bit, offset basis `cbf29ce484222325`, prime `100000001b3`) over the key, then the 64-bit finaliser of
/// `MurmurHash3` (FNV alone mixes the last bytes poorly), then the remainder by `partitions`. Returns 0 if `partitions`
/// is 0.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    // `max(1)` avoids a division by zero; a log never has topics without partitions.
    let remainder = finalise(fnv1a(key)) % u64::from(partitions.max(1));
    u32::try_from(remainder).unwrap_or(0)
}

/// Computes FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Computes `fmix64` of <https://github.com/aappleby/smhasher/blob/master/src/MurmurHash3.cpp>
fn finalise(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::{fnv1a, partition_of};

    #[test]
    fn fnv1a_agrees_with_its_published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn partitions_of_known_keys_never_change() {
        let counts = [1, 2, 3, 8, 16, 64, 1000];
        let bytes: Vec<u8> = (0..16).collect();
        let golden: [(&[u8], [u32; 7]); 7] = [
            (b"", [0, 0, 2, 6, 6, 38, 342]),
            (b"a", [0, 1, 2, 3, 11, 27, 315]),
            (b"foobar", [0, 1, 1, 3, 11, 43, 275]),
            (b"0198c5f2-7c00-7000-8000-000000000001", [0, 1, 1, 7, 15, 15, 599]),
            (b"0198c5f2-7c00-7000-8000-000000000002", [0, 1, 2, 1, 1, 49, 889]),
            (&bytes, [0, 0, 2, 6, 6, 38, 142]),
            (&[0xff; 32], [0, 0, 0, 6, 6, 38, 414]),
        ];
        for (key, partitions) in golden {
            assert_eq!(counts.map(|count| partition_of(key, count)), partitions, "key {key:?}");
        }
    }

    #[test]
    fn sequential_keys_spread_evenly() {
        let mut filled = [0_u32; 16];
        for number in 0..16_000_u64 {
            filled[partition_of(&number.to_be_bytes(), 16) as usize] += 1;
        }
        assert!(filled.iter().all(|count| (850..1150).contains(count)), "{filled:?}");
    }

    #[test]
    fn without_partitions_the_answer_is_zero() {
        assert_eq!(partition_of(b"a", 0), 0);
    }
}
