//! A policy's reports about a device: figures to show, knobs that act otherwise than set, data to keep until the next
//! start.
//!
//! Owns: the form of these. Does not own: their meaning, which only the policy knows.
//! Invariants: plain values. Code that shows or keeps them interprets none.

use std::collections::BTreeMap;
use std::fmt;

/// A row of a policy's table of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureInfo {
    /// The name, with the unit last.
    pub name: &'static str,
    /// The unit; empty for a word.
    pub unit: &'static str,
    /// One sentence on the meaning, for help texts and pages.
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
    /// Value at the moment of the call.
    pub value: FigureValue,
}

/// A knob that does not act on a device with the value that it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnobInForce {
    /// The knob's name.
    pub name: &'static str,
    /// The value in force on the device now; `None` if the knob has no effect there.
    pub value: Option<u64>,
    /// The unit of `value`. It differs from the knob's where the knob's unit cannot express it.
    pub unit: &'static str,
    /// Why the policy decided so, as a sentence.
    pub because: String,
}

impl KnobInForce {
    /// The value in force and the reason, with this format of numbers.
    pub fn told_with(&self, number: impl Fn(u64) -> String) -> String {
        let Self { value, unit, because, .. } = self;
        match value {
            Some(value) => format!("{} {unit} in force: {because}", number(*value)),
            None => format!("no effect: {because}"),
        }
    }
}

impl fmt::Display for KnobInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.told_with(|number| number.to_string()))
    }
}

/// The data of a device that a policy wants kept until the next start, by the policy's own names.
pub type Remembered = BTreeMap<String, u64>;
