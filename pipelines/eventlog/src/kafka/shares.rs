//! Which partitions are whose, as the coordinator of a group tells it.
//!
//! A group moves partitions in two steps (KIP-429): one member gives some up, and when it has said so by joining again,
//! another is given them. A member that keeps its name and ends between the steps is given what is left to it when it comes
//! back, and the group takes no second step (KIP-345: who comes back changes nothing): what it gave up is nobody's until the
//! group shares anew for another reason.
//!
//! Invariant: a member that still has a partition, and only was not there yet to give it up, is told from one that ended:
//! when it joined last, it said that it has it.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::groups::GroupInfo;

/// The state of a group whose members know what they have.
const STABLE: &str = "Stable";

/// What each member of a group has, by the member's id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares(BTreeMap<String, Share>);

/// Partitions of one topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share {
    /// Those that the member was given.
    given: Vec<u32>,
    /// Those that it had when it joined.
    brought: Vec<u32>,
}

impl Shares {
    /// Those of a group; `None` while it shares, and where what it tells is not understood.
    pub(super) fn of(group: &GroupInfo, topic: &str) -> Option<Self> {
        if group.state() != STABLE {
            return None;
        }
        let share = |assignment: Option<&[u8]>, subscription: Option<&[u8]>| {
            Some(Share {
                given: given(assignment?, topic)?,
                brought: brought(subscription?, topic)?,
            })
        };
        let members = group.members().iter();
        let members =
            members.map(|member| Some((member.id().to_owned(), share(member.assignment(), member.metadata())?)));
        members.collect::<Option<_>>().map(Self)
    }

    /// The partitions, of so many, that no member has.
    pub(super) fn nobodys(&self, partitions: u32) -> Vec<u32> {
        let shares = self.0.values();
        let had: BTreeSet<u32> = shares
            .flat_map(|share| share.given.iter().chain(&share.brought))
            .copied()
            .collect();
        (0..partitions).filter(|partition| !had.contains(partition)).collect()
    }
}

/// The partitions of a topic in an assignment (`ConsumerProtocolAssignment` of Kafka: a version, then the partitions of
/// topics; numbers are big-endian, of 16 bits in the version and in front of a name, else of 32).
fn given(assignment: &[u8], topic: &str) -> Option<Vec<u32>> {
    partitions(&mut assignment.get(2..)?, topic)
}

/// The partitions of a topic that a member had, in its subscription (`ConsumerProtocolSubscription`: a version, the names of
/// topics, data of the assignor and, from version 1 on, the partitions that it has).
fn brought(subscription: &[u8], topic: &str) -> Option<Vec<u32>> {
    let (version, mut rest) = subscription.split_first_chunk()?;
    for _ in 0..number(&mut rest)? {
        name(&mut rest)?;
    }
    // Minus one stands for none.
    let data = usize::try_from(number(&mut rest)?.cast_signed()).unwrap_or(0);
    rest = rest.get(data..)?;
    if i16::from_be_bytes(*version) < 1 {
        return Some(Vec::new());
    }
    partitions(&mut rest, topic)
}

/// The partitions of a topic among those of some topics, each a name and its partitions.
fn partitions(rest: &mut &[u8], topic: &str) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for _ in 0..number(rest)? {
        let name = name(rest)?;
        for _ in 0..number(rest)? {
            let partition = number(rest)?;
            if name == topic.as_bytes() {
                found.push(partition);
            }
        }
    }
    Some(found)
}

fn name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let (name, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    *rest = after;
    Some(name)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
impl<const MEMBERS: usize> From<[(&[u32], &[u32]); MEMBERS]> for Shares {
    /// Members that were given and brought these partitions.
    fn from(shares: [(&[u32], &[u32]); MEMBERS]) -> Self {
        let share = |(given, brought): (&[u32], &[u32])| Share {
            given: given.to_vec(),
            brought: brought.to_vec(),
        };
        let ids = (0..).map(|id: u32| id.to_string());
        Self(ids.zip(shares.map(share)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put_partitions(bytes: &mut Vec<u8>, topics: &[(&str, &[u32])]) {
        bytes.extend(u32::try_from(topics.len()).unwrap().to_be_bytes());
        for (name, partitions) in topics {
            put_name(bytes, name);
            bytes.extend(u32::try_from(partitions.len()).unwrap().to_be_bytes());
            bytes.extend(partitions.iter().flat_map(|partition| partition.to_be_bytes()));
        }
    }

    fn put_name(bytes: &mut Vec<u8>, name: &str) {
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.bytes());
    }

    #[test]
    fn an_assignment_is_read_and_one_that_breaks_off_is_none() {
        let mut bytes = vec![0, 0];
        put_partitions(&mut bytes, &[("one", &[1]), ("other", &[0, 7]), ("third", &[])]);
        assert_eq!(given(&bytes, "one"), Some(vec![1]));
        assert_eq!(given(&bytes, "other"), Some(vec![0, 7]));
        assert_eq!(given(&bytes, "third"), Some(vec![]));
        assert_eq!(given(&bytes, "fourth"), Some(vec![]));
        for end in 0..bytes.len() {
            assert_eq!(given(&bytes[..end], "one"), None, "{end}");
        }
        assert_eq!(given(&[0, 0, 255, 255, 255, 255], "one"), None);
    }

    #[test]
    fn a_subscription_is_read_and_one_that_breaks_off_is_none() {
        for data in [Some(&b"of the assignor"[..]), None] {
            let mut bytes = vec![0, 1, 0, 0, 0, 2];
            put_name(&mut bytes, "one");
            put_name(&mut bytes, "other");
            let length = data.map_or(-1, |data| i32::try_from(data.len()).unwrap());
            bytes.extend(length.to_be_bytes());
            bytes.extend(data.unwrap_or_default());
            let before = bytes.clone();
            put_partitions(&mut bytes, &[("one", &[3, 4])]);
            assert_eq!(brought(&bytes, "one"), Some(vec![3, 4]));
            assert_eq!(brought(&bytes, "other"), Some(vec![]));
            for end in 0..bytes.len() {
                assert_eq!(brought(&bytes[..end], "one"), None, "{end}");
            }
            // The version before there was a second step.
            assert_eq!(brought(&[&[0, 0], &before[2..]].concat(), "one"), Some(vec![]));
        }
    }

    #[test]
    fn a_partition_that_no_member_was_given_or_brought_is_nobodys() {
        assert_eq!(Shares::from([(&[0, 2][..], &[][..]), (&[1], &[0])]).nobodys(3), [0; 0]);
        assert_eq!(Shares::from([(&[2][..], &[][..]), (&[], &[])]).nobodys(4), [0, 1, 3]);
        assert_eq!(Shares::from([(&[2][..], &[1, 2][..])]).nobodys(4), [0, 3]);
        assert_eq!(Shares::from([]).nobodys(2), [0, 1]);
    }
}
