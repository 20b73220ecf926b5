use super::*;
use crate::gates::personal::context::ContextFlags;
use crate::gates::personal::scan::Scanner;

fn column(texts: &[String]) -> StringArray {
    texts.iter().map(Some).collect()
}

fn is_named(text: &str) -> bool {
    !suspects(&column(&[text.to_owned()])).is_empty()
}

/// A generator of numbers that is the same on every run (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.throw(items.len())]
    }

    fn characters(&mut self, alphabet: &str, most: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..self.throw(most + 1))
            .map(|_| alphabet[self.throw(alphabet.len())])
            .collect()
    }
}

/// Numbers that are somebody's, next to the right word if need be.
const NUMBERS: [&str; 42] = [
    "MM177944A",
    "MM 177944 A",
    "MM-177944-A",
    "MM 17 79 44 A",
    "47104803K",
    "47104803-K",
    "47.104.803-K",
    "X9830036C",
    "X-9830036-C",
    "y9830036c",
    "RSSMRA85T10A562S",
    "DE89370400440532013000",
    "GB29-NWBK-6016-1331-9268-19",
    "FR1420041010050500013M02606",
    "MT84MALT011000012345MTLCAST001S",
    "KW81CBKU0000000000001234560101",
    "SC18SSCB11010000000000001497USD",
    "11010119900307854X",
    "110101199003074354",
    "285077512345655",
    "2 85 07 75 123 456 55",
    "88051233282",
    "811218-8241",
    "442.818.189-28",
    "44281818928",
    "674 538 780",
    "674538780",
    "534619309230",
    "5346 1930 9230",
    "795611521890",
    "123-45-6789",
    "123456789",
    "900101-1234567",
    "4111111111111111",
    "4111 1111 1111 1111",
    "4111\n1111\n1111\n1111",
    "4111\t1111\t1111\t1111",
    "010-1234-5678",
    "+82 10 1234 5678",
    "(415) 555-2671",
    "0 1 0 - 1 2 3 4 - 5 6 7 8",
    "kim@example.de",
];

const WORDS: [&str; 16] = [
    "phone",
    "card ",
    "NINO ",
    "DNI ",
    "sin ",
    "ssn:",
    "cpf=",
    "PESEL ",
    "nir",
    "id_",
    "ev_",
    "sensor-",
    "personnummer ",
    "身份证 ",
    "個人番号",
    "aadhaar",
];

/// Text around the rules' edges: numbers of every kind, broken or not, ids, words and what stands between.
fn text(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..=dice.throw(3) {
        match dice.throw(9) {
            0 | 1 => text.push_str(dice.of(&NUMBERS)),
            2 => text.push_str(dice.of(&WORDS)),
            3 => text.push_str(&dice.characters("0123456789abcdef", 24)),
            4 => text.push_str(&dice.characters("0123456789", 20)),
            5 => text.push_str(&dice.characters("0123456789 -./()+\n", 24)),
            6 => text.push_str(&dice.characters("01 23 AZaz_-", 24)),
            7 => text.push_str(&dice.characters("０１٢५—\u{a0}\u{200b}\u{ad}・ー가é%40@<[(", 6)),
            _ => text.push_str(&dice.characters(" -._,:;#aAxXzZD9\t", 3)),
        }
    }
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..dice.throw(3) {
        let at = dice.throw(characters.len() + 1);
        let new = dice.characters("019aAXZ _-./\u{200b}\u{a0}—", 1).chars().next();
        match (new, dice.throw(3)) {
            (Some(new), 0) => characters.insert(at, new),
            (Some(new), 1) if at < characters.len() => characters[at] = new,
            _ if at < characters.len() => drop(characters.remove(at)),
            _ => {}
        }
    }
    characters.into_iter().collect()
}

#[test]
fn nothing_is_found_in_what_is_left_out() {
    const TEXTS: usize = 60_000;
    let mut dice = Dice(7);
    let texts: Vec<_> = (0..TEXTS).map(|_| text(&mut dice)).collect();
    let named = suspects(&column(&texts));
    let fields = ["text", "phone", "nino", "dni", "ssn", "id"].map(ContextFlags::of_field);
    let mut scanner = Scanner::default();
    let (mut left_out, mut personal) = (0, 0);
    for (row, text) in texts.iter().enumerate() {
        let is_personal = fields.iter().any(|field| !scanner.scan(text, *field).is_empty());
        let is_named = named.binary_search(&row).is_ok();
        assert!(is_named || !is_personal, "{text:?}");
        left_out += usize::from(!is_named && text.bytes().filter(u8::is_ascii_digit).count() >= FEWEST_DIGITS);
        personal += usize::from(is_personal);
    }
    // Else the texts are not what they are meant to be.
    assert!(personal > TEXTS / 5, "{personal}");
    if cfg!(target_arch = "x86_64") && named.len() < TEXTS {
        assert!(left_out > TEXTS / 50, "{left_out}");
    }
}

