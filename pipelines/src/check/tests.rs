use std::fs;

use serde_json::json;

use super::*;

fn check(reading: serde_json::Value, on_refused: OnRefused, folder: &std::path::Path) -> FileCheck {
    let contract = json!({"fields": [
        {"name": "id", "type": "integer", "required": true}, {"name": "note", "type": "string"},
    ]});
    FileCheck {
        contract: Arc::new(serde_json::from_value(contract).unwrap()),
        reading: serde_json::from_value(reading).unwrap(),
        compression: Compression::None,
        on_refused,
        folder: folder.to_owned(),
    }
}

fn csv() -> serde_json::Value {
    json!({"format": "csv", "columns": [{"from": "Id", "to": "id"}, {"from": "Note", "to": "note"}]})
}

/// Returns what a check of the text says, and the numbers of the refused records with the codes of their reasons.
async fn checked(check: FileCheck, text: &str) -> (Result<CheckedFile, CheckError>, Vec<(u64, Vec<String>)>) {
    let text = text.as_bytes().to_vec();
    let run = move || {
        let mut refused = Vec::new();
        let checked = check.run(&text[..], |record| {
            let codes = record.reasons.iter().map(|reason| reason.code.clone());
            refused.push((record.number, codes.collect()));
        });
        (checked, refused)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test]
async fn records_of_a_text_are_judged_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let text = "Id,Note\n1,\"a\nb\"\n\nx,c\n1,\"a\nb\"\n2,\"call +1 212 555 0142\"\n,d\n3\n4,e\n";
    let (ended, refused) = checked(check(csv(), OnRefused::Drop, folder.path()), text).await;
    let ended = ended.unwrap();
    assert_eq!((ended.records(), ended.refused(), ended.duplicates()), (7, 4, 1));
    let numbers: Vec<u64> = refused.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 3, 4, 5]);
    assert_eq!(
        (&refused[0].1[..], &refused[3].1[..]),
        (&["value".to_owned()][..], &["cells".to_owned()][..])
    );
    // More than half are refused.
    assert!(matches!(ended.decision, Decision::Reject { code, .. } if code == "refused"));
    let (ended, _) = checked(check(csv(), OnRefused::Reject, folder.path()), "Id,Note\n1,a\n2,b\n").await;
    assert_eq!(ended.unwrap().decision, Decision::Merge);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_text_that_cannot_be_read_further_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        (
            "Id,Note\n1,a\n2,\"b\n3,c\n",
            "line 3: the quote that opens column `Note` is never closed",
        ),
        ("Id,Other\n1,a\n", "line 1: the header is not that of the reading"),
    ] {
        let (ended, _) = checked(check(csv(), OnRefused::Reject, folder.path()), text).await;
        let said = ended.unwrap_err().to_string();
        assert!(said.starts_with(words), "{said}");
    }
    let (ended, _) = checked(check(csv(), OnRefused::Reject, folder.path()), "Id,Note\n").await;
    assert!(matches!(ended.unwrap().decision, Decision::Reject { code, .. } if code == "empty"));
}
