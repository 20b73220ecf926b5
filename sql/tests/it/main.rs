//! The sandbox from outside: real tables, real processes, real limits.

#[cfg(test)]
mod blowups;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod differential;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod repeatable;
#[cfg(test)]
mod results;
#[cfg(test)]
mod sandbox;
