//! A rule that is broken somewhere.

/// A broken rule: its place, its name, and a text for the developer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    /// A path with a line, or a crate edge.
    pub(crate) place: String,
    pub(crate) rule: &'static str,
    pub(crate) text: String,
}

impl Violation {
    pub(crate) fn new(place: impl Into<String>, rule: &'static str, text: impl Into<String>) -> Self {
        Self { place: place.into(), rule, text: text.into() }
    }
}
