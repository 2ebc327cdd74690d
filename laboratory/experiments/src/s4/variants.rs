//! The servers of s4: the law of each, and how long it lives.
//!
//! Owns: the variants and their names.
//! Does not own: the servers (`server`), the copies (`simulated`).
//! Invariants: variants stand in the order of the tables.

use afflux_engine::settings::did_you_mean;

/// The law of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Law {
    /// Linux 3.6 with the seed's patch.
    Linux,
    /// As [`Law::Linux`], but with the bandwidth estimate of later kernels.
    LinuxByCompletions,
    /// The engine's own law.
    Afflux,
}

/// The law of a variant, and the life of its servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) law: Law,
    /// Whether one server has all copies of a column, one after the other, instead of a new server for each.
    pub(super) keeps: bool,
}

/// The name of the engine under its own policy.
pub(super) const OWN: &str = "afflux";

const VARIANTS: [Variant; 5] = [
    Variant { name: "linux-3.6", law: Law::Linux, keeps: false },
    Variant { name: "linux-3.6-kept", law: Law::Linux, keeps: true },
    Variant { name: "linux-3.6-completions", law: Law::LinuxByCompletions, keeps: false },
    Variant { name: "linux-3.6-completions-kept", law: Law::LinuxByCompletions, keeps: true },
    Variant { name: OWN, law: Law::Afflux, keeps: false },
];

/// The default of the option: all of them.
pub(super) const ALL: &str = "linux-3.6,linux-3.6-kept,linux-3.6-completions,linux-3.6-completions-kept,afflux";

impl Variant {
    /// The variant of this name.
    ///
    /// # Errors
    /// The known names.
    pub(super) fn read(name: &str) -> Result<Self, String> {
        let found = VARIANTS.into_iter().find(|variant| variant.name == name);
        found.ok_or_else(|| {
            let meant = did_you_mean(name, VARIANTS.iter().map(|variant| variant.name));
            format!("there is no variant '{name}'{meant}; there are {ALL}")
        })
    }
}
