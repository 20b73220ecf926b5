//! The rules of this gate for people: what is found, next to what passes, and what to do.
//!
//! Invariant: every example is judged as it says, by the rule that it stands under. A test holds this.

use super::context::ContextFlags;
use super::domains::RESERVED;
use super::kind::Kind;

/// Section of the guide about one rule. Examples are pairs of a field and its text.
struct Entry {
    kind: Kind,
    finds: &'static str,
    /// The kind of words that the rule needs, or that make it certain.
    words: ContextFlags,
    refused: &'static [(&'static str, &'static str)],
    passes: &'static [(&'static str, &'static str)],
}

/// Returns what may stand in place of personal data with this code of a refusal. The gate passes it.
pub fn instead(code: &str) -> String {
    if code == Kind::Email.code() {
        "user@example.com".to_owned()
    } else {
        format!("[{code}]")
    }
}

/// Returns the rules as Markdown.
pub fn guide() -> String {
    let mut text = format!("{BEGIN}\n");
    text.push_str("| Code | It is | In its place |\n|-|-|-|\n");
    let mut last = "";
    for kind in Kind::ALL {
        if std::mem::replace(&mut last, kind.code()) != kind.code() {
            let (code, name) = (kind.code(), kind.name());
            add(&mut text, format_args!("| `{code}` | {name} | `{}` |\n", instead(code)));
        }
    }
    text.push_str("\n## Rules\n");
    for entry in &ENTRIES {
        let (rule, code, name) = (entry.kind.rule(), entry.kind.code(), entry.kind.name());
        add(
            &mut text,
            format_args!("\n### {rule}\n\n`{code}`, {name}: {}\n", entry.finds),
        );
        let words = entry.words.words().collect::<Vec<_>>();
        if !words.is_empty() {
            add(&mut text, format_args!("\nWords: {}.\n", words.join(", ")));
        }
        examples(&mut text, "Refused", entry.refused);
        examples(&mut text, "Passes", entry.passes);
    }
    let things = ContextFlags::THING.words().collect::<Vec<_>>().join(", ");
    let reserved = RESERVED.map(|name| format!("`{name}`")).join(", ");
    add(
        &mut text,
        format_args!(
            "\n## What passes\n\n- Addresses under {reserved} and below (RFC 2606, RFC 6761): they are nobody's.\n\
             - Addresses that a reader is to replace: `your-name@…`, `…@yourdomain.com`, `uXXXXX@…`.\n\
             - A number right after a word for a thing, or in a field named by one: {things}.\n{PASSES}"
        ),
    );
    text
}

fn examples(text: &mut String, title: &str, examples: &[(&str, &str)]) {
    if examples.is_empty() {
        return;
    }
    add(text, format_args!("\n{title}:\n\n"));
    for (field, example) in examples {
        add(text, format_args!("- `{field}`: `{}`\n", example.replace('\n', "↵")));
    }
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.push_str(&more.to_string());
}

const BEGIN: &str = "\
# What is refused as personal data

Records, units of knowledge, comments and the texts of the board are searched for data of persons. This page is made from
the rules in force.

A refusal names the place (a JSON pointer to the field, for an upload also the line), the code and the rule, never the
value. Every text is searched, in names of members too; whole numbers only in fields that are named for a person's number.
A text is first put in plain spelling: full-width forms, digits of other scripts, invisible characters, `%40`, `[at]` and
`[dot]`, digits written apart.

## What to do

1. If it is personal data, leave it out or put a placeholder of the table in its place, then send the records again.
2. If it is none, see what the rule asks for: most need a word near the number, or in the name of the field. Name a field
   for what it holds (`part_number`, not `contact`), and give numbers the type `integer` or `number` instead of `string`.
3. `POST /projects/{slug}/validate` judges records without adding them, as often as you like.
";

const PASSES: &str = "\
- Decimals, also without a digit before the point (`.4111111111111111`), with exponents, and in lists.
- Dates, times, versions, coordinates, UUIDs, hashes, IPv4 addresses and dumps of bytes.
- A word that is part of a longer one or of a name (`hotel`, `callus`, `call_in`), or that introduces another number before.
- A bare run of digits without a word for it, but for Korean mobile numbers and cards of 15 or 16 digits.
- Names, addresses of houses, dates of birth and IP addresses: this search does not look for them, and your agreement with
  the persons concerned still counts.
";

const PHONE: ContextFlags = ContextFlags::PHONE.and(ContextFlags::LOOSE);

