//! Visibility: each kind of item in each of its states answers each kind of caller at each door as the table says.
//!
//! Invariant: `visibility.tsv` was written from the interface, before the service, and stays as it is; a row without a
//! call fails. Where a row says that an item is missing, the answer is that for an item that does not exist, byte for
//! byte.

mod calls;
mod scene;

use self::calls::{Call, Door};
use self::scene::{Item, Scene};

const TABLE: &str = include_str!("visibility/visibility.tsv");
/// Doors that change the item when they let a caller in, so that the next caller needs another item.
const SPENDING: [&str; 11] = [
    "answer POST",
    "buy",
    "choose POST with its answerId",
    "choose POST",
    "close POST",
    "community review POST",
    "full",
    "price",
    "rating POST",
    "retire",
    "revise",
];

/// Row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    kind: &'static str,
    state: &'static str,
    callers: &'static str,
    door: &'static str,
    expected: &'static str,
}

impl Row {
    fn of(line: &'static str) -> Self {
        let columns: Vec<&'static str> = line.split('\t').collect();
        let [kind, state, callers, door, expected, _reason] = columns[..] else {
            panic!("{line}");
        };
        Self {
            kind,
            state,
            callers,
            door,
            expected,
        }
    }

    /// Returns the callers of the row. A buyer is one where the state has one, and another caller otherwise.
    fn callers(&self) -> Vec<&'static str> {
        match self.callers {
            "any" if self.state.contains("bought by buyer") => vec!["none", "owner", "buyer", "other"],
            "any" => vec!["none", "owner", "other"],
            some => some.split(',').collect(),
        }
    }

    /// Returns the doors that the row names.
    fn doors(&self) -> Vec<&'static str> {
        match self.door {
            door if door.starts_with("every row that reads a credential") => vec!["credential"],
            door if door.starts_with("its name on") => vec!["its name"],
            door if door.ends_with("latest or version omitted") => vec!["reads of the latest"],
            door if door.ends_with("version bought or earlier") => vec!["reads of the first"],
            door => {
                // Words in parentheses explain the door before them, and have commas of their own.
                let outside = door.split('(').filter_map(|part| part.rsplit(')').next());
                let names = outside.flat_map(|part| part.split(", "));
                names.map(str::trim).filter(|name| !name.is_empty()).collect()
            }
        }
    }

    /// Returns true if the answer must be that for an item that does not exist.
    fn is_missing(&self, door: &str) -> bool {
        // A signed address names no item.
        matches!(self.expected, "404" | "missing") && door != "part address"
    }
}

fn rows() -> Vec<Row> {
    TABLE.lines().skip(1).map(Row::of).collect()
}

/// Returns the difference between the answers at a door and a row.
async fn difference(scene: &Scene, item: &Item, row: &Row, caller: &str, door: &'static str) -> Option<String> {
    let Some(Door { calls, mark }) = calls::door(scene, item, caller, door).await else {
        return Some("nobody wrote a call for it".to_owned());
    };
    let key = scene.key(item, caller);
    if (door, row.expected) == ("rating POST", "200") {
        scene
            .send(&Call::get(format!("/knowledge/{}/full", item.name)), key)
            .await;
    }
    let mut absent = None;
    for (at, call) in calls.iter().enumerate() {
        let got = scene.send(call, key).await;
        let text = String::from_utf8_lossy(&got.bytes).into_owned();
        let status = got.status.as_u16();
        let is_right = match row.expected {
            "present" => status == 200 && text.contains(&mark),
            "absent" => status == 200 && !text.contains(&mark),
            "missing" => status == 404,
            // A dry run makes nothing.
            "201" => status == if call.path.ends_with("/validate") { 200 } else { 201 },
            expected => expected.parse() == Ok(status),
        };
        let leaks = item.hidden.iter().any(|hidden| text.contains(hidden));
        if !is_right || leaks {
            return Some(format!("{} {}: {status} {text}", call.method, call.path));
        }
        if row.is_missing(door) {
            if absent.is_none() {
                absent = calls::door(scene, &item.absent(), caller, door).await;
            }
            let same: &Call = &absent.as_ref()?.calls[at];
            let missing = scene.send(same, key).await;
            let missing = (
                missing.status.as_u16(),
                String::from_utf8_lossy(&missing.bytes).into_owned(),
            );
            if (status, item.renamed(&text)) != missing {
                return Some(format!(
                    "{} {}: {text}, and of what does not exist {missing:?}",
                    call.method, call.path
                ));
            }
        }
    }
    None
}

#[tokio::test]
async fn every_door_answers_as_the_table_says() {
    let scene = Scene::set().await;
    let mut wrong = Vec::new();
    let mut item: Option<Item> = None;
    for row in rows() {
        item = item.filter(|item| (item.kind, item.state) == (row.kind, row.state));
        for caller in row.callers() {
            for door in row.doors() {
                let here = match item.take() {
                    Some(here) => here,
                    None => scene.item(row.kind, row.state).await,
                };
                let found = difference(&scene, &here, &row, caller, door).await;
                wrong.extend(found.map(|found| format!("{row:?} {caller} {door}\n    {found}")));
                let is_spent = row.expected.starts_with('2') && SPENDING.contains(&door);
                item = (!is_spent).then_some(here);
            }
        }
    }
    assert_eq!(rows().len(), 1_090);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
