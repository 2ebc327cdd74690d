//! The settings that decide which callers are answered, and as which user.
//!
//! Owns: reading their values.
//! Does not own: their effects (`frontend_nfs`), their sources (`configuration`).
//! Invariants: an error names the place, the value, and the possible values.

use afflux_nfs::{Network, Squash};

use super::GivenValue;
use afflux_report::failure::{Failure, Outcome};

/// User and group of the anonymous user, by default.
pub(super) const NOBODY: (u32, u32) = (65_534, 65_534);

/// Networks, separated by commas or spaces.
pub(super) fn networks(GivenValue { origin, text }: &GivenValue) -> Outcome<Vec<Network>> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().map_err(|why| Failure::wrong_use(format!("{origin}: {why}")))).collect()
}

pub(super) fn squash(GivenValue { origin, text }: &GivenValue) -> Outcome<Squash> {
    match text.as_str() {
        "root" => Ok(Squash::Root),
        "all" => Ok(Squash::All),
        "none" => Ok(Squash::None),
        _ => Err(Failure::wrong_use(format!("{origin}: '{text}' is none of root, all, none"))),
    }
}

pub(super) fn anonymous(GivenValue { origin, text }: &GivenValue) -> Outcome<(u32, u32)> {
    // The highest number belongs to no user: hosts take it for 'no change'.
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < u32::MAX);
    let pair = text.split_once(':').and_then(|(user, group)| Some((number(user)?, number(group)?)));
    pair.ok_or_else(|| {
        Failure::wrong_use(format!(
            "{origin}: '{text}' is not a user's and a group's number (0 to 4294967294), such as 65534:65534"
        ))
    })
}
