//! The language of a text in Latin letters, by its function words.
//!
//! Invariant: one pass over the words; the same text has the same language.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A language that is written in Latin letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatinLanguage {
    /// English.
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
    /// Italian.
    Italian,
    /// Portuguese.
    Portuguese,
    /// Dutch.
    Dutch,
    /// Swedish, Danish or Norwegian.
    Scandinavian,
    /// Polish.
    Polish,
    /// Turkish.
    Turkish,
    /// Indonesian or Malay.
    Indonesian,
    /// Vietnamese.
    Vietnamese,
}

/// Number of languages.
const LATIN_LANGUAGES: usize = 12;

/// The words that tell a language, without those that are spelled alike in another one here and mean something else.
const FUNCTION_WORDS: [(LatinLanguage, &str); LATIN_LANGUAGES] = [
    (
        LatinLanguage::English,
        "the of and to is are was were that this with for from by it its be been has have had not which when we you \
         if then than but or as they their there can could should would will after before each only because while",
    ),
    (
        LatinLanguage::German,
        "der das den dem des und ist sind nicht mit von zu auf für eine einer einem einen ein wird werden wurde wurden \
         sich auch als bei nach aus oder wenn wie nur noch über kann durch haben hat war dass diese dieser dieses",
    ),
    (
        LatinLanguage::French,
        "le les des du et est sont une dans pour pas avec sur que qui par au aux ce cette ces nous vous ne plus mais \
         ou si été être ont sans lors leur fait",
    ),
    (
        LatinLanguage::Spanish,
        "el los las una del y es son en que por para con se su sus al lo más pero como este esta fue ser está han hay \
         cuando sin sobre entre también",
    ),
    (
        LatinLanguage::Italian,
        "il gli della delle dei del di è sono che per con una non si nel nella alla da più anche come questo questa \
         stato essere quando dopo ogni",
    ),
    (
        LatinLanguage::Portuguese,
        "o os as do da dos das em no na nos nas que um uma para com não é são se por mais como foi ser está ao também \
         quando isso você",
    ),
    (
        LatinLanguage::Dutch,
        "het een van en de is zijn niet met voor op aan dat die te bij ook als naar maar om wordt worden werd uit kan \
         dan deze heeft",
    ),
    (
        LatinLanguage::Scandinavian,
        "och att det som en på är av för med den till inte har ett og er ikke til af fra kan vi om var vid eller",
    ),
    (
        LatinLanguage::Polish,
        "i w na z że się nie do jest to są dla po od przez jak oraz ale lub przy tym który która które był było może",
    ),
    (
        LatinLanguage::Turkish,
        "ve bir bu için ile da de olarak olan daha çok gibi kadar sonra ancak veya değil her göre ise",
    ),
    (
        LatinLanguage::Indonesian,
        "dan yang di untuk dengan dari pada ini itu adalah tidak ke akan atau dalam dapat juga oleh sudah",
    ),
    (
        LatinLanguage::Vietnamese,
        "và của là các có được trong cho không với một những này khi để từ đã đến như",
    ),
];

/// The languages of each word, a bit each.
static LANGUAGES_BY_WORD: LazyLock<HashMap<&str, u16>> = LazyLock::new(|| {
    let mut languages: HashMap<&str, u16> = HashMap::new();
    for (index, (_, words)) in FUNCTION_WORDS.iter().enumerate() {
        for word in words.split_whitespace() {
            *languages.entry(word).or_default() |= 1 << index;
        }
    }
    languages
});

/// Returns the language of a text in Latin letters, or `None` if it has too few function words to tell: names and
/// commands have none.
pub fn latin_language(text: &str) -> Option<LatinLanguage> {
    let mut found = [0.0_f32; LATIN_LANGUAGES];
    let words = text.split(|character: char| !(character.is_alphabetic() || character == '\''));
    for word in words.filter(|word| (1..=12).contains(&word.len())) {
        let lower = word.to_lowercase();
        let languages = LANGUAGES_BY_WORD.get(lower.as_str()).copied().unwrap_or(0);
        for (index, count) in found.iter_mut().enumerate() {
            if languages & (1 << index) != 0 {
                // A word of several languages tells little of each.
                *count += 1.0 / f32::from(u16::try_from(languages.count_ones()).unwrap_or(1));
            }
        }
    }
    let best = (0..LATIN_LANGUAGES).max_by(|one, other| {
        // Of two that are equal, the first: English.
        found[*one].total_cmp(&found[*other]).then(other.cmp(one))
    })?;
    (found[best] >= 1.0).then(|| FUNCTION_WORDS[best].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_their_function_words() {
        for (text, expected) in [
            (
                "We measured the median of 40 runs on the same machine.",
                Some(LatinLanguage::English),
            ),
            (
                "Der Server wurde nach dem Update nicht mehr gestartet, weil der Dienst auf dem Port 5432 lief.",
                Some(LatinLanguage::German),
            ),
            (
                "Le temps de réponse est passé de 48 ms à 36 ms avec un index sur la date, sans autre changement.",
                Some(LatinLanguage::French),
            ),
            (
                "La consulta tarda 12 ms cuando los datos están en memoria y 90 ms sin el índice.",
                Some(LatinLanguage::Spanish),
            ),
            (
                "De server wordt niet herstart als het geheugen vol is.",
                Some(LatinLanguage::Dutch),
            ),
            (
                "A consulta não usa o índice quando o tipo da coluna é outro.",
                Some(LatinLanguage::Portuguese),
            ),
            (
                "Sorgu 12 ms sürdü ve bir dizin ile daha hızlı oldu.",
                Some(LatinLanguage::Turkish),
            ),
            ("cargo build --release && ./run", None),
            ("", None),
        ] {
            assert_eq!(latin_language(text), expected, "{text}");
        }
    }
}
