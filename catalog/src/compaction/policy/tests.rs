use types::{ContributionId, Version};

use super::*;
use crate::part::PartInfo;

/// A part in the making: its versions, its bytes, how often it was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    versions: (u64, u64),
    bytes: u64,
    level: usize,
}

fn choose(policy: Policy, made: &[Made]) -> Option<Range<usize>> {
    let part = |made: &Made| PartInfo {
        version: Version(made.versions.1),
        compacted: (made.level > 0).then_some(Version(made.versions.0)),
        contribution: ContributionId::from_bytes([1; 16]),
        index: 0,
        attempt: 0,
        rows: 1,
        bytes: made.bytes,
        sha256: [0; 32],
    };
    let parts: Vec<_> = made.iter().map(part).collect();
    let ranges: Vec<_> = parts
        .iter()
        .zip(made)
        .map(|(part, made)| PartRange::of(part, made.level))
        .collect();
    policy.choose(&ranges)
}

/// What merges of parts with these sizes lead to, with the bytes that were rewritten on the way.
fn grow(policy: Policy, sizes: impl Iterator<Item = u64>) -> (Vec<Made>, u64) {
    let (mut made, mut rewritten) = (Vec::new(), 0);
    for (bytes, version) in sizes.zip(1..) {
        made.push(Made {
            versions: (version, version),
            bytes,
            level: 0,
        });
        while let Some(chosen) = choose(policy, &made) {
            let inputs = &made[chosen.clone()];
            assert!(inputs.len() > 1);
            let part = Made {
                versions: (inputs[0].versions.0, inputs[inputs.len() - 1].versions.1),
                bytes: inputs.iter().map(|made| made.bytes).sum(),
                level: 1 + inputs.iter().map(|made| made.level).max().unwrap(),
            };
            assert!(part.bytes <= policy.target, "{part:?}");
            rewritten += part.bytes;
            made.splice(chosen, [part]);
        }
    }
    (made, rewritten)
}

#[test]
fn equal_parts_lead_to_few_and_rewrite_a_row_once_for_every_height() {
    let policy = Policy::new(4, 1 << 40);
    for versions in [3, 4, 15, 16, 63, 64, 1_000, 4_096] {
        let sizes = (0..versions).map(|_| 10);
        let (made, rewritten) = grow(policy, sizes);
        let digits = (0..6).map(|place| versions / 4_u64.pow(place) % 4).sum::<u64>() + versions / 4_096;
        assert_eq!(made.len() as u64, digits, "{versions}");
        assert!(rewritten <= versions * 10 * 6, "{versions}: {rewritten}");
    }
}

#[test]
fn a_part_never_exceeds_the_target_and_a_large_one_is_left_alone() {
    let policy = Policy::new(4, 400);
    let (made, rewritten) = grow(policy, (0..640).map(|_| 10));
    // Four of 10, then four of 40, are enough: 160.
    assert_eq!(made.len(), 40);
    assert!(made.iter().all(|made| made.bytes == 160), "{made:?}");
    assert_eq!(rewritten, 640 * 10 * 2);
    let (made, rewritten) = grow(policy, (0..100).map(|_| 100));
    assert_eq!((made.len(), rewritten), (100, 0));
}

/// Small and large parts in any order: parts stay few, and no byte is rewritten often.
#[test]
fn what_stands_before_a_large_part_becomes_one() {
    let policy = Policy::new(4, 400);
    let mut random = 7_u64;
    let mut size = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match random >> 60 {
            0 | 1 => 5_000,
            2..6 => 60,
            _ => 1 + (random >> 40) % 20,
        }
    };
    let sizes: Vec<_> = (0..3_000).map(|_| size()).collect();
    let (made, rewritten) = grow(policy, sizes.iter().copied());
    let large = made.iter().filter(|made| made.bytes >= 100).count();
    let small = made.len() - large;
    assert!(small <= large + 20, "{small} small parts beside {large} large ones");
    let small: u64 = sizes.iter().filter(|size| **size < 100).sum();
    assert!(rewritten <= small * 7, "{rewritten} of {small}");
    for pair in made.windows(2) {
        assert_eq!(pair[0].versions.1 + 1, pair[1].versions.0);
    }
}

#[test]
fn parts_that_share_a_version_stay() {
    let policy = Policy::new(2, 1 << 30);
    let made = |first, last| Made {
        versions: (first, last),
        bytes: 1,
        level: usize::from(first != last),
    };
    assert_eq!(choose(policy, &[made(1, 1), made(1, 1)]), None);
    let layout = [made(1, 1), made(1, 1), made(2, 2), made(3, 3)];
    assert_eq!(choose(policy, &layout), Some(2..4));
    let layout = [made(1, 1), made(2, 2), made(3, 3), made(3, 3)];
    assert_eq!(choose(policy, &layout), Some(0..2));
}
