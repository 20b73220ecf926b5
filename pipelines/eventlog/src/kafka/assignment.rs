//! The assignment of partitions in a group, as the coordinator reports it.
//!
//! A group moves partitions in two steps (KIP-429): one member gives some up, and after it has confirmed that by
//! joining again, another is assigned them. A static member that ends between the steps gets its reduced assignment
//! back when it returns, and the group takes no second step (KIP-345: a returning member changes nothing). The
//! partitions it gave up stay unassigned until the group rebalances for another reason.
//!
//! Invariant: a partition that a member has not given up yet does not count as unassigned: the member named it when it
//! joined last.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::groups::GroupInfo;

/// The state of a group that is not rebalancing.
const STABLE_STATE: &str = "Stable";

/// The assignment of each member of a group, by member id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupAssignment(BTreeMap<String, MemberAssignment>);

/// The partitions of one topic at one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MemberAssignment {
    /// The partitions that the member is assigned.
    assigned: Vec<u32>,
    /// The partitions that the member owned when it joined.
    owned: Vec<u32>,
}

impl GroupAssignment {
    /// Decodes the assignment of a group. Returns `None` while it rebalances, and if a message is malformed.
    pub(super) fn of(group: &GroupInfo, topic: &str) -> Option<Self> {
        if group.state() != STABLE_STATE {
            return None;
        }
        let share = |assignment: Option<&[u8]>, subscription: Option<&[u8]>| {
            Some(MemberAssignment {
                assigned: assigned(assignment?, topic)?,
                owned: owned(subscription?, topic)?,
            })
        };
        let members = group.members().iter();
        let members =
            members.map(|member| Some((member.id().to_owned(), share(member.assignment(), member.metadata())?)));
        members.collect::<Option<_>>().map(Self)
    }

    /// Returns the partitions, of `partitions` in all, that no member has.
    pub(super) fn unassigned(&self, partitions: u32) -> Vec<u32> {
        let shares = self.0.values();
        let had: BTreeSet<u32> = shares
            .flat_map(|share| share.assigned.iter().chain(&share.owned))
            .copied()
            .collect();
        (0..partitions).filter(|partition| !had.contains(partition)).collect()
    }
}

/// Decodes the partitions of a topic in an assignment (`ConsumerProtocolAssignment` of Kafka: a version, then the
/// partitions of topics; numbers are big-endian, 16 bits for the version and the length of a name, else 32).
fn assigned(assignment: &[u8], topic: &str) -> Option<Vec<u32>> {
    partitions(&mut assignment.get(2..)?, topic)
}

/// Decodes the partitions of a topic that a member owned, from its subscription (`ConsumerProtocolSubscription`: a
/// version, the names of topics, user data and, from version 1 on, the owned partitions).
fn owned(subscription: &[u8], topic: &str) -> Option<Vec<u32>> {
    let (version, mut rest) = subscription.split_first_chunk()?;
    for _ in 0..number(&mut rest)? {
        name(&mut rest)?;
    }
    // A length of -1 stands for null.
    let data = usize::try_from(number(&mut rest)?.cast_signed()).unwrap_or(0);
    rest = rest.get(data..)?;
    if i16::from_be_bytes(*version) < 1 {
        return Some(Vec::new());
    }
    partitions(&mut rest, topic)
}

/// Decodes a list of topics with partitions and returns those of `topic`.
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
impl<const MEMBERS: usize> From<[(&[u32], &[u32]); MEMBERS]> for GroupAssignment {
    /// Members that were given and brought these partitions.
    fn from(shares: [(&[u32], &[u32]); MEMBERS]) -> Self {
        let share = |(assigned, owned): (&[u32], &[u32])| MemberAssignment {
            assigned: assigned.to_vec(),
            owned: owned.to_vec(),
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
        assert_eq!(assigned(&bytes, "one"), Some(vec![1]));
        assert_eq!(assigned(&bytes, "other"), Some(vec![0, 7]));
        assert_eq!(assigned(&bytes, "third"), Some(vec![]));
        assert_eq!(assigned(&bytes, "fourth"), Some(vec![]));
        for end in 0..bytes.len() {
            assert_eq!(assigned(&bytes[..end], "one"), None, "{end}");
        }
        assert_eq!(assigned(&[0, 0, 255, 255, 255, 255], "one"), None);
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
            assert_eq!(owned(&bytes, "one"), Some(vec![3, 4]));
            assert_eq!(owned(&bytes, "other"), Some(vec![]));
            for end in 0..bytes.len() {
                assert_eq!(owned(&bytes[..end], "one"), None, "{end}");
            }
            // The version before there was a second step.
            assert_eq!(owned(&[&[0, 0], &before[2..]].concat(), "one"), Some(vec![]));
        }
    }

    #[test]
    fn a_partition_that_no_member_was_given_or_brought_is_nobodys() {
        assert_eq!(
            GroupAssignment::from([(&[0, 2][..], &[][..]), (&[1], &[0])]).unassigned(3),
            [0; 0]
        );
        assert_eq!(
            GroupAssignment::from([(&[2][..], &[][..]), (&[], &[])]).unassigned(4),
            [0, 1, 3]
        );
        assert_eq!(GroupAssignment::from([(&[2][..], &[1, 2][..])]).unassigned(4), [0, 3]);
        assert_eq!(GroupAssignment::from([]).unassigned(2), [0, 1]);
    }
}
