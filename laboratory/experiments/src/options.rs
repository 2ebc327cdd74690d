//! Typed options: name, unit, range and default are defined once, and all experiments refuse a value in the same words.
//!
//! Owns: the form of a declaration, the wording of a refusal, which names the value and the range.
//! Does not own: the options and their ranges (the experiments).
//! Invariants: the value of an option is in its range.

use std::ops::RangeInclusive;

use afflux_engine::settings::did_you_mean;
use afflux_simulator::catalogue::Unit;

use crate::experiment::{LabError, OptionInfo, Request, SWITCH_ON};

/// Declares options, and a list of all of them. Options of other modules may stand in brackets, and come last. Without
/// a list they are declared alone. An option has its help as a comment, then its kind with its name, kind of value and
/// default. Whatever else the kind needs follows.
macro_rules! options {
    ($visible:vis $all:ident $([$($more:path),+])? { $(
        $(#[doc = $doc:literal])+
        $own:vis $name:ident: $type:ty = $kind:ident($option:expr, $value:expr, $default:expr $(, $rest:expr)*);
    )+ }) => {
        $crate::options::options! { $(
            $(#[doc = $doc])+
            $own $name: $type = $kind($option, $value, $default $(, $rest)*);
        )+ }

        /// All options, in the order of the help.
        $visible const $all: &[$crate::experiment::OptionInfo] = &[$($name.info,)+ $($($more.info),+)?];
    };
    ($(
        $(#[doc = $doc:literal])+
        $own:vis $name:ident: $type:ty = $kind:ident($option:expr, $value:expr, $default:expr $(, $rest:expr)*);
    )+) => { $(
        $own const $name: $crate::options::TypedOption<$type> = {
            let (name, value, default) = ($option, $value, $default);
            let doc = concat!($($doc),+).trim_ascii();
            $crate::options::$kind($crate::experiment::OptionInfo { name, value, default, doc }, $($rest),*)
        };
    )+ };
}
pub(crate) use options;

/// Declares the values of a run as a struct and its constructor. A field tells how its value is read, by those before.
macro_rules! values {
    ($(#[$about:meta])* $visible:vis struct $values:ident = $read:ident($request:ident) {
        $($(#[$what:meta])* $own:vis $name:ident: $type:ty = $value:expr,)+
    }) => {
        $(#[$about])*
        $visible struct $values { $($(#[$what])* $own $name: $type,)+ }

        impl $values {
            $visible fn $read($request: &$crate::experiment::Request) -> Result<Self, $crate::experiment::LabError> {
                $(let $name: $type = $value;)+
                Ok(Self { $($name,)+ })
            }
        }
    };
}
pub(crate) use values;

/// A type whose values have words, in options and in rows.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// All values, each with its word.
    const ALL: &'static [(&'static str, Self)];

    /// The word for a value.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

/// Declares a [`Named`] type.
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $type:ident { $($(#[$what:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        $visible enum $type { $($(#[$what])* $value,)+ }

        impl $crate::options::Named for $type {
            const ALL: &'static [(&'static str, Self)] = &[$(($name, Self::$value),)+];
        }
    };
}
pub(crate) use named;

/// The value that a text names.
fn value_named<T: Named>(text: &str) -> Result<T, String> {
    let names = T::ALL.iter().map(|(name, _)| *name);
    let found = T::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let near = did_you_mean(text, names.clone());
        format!("'{text}'{near} is none of {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// An option, and how to read its value.
pub(crate) struct TypedOption<T: 'static> {
    pub(crate) info: OptionInfo,
    reader: Reader<T>,
}

enum Reader<T: 'static> {
    Amount { what: &'static str, examples: &'static str, unit: Unit, range: RangeInclusive<u64>, of: fn(u64) -> T },
    Parsed(fn(&str) -> Result<T, String>),
}

/// A whole number in a range.
pub(crate) const fn number(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a number", "", Unit::Count, range)
}

/// Bytes in a range.
pub(crate) const fn size(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a size", ", as 65536, 64KiB or 1GB", Unit::Bytes, range)
}

/// Bytes a second in a range.
pub(crate) const fn rate(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a rate", ", as 25MB or 5MiB", Unit::BytesPerSecond, range)
}

const fn amount(
    info: OptionInfo,
    what: &'static str,
    examples: &'static str,
    unit: Unit,
    range: RangeInclusive<u64>,
) -> TypedOption<u64> {
    TypedOption { info, reader: Reader::Amount { what, examples, unit, range, of: std::convert::identity } }
}

/// One of the values of a type that has words for them.
pub(crate) const fn choice<T: Named>(info: OptionInfo) -> TypedOption<T> {
    parsed(info, value_named::<T>)
}

/// Any text.
pub(crate) const fn text(info: OptionInfo) -> TypedOption<String> {
    parsed(info, |text| Ok(text.to_owned()))
}

/// A switch: an option without a value.
pub(crate) const fn switch(info: OptionInfo) -> TypedOption<bool> {
    parsed(info, |text| Ok(text == SWITCH_ON))
}

/// A value with a syntax of its own.
pub(crate) const fn parsed<T>(info: OptionInfo, read: fn(&str) -> Result<T, String>) -> TypedOption<T> {
    TypedOption { info, reader: Reader::Parsed(read) }
}

/// Each refuses a value that is not in the range by a [`LabError::Value`].
impl<T: Clone> TypedOption<T> {
    /// The value given, or the default.
    pub(crate) fn value(&self, request: &Request) -> Result<T, LabError> {
        request.value(&self.info, |text| self.read(text))
    }

    /// The given value, or `None` if the text is empty.
    pub(crate) fn value_if_given(&self, request: &Request) -> Result<Option<T>, LabError> {
        self.has_text(request).then(|| self.value(request)).transpose()
    }

    /// The given value. If there is none, the default, or `quick` in a quick run.
    pub(crate) fn value_or_quick(&self, request: &Request, quick: T) -> Result<T, LabError> {
        if request.quick && !request.gives(&self.info) { Ok(quick) } else { self.value(request) }
    }

    /// The given values, or the defaults, each once.
    pub(crate) fn list(&self, request: &Request) -> Result<Vec<T>, LabError> {
        request.list(&self.info, |text| self.read(text))
    }

    /// The given values. If there are none, the defaults, or in a quick run those of the text `quick`.
    pub(crate) fn list_or_quick(&self, request: &Request, quick: &str) -> Result<Vec<T>, LabError> {
        let is_quick = request.quick && !request.gives(&self.info);
        let read =
            |text: &str| self.list(&Request { given: vec![(self.info.name.to_owned(), text.to_owned())], ..*request });
        if is_quick { read(quick) } else { self.list(request) }
    }

    /// The given values, or `None` if the text is empty.
    pub(crate) fn list_if_given(&self, request: &Request) -> Result<Option<Vec<T>>, LabError> {
        self.has_text(request).then(|| self.list(request)).transpose()
    }

    /// Refuses the value for a reason that the option alone does not know.
    pub(crate) fn refused(&self, request: &Request, why: String) -> LabError {
        LabError::Value { name: self.info.name, value: request.text(&self.info).to_owned(), why }
    }

    fn has_text(&self, request: &Request) -> bool {
        !request.text(&self.info).is_empty()
    }

    /// Reads one value; an error names the values that are allowed.
    pub(crate) fn read(&self, text: &str) -> Result<T, String> {
        match &self.reader {
            Reader::Amount { what, examples, unit, range, of } => {
                let value = unit.parse(text).filter(|value| range.contains(value));
                let (min, max) = (unit.show(*range.start()), unit.show(*range.end()));
                value.map(of).ok_or_else(|| format!("'{text}' is not {what} from {min} to {max}{examples}"))
            }
            Reader::Parsed(read) => read(text),
        }
    }
}

#[cfg(test)]
mod tests;
