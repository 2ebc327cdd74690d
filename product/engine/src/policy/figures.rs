//! What a policy has to say of a device: figures that are shown, and what is kept of it until the next start.
//!
//! Owns: the form of both. Does not own: their meaning, which is the policy's alone.
//! Invariants: plain values. Whoever shows or keeps them understands none.

use std::collections::BTreeMap;

/// A row of a policy's table of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureInfo {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// The unit; nothing for a word.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// The value of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureValue {
    /// So much.
    Number(u64),
    /// One of a few words.
    Word(&'static str),
    /// Not known yet, or of no account now.
    Unknown,
}

impl From<u64> for FigureValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<u64>> for FigureValue {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }
}

impl From<&'static str> for FigureValue {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

/// A figure of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figure {
    /// What it is.
    pub info: &'static FigureInfo,
    /// How much.
    pub value: FigureValue,
}

/// What a policy wants kept of a device until the next start, by names of its own.
pub type Remembered = BTreeMap<String, u64>;
