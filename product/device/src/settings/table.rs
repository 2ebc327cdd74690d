//! A knob: a row of its owner's table.
//!
//! Owns: rows, tables, the macro that makes an owner's enum and table from one list.
//! Does not own: any knob; values (`values`).
//! Invariants: a row's default is one that the row allows; the enum and the rows of a table are in the same order.

use crate::platform::Nanos;

/// Whether a knob can be set for one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One value for all devices.
    Engine,
    /// One value for all devices, and optionally another for each device.
    Device,
}

/// When a change on a running engine takes effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acts {
    /// At once: everything that depends on it is recomputed, and affected waiters are decided about again.
    AtOnce,
    /// At the next request, call or check that it governs.
    NextUse,
}

/// One row of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnobInfo {
    /// The name, as `--set` takes it.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The value unless set.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// A value allowed beside that range.
    pub special_values: &'static [u64],
    /// The unit of the value.
    pub unit: &'static str,
    /// Whether a device may have its own value.
    pub scope: Scope,
    /// When a change takes effect.
    pub acts: Acts,
    /// The effect of the knob.
    pub doc: &'static str,
}

/// The unit of a knob that is on or off.
const SWITCH: &str = "0 or 1";

impl KnobInfo {
    /// Whether the row can stand in a table: the largest number is reserved for an unset value.
    pub const fn is_sound(&self) -> bool {
        self.is_allowed(self.default) && self.max < u64::MAX
    }

    /// Whether the knob may have this value.
    pub const fn is_allowed(&self, value: u64) -> bool {
        self.min <= value && value <= self.max
            || matches!(self.special_values, [special_values] if *special_values == value)
    }

    /// A value in words: with its unit, or as on or off.
    pub fn told(&self, value: u64, number: impl Fn(u64) -> String) -> String {
        match (self.unit, value) {
            (SWITCH, 0) => "off (0)".to_owned(),
            (SWITCH, _) => format!("on ({})", number(value)),
            (unit, _) => format!("{} {unit}", number(value)),
        }
    }

    /// The values allowed, in words.
    pub fn range(&self) -> String {
        self.range_with(|number| number.to_string())
    }

    /// The knob in a help text: a line with its name, range and default, and the first sentence of what it does.
    pub fn help_with(&self, number: impl Fn(u64) -> String + Copy) -> (String, String) {
        let also = self.aliases.iter().map(|alias| format!("; also {alias}")).collect::<String>();
        let each = if self.scope == Scope::Device { "; each device can have its own" } else { "" };
        let (range, default) = (self.range_with(number), number(self.default));
        let sentence = self.doc.split_once(". ").map_or(self.doc, |(first, _)| first).trim_end_matches('.');
        (format!("{}  {range}, default {default}{each}{also}", self.name), sentence.to_owned())
    }

    /// As [`KnobInfo::range`], with another format of numbers.
    pub fn range_with(&self, number: impl Fn(u64) -> String) -> String {
        let (min, max, unit) = (number(self.min), number(self.max), self.unit);
        match *self.special_values {
            _ if unit == SWITCH => SWITCH.to_owned(),
            [] => format!("{min} to {max} {unit}"),
            [special_values, ..] => format!("{}, or {min} to {max} {unit}", number(special_values)),
        }
    }

    /// The value of a knob that is a time, in nanoseconds. The row knows its unit, so nobody else converts.
    ///
    /// # Panics
    /// If the knob's unit is not one of time.
    pub fn ns(&self, value: u64) -> u64 {
        match self.unit_ns() {
            Some(unit_ns) => value.saturating_mul(unit_ns),
            None => panic!("{} counts {}, which is no time", self.name, self.unit),
        }
    }

    /// The knob's unit in nanoseconds, if it is one of time.
    fn unit_ns(&self) -> Option<u64> {
        match self.unit {
            "centiseconds" => Some(Nanos::CENTISECOND),
            "milliseconds" => Some(Nanos::MILLISECOND),
            _ => None,
        }
    }

