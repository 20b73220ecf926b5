//! Context words: the words near a number, or in the name of its field, that tell its kind.
//!
//! Invariant: of two words before a number the nearer one counts, so `card 12, order 4…` is an order. A word for a
//! thing counts only if nothing but signs and words such as `no` stands between it and the number. The same holds for a
//! word for a phone that has other meanings; elsewhere such a word is [`ContextFlags::LOOSE`].

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// A set of context flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ContextFlags(u32);

impl ContextFlags {
    pub(super) const NONE: Self = Self(0);
    /// The number is an order, a part, a product, a hash or a count: anything but a person's number.
    pub(super) const THING: Self = Self(1 | Self::ID.0);
    pub(super) const PHONE: Self = Self(1 << 1);
    pub(super) const CARD: Self = Self(1 << 2);
    pub(super) const EMAIL: Self = Self(1 << 3);
    pub(super) const KR_RESIDENT: Self = Self(1 << 4);
    pub(super) const US_SSN: Self = Self(1 << 5);
    pub(super) const UK_NINO: Self = Self(1 << 6);
    pub(super) const ES_DNI: Self = Self(1 << 7);
    pub(super) const BR_CPF: Self = Self(1 << 8);
    pub(super) const IN_AADHAAR: Self = Self(1 << 9);
    pub(super) const CN_RESIDENT: Self = Self(1 << 10);
    pub(super) const FR_NIR: Self = Self(1 << 11);
    pub(super) const PL_PESEL: Self = Self(1 << 12);
    pub(super) const CA_SIN: Self = Self(1 << 13);
    pub(super) const JP_MY_NUMBER: Self = Self(1 << 14);
    pub(super) const SE_PERSON: Self = Self(1 << 15);
    /// The number is an id. It counts as a thing unless it has the form of a person's number.
    pub(super) const ID: Self = Self(1 << 16);
    /// A word for a phone that has other meanings too, as in `call for papers`.
    pub(super) const LOOSE: Self = Self(1 << 17);
    /// The Korean word for a text message, and for a character.
    pub(super) const TEXTED: Self = Self(1 << 18);
    /// The field names a count of a loose word, as in `mobile_users`, so its integers are counts.
    pub(super) const COUNTED: Self = Self(1 << 19);

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if all flags of `other` are set.
    pub(super) const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if the words name a person's number, so that a bare integer may be one.
    pub(super) const fn names_a_number(self) -> bool {
        let other = Self::THING.0 | Self::EMAIL.0 | Self::LOOSE.0 | Self::TEXTED.0 | Self::COUNTED.0;
        let other = if self.has(Self::COUNTED) {
            other | Self::PHONE.0
        } else {
            other
        };
        self.0 & !other != 0
    }

    /// Returns the flags of a field's name without those that do not fit an integer of this magnitude: it is too small,
    /// too round, or more likely a time.
    pub(super) const fn for_integer(self, magnitude: u64) -> Self {
        const LEAST: u64 = 100_000_000;
        // The limit is higher here, because counts often begin with 1 or 2, and nine-digit
        // phone numbers without their zero rarely do.
        const LEAST_LOOSE: u64 = 300_000_000;
        let phone = if self.has(Self::LOOSE) {
            // Seconds or milliseconds since 1970 in the years 2004 to 2033, and the populations
            // of India and China.
            let time = matches!(magnitude, 1_100_000_000..2_000_000_000 | 1_100_000_000_000..2_000_000_000_000);
            magnitude >= LEAST_LOOSE && !time && !magnitude.is_multiple_of(1_000) && !self.has(Self::COUNTED)
        } else {
            magnitude >= LEAST
        };
        if phone {
            self
        } else {
            Self(self.0 & !(Self::PHONE.0 | Self::LOOSE.0))
        }
    }

    /// Returns the flags of a field's name: `orderPhone` is a phone, `phone_id` is not.
    pub(super) fn of_field(name: &str) -> Self {
        let mut words = String::with_capacity(name.len() + 8);
        let mut lower = false;
        for character in name.chars() {
            if lower && character.is_uppercase() {
                words.push(' ');
            }
            lower = character.is_lowercase() || character.is_ascii_digit();
            words.push(if character.is_alphanumeric() { character } else { ' ' });
        }
        let words = words.as_bytes();
        let said = before(words, || 0);
        if said.has(Self::THING) {
            return Self::THING;
        }
        // Trailing digits are removed, because `mobile_2` is another mobile.
        let counts = || {
            let name = words.trim_ascii_end();
            let name = &name[..name.len() - name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count()];
            self::words(words)
                .last()
                .is_some_and(|word| word.hint == Self::LOOSE && word.end < lead(name, b""))
        };
        if said.has(Self::LOOSE) && counts() {
            said.and(Self::COUNTED)
        } else {
            said
        }
    }

