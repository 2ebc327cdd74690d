//! Enums whose variants have names.
//!
//! Owns: the macro that declares such an enum from one list.
//! Does not own: any enum.
//! Invariants: a variant, its meaning and its name stand in one row.

/// Declares an enum, the list of its variants by number, and their names.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $Enum:ident: $($(#[$meaning:meta])* $variant:ident $name:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(usize)]
        pub enum $Enum {
            $($(#[$meaning])* $variant,)*
        }

        impl $Enum {
            /// All of them, by number.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Name in knobs, figures and reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
