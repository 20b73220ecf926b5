//! Letters that look like one of the Latin alphabet.
//!
//! Invariant: the work is linear in the text.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Look-alikes of each letter in Cyrillic, Greek, Armenian, Cherokee, and among the small capitals and the letters with a
/// stroke of the Latin script (a part of the confusables of UTS #39).
const ALIKE: [(char, &str); 26] = [
    ('a', "аАαΑɑᴀᎪ"),
    ('b', "вВЬьΒʙƄᏴ"),
    ('c', "сСϲϹᴄᏟ"),
    ('d', "ԁԀɗᴅᎠđժ"),
    ('e', "еЕεΕҽєᴇᎬ℮ɛ"),
    ('f', "ғƒꜰϝϜ"),
    ('g', "ɡցɢᏀԍ"),
    ('h', "һҺнНΗʜᎻհ"),
    ('i', "іІιΙɩıɪᎥ"),
    ('j', "јЈϳᴊᎫ"),
    ('k', "кКκΚᴋᏦ"),
    ('l', "ӏӀǀʟᏞłւ∣"),
    ('m', "мМΜᴍᎷ"),
    ('n', "пΝηɴոռ"),
    ('o', "оОοΟσօՕᴏø"),
    ('p', "рРρΡᴘᏢ"),
    ('q', "ԛԚզ"),
    ('r', "гɾʀᎡᴦ"),
    ('s', "ѕЅꜱƽՏᏚ"),
    ('t', "тТτΤᴛᎢŧ"),
    ('u', "υսՍʋᴜ"),
    ('v', "νѵѴᴠᏙ"),
    ('w', "ԝԜωᴡѡᎳ"),
    ('x', "хХχΧ"),
    ('y', "уУγΥүҮʏ"),
    ('z', "ΖᴢᏃ"),
];
/// Signs that are read as a letter inside a word.
const SIGNS: [(char, char); 5] = [('|', 'l'), ('!', 'i'), ('$', 's'), ('@', 'a'), ('€', 'e')];

/// Returns a name in lower case and without blanks, marks and signs, its look-alikes as the letters that they look like. With
/// `reads_signs`, so are signs.
pub(super) fn plain(name: &str, reads_signs: bool) -> String {
    let mut plain = String::with_capacity(name.len());
    // The compatibility form has the letters of other widths and of mathematics as plain ones, and marks apart.
    for letter in name.nfkd().filter(|letter| !is_combining_mark(*letter)) {
        let alike = ALIKE.iter().find(|(_, alike)| alike.contains(letter));
        let sign = SIGNS.iter().find(|(sign, _)| reads_signs && *sign == letter);
        match (alike, sign) {
            (Some((latin, _)), _) | (None, Some((_, latin))) => plain.push(*latin),
            (None, None) if letter.is_alphanumeric() => plain.extend(letter.to_lowercase()),
            (None, None) => {}
        }
    }
    plain
}