    /// Returns the flags of the words around `text[start..end]`.
    pub(super) fn near(text: &[u8], start: usize, end: usize) -> Self {
        const BEFORE: usize = 48;
        const AFTER: usize = 24;
        if start == 0 && end == text.len() {
            return Self::NONE;
        }
        let ahead = &text[start.saturating_sub(BEFORE)..start];
        let found = before(ahead, || lead(ahead, &text[start..end]));
        let after = &text[end..text.len().min(end + AFTER)];
        words(after)
            .filter(|word| !word.hint.has(Self::THING) && !is_product(after, word.end))
            .fold(found, |found, Word { end: at, hint, .. }| {
                // `(mobile)` describes the number, `mobile users` the thing that it counts.
                let goes_on = text[end + at..]
                    .trim_ascii_start()
                    .first()
                    .is_some_and(u8::is_ascii_alphabetic);
                let phone = hint == Self::LOOSE && !goes_on;
                found.and(hint).and(if phone { Self::PHONE } else { Self::NONE })
            })
    }
}

/// Returns the flags of the words in `text`. A later word for a thing cancels earlier ones, and a later word for a
/// person's number cancels the thing. A word for a thing that ends before `lead` is ignored, and a loose word for a
/// phone that ends at `lead` or later is a word for a phone. So is a word for a phone within a path, which is ignored
/// elsewhere.
fn before(text: &[u8], lead: impl FnOnce() -> usize) -> ContextFlags {
    let mut said = ContextFlags::NONE;
    let mut said_at = 0;
    let (mut thing_at, mut id_at, mut loose_at, mut path_at) = (None, None, None, None);
    for Word { start, end, hint } in words(text) {
        if is_product(text, end) {
            continue;
        }
        if hint == ContextFlags::THING {
            thing_at = Some(end);
        } else if hint == ContextFlags::ID {
            id_at = Some(end);
        } else if hint.has(ContextFlags::PHONE.and(ContextFlags::LOOSE)) && is_of_path(text, start) {
            path_at = Some(end);
        } else {
            if hint == ContextFlags::LOOSE {
                loose_at = Some(end);
            }
            said = said.and(hint);
            said_at = end;
        }
    }
    match thing_at.max(id_at) {
        Some(last) if last > said_at || said == ContextFlags::NONE => {
            let lead = Some(lead());
            if thing_at >= lead {
                ContextFlags::THING
            } else if id_at >= lead {
                ContextFlags::ID
            } else {
                ContextFlags::NONE
            }
        }
        _ if loose_at.max(path_at).is_some_and(|at| at >= lead()) => said.and(ContextFlags::PHONE),
        _ => said,
    }
}

/// Returns the position in `ahead`, the text before a number, from which everything only leads up to the number: signs,
/// words such as `no` and `is`, and other numbers of its form, with which it forms a list.
fn lead(ahead: &[u8], number: &[u8]) -> usize {
    let broken = ahead.iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    let Ok(mut rest) = std::str::from_utf8(&ahead[broken..]) else {
        return ahead.len();
    };
    // A group joined to the number by a space or a slash may be part of it.
    if number.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ') {
        while let Some(joined) = rest.strip_suffix([' ', '/'])
            && joined.ends_with(|sign: char| sign.is_ascii_digit())
        {
            rest = joined.trim_end_matches(|sign: char| sign.is_ascii_digit());
        }
    }
    loop {
        let listed = rest.trim_end_matches(|sign: char| !sign.is_alphanumeric());
        if let Some(shorter) = strip_alike(listed, number) {
            rest = shorter;
            continue;
        }
        // These signs end a sentence or clause, so a word before them does not concern the
        // number.
        let bare = rest.trim_end_matches(|sign: char| !sign.is_alphanumeric() && !",;!?、。".contains(sign));
        match strip_link(bare) {
            Some(shorter) => rest = shorter,
            None => return broken + bare.len(),
        }
    }
}

