//! Numbers and sizes as people read them.

/// Returns a number with a comma between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    grouped_digits(&number.to_string())
}

/// Returns the digits of a whole number with a comma between each three.
pub(crate) fn grouped_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns an amount of micro-USDC in USDC, to the millionth.
pub(crate) fn usdc(micro: i64) -> String {
    // In integers: a double has no exact hundredth, and a ledger that shows rounded amounts does not
    // add up.
    format!("{}.{:06}", micro / 1_000_000, (micro % 1_000_000).abs())
}

/// Returns an amount of micro-USDC in dollars with at least two decimals; nothing is 0.
pub(crate) fn price(micro: i64) -> String {
    if micro == 0 {
        return "0".to_owned();
    }
    let text = usdc(micro);
    // A price below a cent is shown whole, and a usual one as it stands on a label.
    let (cents, rest) = text.split_at(text.len() - 4);
    format!("{cents}{}", rest.trim_end_matches('0'))
}

/// Returns an amount of micro-USDC with its sign.
pub(crate) fn usdc_signed(micro: i64) -> String {
    // The minus of mathematics has the width of the plus, so amounts stand below each other.
    let sign = if micro < 0 { '\u{2212}' } else { '+' };
    // Unlike `abs`, it has a value for the least integer too.
    let micro = micro.unsigned_abs();
    format!("{sign}{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// Returns a number with the word for one or for several.
pub(crate) fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { several })
}

/// Returns a size in the largest binary unit of which there is at least one, with one decimal below ten.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut whole, mut tenths, mut unit) = (bytes, 0, 0);
    while whole >= 1024 && unit + 1 < UNITS.len() {
        // Cut and not rounded: rounded, the tenths could be ten.
        tenths = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit += 1;
    }
    let name = UNITS[unit];
    if unit > 0 && whole < 10 {
        format!("{whole}.{tenths} {name}")
    } else {
        format!("{} {name}", grouped(whole))
    }
}
