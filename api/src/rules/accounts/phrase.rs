//! Phrases by which a person recognizes the claim of an agent: four plain words.
//!
//! Invariant: a phrase has 32 random bits. It is no secret that proves anything alone: it tells claims apart.

/// Number of words of a phrase.
const WORDS: usize = 4;

/// Words of phrases: plain English words that are told apart when spoken.
#[rustfmt::skip]
const LIST: [&str; 256] = [
    "amber", "anchor", "apple", "apron", "arrow", "aspen", "atlas", "autumn", "bacon", "badge", "bagel", "bamboo",
    "banjo", "barley", "basil", "basket", "beacon", "beaver", "bench", "berry", "birch", "bishop", "blanket",
    "blossom", "bonfire", "border", "bottle", "breeze", "brick", "bridge", "bronze", "brook", "bucket", "buffalo",
    "bundle", "butter", "button", "cabin", "cactus", "camel", "candle", "canoe", "canvas", "canyon", "carbon",
    "carpet", "carrot", "castle", "cedar", "cello", "chalk", "cherry", "chestnut", "cinder", "circle", "citrus",
    "clover", "cobalt", "coconut", "comet", "compass", "copper", "coral", "cotton", "cradle", "crater", "crayon",
    "cricket", "crimson", "crystal", "cypress", "daisy", "dancer", "delta", "desert", "diamond", "dolphin", "domino",
    "donkey", "dragon", "drizzle", "eagle", "easel", "echo", "eclipse", "elbow", "elder", "ember", "engine",
    "evening", "falcon", "feather", "fender", "fennel", "fiddle", "finch", "flannel", "flute", "forest", "fossil",
    "fountain", "fox", "galaxy", "garden", "garlic", "gazelle", "ginger", "glacier", "glider", "granite", "grape",
    "gravel", "guitar", "hammer", "harbor", "harvest", "hazel", "helmet", "heron", "hickory", "honey", "horizon",
    "hornet", "indigo", "insect", "island", "ivory", "jacket", "jaguar", "jasmine", "jersey", "jigsaw", "jungle",
    "juniper", "kayak", "kernel", "kettle", "kitten", "koala", "ladder", "lagoon", "lantern", "lemon", "lentil",
    "leopard", "library", "lilac", "linen", "lizard", "lobster", "locket", "lotus", "lumber", "magnet", "mango",
    "maple", "marble", "meadow", "melon", "mercury", "meteor", "mirror", "mosaic", "mountain", "muffin", "mustard",
    "napkin", "nectar", "nickel", "noodle", "nutmeg", "oasis", "ocean", "olive", "onion", "opal", "orange", "orbit",
    "orchid", "otter", "oyster", "paddle", "panther", "papaya", "parade", "parrot", "pebble", "pelican", "pencil",
    "pepper", "piano", "pigeon", "pillow", "pilot", "planet", "plaza", "plum", "pocket", "polar", "pony", "poplar",
    "poppy", "prairie", "puffin", "pumpkin", "puzzle", "quartz", "quiver", "rabbit", "radar", "radish", "ranger",
    "raven", "ribbon", "river", "robin", "rocket", "saddle", "saffron", "salmon", "sandal", "sapphire", "satin",
    "scarlet", "shadow", "silver", "sparrow", "spruce", "squirrel", "stable", "summer", "sunset", "tango", "teapot",
    "temple", "thistle", "thunder", "tiger", "timber", "tomato", "trumpet", "tulip", "tundra", "turtle", "umbrella",
    "valley", "vanilla", "velvet", "violet", "wagon", "walnut", "walrus", "willow", "winter", "zebra", "zenith",
];

/// Generates a phrase from the system's random source. Fails if that is not available.
pub(crate) fn phrase() -> Result<String, getrandom::Error> {
    let mut bytes = [0; WORDS];
    getrandom::fill(&mut bytes)?;
    // A byte chooses one of 256 words, each equally likely.
    Ok(bytes.map(|byte| LIST[usize::from(byte)]).join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_has_four_words_of_the_list() {
        let phrase = phrase().unwrap();
        let words: Vec<_> = phrase.split('-').collect();
        assert_eq!(words.len(), WORDS);
        assert!(words.iter().all(|word| LIST.contains(word)), "{phrase}");
    }

    #[test]
    fn the_words_differ_and_are_lower_case() {
        let mut words = LIST.to_vec();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), LIST.len());
        assert!(
            words
                .iter()
                .all(|word| word.chars().all(|letter| letter.is_ascii_lowercase()))
        );
    }
}
