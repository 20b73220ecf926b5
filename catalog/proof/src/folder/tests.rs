use std::sync::atomic::AtomicU64;

use super::*;
use crate::fixture::{self, Dataset, Service, record};
use crate::{FileHash, Manifest};

/// Verifies the folder against the manifest, signed as it is.
fn verify_signed(dataset: &Dataset, manifest: Manifest) -> Result<u64, Error> {
    let service = Service::new(1);
    let signed = service.sign(manifest, 0);
    let manifest = VerifiedManifest::parse(&serde_json::to_vec(&signed).unwrap(), &service.keys())?;
    let rows = AtomicU64::new(0);
    verify(&manifest, dataset.folder.path(), &|part| {
        rows.fetch_add(part, Ordering::Relaxed);
    })?;
    Ok(rows.into_inner())
}

fn verify_as_is(dataset: &Dataset) -> Result<u64, Error> {
    verify_signed(dataset, dataset.manifest.clone())
}

#[test]
fn a_folder_as_it_was_pulled_verifies() {
    assert_eq!(verify_as_is(&Dataset::with_three_parts()).unwrap(), 6);
    assert_eq!(verify_as_is(&Dataset::new()).unwrap(), 0);
}

#[test]
fn parts_may_hold_several_versions_and_versions_several_parts() {
    let mut dataset = Dataset::new();
    dataset.part(&[(1, 3), (2, 1), (3, 2)]);
    dataset.part(&[(3, 4)]);
    dataset.part(&[(3, 1), (4, 5_000)]);
    dataset.part(&[(5, 1)]);
    assert_eq!(verify_as_is(&dataset).unwrap(), 5_012);
    // The same records laid out otherwise have the same roots.
    let mut other = Dataset::new();
    for (version, rows) in [(1, 3), (2, 1), (3, 7), (4, 5_000), (5, 1)] {
        other.part(&[(version, rows)]);
    }
    assert_eq!(dataset.manifest.root, other.manifest.root);
    assert_eq!(verify_as_is(&other).unwrap(), 5_012);
}

#[test]
fn parts_that_changed_places_are_refused() {
    let dataset = Dataset::with_three_parts();
    let path = |number: u32| dataset.folder.path().join(format!("part-{number}.parquet"));
    fs::rename(path(1), path(9)).unwrap();
    fs::rename(path(2), path(1)).unwrap();
    fs::rename(path(9), path(2)).unwrap();
    let refused = verify_as_is(&dataset).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("`part-1.parquet` is not the signed file"),
        "{refused}"
    );
}

#[test]
fn a_part_that_is_cut_off_or_missing_is_refused() {
    let dataset = Dataset::with_three_parts();
    let path = dataset.folder.path().join("part-3.parquet");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(verify_as_is(&dataset), Err(Error::PartSize { .. })));
    let mut flipped = bytes;
    flipped[40] ^= 1;
    fs::write(&path, &flipped).unwrap();
    assert!(matches!(verify_as_is(&dataset), Err(Error::PartHash { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(verify_as_is(&dataset), Err(Error::File { .. })));
}

#[test]
fn the_first_thing_that_is_wrong_is_named() {
    let dataset = Dataset::with_three_parts();
    for number in [1, 2, 3] {
        fs::write(dataset.folder.path().join(format!("part-{number}.parquet")), "PAR1").unwrap();
    }
    for _ in 0..20 {
        let refused = verify_as_is(&dataset).unwrap_err();
        assert!(refused.to_string().contains("`part-1.parquet`"), "{refused}");
    }
}

/// A service that would sign a row it never published is caught by whoever has the root.
#[test]
fn a_changed_row_is_caught_by_the_root_even_if_the_part_is_signed_again() {
    let dataset = Dataset::with_three_parts();
    let mut manifest = dataset.manifest.clone();
    let path = dataset.folder.path().join("part-2.parquet");
    (manifest.parts[1].size, manifest.parts[1].sha256) = fixture::write(&path, &[(2, record(2)), (2, record(99))]);
    let refused = verify_signed(&dataset, manifest).unwrap_err();
    assert!(
        matches!(refused, Error::ContentRoot { ref part, .. } if part == "part-2.parquet"),
        "{refused}"
    );
}

#[test]
fn rows_that_are_not_of_the_versions_named_are_refused() {
    let mut whole = Dataset::new();
    whole.part(&[(1, 2), (2, 2)]);
    let path = whole.folder.path().join("part-1.parquet");
    let of = |versions: [u64; 4]| {
        let rows: Vec<_> = versions.into_iter().zip((0..4).map(record)).collect();
        let mut manifest = whole.manifest.clone();
        (manifest.parts[0].size, manifest.parts[0].sha256) = fixture::write(&path, &rows);
        verify_signed(&whole, manifest)
    };
    assert!(of([1, 1, 2, 2]).is_ok());
    assert!(matches!(of([1, 2, 2, 2]), Err(Error::ContentRoot { .. })));
    for versions in [
        [2, 2, 2, 2],
        [1, 1, 1, 1],
        [1, 2, 1, 2],
        [1, 1, 3, 3],
        [0, 1, 2, 2],
        [1, 1, 2, 3],
    ] {
        let refused = of(versions).unwrap_err();
        assert!(
            matches!(refused, Error::PartRows { .. } | Error::ContentRoot { .. }),
            "{versions:?}: {refused}"
        );
    }
}

#[test]
fn another_number_of_rows_is_refused() {
    let dataset = Dataset::with_three_parts();
    let mut manifest = dataset.manifest.clone();
    manifest.parts[0].rows = 3;
    manifest.record_count = 7;
    let refused = verify_signed(&dataset, manifest).unwrap_err();
    assert!(
        refused.to_string().contains("it has 2 rows, and 3 are named"),
        "{refused}"
    );
}

#[test]
fn a_part_that_is_no_parquet_file_is_refused_without_more_ado() {
    let dataset = Dataset::with_three_parts();
    let mut manifest = dataset.manifest.clone();
    let bytes = b"PAR1 not at all PAR1";
    fs::write(dataset.folder.path().join("part-1.parquet"), bytes).unwrap();
    manifest.parts[0].size = bytes.len() as u64;
    manifest.parts[0].sha256 = FileHash::from_bytes(<sha2::Sha256 as sha2::Digest>::digest(bytes).into());
    assert!(matches!(verify_signed(&dataset, manifest), Err(Error::PartRows { .. })));
}

#[test]
fn a_parquet_file_that_nobody_named_is_refused() {
    let dataset = Dataset::with_three_parts();
    fs::write(dataset.folder.path().join("notes.txt"), "").unwrap();
    assert!(verify_as_is(&dataset).is_ok());
    fs::write(dataset.folder.path().join("part-0.PARQUET"), "").unwrap();
    let refused = verify_as_is(&dataset).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`part-0.PARQUET` is a Parquet file that the manifest does not name"
    );
}
