//! A moderator decides reports on their evidence, and takes a decision back.
