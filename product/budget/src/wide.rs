//! Products that may not fit in a word.
//!
//! Owns: quotients of products. Does not own: their factors.
//! Invariants: exact, however large the product; a quotient that does not fit is the largest number.

/// `of * by / over`. Nearly every product fits in a word, and then the division is one instruction instead of a call:
/// decisions consist of these.
///
/// # Panics
/// If `over` is 0.
pub(crate) const fn mul_div(of: u64, by: u64, over: u64) -> u64 {
    if let Some(product) = of.checked_mul(by) {
        return product / over;
    }
    let quotient = of as u128 * by as u128 / over as u128;
    if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
}

/// `of / by`, a call only if one of them does not fit in a word.
///
/// # Panics
/// If `by` is 0, or `of` is the least number and `by` is -1.
pub(crate) fn div(of: i128, by: i128) -> i128 {
    match (i64::try_from(of), i64::try_from(by)) {
        (Ok(of), Ok(by)) if by > 0 => (of / by).into(),
        _ => of / by,
    }
}

#[cfg(test)]
mod tests;
