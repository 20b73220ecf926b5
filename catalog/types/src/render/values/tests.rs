use super::*;

#[test]
fn instants_are_as_they_are_shown_elsewhere() {
    let mut micros: i64 = 1;
    for step in 0..200_000_i64 {
        micros = micros.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
        // From the year -1500 to the year 12000, with few and with many digits.
        let instant = micros.rem_euclid(425_000_000_000_000_000) - 109_000_000_000_000_000;
        for instant in [
            instant,
            instant - instant.rem_euclid(1_000),
            instant - instant.rem_euclid(1_000_000),
        ] {
            let mut written = Vec::new();
            timestamp(&mut written, instant);
            let expected = Timestamp::from_micros(instant).to_string();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }
}