/// Strips the number at the end of `text` if it has the form of `number`, digit for digit.
fn strip_alike<'a>(text: &'a str, number: &[u8]) -> Option<&'a str> {
    let (rest, last) = text
        .as_bytes()
        .split_at_checked(text.len().checked_sub(number.len())?)?;
    let alike = last
        .iter()
        .zip(number)
        .all(|(one, other)| one == other || (one.is_ascii_digit() && other.is_ascii_digit()));
    (alike && !last.is_empty() && !rest.last().is_some_and(u8::is_ascii_digit)).then(|| &text[..rest.len()])
}

/// Strips the word at the end of `text` if it only leads to a number.
fn strip_link(text: &str) -> Option<&str> {
    let rest = text.trim_end_matches(char::is_alphabetic);
    let word = &text[rest.len()..];
    if LINKS.iter().any(|link| word.eq_ignore_ascii_case(link)) {
        return Some(rest);
    }
    ENDINGS
        .iter()
        .find_map(|ending| word.strip_suffix(ending))
        .map(|word| &text[..rest.len() + word.len()])
}

/// Words that lead to a number, and those that do so at the end of a word.
const LINKS: [&str; 27] = [
    "no",
    "nos",
    "nr",
    "nrs",
    "num",
    "number",
    "numbers",
    "n",
    "nº",
    "numero",
    "número",
    "numéro",
    "nummer",
    "номер",
    "code",
    "codes",
    "value",
    "values",
    "id",
    "ids",
    "is",
    "are",
    "was",
    "ist",
    "est",
    "es",
    "é",
];
const ENDINGS: [&str; 17] = [
    "번호", "번", "는", "은", "이", "가", "의", "番号", "番", "号", "號", "は", "が", "の", "为", "為", "是",
];

/// Returns true if the word that begins at `start` begins a path, as in `GET /contact`; in `tel./fax` it does not.
fn is_of_path(text: &[u8], start: usize) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    matches!(&text[..start], [rest @ .., b'/'] if !rest.last().is_some_and(joins))
}

/// Returns true if the word that ends at `end` is the name of a program before its version, as in `Mobile/15E148`.
fn is_product(text: &[u8], end: usize) -> bool {
    matches!(text[end..], [b'/', b'0'..=b'9', ..])
}

/// A known word of a text.
struct Word {
    start: usize,
    end: usize,
    hint: ContextFlags,
}

/// The known words of `text`. A word of ASCII letters counts only as a whole word.
fn words(text: &[u8]) -> impl Iterator<Item = Word> {
    let letter = |index: Option<usize>| {
        index
            .and_then(|index| text.get(index))
            .is_some_and(u8::is_ascii_alphabetic)
    };
    WORDS_AUTOMATON
        .iter()
        .flat_map(move |automaton| automaton.find_overlapping_iter(text))
        .filter_map(move |found| {
            let (word, hint) = WORDS[found.pattern().as_usize()];
            let bounded =
                |edge: Option<u8>, beside| !edge.is_some_and(|byte| byte.is_ascii_alphabetic()) || !letter(beside);
            (bounded(word.bytes().next(), found.start().checked_sub(1))
                && bounded(word.bytes().last(), Some(found.end()))
                && (!word.starts_with("문자") || is_message(&text[..found.start()], &text[found.end()..])))
            .then_some(Word {
                start: found.start(),
                end: found.end(),
                hint,
            })
        })
}

/// Returns true if 문자 between these texts means a message, and is not part of another word such as 주문자 or 문자열.
fn is_message(before: &[u8], after: &[u8]) -> bool {
    const PARTICLES: [&str; 8] = ["로", "는", "를", "도", "만", "주세요", "메시지", "메세지"];
    let is_syllable = |bytes: &[u8; 3]| {
        std::str::from_utf8(bytes).is_ok_and(|text| text.starts_with(|sign| ('가'..='힣').contains(&sign)))
    };
    !before.last_chunk().is_some_and(is_syllable)
        && (!after.first_chunk().is_some_and(is_syllable)
            || PARTICLES.iter().any(|particle| after.starts_with(particle.as_bytes())))
}

/// The automaton of all words. The patterns are constants, so building cannot fail; a test builds it.
static WORDS_AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(WORDS.iter().map(|(word, _)| word))
        .ok()
});

/// Each word with its meaning. ASCII words match in any case, other words as they are spelled here.
static WORDS: LazyLock<Vec<(&'static str, ContextFlags)>> = LazyLock::new(|| {
    LISTS
        .iter()
        .flat_map(|(hint, words)| words.split('|').map(|word| (word.trim(), *hint)))
        .collect()
});

