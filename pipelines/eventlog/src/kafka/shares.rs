//! Which partitions are whose, as the coordinator of a group tells it.
//!
//! A group shares partitions in two steps (KIP-429): one member gives some up, and when it has said so, another is given
//! them. A member that keeps its name and ends between the steps is given what is left to it when it comes back, and the
//! group takes no second step (KIP-345: who comes back changes nothing): what it gave up is nobody's until the group shares
//! anew for another reason.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::groups::GroupInfo;

/// The state of a group whose members know what they have.
const STABLE: &str = "Stable";

/// The partitions of a topic that each member of a group has, by the member's id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares(BTreeMap<String, Vec<u32>>);

impl Shares {
    /// Those of a group; `None` while it shares, and where what it tells is not understood.
    pub(super) fn of(group: &GroupInfo, topic: &str) -> Option<Self> {
        if group.state() != STABLE {
            return None;
        }
        let share = |assignment: Option<&[u8]>| parse(assignment?, topic);
        let members = group.members().iter();
        members
            .map(|member| Some((member.id().to_owned(), share(member.assignment())?)))
            .collect()
    }

    /// The partitions, of so many, that no member has.
    pub(super) fn nobodys(&self, partitions: u32) -> Vec<u32> {
        let had: BTreeSet<u32> = self.0.values().flatten().copied().collect();
        (0..partitions).filter(|partition| !had.contains(partition)).collect()
    }
}

impl FromIterator<(String, Vec<u32>)> for Shares {
    fn from_iter<T: IntoIterator<Item = (String, Vec<u32>)>>(members: T) -> Self {
        Self(members.into_iter().collect())
    }
}

/// The partitions of a topic in an assignment (`ConsumerProtocolAssignment` of Kafka: a version, then topics, each a name and
/// its partitions; numbers are big-endian, of 16 bits in the version and in front of a name, else of 32).
fn parse(assignment: &[u8], topic: &str) -> Option<Vec<u32>> {
    let mut rest = assignment.get(2..)?;
    let mut partitions = Vec::new();
    for _ in 0..number(&mut rest)? {
        let (length, after) = rest.split_first_chunk()?;
        let (name, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        rest = after;
        for _ in 0..number(&mut rest)? {
            let partition = number(&mut rest)?;
            if name == topic.as_bytes() {
                partitions.push(partition);
            }
        }
    }
    Some(partitions)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What librdkafka's assignor gives: the topics, and no data of its user.
    fn assignment(topics: &[(&str, &[u32])]) -> Vec<u8> {
        let mut bytes = vec![0, 0];
        bytes.extend(u32::try_from(topics.len()).unwrap().to_be_bytes());
        for (name, partitions) in topics {
            bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            bytes.extend(name.bytes());
            bytes.extend(u32::try_from(partitions.len()).unwrap().to_be_bytes());
            bytes.extend(partitions.iter().flat_map(|partition| partition.to_be_bytes()));
        }
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn an_assignment_is_read_and_one_that_breaks_off_is_none() {
        let bytes = assignment(&[("one", &[1]), ("other", &[0, 7]), ("third", &[])]);
        assert_eq!(parse(&bytes, "one"), Some(vec![1]));
        assert_eq!(parse(&bytes, "other"), Some(vec![0, 7]));
        assert_eq!(parse(&bytes, "third"), Some(vec![]));
        assert_eq!(parse(&bytes, "fourth"), Some(vec![]));
        // The data of its user is not read.
        for end in 0..bytes.len() - 4 {
            assert_eq!(parse(&bytes[..end], "one"), None, "{end}");
        }
        assert_eq!(parse(&assignment(&[]), "one"), Some(vec![]));
        assert_eq!(parse(&[0, 0, 255, 255, 255, 255], "one"), None);
    }

    #[test]
    fn a_partition_that_no_member_has_is_nobodys() {
        let shares = |shares: &[&[u32]]| {
            let members = (0..)
                .zip(shares)
                .map(|(at, share): (u32, _)| (at.to_string(), share.to_vec()));
            members.collect::<Shares>()
        };
        assert_eq!(shares(&[&[0, 2], &[1]]).nobodys(3), [0; 0]);
        assert_eq!(shares(&[&[2], &[]]).nobodys(4), [0, 1, 3]);
        assert_eq!(shares(&[]).nobodys(2), [0, 1]);
    }
}
