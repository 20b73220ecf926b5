//! The event log through its public interface.

#[cfg(test)]
mod embedded;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod torn;
