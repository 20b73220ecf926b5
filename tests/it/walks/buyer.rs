//! A buyer finds a dataset, pays for it and reads its rows.
