//! A policy's reports about a device: figures to show, and data to keep until the next start.
//!
//! Owns: the form of both. Does not own: their meaning, which only the policy knows.
//! Invariants: plain values. Code that shows or keeps them interprets none.

use std::collections::BTreeMap;

/// A row of a policy's table of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureInfo {
    /// The name, with the unit last.
    pub name: &'static str,
    /// The unit; empty for a word.
    pub unit: &'static str,
    /// The meaning.
    pub doc: &'static str,
}

/// The value of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureValue {
    /// A number in the figure's unit.
    Number(u64),
    /// One of a few words.
    Word(&'static str),
    /// Not known yet, or without meaning now.
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
    /// The row in the table.
    pub info: &'static FigureInfo,
    /// The value.
    pub value: FigureValue,
}

/// The data of a device that a policy wants kept until the next start, by the policy's own names.
pub type Remembered = BTreeMap<String, u64>;