#[test]
fn a_text_is_judged_alike_wherever_it_stands() {
    let mut dice = Dice(11);
    for _ in 0..300 {
        let texts: Vec<_> = (0..=dice.throw(12)).map(|_| text(&mut dice)).collect();
        let together = column(&texts);
        let alone = |from: usize| -> Vec<_> { (from..texts.len()).filter(|row| is_named(&texts[*row])).collect() };
        assert_eq!(suspects(&together), alone(0));
        let from = dice.throw(texts.len());
        let rest = suspects(&together.slice(from, texts.len() - from));
        assert_eq!(rest.iter().map(|row| row + from).collect::<Vec<_>>(), alone(from));
    }
}

#[test]
fn a_null_is_left_out_whatever_stands_behind_it() {
    let texts = column(&["kim@example.de".to_owned(), "lee@example.de".to_owned()]);
    let (offsets, values, _) = texts.into_parts();
    let nulls = StringArray::new(offsets, values, Some(vec![true, false].into()));
    assert_eq!(suspects(&nulls), [0]);
}

#[cfg(target_arch = "x86_64")]
mod with_avx2 {
    use pulp::NullaryFnOnce;
    use pulp::x86::V3;

    use super::*;
    use crate::text::might_normalise;

    /// Looks at bytes where the instructions for it may be used.
    struct Look(V3, [u8; CHUNK]);

    impl NullaryFnOnce for Look {
        type Output = (Seen<u32>, Words<u32>);

        fn call(self) -> Self::Output {
            (self.0.classify(&self.1), self.0.words(&self.1))
        }
    }

    #[test]
    fn every_byte_is_what_it_is_at_every_place() {
        let Some(simd) = V3::try_new() else { return };
        for byte in 0..=u8::MAX {
            for place in 0..CHUNK {
                let mut bytes = [b'g'; CHUNK];
                bytes[place] = byte;
                let (seen, words) = simd.vectorize(Look(simd, bytes));
                let bit = |is: bool| u32::from(is) << place;
                let digits = bit(byte.is_ascii_digit());
                assert_eq!(seen.digits, digits, "{byte:#x}");
                assert_eq!(
                    seen.joints,
                    digits | bit(byte < 0x10 || (b' '..=b'/').contains(&byte)),
                    "{byte:#x}"
                );
                assert_eq!(seen.beyond, bit(byte >= 0x80), "{byte:#x}");
                assert_eq!(words.lines, bit(byte == b'_'), "{byte:#x}");
                let others = u32::MAX ^ bit(true);
                assert_eq!(words.letters, others | bit(byte.is_ascii_alphabetic()), "{byte:#x}");
                let marked = b"@<([{%&".contains(&byte) || might_normalise(&[byte]) || matches!(byte, 0xF1 | 0xFF);
                assert_eq!(seen.marks, bit(marked), "{byte:#x}");
            }
        }
    }

    #[test]
    fn ids_and_words_are_left_out_and_numbers_are_not() {
        if V3::try_new().is_none() {
            return;
        }
        for text in [
            "",
            "ev_58e943829caad32a",
            "sensor-0849-eu-north",
            "a1234567b",
            "x_123456_y",
            "a12 of 345",
            "rapebo soke lizetu dobile lotre pisubugri nutasa ralu nonu dipodova, and so on 12 34 5",
            "온도는 24도입니다, 습도는 40퍼센트",
        ] {
            assert!(!is_named(text), "{text}");
        }
        for text in [
            "MM177944A",
            "X9830036C",
            "GB29NWBK60161331926819",
            "RSSMRA85T10A562S",
            "1234567",
            "1 2 3 4 5 6",
            "12-34-56",
            "12\n34\r\n56",
            "12\t34\t56",
            "１２３",
            "kim@example.de",
            "kim (at) example.de",
            "rapebo soke lizetu dobile lotre pisubugri nutasa ralu nonu dipodova, call 1234567",
        ] {
            assert!(is_named(text), "{text}");
        }
    }
}
