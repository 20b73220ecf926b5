//! The event log through its public interface.

#[cfg(test)]
mod embedded;
#[cfg(test)]
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod torn;
