//! Tables of the figures in a status record: each figure stands once, as a field with its unit, kind, names and text.
//!
//! Owns: the form of a record with its table.
//! Does not own: the records; how a view shows their figures.
//! Invariants: a field and its row are one declaration, so neither is without the other.

/// How a figure changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GaugeKind {
    /// A number that describes the present state.
    Now,
    /// A number that grows from the start on.
    Total,
    /// Words, or an object of further figures.
    Word,
}

/// A row of a table.
#[derive(Debug)]
pub struct Gauge<T: 'static> {
    /// The name in JSON.
    pub name: &'static str,
    /// The unit; empty for words.
    pub unit: &'static str,
    /// How it changes.
    pub kind: GaugeKind,
    /// The kernel's name in `/sys/kernel/debug/bdi/*/stats`; empty if it has none.
    pub kernel: &'static str,
    /// The name for Prometheus without its prefix, its unit of time and `_total`; empty if it is not shown there.
    pub metric: &'static str,
    /// One sentence on the meaning, for help texts and pages.
    pub doc: &'static str,
    /// The number in a record; none while it is not known.
    pub value: fn(&T) -> Option<u64>,
}

/// A field that is a number.
pub trait Numeric {
    /// The number, if it is known.
    fn number(&self) -> Option<u64>;
}

impl Numeric for u64 {
    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Numeric for u32 {
    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }
}

impl Numeric for Option<u64> {
    fn number(&self) -> Option<u64> {
        *self
    }
}

/// Declares a record and its table. A line has the field with its type, the kind, the name in JSON, the unit, the
/// kernel's name, the name for Prometheus, and the text. Fields in the braces of `own` have no row.
#[macro_export]
macro_rules! gauges {
    ($(#[$meta:meta])* $vis:vis struct $record:ident in $table:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty = $kind:ident $name:literal $unit:literal $kernel:literal
            $metric:literal $doc:literal;)*
    } own {
        $($(#[$own_meta:meta])* $own:ident: $own_type:ty,)*
    }) => {
        $(#[$meta])*
        $vis struct $record {
            $(#[doc = $doc] $(#[$field_meta])* pub $field: $type,)*
            $($(#[$own_meta])* pub $own: $own_type,)*
        }

        #[doc = concat!("The figures of [`", stringify!($record), "`].")]
        $vis static $table: &[$crate::gauges::Gauge<$record>] = &[$($crate::gauges::Gauge {
            name: $name,
            unit: $unit,
            kind: $crate::gauges::GaugeKind::$kind,
            kernel: $kernel,
            metric: $metric,
            doc: $doc,
            value: $crate::gauge_value!($kind $record $field),
        }),*];
    };
}

/// The value of a row.
#[doc(hidden)]
#[macro_export]
macro_rules! gauge_value {
    (Word $record:ident $field:ident) => {
        |_: &$record| None
    };
    ($kind:ident $record:ident $field:ident) => {
        |record: &$record| $crate::gauges::Numeric::number(&record.$field)
    };
}
