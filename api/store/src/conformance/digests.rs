//! Scenarios about the letters that tell of reports.

use types::OperatorId;

use super::fixture::{at, open};
use super::knowledge;
use super::moderation::{all_letters, digest, new_report, reported};
use crate::{NewReport, ReportKind, ReportReason, StaffRole};

/// Every moderator gets one letter for the reports of a slot; others get none.
pub async fn moderators_get_one_letter_a_slot(url: &str) {
    let store = open(url).await;
    let world = knowledge::World::new(&store).await;
    let unit = world.published(&store, "one", 60).await.to_string();
    let (moderator, moderation) = (world.reader.1, store.moderation());
    assert_eq!(moderation.role_of(moderator).await.unwrap(), None);
    assert!(!moderation.has_moderator().await.unwrap());
    // While there is no moderator, the letter is to no operator, and still one for a slot.
    for reporter in ["x", "y"] {
        let new = NewReport {
            digest: digest(9),
            ..new_report(ReportKind::Unit, &unit, ReportReason::Other, reporter, at(9))
        };
        reported(&store, new).await;
    }
    assert_eq!(all_letters(&store).await, [(None, "{\"slot\":9}".to_owned())]);
    let role = Some(StaffRole::Moderator);
    assert!(moderation.role_set(moderator, role).await.unwrap());
    assert!(!moderation.role_set(OperatorId::new(at(0)), role).await.unwrap());
    assert_eq!(moderation.role_of(moderator).await.unwrap(), role);
    assert!(moderation.has_moderator().await.unwrap());
    for (reporter, slot) in [("a", 1), ("b", 1), ("c", 2)] {
        let new = NewReport {
            digest: digest(slot),
            ..new_report(ReportKind::Unit, &unit, ReportReason::Spam, reporter, at(10))
        };
        reported(&store, new).await;
    }
    let to = Some(moderator);
    assert_eq!(
        all_letters(&store).await,
        [(to, "{\"slot\":1}".to_owned()), (to, "{\"slot\":2}".to_owned())]
    );
    let counts = moderation.reports_open_between(at(10), at(11)).await.unwrap();
    assert_eq!(
        counts
            .iter()
            .map(|count| (count.reason, count.count))
            .collect::<Vec<_>>(),
        [(ReportReason::Spam, 3)]
    );
    assert_eq!(moderation.reports_open_between(at(11), at(12)).await.unwrap(), []);
    assert!(moderation.role_set(moderator, None).await.unwrap());
    assert_eq!(moderation.role_of(moderator).await.unwrap(), None);
}
