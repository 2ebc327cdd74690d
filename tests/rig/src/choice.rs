//! Words of which one is chosen.
//!
//! Owns: the type that is made of such words.
//! Does not own: the words.
//! Invariants: a refusal names all words.

/// Makes a type of a few words: `choice! { pub Half { Fio = "fio", Redb = "redb" } }`.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* $visible:vis $name:ident {
        $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        $visible enum $name { $($(#[$of])* $variant),+ }

        #[allow(dead_code, reason = "not each of these types is shown or listed")]
        impl $name {
            /// All values.
            $visible const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for this value.
            $visible fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|one| one.word() == word)
                    .ok_or_else(|| format!("'{word}' is none of {}", [$($word),+].join(", ")))
            }
        }
    };
}
