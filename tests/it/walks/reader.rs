//! A reader finds a unit, buys it and reads its text.
