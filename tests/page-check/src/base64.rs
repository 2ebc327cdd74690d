//! Base64, as the browser sends bytes.
//!
//! Owns: decoding.
//! Does not own: encoding.
//! Invariants: a text with other characters, or of an impossible length, is `None`.

#[cfg(test)]
mod tests;

/// The bytes of a text in the standard alphabet.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for &digit in group {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        // Four digits are three bytes, three are two, two are one; a single digit is invalid.
        let missing = 4 - group.len();
        let whole = (bits << (6 * missing)).to_be_bytes();
        bytes.extend(whole.get(1..4 - missing).filter(|_| missing < 3)?);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
