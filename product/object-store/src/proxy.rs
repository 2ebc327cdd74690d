//! Proxies that variables name.
//!
//! Owns: which values the client below takes.
//! Does not own: their use (`reqwest` reads the variables as curl does).
//! Invariants: a value that the client would leave out in silence is refused: requests would go another way than the
//! user wants. A value is never shown, since it may have a password.

use reqwest::Url;

use crate::profile::Variables;

/// The variables. `NO_PROXY` takes any text.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Fails with the reason if a variable names no proxy.
pub(crate) fn check_proxies(variables: &Variables) -> Result<(), String> {
    let is_wrong = |name: &&str| variables.get(*name).is_some_and(|text| !text.is_empty() && !is_proxy(text));
    match PROXIES.into_iter().find(is_wrong) {
        Some(name) => Err(format!(
            "{name} names no proxy that can be used; write http://HOST:PORT or https://HOST:PORT, or unset it (SOCKS is \
             not spoken)"
        )),
        None => Ok(()),
    }
}

fn is_proxy(text: &str) -> bool {
    // Other letters have no place in the part of an address before its path.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(letter);
    let (kind, rest) = text.split_once("://").unwrap_or(("http", text));
    let has_place =
        !rest.trim_end_matches('/').contains(['/', '?', '#']) && (text.contains("://") || !rest.ends_with('/'));
    let is_address = || Url::parse(&format!("http://{rest}")).is_ok_and(|url| url.has_host());
    ["http", "https"].contains(&kind) && text.chars().all(is_plain) && has_place && is_address()
}

#[cfg(test)]
mod tests;
