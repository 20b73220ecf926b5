//! The owner of a CSV publishes it, changes it and sees who buys it.
