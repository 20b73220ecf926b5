//! What the reader of an error must do: transports look only at [`Kind`], supervisors only at [`Retry`].

/// What an error means to the caller, independent of any transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request does not match its schema or a value is out of range.
    Invalid,
    /// No credential, or one that is not valid (any more).
    Unauthenticated,
    /// The item must be bought first.
    PaymentRequired,
    /// The credential is valid but may not do this.
    Forbidden,
    /// It does not exist, or the caller may not know that it does.
    NotFound,
    /// It contradicts the current state.
    Conflict,
    /// It is larger than the limit.
    TooLarge,
    /// It is well-formed and refused, such as a reused idempotency key.
    Unprocessable,
    /// A limit on rate or allowance is used up.
    Limited,
    /// A part the request needs is down; try again later.
    Unavailable,
    /// A defect of the service.
    Internal,
}

/// Whether trying the same thing again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same input fails again.
    Never,
    /// The cause may pass; wait, then try again.
    Backoff,
}

/// Classifies an error for transports and supervisors.
pub trait Classify {
    /// What the error means to the caller.
    fn kind(&self) -> Kind;
    /// Whether trying again can help.
    fn retry(&self) -> Retry;
}
