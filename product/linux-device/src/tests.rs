//! What the tests of several modules share.

pub(crate) mod refused_calls;
