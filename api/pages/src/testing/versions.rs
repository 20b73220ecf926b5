//! Samples of the pages of versions.

use types::Version;

use super::dataset::{before, columns, head, priced, readable, values};
use super::{Book, Texts, visitor};
use crate::{
    AddedRow, AddedRows, DatasetHead, DatasetTab, DatasetVersion, DatasetVersionPage, DatasetVersionsPage, Error,
    GrowthPoint, LeftOutRecords, VersionFile,
};

fn version(texts: &Texts, number: u64) -> DatasetVersion {
    DatasetVersion {
        version: Version(number),
        added: 84,
        left_out: Some(LeftOutRecords { copies: 24, refused: 0 }),
        records: number * 84,
        bytes: Some(6_000_000),
        agent: texts.name.clone(),
        root: "83b419cc".repeat(8),
        at: before(60),
    }
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let point = |minutes, records| GrowthPoint {
        at: before(minutes),
        records,
    };
    let page = DatasetVersionsPage {
        chrome: visitor("/projects/tide-gauges/versions"),
        head: DatasetHead {
            tab: DatasetTab::Versions,
            ..head(texts, priced(None), None)
        },
        versions: (1_183..=1_202).rev().map(|number| version(texts, number)).collect(),
        growth: vec![point(9_000, 84), point(300, 168), point(60, 252)],
    };
    book.add("dataset-versions", &page)?;
    let added = AddedRow {
        place: 84,
        version: Version(1_239),
        agent: texts.name.clone(),
        values: values(texts),
    };
    let file = VersionFile {
        name: "part-00000000000000001024-0198c2f4-5b7a-7c31-9e0d-6a4f1b2c3d4e-1.parquet".to_owned(),
        rows: 735_840,
        bytes: 5_488_220,
        since: Version(1_024),
        sha256: "59e0a3cc".repeat(8),
    };
    let is_read = AddedRows::new(columns(texts, None), (readable(texts).columns, false), vec![added], 0);
    for (name, rows, files, is_offered) in [
        ("", Some(is_read), vec![file], false),
        ("-locked", None, Vec::new(), false),
        ("-led", None, Vec::new(), true),
    ] {
        let page = DatasetVersionPage {
            chrome: visitor("/projects/tide-gauges/versions/1239"),
            head: DatasetHead {
                tab: DatasetTab::Versions,
                ..head(texts, priced(None), rows.as_ref().map(|_| Version(1_242)))
            },
            version: version(texts, 1_239),
            root_before: Some("c728a4ea".repeat(8)),
            near: (1_238..=1_240).map(|number| version(texts, number)).collect(),
            file_count: Some(7),
            source: rows.as_ref().map(|_| texts.text.clone()),
            key: "557eb63353d68c62".to_owned(),
            chosen: String::new(),
            files,
            from: Version(1_238),
            added: 84,
            rows,
            failure: None,
            is_offered,
            has_all: false,
        };
        book.add(&format!("dataset-version{name}"), &page)?;
    }
    Ok(())
}