const LISTS: [(ContextFlags, &str); 20] = [
    (
        ContextFlags::PHONE,
        "phone|phones|telephone|telephones|tel|cell phone|cellphone|cell number|call me|text me|\
         call us|call at|call on|sms to|contact me|contact us|contact at|contact on|mobile number|mobile no|contact number|\
         contact no|fax number|문자 주세요|문자주세요|문자 남겨|문자 보내|문자메시지|문자 메시지|\
         whatsapp|wa.me|callto|ring me|handynummer|telefon|telefonnummer|telefone|telefono|telefonos|mobiltelefon|\
         tel.|movil|celular|cellulare|mobil|mobilnummer|rufnummer|telefoon|telefoonnummer|msisdn|nomor hp|no hp|telp|\
         puhelin|puh|tlf|numer telefonu|komórka|teléfono|móvil|téléphone|tél|Téléphone|Tél|điện thoại|sđt|SĐT|\
         전화|전화번호|휴대폰|핸드폰|휴대전화|연락처|연락|電話|電話番号|携帯|手机|手機|电话|联系方式|联系电话|\
         телефон|Телефон|тел.|Тел.|сотовый|звоните|هاتف|جوال|الهاتف|फोन|मोबाइल|โทร",
    ),
    (ContextFlags::LOOSE, "mobile|mob|call|sms|fax|contact|dial"),
    (ContextFlags::TEXTED, "문자"),
    (
        ContextFlags::CARD,
        "card|cards|credit card|debit card|visa|mastercard|amex|american express|pan|cc|ccn|creditcard|tarjeta|carte|\
         carte bancaire|cb|kreditkarte|kartennummer|karte|carta|cartão|cartao|cvv|cvc|kort|kaart|kortnummer|\
         카드|신용카드|체크카드|カード|クレジット|卡号|信用卡|银行卡|卡號|карта|карты|карту|Карта|картой|بطاقة|कार्ड",
    ),
    (
        ContextFlags::EMAIL,
        "mail|email|e-mail|mailto|emails|correo|courriel|mails|이메일|메일|メール|邮箱|邮件|電郵|почта|почту|почте|البريد|ईमेल",
    ),
    (
        ContextFlags::KR_RESIDENT,
        "rrn|resident registration|resident registration number|resident number|jumin|alien registration|\
         주민등록번호|주민번호|주민등록|주민|외국인등록번호|외국인등록",
    ),
    (
        ContextFlags::US_SSN,
        "ssn|ssns|social security|soc sec|seguro social|ss#|social security number|itin|tax id",
    ),
    (ContextFlags::UK_NINO, "nino|national insurance|ni number|ni no|nin"),
    (
        ContextFlags::ES_DNI,
        "dni|nie|nif|documento nacional|documento de identidad",
    ),
    (ContextFlags::BR_CPF, "cpf|cadastro de pessoas"),
    (ContextFlags::IN_AADHAAR, "aadhaar|aadhar|adhaar|uidai|आधार"),
    (
        ContextFlags::CN_RESIDENT,
        "身份证|身份證|公民身份|id card|resident identity",
    ),
    (
        ContextFlags::FR_NIR,
        "nir|insee|sécurité sociale|securite sociale|sécu|secu",
    ),
    (ContextFlags::PL_PESEL, "pesel"),
    (
        ContextFlags::CA_SIN,
        "social insurance|sin number|sin no|nas|assurance sociale",
    ),
    (ContextFlags::JP_MY_NUMBER, "my number|mynumber|マイナンバー|個人番号"),
    (
        ContextFlags::SE_PERSON,
        "personnummer|personal identity number|samordningsnummer|pnr",
    ),
    (ContextFlags::ID, "id|ids"),
    (
        ContextFlags::THING,
        "uid|uuid|guid|order|orders|invoice|isbn|issn|doi|sku|part|p/n|pn|model|serial|s/n|sn|hash|sha|md5|sha256|commit|\
         tracking|parcel|version|ver|ean|upc|gtin|barcode|imei|iccid|imsi|ref|reference|ticket|case|lot|batch|build|\
         timestamp|epoch|ts|time|nonce|block|tx|txid|transaction|asin|product|item|catalog|cas|patent|rfc|bug|issue|pid|\
         port|offset|size|bytes|count|total|amount|price|sum|key|checksum|crc|seq|sequence|type|brand|status|rate|\
         percent|seed|random|population|revenue|rows|row|records|steps|tokens|params|parameters|digits|pi|prime|accession|\
         coordinates|coords|lat|lon|lng|date|bestellnummer|auftrag|rechnung|artikelnummer|seriennummer|commande|facture|\
         pedido|factura|заказ|заказа|артикул|ordine|bestelling|firmware|hs code|dewey|vin|container|flight|docket",
    ),
    (
        ContextFlags::THING,
        "주문|주문번호|송장|운송장|품번|모델|모델명|사업자|사업자등록번호|고유번호|일련번호|제품|접수번호|문서번호|법인등록번호|\
         바코드|订单|訂單|订单号|単号|注文|注文番号|型番|品番|商品|编号|序列号|伝票|受付番号|発注",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automaton_is_built_from_every_word() {
        let automaton = WORDS_AUTOMATON.as_ref().unwrap();
        assert_eq!(automaton.patterns_len(), WORDS.len());
        assert!(WORDS.iter().all(|(word, _)| !word.is_empty()));
    }

    #[test]
    fn the_last_word_of_a_field_decides() {
        for (name, hint) in [
            ("phone", ContextFlags::PHONE),
            ("homePhone", ContextFlags::PHONE),
            ("order_phone_2", ContextFlags::PHONE),
            ("phone_id", ContextFlags::THING),
            ("PhoneModel", ContextFlags::THING),
            ("ssn", ContextFlags::US_SSN),
            ("hotel", ContextFlags::NONE),
            ("telemetry", ContextFlags::NONE),
            ("주민등록번호", ContextFlags::KR_RESIDENT),
            ("고객_전화번호", ContextFlags::PHONE),
            ("value", ContextFlags::NONE),
            ("mobile", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
            ("contactNumber2", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
            (
                "mobile_users",
                ContextFlags::PHONE.and(ContextFlags::LOOSE).and(ContextFlags::COUNTED),
            ),
            ("call_phone", ContextFlags::PHONE.and(ContextFlags::LOOSE)),
        ] {
            assert_eq!(ContextFlags::of_field(name), hint, "{name}");
        }
    }

    #[test]
    fn the_nearer_word_before_a_number_counts() {
        let near = |text: &str| {
            let start = text.find('#').unwrap();
            ContextFlags::near(text.as_bytes(), start, start + 1)
        };
        assert!(near("card, order #").has(ContextFlags::THING));
        assert!(near("order paid by card #").has(ContextFlags::CARD));
        assert!(!near("order paid by card #").has(ContextFlags::THING));
        assert!(near("# is my phone").has(ContextFlags::PHONE));
        assert!(near("call no. #").has(ContextFlags::PHONE));
        assert_eq!(near("call for papers #"), ContextFlags::LOOSE);
        assert!(near("# (mobile)").has(ContextFlags::PHONE));
        assert_eq!(near("# mobile users"), ContextFlags::LOOSE);
        assert_eq!(near("hotel discard #"), ContextFlags::NONE);
        assert_eq!(near("phone, order of today #"), ContextFlags::NONE);
        assert_eq!(near(&format!("phone {} #", "x".repeat(60))), ContextFlags::NONE);
    }
    #[test]
    fn a_thing_leads_to_its_number() {
        let near = |text: &str| {
            let start = text.rfind("415").unwrap();
            ContextFlags::near(text.as_bytes(), start, text.len())
        };
        for text in [
            "order 415-555-2671",
            "order415-555-2671",
            "Order No.: 415-555-2671",
            "{\"order_id\": \"415-555-2671\"}",
            "the order numbers are 415-555-2671",
            "“order” → (415-555-2671",
            "order 231-555-0000, 415-555-2671",
            "orders nos. 231-555-0000; 212-555-0001 and so on, order 415-555-2671",
            "제품번호는 415-555-2671",
            "제품 번호: 415-555-2671",
            "注文番号は415-555-2671",
            "订单号为 415-555-2671",
            "order 12 34 415 555 2671",
            "order 030/4155552671",
        ] {
            assert_eq!(near(text), ContextFlags::THING, "{text}");
        }
        for text in [
            "order of Kim 415-555-2671",
            "your order, 415-555-2671",
            "order 7, 415-555-2671",
            "order 9231-555-0000, 415-555-2671",
            "order casino 415-555-2671",
            "제품 문의 415-555-2671",
            "注文者 415-555-2671",
        ] {
            assert_eq!(near(text), ContextFlags::NONE, "{text}");
        }
        assert_eq!(near("Employee ID: 415-555-2671"), ContextFlags::ID);
    }
}
