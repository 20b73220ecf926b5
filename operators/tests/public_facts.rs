//! Holds the personal data gate against files of public facts, none of which has anything to refuse.
//!
//! `zone.tab` is that of the time zone database, which is in the public domain; the others are drawn in the form of the
//! files that they are named for.

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use operators::gates::PersonalData;
    use operators::{Gate, Verdict};
    use serde_json::{Value, json};
    use types::Batch;

    const ZONES: &str = include_str!("facts/zone.tab");
    const EARTHQUAKES: &str = include_str!("facts/earthquakes.csv");
    const RELEASE: &str = include_str!("facts/release.json");
    const ACCESS: &str = include_str!("facts/requests.txt");
    const READS: &str = include_str!("facts/reads.fastq");
    const DUMP: &str = include_str!("facts/dump.txt");
    const DECIMALS: &str = include_str!("facts/decimals.jsonl");
    const STARS: &str = include_str!("facts/stars.txt");
    const HISTORY: &str = include_str!("facts/history.txt");

    /// The records that the gate refuses: their texts and the kinds of data found.
    fn refused(records: &[Value]) -> Vec<String> {
        let named =
            |name: &String| json!({"name": name, "type": if records[0][name].is_string() { "string" } else { "json" }});
        let fields: Vec<_> = records[0].as_object().unwrap().keys().map(named).collect();
        let contract = serde_json::from_value(json!({"fields": fields})).unwrap();
        let rows = Batch::decode(&Arc::new(contract), records);
        assert_eq!(rows.defects(), []);
        let verdicts = PersonalData::new().judge(&rows);
        let told = |(row, verdict): &(usize, Verdict)| match verdict {
            Verdict::Refuse { reasons } => {
                let found = reasons
                    .iter()
                    .map(|reason| format!("{} at {}", reason.code, reason.path));
                format!("{}: {}", found.collect::<Vec<_>>().join(", "), records[*row])
            }
            other => panic!("{other:?}"),
        };
        verdicts.exceptions().iter().map(told).collect()
    }

    /// Holds that nothing is refused in records of which there are at least so many, and that a phone in any is.
    fn holds_nothing_personal(records: &[Value], least: usize) {
        assert!(records.len() >= least, "{}", records.len());
        assert_eq!(refused(records), [""; 0]);
        let planted: Vec<_> = records
            .iter()
            .map(|record| {
                let mut record = record.clone();
                let text = record
                    .as_object_mut()
                    .unwrap()
                    .values_mut()
                    .find(|value| value.is_string());
                if let Some(Value::String(text)) = text {
                    text.push_str("; call 010-5550-1234");
                }
                record
            })
            .collect();
        let strings = planted
            .iter()
            .filter(|record| record.as_object().unwrap().values().any(Value::is_string));
        assert_eq!(refused(&planted).len(), strings.count());
    }

    /// Each line as a record, and all of them as one.
    fn lines(text: &str, least: usize) {
        let lines: Vec<_> = text.lines().map(|line| json!({"line": line})).collect();
        holds_nothing_personal(&lines, least);
        assert_eq!(refused(&[json!({"body": text})]), [""; 0]);
    }

    #[test]
    fn a_table_of_time_zones() {
        lines(ZONES, 300);
        let zone = |line: &str| {
            let mut cells = line.split('\t');
            let mut next = || cells.next().unwrap_or_default().to_owned();
            json!({"country_code": next(), "coordinates": next(), "tz": next(), "comments": next()})
        };
        let zones: Vec<_> = ZONES.lines().skip(1).map(zone).collect();
        holds_nothing_personal(&zones, 300);
    }

    #[test]
    fn a_table_of_earthquakes() {
        lines(EARTHQUAKES, 60);
        let (header, rows) = EARTHQUAKES.split_once('\n').unwrap();
        let names: Vec<_> = header.split(',').collect();
        let earthquake = |line: &str| {
            // The only comma within a cell is that of the place.
            let (before, rest) = line.split_once('"').unwrap();
            let (place, after) = rest.split_once('"').unwrap();
            let cells = before
                .trim_end_matches(',')
                .split(',')
                .chain([place])
                .chain(after[1..].split(','));
            names
                .iter()
                .map(|name| (*name).to_owned())
                .zip(cells.map(|cell| json!(cell)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let earthquakes: Vec<Value> = rows.lines().map(earthquake).collect();
        assert_eq!(earthquakes[0].as_object().unwrap().len(), names.len());
        holds_nothing_personal(&earthquakes, 60);
    }

    #[test]
    fn the_releases_of_a_package() {
        lines(RELEASE, 300);
        let release: Value = serde_json::from_str(RELEASE).unwrap();
        assert_eq!(refused(&[json!({"name": "tidegauge", "document": release})]), [""; 0]);
        let file = |(version, files): (&String, &Value)| json!({"version": version, "files": files});
        let files: Vec<_> = release["releases"].as_object().unwrap().iter().map(file).collect();
        holds_nothing_personal(&files, 9);
    }

    #[test]
    fn a_log_of_requests() {
        lines(ACCESS, 80);
        let request = |line: &str| {
            let cells: Vec<_> = line.split('"').collect();
            json!({"client": cells[0], "request": cells[1], "status": cells[2], "referer": cells[3], "user_agent": cells[5]})
        };
        let requests: Vec<_> = ACCESS.lines().map(request).collect();
        holds_nothing_personal(&requests, 80);
    }

    #[test]
    fn the_reads_of_a_sequencer() {
        lines(READS, 150);
        let lines: Vec<_> = READS.lines().collect();
        let read = |read: &[&str]| json!({"name": read[0], "sequence": read[1], "quality": read[3]});
        let reads: Vec<_> = lines.chunks(4).map(read).collect();
        holds_nothing_personal(&reads, 38);
        let whole: Vec<_> = lines.chunks(4).map(|read| json!({"read": read.join("\n")})).collect();
        holds_nothing_personal(&whole, 38);
    }

    #[test]
    fn a_dump_of_bytes() {
        lines(DUMP, 64);
    }

    #[test]
    fn decimals_without_a_zero() {
        let records: Vec<Value> = DECIMALS
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        holds_nothing_personal(&records, 5);
        lines(DECIMALS, 5);
    }

    #[test]
    fn a_catalogue_of_stars() {
        lines(STARS, 60);
    }

    #[test]
    fn the_history_of_a_repository() {
        lines(HISTORY, 150);
        let commits: Vec<_> = HISTORY
            .split("commit ")
            .map(|commit| json!({"commit": commit}))
            .collect();
        holds_nothing_personal(&commits[1..], 24);
    }
}
