use types::Timestamp;

use super::contradictions;

/// 2026-11-26.
const SUBMITTED: Timestamp = Timestamp::from_micros(1_795_651_200_000_000);

fn found(text: &str) -> Vec<String> {
    contradictions(text, SUBMITTED)
}

/// Texts with what is told of each.
const CONTRADICTING: &[(&str, [&str; 2])] = &[
    (
        "The p95 went from 48 ms to 36 ms, a drop of 62 %.",
        ["48 ms to 36 ms is 25 %", "the text says 62 %"],
    ),
    (
        "It fell from 9.8 KB to 7.9 KB, a saving of 58 %.",
        ["9.8 kb to 7.9 kb is 19.39 %", "58 %"],
    ),
    ("Latency rose from 90 ms to 40 ms.", ["90 ms to 40 ms is less", "rose"]),
    (
        "Die Zeit ist von 40 s auf 90 s gesunken.",
        ["40 s to 90 s is more", "fell"],
    ),
    (
        "지연이 90ms에서 130ms로 바뀌어 20% 개선되었다.",
        ["90 ms to 130 ms is more", "improved"],
    ),
    ("지연이 90ms에서 130ms로 줄었다.", ["90 ms to 130 ms is more", "fell"]),
    ("応答時間は48msから72msに短縮した。", ["48 ms to 72 ms is more", "fell"]),
    ("Errors: 68 of 400 (34 %) had one.", ["68 of 400 is 17 %", "34 %"]),
    (
        "So 92.6 % of the accounts were equal and 24 % were not.",
        ["92.6 % and 24 %", "116.6 %"],
    ),
    (
        "The latency went from 90 ms to 130 ms, an improvement of 30 %.",
        ["90 ms to 130 ms", "improved"],
    ),
    (
        "Time line: it was detected at 14:20, began at 14:35 and was gone at 14:10.",
        ["14:10", "14:35"],
    ),
    (
        "The index cut it from 48 ms to 36 ms, which is 62 % faster.",
        ["48 ms to 36 ms is 25 %", "62 %"],
    ),
    (
        "Memory decreased by 50 %, from 2.0 GB to 1.6 GB.",
        ["2 gb to 1.6 gb is 20 %", "50 %"],
    ),
    (
        "It went from 1.2 GB to 300 MB and the start from 9 s to 12 s, a reduction of 40 %.",
        ["9 s to 12 s is 33.33 %", "40 %"],
    ),
    ("Of 400 requests, 450 failed.", ["450 of 400", "whole"]),
    (
        "Precision 0.81, recall 0.74, F1 0.88 on the test set.",
        ["F1 of 0.88", "0.74"],
    ),
    (
        "The outage started at 14:05 and ended at 13:50 UTC.",
        ["13:50", "14:05"],
    ),
    ("We found 240 of 121 summaries.", ["240 of 121", "whole"]),
    (
        "The p50 was 90 ms and the p99 was 40 ms.",
        ["p50 of 90 ms", "p99 of 40 ms"],
    ),
    (
        "Median 14 ms, p95 9 ms, over 20 runs.",
        ["median of 14 ms", "p95 of 9 ms"],
    ),
    ("It began at 14:35 and was gone at 14:10.", ["14:10", "14:35"]),
    (
        "입력 800만 토큰, 출력 200만 토큰으로 합계 100만 토큰이었다.",
        ["100", "800"],
    ),
    (
        "The cache reached a hit rate of 130 % after an hour.",
        ["130 %", "100 %"],
    ),
    (
        "The time is split: 60 % parsing, 30 % hashing, 25 % writing.",
        ["60 + 30 + 25 %", "115 %"],
    ),
    (
        "It read 1,200 rows in 10 s, or 400 rows/s.",
        ["1200 in 10 s is 120 a second", "400"],
    ),
    ("Measured on 2027-03-01 on one machine.", ["2027-03-01", "2026-11-26"]),
    (
        "| Level | p50 | p95 |\n|-|-|-|\n| 1 | 3 ms | 2 ms |",
        ["p50 3", "p95 2"],
    ),
    (
        "| Level | Time |\n|-|-|\n| 1 | 3 ms |\n| 9 | 7 ms |\n\nLevel 9 is the fastest.",
        ["7 in that row", "3 in another"],
    ),
    (
        "| Kind | Count |\n|-|-|\n| a | 30 |\n| b | 40 |\n| total | 90 |",
        ["sums to 70", "90"],
    ),
    (
        "| Model | Precision | Recall | F1 |\n|-|-|-|-|\n| a | 0.81 | 0.74 | 0.88 |",
        ["F1 of 0.88", "0.81"],
    ),
    (
        "| Run | Errors | Requests | Rate |\n|-|-|-|-|\n| 1 | 4 | 100 | 4 % |\n| 2 | 6 | 200 | 3 % |\n| 3 | 9 | 300 | 8 % |",
        ["9 of 300 is 3 %", "8 %"],
    ),
];