    /// The forms of a value, in words.
    pub(super) fn forms(&self) -> &'static str {
        match self.unit {
            "bytes" => "a number, or a size such as 64MiB",
            _ if self.unit_ns().is_some() => "a number, or a time such as 500ms, 30s or 5min",
            _ => "a number",
        }
    }

    /// Whether the text is a size whose unit could mean powers of 1,000 or of 1,024, such as `64m`.
    pub(super) fn is_ambiguous(&self, text: &str) -> bool {
        let unit = text.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic()).to_ascii_lowercase();
        self.unit == "bytes" && matches!(unit.as_str(), "k" | "m" | "g" | "t" | "p")
    }

    /// Parses a text; bytes may have a unit (`64MiB`, `1GB`), and so may times (`500ms`, `1.5h`).
    pub(super) fn read(&self, text: &str) -> Option<u64> {
        let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
        match (self.unit, self.unit_ns()) {
            (_, Some(unit_ns)) if has_unit => units_of_time(text, unit_ns),
            ("bytes", _) => text.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64()),
            // A sign has no meaning, and zeros in front make octal numbers elsewhere.
            _ if text.starts_with('+') || text.len() > 1 && text.starts_with('0') => None,
            _ => text.parse().ok(),
        }
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A time such as `1.5s` in units of `unit_ns`, if it is a whole number of them.
fn units_of_time(text: &str, unit_ns: u64) -> Option<u64> {
    const SECOND: u64 = Nanos::SECOND;
    // `ms` ends in `s`, too.
    const UNITS: [(&str, u64); 4] =
        [("ms", Nanos::MILLISECOND), ("min", 60 * SECOND), ("h", 3_600 * SECOND), ("s", SECOND)];
    let (number, its_ns) = UNITS.iter().find_map(|&(unit, ns)| Some((text.strip_suffix(unit)?.trim_end(), ns)))?;
    let (whole, part) = number.split_once('.').map_or((number, "0"), |parts| parts);
    let is_plain = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(whole) || !is_plain(part) || whole.len() > 1 && whole.starts_with('0') {
        return None;
    }
    let numerator = format!("{whole}{part}").parse::<u128>().ok()?.checked_mul(its_ns.into())?;
    let divisor = 10_u128.checked_pow(part.len().try_into().ok()?)?.checked_mul(unit_ns.into())?;
    (numerator % divisor == 0).then(|| u64::try_from(numerator / divisor).ok())?
}

/// The knobs of one owner. Each table is one static: a registry distinguishes tables by their addresses.
#[derive(PartialEq, Eq, Debug)]
pub struct KnobTable {
    /// The crate that declares and uses them.
    pub owner: &'static str,
    /// Whether a policy owns the knobs. Under another policy they change nothing.
    pub of_policy: bool,
    /// One row for each knob, in the order of help texts.
    pub rows: &'static [KnobInfo],
}

/// An owner's name for a knob of its table.
pub trait TableKnob: Copy {
    /// The owner's table.
    const TABLE: &'static KnobTable;

    /// The knob's row in the table.
    fn row(self) -> usize;

    /// The knob's row.
    fn info(self) -> &'static KnobInfo {
        &Self::TABLE.rows[self.row()]
    }
}

/// Declares an owner's knobs once: the enum for the owner's code, and their table `KNOBS`.
///
/// The word `policy` before the owner marks the knobs of a policy. A row has the variant, the name and optionally an
/// alias, the default, and the range with optionally a value beside it. Then the unit, the
/// [`Scope`](crate::settings::Scope), when a change [acts](crate::settings::Acts), and the knob's effect.
#[macro_export]
macro_rules! knobs {
    ($(#[$about:meta])* $Knob:ident of $($policy:ident)? $owner:literal: $(
        $variant:ident $name:literal $(also $alias:literal)?
        $default:literal in $min:literal..=$max:literal $(or $special_values:literal)?
        $unit:literal $scope:ident $acts:ident $doc:literal;
    )*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum $Knob {
            $(#[doc = $doc] $variant,)*
        }

        #[doc = concat!("The knobs of `", $owner, "`, in the order of [`", stringify!($Knob), "`].")]
        pub static KNOBS: $crate::settings::KnobTable = $crate::settings::KnobTable {
            owner: $owner,
            of_policy: !concat!($(stringify!($policy))?).is_empty(),
            rows: &[$($crate::settings::KnobInfo {
                name: $name,
                aliases: &[$($alias)?],
                default: $default,
                min: $min,
                max: $max,
                special_values: &[$($special_values)?],
                unit: $unit,
                scope: $crate::settings::Scope::$scope,
                acts: $crate::settings::Acts::$acts,
                doc: $doc,
            },)*],
        };

        impl $crate::settings::TableKnob for $Knob {
            const TABLE: &'static $crate::settings::KnobTable = &KNOBS;

            fn row(self) -> usize {
                self as usize
            }
        }

        const _: () = {
            let mut row = 0;
            while row < KNOBS.rows.len() {
                assert!(KNOBS.rows[row].is_sound(), "a default that its row does not allow");
                row += 1;
            }
        };
    };
}
