//! The rule about folders of one crate that know nothing of each other.
//!
//! Owns: the pairs of folders.
//! Does not own: circles between files (`circles`), the reading of Rust (`lexer`).
//! Invariants: both folders may import what stands beside them, and neither names the other.

use super::lexer;
use super::violation::Violation;
use crate::repository::TextFile;

/// A crate's source, and the two folders in it: versions of one protocol, of which one may be changed or taken away
/// without the other.
const APART: &[(&str, &str, &str)] = &[("product/nfs/src/", "v3", "v4")];

/// Violations of one Rust file.
pub(crate) fn check(file: &TextFile) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (source, one, other) in APART {
        let Some(rest) = file.path.strip_prefix(source) else { continue };
        let foreign = match rest.split('/').next() {
            Some(folder) if folder == *one => other,
            Some(folder) if folder == *other => one,
            _ => continue,
        };
        let named = lexer::tokens(&file.text).into_iter().find(|token| token.text == *foreign);
        violations.extend(named.map(|token| {
            let text = format!("it names `{foreign}`: code that both need stands beside them");
            Violation::new(format!("{}:{}", file.path, token.line), "folders-apart", text)
        }));
    }
    violations
}
