//! Error classes: transports look only at [`Kind`], supervisors only at [`Retry`].

/// The meaning of an error to the caller, independent of any transport.
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
    /// The item does not exist, or the caller may not know that it does.
    // One word for both, since a caller that could tell them apart would learn what is hidden.
    NotFound,
    /// The request contradicts the current state.
    Conflict,
    /// The request is larger than a limit.
    TooLarge,
    /// The request is well-formed and refused, such as a reused idempotency key.
    Unprocessable,
    /// A limit on rate or allowance is used up.
    Limited,
    /// A component that the request needs is down; a later try may succeed.
    Unavailable,
    /// A file that the request needs is not what was written; somebody restores it from a copy.
    // Apart from `Internal`: a retry does not help, and the operator has to restore a file and not to
    // report a defect.
    Damaged,
    /// A defect of the service.
    Internal,
}

/// The chance that the same request succeeds later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// The same input fails again.
    Never,
    /// The cause may pass; wait, then try again.
    Backoff,
}

/// Classifies an error for transports and supervisors.
pub trait Classify {
    /// Returns the meaning of the error to the caller.
    fn kind(&self) -> Kind;
    /// Returns whether a retry can help.
    fn retry(&self) -> Retry;
}