#[test]
fn what_contradicts_itself_is_told_with_both_figures() {
    for (text, figures) in CONTRADICTING {
        let told = found(text);
        let [one] = told.as_slice() else {
            panic!("{text}: {told:?}")
        };
        assert!(figures.iter().all(|figure| one.contains(figure)), "{text}: {one}");
    }
}

#[test]
fn what_fits_is_not_told() {
    for text in [
        "It fell from 10 KB to 8 KB, a saving of 20 %.",
        "It took 1.2 s, from 1.2 s to 800 ms, 33 % less.",
        "지연이 100ms에서 80ms로 20% 줄었다.",
        "応答時間は48msから31msに短縮した。",
        "Errors: 68 of 400 (17 %) had one.",
        "The p50 was 40 ms and the p99 was 90 ms.",
        "The p50 improved by 40 ms and the p99 by 9 ms.",
        "It began at 23:50 and was gone at 00:10.",
        "It began at 14:35 and was gone at 14:10 the next day.",
        "See section 7 of 5 drafts, and step 9 of 7.",
        "Throughput grew to 130 % of the baseline.",
        "The certificate expires on 2031-01-01.",
        "It writes 100 of 10 MB each.",
        "Von 12.400 Zeilen waren 13.000 Bytes falsch.",
        "| Level | p50 | p95 |\n|-|-|-|\n| 1 | 2 ms | 3 ms |",
        "| Level | Time |\n|-|-|\n| 1 | 3 ms |\n| 9 | 7 ms |\n\nLevel 1 is the fastest.",
        "| Kind | Count | Mean |\n|-|-|-|\n| a | 30 | 4 |\n| b | 40 | 6 |\n| total | 70 | 5 |",
        "4 GB에서 8 GB로 늘리면 p99는 61 % 줄었다.",
        "Going from 4 GB to 8 GB cut the p99 by 61 %.",
        "Memory fell from 4 GB to 3 GB while errors fell by 80 %.",
        "Of 3 servers, 200 requests failed.",
        "Memory decreased by 20 %, from 2.0 GB to 1.6 GB.",
        "Precision 0.81, recall 0.74, F1 0.77 on the test set.",
        "So 92.6 % of the accounts were equal and 7.4 % were not.",
        "The delay went from 90 ms to 60 ms, an improvement of 33 %.",
        "The battery life went from 3 h to 5 h, an improvement of 67 %.",
        "cargo build --release && ./run",
    ] {
        assert_eq!(found(text), [] as [String; 0], "{text}");
    }
}

#[test]
fn a_quotation_is_one_short_line() {
    let text = format!("We found 240 of 121 summaries, {}.", "and so on ".repeat(40));
    let told = found(&text);
    assert!(
        told[0].chars().count() < 200 && told[0].contains('…') && !told[0].contains('\n'),
        "{told:?}"
    );
}
