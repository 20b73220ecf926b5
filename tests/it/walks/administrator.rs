//! An administrator finds an account, suspends and restores it, and reads the figures of the business.
