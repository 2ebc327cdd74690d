//! The part of the pages that a cache holds.
//!
//! Owns: its forms: a number N, which means 1/N, and a fraction as 9/10.
//! Does not own: the parts that are run.
//! Invariants: a part is at most all pages.

use serde_json::Value;

const OF_MAX: u64 = 1024;

/// So many of so many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part(pub(super) u64, pub(super) u64);

impl Part {
    /// The pages of a cache that holds this part of so many.
    pub(super) fn of(self, pages: u64) -> u64 {
        pages * self.0 / self.1
    }

    /// The part that a text names.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (some, all) = text.split_once('/').unwrap_or(("1", text));
        let number = |text: &str| text.parse().ok().filter(|number| (1..=OF_MAX).contains(number));
        number(some).zip(number(all)).map(|(some, all)| Self(some, all)).filter(|part| part.0 < part.1).ok_or_else(|| {
            format!("'{text}' is no number from 2 to {OF_MAX}, which means one in so many, and no fraction below 1, as 9/10")
        })
    }

    /// As it stands in rows: N for 1/N.
    pub(super) fn value(self) -> Value {
        if self.0 == 1 { self.1.into() } else { self.to_string().into() }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, form: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(form, "{}/{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests;