const ENTRIES: [Entry; 22] = [
    Entry {
        kind: Kind::Email,
        finds: "a mailbox at a domain under a top-level domain that exists, or under another one next to a word for e-mail; also \
                written with `[at]`, `(dot)` or spaces.",
        words: ContextFlags::EMAIL,
        refused: &[
            ("note", "write to jo@harbourpost.de"),
            ("note", "jo [at] harbourpost [dot] de"),
        ],
        passes: &[
            ("note", "user@example.com"),
            ("note", "jo@mail.example.org"),
            ("note", "your-name@harbourpost.de"),
            ("note", "uXXXXX@harbourpost.de"),
            ("code", "icon@2x.png"),
            ("url", "git@github.com:a/b.git"),
        ],
    },
    Entry {
        kind: Kind::PhoneInternational,
        finds: "a `+`, a country code and a number of a length that the country uses. A `+` before a decimal, an angle or \
                coordinates is none.",
        words: ContextFlags::NONE,
        refused: &[("note", "+44 20 7946 0958"), ("note", "+1-415-555-0132")],
        passes: &[
            ("note", "+4916-12307"),
            ("declination", "+44 23 51.2345"),
            ("change", "+0.4155550132"),
        ],
    },
    Entry {
        kind: Kind::PhoneDialledOut,
        finds: "the prefix `00`, a country code that stands apart or ends the first group, and a number of a length that the \
                country uses. Groups of one width are columns of numbers.",
        words: ContextFlags::NONE,
        refused: &[("note", "0049 30 5550143"), ("note", "00 44 20 7946 0958")],
        passes: &[("note", "000123 000456"), ("note", "0049 3055 5014 3000")],
    },
    Entry {
        kind: Kind::PhoneCalled,
        finds: "seven to fifteen digits next to a word for a phone, or in a field named by one, that are no date, time, decimal, \
                version, address or count. The word stands before the number, in the same clause and as a word of its own, \
                without another number between, or right after it. A word with other meanings must lead right to the number, \
                or the number must have the form of a phone's.",
        words: PHONE,
        refused: &[("note", "call me on 07700 900461"), ("phone", "5035550177")],
        passes: &[
            ("note", "hotel 5035550177"),
            ("note", "call_in 5035550177"),
            ("note", "call 500 of 5035550177"),
            ("phone_id", "5035550177"),
        ],
    },
    Entry {
        kind: Kind::PhoneNational,
        finds: "the forms in which phones of a country are written and little else is, such as `(415) 555-0132` or \
                `06 98 76 54 32`, with single signs between the groups.",
        words: ContextFlags::NONE,
        refused: &[
            ("note", "(415) 555-0132"),
            ("note", "010-5555-0123"),
            ("note", "06 98 76 54 32"),
        ],
        passes: &[
            ("note", "4155550132"),
            ("order", "415-555-0132"),
            ("note", "2019-2020-2021"),
        ],
    },
    Entry {
        kind: Kind::CardInForm,
        finds: "a number of an issuer's range and length with its check digit, in the usual groups, or a bare run of 15 or 16 \
                digits. A decimal is none.",
        words: ContextFlags::NONE,
        refused: &[("note", "4111 1111 1111 1111"), ("value", "4111111111111111")],
        passes: &[
            ("value", ".4111111111111111"),
            ("value", "4.111111111111111"),
            ("id", "4111111111111111"),
            ("note", "4111 1111 1111 1112"),
        ],
    },
    Entry {
        kind: Kind::CardCalled,
        finds: "such a number of 13 to 19 digits in any groups, next to a word for a card.",
        words: ContextFlags::CARD,
        refused: &[("card", "4222222222222"), ("note", "Visa 4111111111111111")],
        passes: &[("note", "4222222222222")],
    },
    Entry {
        kind: Kind::Iban,
        finds: "a country, its check digits and an account in the country's form (ISO 13616), in one word or groups of four.",
        words: ContextFlags::NONE,
        refused: &[("note", "DE89 3704 0044 0532 0130 00")],
        passes: &[("note", "DE90 3704 0044 0532 0130 00")],
    },
    Entry {
        kind: Kind::KrResidentNumber,
        finds: "six digits that are a date, a hyphen and seven digits, the first from 1 to 8; without the hyphen next to a word.",
        words: ContextFlags::KR_RESIDENT,
        refused: &[("note", "900101-1234567")],
        passes: &[("note", "901301-1234567"), ("note", "9001011234567")],
    },
    Entry {
        kind: Kind::UsSsn,
        finds: "`AAA-GG-SSSS` with an area, group and serial that exist; in another form next to a word.",
        words: ContextFlags::US_SSN,
        refused: &[("note", "123-45-6789"), ("ssn", "123456789")],
        passes: &[("note", "000-12-3456"), ("note", "123456789")],
    },
    Entry {
        kind: Kind::UkNino,
        finds: "two letters, six digits and a letter from A to D, in pairs or next to a word.",
        words: ContextFlags::UK_NINO,
        refused: &[("note", "AB 12 34 56 C")],
        passes: &[("note", "AB123456C")],
    },
    Entry {
        kind: Kind::EsDni,
        finds: "eight digits, or X, Y or Z and seven, with their check letter, after a hyphen, with dots or next to a word.",
        words: ContextFlags::ES_DNI,
        refused: &[("note", "12345678-Z")],
        passes: &[("note", "12345678-A"), ("note", "12345678Z")],
    },
    Entry {
        kind: Kind::ItCodiceFiscale,
        finds: "sixteen letters and digits of a name, a birth date and a place, with their check letter.",
        words: ContextFlags::NONE,
        refused: &[("note", "RSSMRA85T10A562S")],
        passes: &[("note", "RSSMRA85T10A562T")],
    },
    Entry {
        kind: Kind::FrNir,
        finds: "sex, year, month, department, commune, order and key, in these groups or next to a word.",
        words: ContextFlags::FR_NIR,
        refused: &[("note", "2 85 07 75 123 456 55")],
        passes: &[("note", "285077512345655")],
    },
    Entry {
        kind: Kind::PlPesel,
        finds: "eleven digits with a date and a check digit, next to a word.",
        words: ContextFlags::PL_PESEL,
        refused: &[("note", "PESEL 88051233282")],
        passes: &[("note", "88051233282")],
    },
    Entry {
        kind: Kind::SePersonnummer,
        finds: "a date, three digits and a check digit, next to a word.",
        words: ContextFlags::SE_PERSON,
        refused: &[("note", "personnummer 811218-8241")],
        passes: &[("note", "811218-8241")],
    },
    Entry {
        kind: Kind::BrCpf,
        finds: "`NNN.NNN.NNN-CC` with its check digits; in another form next to a word.",
        words: ContextFlags::BR_CPF,
        refused: &[("note", "442.818.189-28"), ("cpf", "44281818928")],
        passes: &[("note", "442.818.189-29"), ("note", "44281818928")],
    },
    Entry {
        kind: Kind::CaSin,
        finds: "nine digits with a check digit, next to a word.",
        words: ContextFlags::CA_SIN,
        refused: &[("note", "social insurance 674 538 780")],
        passes: &[("note", "674 538 780")],
    },
    Entry {
        kind: Kind::InAadhaar,
        finds: "twelve digits with a check digit, next to a word.",
        words: ContextFlags::IN_AADHAAR,
        refused: &[("note", "aadhaar 5346 1930 9230")],
        passes: &[("note", "5346 1930 9230")],
    },
    Entry {
        kind: Kind::CnResidentId,
        finds: "a region, a birth date, a serial and a check character.",
        words: ContextFlags::CN_RESIDENT,
        refused: &[("note", "110101199003074354")],
        passes: &[("note", "110101199003074355"), ("order_id", "110101199003074354")],
    },
    Entry {
        kind: Kind::JpMyNumber,
        finds: "twelve digits with a check digit, next to a word.",
        words: ContextFlags::JP_MY_NUMBER,
        refused: &[("note", "マイナンバー 7956 1152 1890")],
        passes: &[("note", "7956 1152 1890")],
    },
    Entry {
        kind: Kind::PassportMrz,
        finds: "a line of the zone that machines read (ICAO Doc 9303), by its length and check digits or as the line of a name.",
        words: ContextFlags::NONE,
        refused: &[("note", "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<")],
        passes: &[("note", "P<UTOERIKSSON<<ANNA<MARIA")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::personal::scan::Scanner;

    fn rules(field: &str, text: &str) -> Vec<&'static str> {
        let kinds = Scanner::default().scan(text, ContextFlags::of_field(field));
        kinds.iter().map(Kind::rule).collect()
    }

    #[test]
    fn every_rule_is_told_with_examples_that_are_judged_as_it_says() {
        let told: Vec<_> = ENTRIES.iter().map(|entry| entry.kind).collect();
        assert_eq!(told, Kind::ALL);
        for entry in &ENTRIES {
            assert!(
                !entry.refused.is_empty() && !entry.passes.is_empty(),
                "{:?}",
                entry.kind
            );
            for (field, text) in entry.refused {
                assert_eq!(rules(field, text), [entry.kind.rule()], "{field}: {text}");
            }
            for (field, text) in entry.passes {
                assert_eq!(rules(field, text), [""; 0], "{field}: {text}");
            }
        }
        let text = guide();
        for kind in Kind::ALL {
            let (heading, row) = (
                format!("\n### {}\n", kind.rule()),
                format!("| `{}` | {} |", kind.code(), kind.name()),
            );
            assert!(text.contains(&heading) && text.contains(&row), "{kind:?}");
        }
    }

    #[test]
    fn what_is_recommended_in_place_of_personal_data_passes_everywhere() {
        for kind in Kind::ALL {
            let instead = instead(kind.code());
            for field in ["note", "phone", "email", "card", "ssn", kind.code()] {
                assert_eq!(rules(field, &instead), [""; 0], "{field}: {instead}");
                assert_eq!(
                    rules(field, &format!("call {instead} or e-mail {instead}, now")),
                    [""; 0]
                );
            }
        }
    }
}
