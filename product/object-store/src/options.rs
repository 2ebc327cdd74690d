//! Options of an opening.
//!
//! Owns: their list.
//! Does not own: variables and files, which give the rest.
//! Invariants: a secret is never printed.

use std::fmt;

use crate::waits::RequestWaits;

/// Options of an opening.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The address of a store of one's own, such as `http://store:9000`.
    pub endpoint: Option<String>,
    /// Keys for `s3://`, or an account with its key for `az://`. They win over variables and files.
    pub keys: Option<Keys>,
    /// Hears of requests that wait, each few seconds until [`Store::serve`](crate::Store::serve) is called. A server
    /// has other ways to tell from then on.
    pub told: Option<fn(&str, &RequestWaits)>,
}

/// A pair of keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// The public half.
    pub id: String,
    /// The secret half.
    pub secret: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}
