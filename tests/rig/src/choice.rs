//! Words of which one is chosen.
//!
//! Owns: the type that is made of such words.
//! Does not own: the words.
//! Invariants: a refusal names all words.

/// Makes a type of a few words: `choice! { pub Half { Fio = "fio", Redb = "redb" } }`.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* $visible:vis $name:ident { $($variant:ident = $word:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $visible enum $name { $($variant),+ }

        impl $name {
            #[allow(dead_code, reason = "not each of these types is shown")]
            /// The word for this value.
            $visible fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("'{word}' is none of {}", [$($word),+].join(", "))),
                }
            }
        }
    };
}
